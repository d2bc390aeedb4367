"""Prove that answers that are given are right: which candidates are tested, and what comes of it.

Everything that could be sure of its answers is judged on training questions (`methods.selective`).
Those that are not hopeless are tested, each at an equal share of delta: training questions are too
few, and sometimes of too different a kind, to say which is best. What is proved holds of all
together, so calibration questions may choose among them.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from farthing.errors import InputError
from farthing.methods.selective.learner import Learned, confident
from farthing.methods.selective.policy import SelectivePolicy
from farthing.methods.selective.single_models import considered
from farthing.process.batch_replay import replay
from farthing.process.operating_points import OperatingPoints
from farthing.promises import kinds
from farthing.promises.base import Certificate
from farthing.promises.kinds.escalated import PassedOn, escalated_point
from farthing.promises.kinds.selective import Answers, candidate_thresholds
from farthing.promises.statistics.fixed_sequence import Candidates
from farthing.recommendation.escalation import EscalationModel
from farthing.recommendation.partial_grades import RightAt, SampledGrades
from farthing.recommendation.played import SETTINGS, PlayedPolicy, QuestionPart, operating_points_of
from farthing.recommendation.promises import Selective
from farthing.recommendation.prove import Promised, Tested
from farthing.traces.arrays import FloatArray
from farthing.traces.grades.named import check_graded

EACH = 20
"""Calibration questions a candidate, at least: few prove nothing at a small share of delta."""


def selective(
    asked: Selective, plays: PlayedPolicy, train: QuestionPart, calibrate: QuestionPart
) -> Promised:
    """Prove what can be proved of a policy and of the plain candidates beside it.

    Args:
        asked: the promise.
        plays: the policy as trained, and the budget a question.
        train: questions that trained it: they choose who is tested, at which thresholds.
        calibrate: questions that it has not seen.

    Raises:
        InputError: questions are to be passed on under a budget a question.
        TooFewTracesError: too few training questions have an answer.
    """
    if asked.escalate is not None and plays.budget is not None:
        raise InputError(
            "a budget a question does not bound what passing it on costs; leave one of the two out"
        )
    if asked.escalate is not None and calibrate.by is not None:
        raise InputError(
            "what is passed on is proved from all grades, and these are of a sample; leave one of "
            "the two out"
        )
    check_graded(train.recorded)
    if isinstance(calibrate.by, SampledGrades):  # a sample is small, and tests the policy alone
        one = confident(plays.policy, train.played, plays.empty, asked.alpha)
        return prove(asked, [one], plays, calibrate)
    found = considered(plays.policy, train.played, plays.empty, asked.alpha)
    return prove(asked, best_first(found, asked, train, len(calibrate.played)), plays, calibrate)


def prove(
    asked: Selective, tested: Sequence[Learned], plays: PlayedPolicy, calibrate: QuestionPart
) -> Promised:
    """Prove what can be proved of some candidates, each at an equal share of delta.

    Args:
        asked: the promise.
        tested: candidates that no calibration question chose.
        plays: what a question may cost; its policy is not read.
        calibrate: questions that none of them has seen.
    """
    rows = [laid_out(one, asked.alpha) for one in tested]
    budget = None if plays.budget is None else plays.budget.of(calibrate.played)
    points = [
        operating_points_of(replay(one.policy, calibrate.played, "allow", budget), kappas)
        for one, kappas in zip(tested, rows, strict=True)
    ]
    about = plays.about(calibrate.played)
    if asked.escalate is None:
        answers, right_at = evidence(tested, rows, points), _right_at(tested, rows)
        if isinstance(calibrate.by, SampledGrades):
            answers = replace(answers, sample=calibrate.by.selective_sample(right_at))
        certificate = kinds.selective.certify(answers, asked.alpha, asked.delta, **about)
        chosen = _chosen(certificate, tested)
        return Promised(certificate, chosen, "allow", Tested(answers, right_at))
    reference = EscalationModel.of(calibrate, asked.escalate)
    points = [
        reference.added(of, one.policy.calls_made(calibrate.played))
        for one, of in zip(tested, points, strict=True)
    ]
    passed = PassedOn(evidence(tested, rows, points), reference.right, asked.escalate)
    certificate = kinds.escalated.certify(passed, asked.alpha, asked.epsilon, asked.delta, **about)
    return Promised(certificate, _chosen(certificate, tested), "allow")


def _right_at(tested: Sequence[Learned], rows: Sequence[FloatArray]) -> RightAt:
    """Return what says of questions whether the answers at the thresholds laid out are right."""
    plays = [
        PlayedPolicy(one.policy, "allow", None).right_at(row)
        for one, row in zip(tested, rows, strict=True)
    ]
    return lambda questions: np.concatenate([right(questions) for right in plays], axis=1)


def _chosen(certificate: Certificate, tested: Sequence[Learned]) -> SelectivePolicy:
    """Return the policy of the candidate that a certificate names; the first if it names none."""
    name = getattr(certificate.promise, "candidate", "")
    return next((one for one in tested if one.name == name), tested[0]).policy


def laid_out(learned: Learned, alpha: Fraction) -> FloatArray:
    """Return the thresholds to test, falling, [G]; at least one."""
    kappas = candidate_thresholds(learned.sure, learned.right, alpha, SETTINGS)
    return kappas[kappas > 0] if (kappas > 0).any() else np.ones(1)


def evidence(
    tested: Sequence[Learned], rows: Sequence[FloatArray], points: Sequence[OperatingPoints]
) -> Answers:
    """Return what the candidates did at the thresholds laid out for each."""
    kappas = np.concatenate(rows)
    return Answers(
        np.concatenate([of.answered for of in points], axis=1),
        np.concatenate([of.correct for of in points], axis=1),
        kappas,
        kappas,
        Candidates(
            np.repeat(np.arange(len(tested)), [len(row) for row in rows]),
            tuple(one.name for one in tested),
            (Fraction(1, len(tested)),) * len(tested),
        ),
        np.concatenate([of.cost_nano for of in points], axis=1),
    )


def best_first(
    found: Sequence[Learned], asked: Selective, train: QuestionPart, n: int
) -> list[Learned]:
    """Return the candidates to test, by training questions alone those first that would do best.

    That is answering most or, where questions are passed on, costing least. Hopeless ones are left
    out: those that would answer less than half of what the best would, or cost more than asking the
    reference everything. Where all are, the first candidate is left; where calibration questions
    are few, so are those that are tested.

    Args:
        found: candidates.
        asked: the promise.
        train: the questions that trained them.
        n: number of calibration questions.
    """
    worth = np.array([_worth(one, asked, train, n) for one in found])
    if asked.escalate is None:
        least = max(worth.max() / 2, 1.0)
    else:
        least = -n * float(EscalationModel.of(train, asked.escalate).cost_nano.mean())
    order = np.argsort(-worth, kind="stable")[: max(n // EACH, 1)]
    return [found[i] for i in order if worth[i] >= least] or list(found[:1])


def _worth(learned: Learned, asked: Selective, train: QuestionPart, n: int) -> float:
    """Return what a candidate would be worth if n questions came out as the training ones did."""
    rows = np.arange(n) % len(learned.sure)
    kappas = laid_out(learned, asked.alpha)
    answered = learned.sure[rows, None] >= kappas
    right = np.broadcast_to(learned.right[rows, None], answered.shape)
    cost = np.broadcast_to(learned.cost_nano[rows, None], answered.shape)
    if asked.escalate is None:
        point = kinds.selective.selective_point(Answers(answered, right), asked.alpha, asked.delta)
        return -np.inf if point is None else float(answered[:, point].sum())
    reference = EscalationModel.of(train, asked.escalate)
    extra = reference.extra_nano(learned.policy.calls_made(train.played))[rows, None]
    whole = Answers(answered, right, cost_nano=cost + np.where(answered, 0, extra))
    passed = PassedOn(whole, reference.right[rows], asked.escalate)
    point = escalated_point(passed, asked.alpha, asked.epsilon, asked.delta)
    return -np.inf if point is None else -float(passed.paired.cost_nano[:, point].sum())
