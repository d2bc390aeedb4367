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

from farthing.bundle.base import Bundle
from farthing.errors import InputError
from farthing.methods.selective.confidence import LEAST
from farthing.methods.selective.learner import SelectiveFit, confident
from farthing.methods.selective.policy import SelectivePolicy
from farthing.methods.selective.single_models import considered
from farthing.process.batch_replay import NestedReplay, replay
from farthing.process.operating_points import OperatingPoints
from farthing.promises.answers import candidate_thresholds
from farthing.promises.base import Promise
from farthing.promises.certificate import Certificate
from farthing.promises.kinds.escalated import PassedOn
from farthing.promises.observed import Facts, PlayedPoints
from farthing.promises.statistics.fixed_sequence import Candidates
from farthing.recommendation.escalation import EscalationModel
from farthing.recommendation.partial_grades import RightAt, SampledGrades
from farthing.recommendation.played import (
    SETTINGS,
    PlayedPolicy,
    ProvingQuestions,
    Questions,
    TrainingQuestions,
    operating_points_of,
)
from farthing.recommendation.played import (
    tested as as_promised,
)
from farthing.recommendation.prove import LaidOut, Proof, Tested
from farthing.traces.arrays import BoolArray, FloatArray
from farthing.traces.grades.overlay import check_graded

EACH = 20
"""Calibration questions a candidate, at least: few prove nothing at a small share of delta."""


def selective(
    asked: Promise, plays: PlayedPolicy, train: TrainingQuestions, calibrate: ProvingQuestions
) -> Proof:
    """Prove what can be proved of a policy and of the plain candidates beside it.

    Args:
        asked: the promise.
        plays: the policy as trained, and the budget a question.
        train: questions that trained it: they choose who is tested, at which thresholds.
        calibrate: questions that it has not seen.
    """
    if asked.passes_to is not None and plays.budget is not None:
        raise InputError(
            "a budget a question does not bound what passing it on costs; leave one of the two out"
        )
    if asked.passes_to is not None and calibrate.by is not None:
        raise InputError(
            "what is passed on is proved from all grades, and these are of a sample; leave one of "
            "the two out"
        )
    check_graded(train.recorded)
    if isinstance(calibrate.by, SampledGrades):  # a sample is small, and tests the policy alone
        one = confident(plays.policy, train.played, plays.empty, asked.alpha)
        return prove_candidates(asked, [one], plays, calibrate)
    found = considered(plays.policy, train.played, plays.empty, asked.alpha)
    return prove_candidates(
        asked, best_first(found, asked, train, len(calibrate.played)), plays, calibrate
    )


def prove_candidates(
    asked: Promise, tested: Sequence[SelectiveFit], plays: PlayedPolicy, calibrate: ProvingQuestions
) -> Proof:
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
    right_at, known = _right_at(tested, rows), Facts()
    if asked.passes_to is not None:
        reference = EscalationModel.of(calibrate, asked.passes_to)
        known = Facts(asked.passes_to, reference.right)
        points = [
            reference.added(of, learned.policy.calls_made(calibrate.played))
            for learned, of in zip(tested, points, strict=True)
        ]
    if isinstance(calibrate.by, SampledGrades):
        known = replace(known, sample=calibrate.by.selective_sample(right_at))
    evidence = asked.evidence(side_by_side(tested, rows, points), known)
    certificate = asked.prove(evidence, **plays.about(calibrate.played))
    what = Tested(evidence, right_at) if asked.passes_to is None else None
    return Proof(certificate, _chosen(certificate, tested), "allow", what)


def prove_laid_out(
    asked: Promise, bundle: Bundle, laid: LaidOut, calibrate: ProvingQuestions
) -> Proof:
    """Prove what can be proved of one policy that says how sure it is, at thresholds laid out.

    Args:
        asked: the promise, at its share of delta.
        bundle: the policy.
        laid: falling thresholds; neither they nor the policy were chosen by these questions.
        calibrate: the questions.
    """
    policy = bundle.policy
    if not isinstance(policy, SelectivePolicy):
        raise TypeError(f"{type(policy).__name__} does not say how sure it is")
    plays, known, row = PlayedPolicy(policy, "allow"), Facts(), laid.row
    points = operating_points_of(calibrate.replay(plays), row)
    if asked.passes_to is not None:
        theirs = EscalationModel.of(calibrate, asked.passes_to)
        known = Facts(asked.passes_to, theirs.right)
        points = theirs.added(points, policy.calls_made(calibrate.played))
    candidates = Candidates(np.zeros(len(row), dtype=np.int64), (laid.name,), (Fraction(1),))
    evidence = asked.evidence(replace(as_promised(points), candidates=candidates), known)
    certificate = asked.prove(evidence, **plays.about(calibrate.played))
    came_to = points.cost_nano, points.correct & points.answered
    if isinstance(evidence, PassedOn):
        came_to = evidence.paired.cost_nano, evidence.paired.correct
    return Proof(certificate, policy, "allow", Tested(evidence, plays.right_at(row), came_to))


