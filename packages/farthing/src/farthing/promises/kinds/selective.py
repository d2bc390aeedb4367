"""Selective accuracy: answer where answers are right often enough, else abstain or escalate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np

from farthing.errors import InputError
from farthing.promises import wording
from farthing.promises.answers import (
    Answers,
    at_point,
    selective_p_values,
    selective_point,
    selective_proved,
)
from farthing.promises.base import Layout, Promise
from farthing.promises.beside_reference import EPSILON, ROOM
from farthing.promises.certificate import About, BoolArray, Certificate, IntArray
from farthing.promises.chains import SideBySidePayload, shared
from farthing.promises.figures import Figure
from farthing.promises.kinds import escalated
from farthing.promises.kinds.escalated import PassedOn, of_given
from farthing.promises.levels import LEVEL, Level, exact_level, exact_text, level_of
from farthing.promises.observed import Acted, Facts, Gradable, PlayedPoints
from farthing.promises.payload import Reads
from farthing.promises.statistics.fixed_sequence import point_kappa
from farthing.promises.statistics.label_selection import SequenceTest, first_failure
from farthing.promises.statistics.power import Wrong, forecast
from farthing.promises.statistics.sampled_mean import Drawn
from farthing.promises.texts import (
    ANSWERED,
    DELTA,
    REALISED,
    Column,
    Goal,
    Means,
    PromiseOption,
    decimal,
    hundredths,
    known,
    percent,
    share,
)

NAME = "Right of those given"


@dataclass(frozen=True)
class Selective(Promise):
    """Answers that are given are right with probability at least `level`.

    With `escalate`, other questions are passed on to that role, and the whole is promised to be as
    often right as that role alone, minus `epsilon` (`kinds.escalated`).

    Raises:
        InputError: a number is no probability.

    >>> Selective(0.95, delta=0.1).alpha
    Fraction(1, 20)
    """

    kind: ClassVar[str] = "selective"
    place: ClassVar[int] = 1
    layout: ClassVar[Layout] = "sure"
    options: ClassVar[tuple[PromiseOption, ...]] = (
        DELTA,
        PromiseOption("epsilon", "", "margin", EPSILON, "escalate", ("calibrate",)),
        PromiseOption(
            "escalate",
            "who answers where the policy is not sure enough, as part of the promise, whose "
            "--epsilon is the accuracy that may be lost.",
            "role",
            commands=("calibrate",),
        ),
    )
    of_alpha: ClassVar[bool] = True
    withholds: ClassVar[bool] = True
    least_proved: ClassVar[float] = 0.5
    wins: ClassVar[str] = "answers most of those that kept the promise"
    beside_metric: ClassVar[str] = ANSWERED
    graded_by: ClassVar[Literal["lot", "judge"] | None] = "lot"

    level: Level
    delta: Level = Fraction(1, 10)
    """How often the promise may fail over calibration draws; with `escalate` half of it is for
    either part."""
    escalate: str | None = None
    """The role that answers where the policy is not sure enough; None: nobody does."""
    epsilon: Level = Fraction(1, 50)
    """Accuracy that the whole may lose against that role."""
    share: Fraction = Fraction(1)
    """Of delta, which of several that are proved side by side each has."""

    def __post_init__(self) -> None:
        level_of(self.level, LEVEL, "0.9")
        level_of(self.delta, "delta")

    @classmethod
    def of_options(cls, alpha: Fraction, given: Mapping[str, Any]) -> Self:
        """Return the one that the command line asks for.

        Raises:
            InputError: somebody is to answer the rest without an epsilon, or the reverse.
        """
        if (given.get("epsilon") is None) != (given.get("escalate") is None):
            raise InputError(f"--escalate ROLE needs {EPSILON}, and that needs a ROLE")
        return cls(1 - alpha, **known(given, "delta", "escalate", "epsilon"))

    @property
    def alpha(self) -> Fraction:
        """The share of wrong answers among those given, exactly."""
        return 1 - level_of(self.level, LEVEL, "0.9")

    @property
    def passes_to(self) -> str | None:
        """The role that answers where the policy is not sure enough."""
        return self.escalate

    @property
    def margin(self) -> Fraction:
        """What the whole may lose against the role that questions are passed on to."""
        return exact_level(self.epsilon, "epsilon")

    @property
    def line(self) -> float:
        """The least share of answers given that are right."""
        return float(1 - self.alpha)

    def at(self, alpha: Fraction) -> Self:
        """Return the same at another share of wrong answers."""
        return replace(self, level=1 - alpha)

    def sharing(self, share: Fraction) -> Self:
        """Return the promise at a share of delta."""
        return replace(self, share=share)

    def reads(self, known: Gradable) -> Reads:
        """What is right; of what chance did not draw nobody needs to know it."""
        return Reads(ungraded=known.by_lot)

    def evidence(self, observed: PlayedPoints, questions: Facts) -> Answers | PassedOn:
        """Take what was answered; where the rest is passed on, with what the reference says."""
        kappas, of = observed.kappas, observed.candidates
        answers = Answers(
            observed.answered,
            observed.correct,
            kappas,
            kappas,
            of,
            observed.cost_nano,
            questions.sample,
            self.share,
        )
        if self.escalate is None or questions.right is None:
            return answers
        return PassedOn(answers, questions.right, self.escalate)

    def point(self, evidence: Answers | PassedOn) -> int | None:
        """Return the proved point that answers most; of the whole the cheapest."""
        if isinstance(evidence, PassedOn):
            return escalated.escalated_point(evidence, self.alpha, self.epsilon, self.delta)
        return selective_point(evidence, self.alpha, self.delta)

    def proved(self, evidence: Answers | PassedOn) -> BoolArray:
        """Return which points are proved; of the whole in both respects."""
        if isinstance(evidence, PassedOn):
            return escalated.escalated_proved(evidence, self.alpha, self.epsilon, self.delta)
        return selective_proved(evidence, self.alpha, self.delta)

    def prove(self, evidence: Answers | PassedOn, **about: Unpack[About]) -> Certificate:
        """Certify that point."""
        if isinstance(evidence, PassedOn):
            return escalated.certify(evidence, self.alpha, self.epsilon, self.delta, **about)
        return certify(evidence, self.alpha, self.delta, **about)

    def prover(
        self, points: PlayedPoints, questions: Facts, n: int
    ) -> Callable[[IntArray], int | None]:
        """Return what proves the point that answers most, whatever it costs."""
        del questions, n
        answered, correct = points.answered, points.correct
        return lambda rows: selective_point(
            Answers(answered[rows], correct[rows]), self.alpha, self.delta
        )

    def testing(self, evidence: Answers) -> SequenceTest:
        """Return how it was tested: from the most cautious point on."""
        delta = float(exact_level(self.delta, "delta"))
        backwards = first_failure(selective_p_values(evidence, self.alpha)[::-1], delta)
        failing = None if backwards is None else evidence.answered.shape[1] - 1 - backwards
        loss = (~evidence.correct).astype(np.float64)
        return SequenceTest(failing, loss, evidence.answered, float(self.alpha), delta)

    def worth(self, evidence: Answers | PassedOn, point: int | None) -> float:
        """Return how many it answers; where the rest is passed on, what it saves of the cost."""
        if point is None:
            return -np.inf
        if isinstance(evidence, PassedOn):
            return -float(evidence.paired.cost_nano[:, point].sum())
        return float(evidence.answered[:, point].sum())

    def figure(
        self, spent_usd: float, right: BoolArray, answered: BoolArray, theirs: BoolArray | None
    ) -> float:
        """Return the share of answers given that are right."""
        del spent_usd, theirs
        return float(right[answered].mean()) if answered.any() else np.nan

    def swept(self, correct: BoolArray, theirs: BoolArray | None) -> None:
        """None: points differ in what they withhold and not in what they cost."""
        del correct, theirs

    def merit(self, means: Means) -> tuple[float, ...]:
        """Who answers most comes first, of equals who costs least."""
        return (-round(means.answered, 12), means.cost_usd)

    def goal(self) -> Goal:
        """Return how it is shown."""
        level = percent(1 - self.alpha)
        return Goal(
            title=f"alpha = {decimal(self.alpha)}: {level} of the answers given are right",
            metric=REALISED,
            name="Accuracy of the answers given",
            line=float(1 - self.alpha),
            level=level,
            asked=f"{level} asked for",
            worst=float(1 - self.alpha) - ROOM,
            beside_metric=self.beside_metric,
        )

    def claim(self, *, alone: bool = True) -> str:
        """Say what is promised of a hundred answers."""
        del alone
        wrong = wording.of_hundred(self.alpha)
        return f"At most {wrong} of 100 answers that are given are wrong; others are withheld."

    def under(self) -> str:
        """Begin a sentence about who wins."""
        return f"With answers right at {decimal(1 - self.alpha)},"

    def result(self, means: Means) -> str:
        """Say how many were answered, and how many of these right."""
        given = hundredths(means.answered)
        return f"{given} of them answered, and {means.realised:.3f} of the answers right"

    def columns(self) -> list[Column]:
        """Return the columns of what is right, and of what is answered."""
        return [
            Column(
                REALISED, "Right of those given", "Right", share, "share of given answers right"
            ),
            Column(ANSWERED, "Answered", "Given", share, "share answered at all"),
        ]


class SelectivePromise(SideBySidePayload, frozen=True, kw_only=True, tag="selective"):
    """Answers that are given are right, with confidence 1 - delta over the calibration draw."""

    rule: int = 2  # the first took calls that were not made for answers withheld
    evidence: ClassVar[type] = Answers
    withholds: ClassVar[bool] = True

    alpha: Fraction
    """The promised share of wrong answers among those given."""
    points: int
    """Number of operating points."""
    point: int | None = None
    """Index of the promised operating point, from 0; None: none of them is proved."""
    threshold: float | None = None
    """The confidence from which an answer is given, where operating points are thresholds."""
    answered: int = 0
    """Number of the n calibration questions that the operating point answers."""
    candidates: int = 1
    """Number of candidates that were tested, each at a share of delta."""
    candidate: str = ""
    """The one that the operating point is of, in words; empty where there is one without a name."""
    candidate_delta: Fraction | None = None
    """What of delta it was tested at; None: all."""
    sample: Drawn | None = None
    """The sample that it is proved by; None: all questions."""

    def sentence(self, of: Certificate) -> str:
        """Say what is promised."""
        level = exact_text(1 - self.alpha)
        if self.point is None:
            claim = (
                f"answers at any confidence are right with probability {level}, so every "
                "question is left unanswered or escalated."
            )
            return wording.unproved(self.delta, of, claim)
        chosen = wording.chosen(self.threshold)
        claim = (
            f"an answer that is given is right with probability at least {level}: {chosen} answers "
            f"{self.answered} of them, and the rest is left unanswered or escalated."
            f"{wording.candidate(self.candidate, self.candidates)}{self._tested()}"
            f"{self.side_by_side()}"
        )
        said = wording.confident(self.delta, of, claim)
        return said if self.sample is None else f"{said} {self.sample.sentence()}"

    def _tested(self) -> str:
        if self.candidates == 1 or self.candidate_delta is None:
            return ""
        return f" Its share of delta is {exact_text(self.candidate_delta)}."

    def plain_language(self, of: Certificate) -> str:
        """Say what it means for a hundred questions."""
        if not self.promises:
            return "No answer may be trusted as often as was asked for, so none is given."
        silent = round(100 * (1 - self.answered / of.n))
        return (
            f"At most {wording.of_hundred(self.alpha)} of 100 answers that are given are wrong, "
            f"{wording.how_sure(self.delta)}; about {silent} of 100 questions get no answer."
        )

    @classmethod
    def asks(cls) -> type[Selective]:
        """Return the record of what is asked for."""
        return Selective

    def recompute(self, evidence: Answers, of: Certificate) -> Certificate:
        """Certify again from other answers."""
        return certify(evidence, self.alpha, self.delta, **of.about)

    def asked(self) -> Selective:
        """Return the same promise."""
        return Selective(1 - self.alpha, self.delta)

    @property
    def right(self) -> Literal["answer", "given"]:  # type: ignore[override]
        """Each answer that is given; where nothing is proved, one a question."""
        return "given" if self.promises else "answer"

    def realised(self, of: Acted, questions: Facts) -> Figure | None:
        """Measure the share of answers given that are right."""
        del questions
        return of_given(of, self.alpha)

    def forecast(self, evidence: Answers, of: Certificate) -> str:
        """Say how many questions, or which alpha, would probably do."""
        return forecast(Wrong.of_answers(evidence), "alpha", self.alpha, self.delta, of.n)


def certify(
    answers: Answers,
    alpha: Level,
    delta: Level,
    *,
    fingerprint: str,
    question_budget_nano: int | None = None,
) -> Certificate:
    """Choose the operating point that answers most among those whose answers are proved right.

    Args:
        answers: of every operating point to the calibration questions.
        alpha: share of wrong answers among those given, in (0, 1).
        delta: how often the promise may fail over calibration draws, in (0, 1).
        fingerprint: SHA-256 of the traces that the answers are from.
        question_budget_nano: the budget a question that they were given under; None: without.

    Raises:
        CalibrationError: as `selective_point`.
    """
    point = selective_point(answers, alpha, delta)
    n, points = answers.answered.shape
    exact_delta = exact_level(delta, "delta")
    own_delta = exact_delta * answers.share
    return Certificate(
        promise=SelectivePromise(
            alpha=exact_level(alpha),
            delta=exact_delta,
            point=point,
            points=points,
            sample=Drawn.of(answers.sample),
            **shared(answers.share),
            **at_point(answers, point, own_delta),
        ),
        kappa=point_kappa(answers.kappas, point),
        n=n,
        question_budget_nano=question_budget_nano,
        conditional_on=(*wording.MENU, *wording.by_lot(answers.sample is not None)),
        invalid_when=wording.ends(question_budget_nano),
        fingerprint=fingerprint,
    )
