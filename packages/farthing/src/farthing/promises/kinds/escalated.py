"""Answered where answers are right often enough, else passed on: selective accuracy and parity."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from farthing.errors import CalibrationError
from farthing.promises import wording
from farthing.promises.answers import Answers, at_point, selective_p_values
from farthing.promises.certificate import BoolArray, Certificate
from farthing.promises.chains import SideBySidePayload, shared
from farthing.promises.figures import Figure, accuracy_difference, share_of
from farthing.promises.kinds.parity import COMPARED
from farthing.promises.levels import Level, exact_level, exact_text
from farthing.promises.observed import Acted, Facts
from farthing.promises.paired import Paired, parity_p_values
from farthing.promises.statistics.fixed_sequence import cheapest, point_kappa, proven_each

if TYPE_CHECKING:
    from farthing.promises.base import Promise

HALF = Fraction(1, 2)
"""The share of delta for what is promised of answers given; the rest is for that of the whole."""


def of_given(of: Acted, alpha: Fraction) -> Figure | None:
    """Return the share of answers given that are right; None where none is."""
    given = of.set_size > 0
    what = f"accuracy of the {int(given.sum()):,} answers given"
    return share_of(what, of.best_correct[given], alpha)


@dataclass(frozen=True)
class PassedOn:
    """What each operating point answered by itself, and what the reference says to the rest."""

    answers: Answers
    """`cost_nano` is that of the whole: it holds the reference's call where one is made."""
    reference: BoolArray
    """[n] whether the reference's answer is right."""
    role: str
    """The role that the reference fills."""
    rule: int | None = None
    """The version of the rule that proves; None: the newest."""

    def __post_init__(self) -> None:
        if self.answers.cost_nano is None:
            raise CalibrationError("what passing on costs is not known; give cost_nano")
        if self.reference.shape != self.answers.answered.shape[:1]:
            raise CalibrationError(
                f"{len(self.answers.answered)} questions but the reference has shape "
                f"{self.reference.shape}"
            )

    @property
    def paired(self) -> Paired:
        """The whole, with the reference's answers where nothing was answered, and the reference."""
        answered, cost = self.answers.answered, self.answers.cost_nano
        whole = np.where(answered, self.answers.correct, self.reference[:, None])
        assert cost is not None  # noqa: S101 - checked when it was made
        return Paired(cost, whole, self.reference, role=self.role, rule=self.rule)


class EscalatedPromise(SideBySidePayload, frozen=True, kw_only=True, tag="escalated"):
    """Given answers are right, and with those passed on the whole is close to the reference."""

    rule: int = 2  # the first as of `SelectivePromise` and `ParityPromise`
    evidence: ClassVar[type] = PassedOn
    right: ClassVar[Literal["answer", "sets", "given"]] = "sets"
    withholds: ClassVar[bool] = True
    not_audited: ClassVar[str] = (
        "it passes questions on, and audits are of what it answered by itself"
    )

    alpha: Fraction
    """The promised share of wrong answers among those given by itself."""
    epsilon: Fraction
    """How much accuracy the whole may lose against the reference."""
    reference: str
    """The role that questions are passed on to."""
    points: int
    """Number of operating points."""
    point: int | None = None
    """Index of the promised operating point, from 0; None: none of them is proved."""
    threshold: float | None = None
    """The confidence from which an answer is given."""
    answered: int = 0
    """Number of the n calibration questions that are answered by itself."""
    candidates: int = 1
    """Number of candidates that were tested, each at a share of delta."""
    candidate: str = ""
    """The one that the operating point is of, in words."""
    candidate_delta: Fraction | None = None
    """What of delta it was tested at, for both promises together; None: all."""

    def sentence(self, of: Certificate) -> str:
        """Say what is promised of either part, and at which share of delta."""
        level, epsilon = exact_text(1 - self.alpha), exact_text(self.epsilon)
        if self.point is None:
            claim = (
                f"any operating point answers right with probability {level} and is, with the rest "
                f"passed on, within {epsilon} of {self.reference}'s accuracy, so {self.reference} "
                "answers everything."
            )
            return wording.unproved(self.delta, of, claim)
        chosen = wording.chosen(self.threshold)
        half = exact_text((self.candidate_delta or self.own_delta) * HALF)
        claim = (
            f"an answer that is given by itself is right with probability at least {level}: "
            f"{chosen} answers {self.answered} of them; {self.reference} answers the rest, and the "
            f"accuracy of the whole is above {self.reference}'s minus {epsilon}. Each of the two "
            f"is proved at delta {half}.{wording.candidate(self.candidate, self.candidates)}"
            f"{self.side_by_side()}"
        )
        return wording.confident(self.delta, of, claim)

    def plain_language(self, of: Certificate) -> str:
        """Say what it means for a hundred questions."""
        if not self.promises:
            return f"Nothing cheaper is known to be good enough, so {self.reference} answers."
        passed, wrong = round(100 * (1 - self.answered / of.n)), wording.of_hundred(self.alpha)
        fewer, whose = wording.of_hundred(self.epsilon), self.reference
        return (
            f"About {passed} of 100 questions are passed on to {whose}; at most {wrong} of 100 "
            f"other answers are wrong, and at most {fewer} of 100 questions fewer are answered "
            f"right than by {whose} alone, {wording.how_sure(self.delta)}."
        )

    def recompute(self, evidence: PassedOn, of: Certificate) -> Certificate:
        """Certify again from other answers."""
        return certify(evidence, self.alpha, self.epsilon, self.delta, **of.about)

    def asked(self) -> "Promise":
        """Return the same promise."""
        from farthing.promises.kinds.selective import Selective  # noqa: PLC0415 - asks for this

        return Selective(1 - self.alpha, self.delta, self.reference, self.epsilon)

    @property
    def held_to(self) -> str:
        """The role that the whole is held against."""
        return self.reference

    @property
    def passes_to(self) -> str:
        """The same one, which answers the rest."""
        return self.reference

    def realised(self, of: Acted, questions: Facts) -> Figure | None:
        """Measure what was answered by itself and, beside it, the whole less the reference."""
        if questions.right is None:
            return None
        whole = np.where(of.set_size > 0, of.best_correct, questions.right)
        what = f"accuracy less that of {self.reference}"
        gained = accuracy_difference(whole, questions.right)
        of_whole = Figure(what, *gained, -float(self.epsilon))
        given = of_given(of, self.alpha)
        return of_whole if given is None else replace(given, besides=of_whole)