def _right_at(tested: Sequence[SelectiveFit], rows: Sequence[FloatArray]) -> RightAt:
    """Return what says of questions whether the answers at the thresholds laid out are right."""
    plays = [
        PlayedPolicy(one.policy, "allow", None).right_at(row)
        for one, row in zip(tested, rows, strict=True)
    ]
    return lambda questions: np.concatenate([right(questions) for right in plays], axis=1)


def _chosen(certificate: Certificate, tested: Sequence[SelectiveFit]) -> SelectivePolicy:
    """Return the policy of the candidate that a certificate names; the first if it names none."""
    name = getattr(certificate.promise, "candidate", "")
    return next((one for one in tested if one.name == name), tested[0]).policy


def laid_out(learned: SelectiveFit, alpha: Fraction) -> FloatArray:
    """Return the thresholds to test, falling, [G]; at least one."""
    return _thresholds(learned.sure, learned.right, alpha)


def laid_out_by(policy: SelectivePolicy, part: Questions, alpha: Fraction) -> FloatArray:
    """Return the same of a trained policy, by questions that have not trained it."""
    replayed = part.replay(PlayedPolicy(policy, "allow"))
    if not isinstance(replayed, NestedReplay):
        raise TypeError("a policy that says how sure it is acts through a threshold")
    sure = replayed.followed.leaf.max(axis=(1, 2))
    return _thresholds(sure, replayed.act(LEAST).best_correct, alpha)


def _thresholds(sure: FloatArray, right: BoolArray, alpha: Fraction) -> FloatArray:
    kappas = candidate_thresholds(sure, right, alpha, SETTINGS)
    return kappas[kappas > 0] if (kappas > 0).any() else np.ones(1)


def side_by_side(
    tested: Sequence[SelectiveFit], rows: Sequence[FloatArray], points: Sequence[OperatingPoints]
) -> PlayedPoints:
    """Return what the candidates did at the thresholds laid out for each."""
    return PlayedPoints(
        correct=np.concatenate([of.correct for of in points], axis=1),
        answered=np.concatenate([of.answered for of in points], axis=1),
        covered=np.concatenate([of.covered for of in points], axis=1),
        cost_nano=np.concatenate([of.cost_nano for of in points], axis=1),
        kappas=np.concatenate(rows),
        candidates=Candidates(
            np.repeat(np.arange(len(tested)), [len(row) for row in rows]),
            tuple(learned.name for learned in tested),
            (Fraction(1, len(tested)),) * len(tested),
        ),
    )


def best_first(
    found: Sequence[SelectiveFit], asked: Promise, train: TrainingQuestions, n: int
) -> list[SelectiveFit]:
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
    if asked.passes_to is None:
        least = max(worth.max() / 2, 1.0)
    else:
        least = -n * float(EscalationModel.of(train, asked.passes_to).cost_nano.mean())
    order = np.argsort(-worth, kind="stable")[: max(n // EACH, 1)]
    return [found[i] for i in order if worth[i] >= least] or list(found[:1])


def _worth(learned: SelectiveFit, asked: Promise, train: TrainingQuestions, n: int) -> float:
    """Return what a candidate would be worth if n questions came out as the training ones did."""
    rows = np.arange(n) % len(learned.sure)
    kappas = laid_out(learned, asked.alpha)
    answered = learned.sure[rows, None] >= kappas
    right = np.broadcast_to(learned.right[rows, None], answered.shape)
    cost = np.broadcast_to(learned.cost_nano[rows, None], answered.shape)
    known, extra = Facts(), None
    if asked.passes_to is not None:
        reference = EscalationModel.of(train, asked.passes_to)
        known = Facts(asked.passes_to, reference.right[rows])
        extra = reference.extra_nano(learned.policy.calls_made(train.played))[rows, None]
    spent = None if extra is None else cost + np.where(answered, 0, extra)
    evidence = asked.evidence(PlayedPoints(right, answered, answered, spent), known)
    return asked.worth(evidence, asked.point(evidence))
