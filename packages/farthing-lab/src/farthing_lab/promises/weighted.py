"""Weighted split conformal: calibrate on one mix of questions for another."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import fsum
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np

from farthing.errors import CalibrationError
from farthing.promises import wording
from farthing.promises.base import Layout, Promise
from farthing.promises.certificate import About, Certificate, FloatArray, IntArray, Threshold
from farthing.promises.figures import Figure, share_of
from farthing.promises.levels import LEVEL, Level, exact_level, level_of
from farthing.promises.observed import Acted, Facts
from farthing.promises.payload import Recorded
from farthing.promises.scores import as_scores, out_of_reach
from farthing.promises.texts import PromiseOption

SHIFTED = (
    "Only covariate shift: given what round 1 shows, of which the weights are made, everything "
    "else is distributed as before, and the weights are likelihood ratios."
)
HIDDEN = "Questions become harder or easier in a way that round 1 does not show."
HEAVIEST = "A new question's weight is at most the largest that was allowed for."


@dataclass(frozen=True)
class Shift(Promise):
    """Coverage for another mix of questions, where only what round 1 shows is of another mix.

    Raises:
        InputError: the level is no probability.
    """

    kind: ClassVar[str] = "shift"
    place: ClassVar[int] = 5
    layout: ClassVar[Layout] = "critical"
    gives: ClassVar[Literal["one", "set"]] = "set"
    weighed_by: ClassVar[str] = "farthing_lab.promises.target_mix:weigh"
    options: ClassVar[tuple[PromiseOption, ...]] = (
        PromiseOption(
            "target",
            "traces of the mix of questions that is to come.",
            "traces",
            "--target FILE, traces of the questions that are to come",
            commands=("calibrate",),
        ),
    )
    compared: ClassVar[bool] = False
    recommended: ClassVar[bool] = False

    level: Level
    target: Any
    """A sample of that mix, of the kind that trained the policy; its grades are not read."""

    def __post_init__(self) -> None:
        level_of(self.level, LEVEL, "0.9")

    @classmethod
    def of_options(cls, alpha: Fraction, given: Mapping[str, Any]) -> Self:
        return cls(1 - alpha, given["target"])

    @property
    def alpha(self) -> Fraction:
        return 1 - level_of(self.level, LEVEL, "0.9")

    def prove(self, evidence: "Weighted", **about: Unpack[About]) -> Certificate:
        return certify(evidence, self.alpha, **about)


@dataclass(frozen=True)
class Weighted:
    """Critical thresholds, and how much likelier each question is where the promise applies."""

    critical: FloatArray
    """[n] kappa* of held-out questions; inf for an unsolvable one, -inf for a solvable one whose
    right answer a budget cannot pay for."""
    weights: FloatArray
    """[n] likelihood ratio of target to calibration mix, up to a common factor."""
    largest: float
    """Largest weight of a new question that the promise covers, in the same units."""
    rule: int | None = None
    """The version of the rule that proves; None: the newest."""

    def __post_init__(self) -> None:
        as_scores(self.critical)
        if self.weights.shape != self.critical.shape:
            raise CalibrationError(
                f"{len(self.critical)} scores but weights of shape {self.weights.shape}"
            )
        all_weights = np.append(self.weights, self.largest)
        if not np.isfinite(all_weights).all() or (all_weights < 0).any() or self.largest == 0:
            raise CalibrationError("weights must be finite and >= 0, and the largest above 0")


class WeightedPromise(Recorded, frozen=True, kw_only=True, tag="weighted"):
    """Coverage over another mix of questions, on average over calibration draws."""

    rule: int = 2  # the first rounded sums of weights
    evidence: ClassVar[type] = Weighted
    right: ClassVar[Literal["answer", "sets", "given"]] = "sets"
    whole_sets: ClassVar[bool] = True

    alpha: Fraction
    """The promised miscoverage."""
    k: int
    """Rank of kappa among the critical thresholds; 0: nothing tighter than everything."""
    effective_n: float
    """Number of equally weighted questions that the n are worth."""

    def sentence(self, of: Certificate) -> str:
        if not self.promises:
            return wording.too_few(of, self.alpha)
        return (
            f"{wording.covered(self.alpha)} under the target mix, if that differs only in what "
            f"round 1 shows and the weights are right, on average over draws of the "
            f"{wording.counted(of, 'calibration questions')} (worth {self.effective_n:.0f}): "
            f"{wording.meaning()}"
        )

    def plain_language(self, of: Certificate) -> str:
        if not self.promises:
            return wording.everything(of)
        mix = "questions of the mix that is to come"
        return wording.of_hundred_covered(self.alpha, questions=mix)

    def recompute(self, evidence: Weighted, of: Certificate) -> Certificate:
        return certify(evidence, self.alpha, **of.about)

    @classmethod
    def asks(cls) -> type[Shift]:
        return Shift

    def realised(self, of: Acted, questions: Facts) -> Figure | None:
        del questions
        return share_of("coverage in the mix of this file", of.covered, self.alpha)


def certify(
    sample: Weighted, alpha: Level, *, fingerprint: str, question_budget_nano: int | None = None
) -> Certificate:
    """Calibrate for another mix of questions by their likelihood ratios: a marginal promise.

    Args:
        sample: the calibration questions and their weights.
        alpha: miscoverage, in (0, 1).
        fingerprint: SHA-256 of the traces that the scores were computed from.
        question_budget_nano: the budget a question that kappa* was computed under; None: without.

    Raises:
        CalibrationError: as `weighted_threshold`.
    """
    found = weighted_threshold(sample, alpha)
    return Certificate(
        promise=WeightedPromise(
            alpha=exact_level(alpha), k=found.k, effective_n=effective_size(sample.weights)
        ),
        kappa=found.kappa,
        n=found.n,
        question_budget_nano=question_budget_nano,
        conditional_on=(SHIFTED, HEAVIEST, wording.HELD_OUT, wording.SAME_SYSTEM, wording.CAPPED),
        invalid_when=(*wording.ends(question_budget_nano), HIDDEN),
        fingerprint=fingerprint,
    )


def weighted_threshold(sample: Weighted, alpha: Level) -> Threshold:
    """Return one threshold that is safe for every new question of weight up to `largest`.

    Such a question is covered with probability at least 1 - alpha over the target mix: the
    threshold of `weighted_thresholds` falls with the weight of the new question.

    Raises:
        CalibrationError: alpha outside (0, 1), or a threshold of -inf: the budget loses too many
            questions, whatever the threshold.

    >>> critical = np.array([0.9, 0.2, 0.5, 0.3, 0.7, 0.4, 0.8, 0.6, 1.0])
    >>> weighted_threshold(Weighted(critical, np.ones(9), 1.0), 0.2)
    Threshold(kappa=0.3, k=2, n=9)
    """
    k = int(_ranks(sample, np.array([sample.largest]), alpha)[0])
    kappa = float(np.sort(sample.critical)[k - 1]) if k else 0.0
    _check_reach(sample, np.array([k]), alpha)
    return Threshold(kappa, k, len(sample.critical))


def weighted_thresholds(sample: Weighted, new_weights: FloatArray, alpha: Level) -> FloatArray:
    """Return the threshold of each new question by its own weight, [m].

    kappa is the k-th smallest critical threshold for the largest k at which those before it and the
    new question together weigh at most alpha of all; 0 (everything) where there is none. With equal
    weights it is that of split conformal.

    Args:
        sample: the calibration questions.
        new_weights: [m] likelihood ratios of the new questions.
        alpha: miscoverage, in (0, 1).

    Raises:
        CalibrationError: as `weighted_threshold`.

    Source: Tibshirani et al. 2019, corollary 1.
    """
    ranks = _ranks(sample, np.asarray(new_weights, dtype=np.float64), alpha)
    _check_reach(sample, ranks, alpha)
    ordered = np.concatenate([[0.0], np.sort(sample.critical)])
    found: FloatArray = ordered[ranks]
    return found


def effective_size(weights: FloatArray) -> float:
    """Return the number of equally weighted questions that are worth as much, (sum w)^2 / sum w^2.

    Source: Kish 1965.

    >>> effective_size(np.ones(200)), effective_size(np.array([1.0, 0, 0, 0]))
    (200.0, 1.0)
    """
    squares = fsum(weights**2)  # exact, whatever the order of the questions
    return fsum(weights) ** 2 / squares if squares else 0.0


def _ranks(sample: Weighted, new: FloatArray, alpha: Level) -> IntArray:
    level, number = exact_level(alpha), float if sample.rule == 1 else Fraction
    order = np.argsort(sample.critical, kind="stable")
    weights = np.array([*map(number, new)], dtype=object)
    # Sums of fractions are exact, so that equal weights give the rank of split conformal.
    before: Any = np.array([number(0), *map(number, sample.weights[order])], dtype=object).cumsum()
    bearable = level.numerator * (before[-1] + weights) - level.denominator * weights
    ranks: IntArray = np.searchsorted(level.denominator * before[:-1], bearable, side="right")
    return ranks


def _check_reach(sample: Weighted, ranks: IntArray, alpha: Level) -> None:
    """Refuse a threshold of -inf, and a rank of 0 where everything is not all there is."""
    gone = sample.critical == -np.inf
    lost = float(sample.weights[gone].sum())
    if lost and (np.maximum(ranks, 1) <= gone.sum()).any():
        raise out_of_reach(lost / float(sample.weights.sum()), exact_level(alpha))