def certify(
    passed: PassedOn,
    alpha: Level,
    epsilon: Level,
    delta: Level,
    *,
    fingerprint: str,
    question_budget_nano: int | None = None,
) -> Certificate:
    """Choose the cheapest operating point that is proved in both respects.

    Args:
        passed: what each operating point answered, and the reference.
        alpha: share of wrong answers among those given by itself, in (0, 1).
        epsilon: how much accuracy the whole may lose, in (0, 1).
        delta: how often either promise may fail over calibration draws, in (0, 1).
        fingerprint: SHA-256 of the traces that the answers are from.
        question_budget_nano: the budget a question that they were given under; None: without.

    Raises:
        CalibrationError: as `escalated_point`.
    """
    point, answers = escalated_point(passed, alpha, epsilon, delta), passed.answers
    exact_delta = exact_level(delta, "delta")
    return Certificate(
        promise=EscalatedPromise(
            alpha=exact_level(alpha),
            epsilon=exact_level(epsilon, "epsilon"),
            delta=exact_delta,
            reference=passed.role,
            point=point,
            points=answers.answered.shape[1],
            **shared(answers.share),
            **at_point(answers, point, exact_delta * answers.share),
        ),
        kappa=point_kappa(answers.kappas, point),
        n=len(passed.reference),
        question_budget_nano=question_budget_nano,
        conditional_on=(*wording.MENU, COMPARED),
        invalid_when=wording.ends(question_budget_nano),
        fingerprint=fingerprint,
    )


def escalated_point(passed: PassedOn, alpha: Level, epsilon: Level, delta: Level) -> int | None:
    """Return the cheapest operating point that is proved in both respects.

    With confidence 1 - delta over the draw of independent questions Pr[wrong | answered] <= alpha,
    and the accuracy of the whole is above the reference's minus epsilon. Either is tested along the
    same order, from the most cautious point on, at half of delta; by Bonferroni's inequality both
    hold at every point that passes both.

    Returns:
        Its index; None where nothing is proved: the reference answers everything.

    Raises:
        CalibrationError: alpha, epsilon or delta outside (0, 1).

    >>> right = np.ones((100, 1), bool)
    >>> some = Answers(right, right, cost_nano=np.full((100, 1), 7))
    >>> escalated_point(PassedOn(some, right[:, 0], "large"), 0.1, 0.05, 0.1)
    0
    """
    proved = escalated_proved(passed, alpha, epsilon, delta)
    return cheapest(np.flatnonzero(proved), passed.paired.cost_nano)


def escalated_proved(passed: PassedOn, alpha: Level, epsilon: Level, delta: Level) -> BoolArray:
    """Return which operating points are proved in both respects, [G]; see `escalated_point`."""
    answers = passed.answers
    half = exact_level(delta, "delta") * answers.share * HALF
    given = proven_each(selective_p_values(answers, alpha), half, answers.candidates)
    return given & proven_each(parity_p_values(passed.paired, epsilon), half, answers.candidates)
