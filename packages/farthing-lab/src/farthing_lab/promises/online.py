"""Online calibration: move the threshold after every batch so that errors average out to alpha."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, Unpack

import numpy as np

from farthing.errors import CalibrationError
from farthing.promises import wording
from farthing.promises.certificate import About, Certificate, FloatArray
from farthing.promises.levels import Level, exact_level, exact_text
from farthing.promises.payload import Recorded
from farthing.promises.scores import as_scores

BOUNDED = "Critical thresholds are capped at the bound of the online update."
FROZEN = "The threshold is no longer updated."


@dataclass(frozen=True)
class OnlineThreshold:
    """A threshold that is updated after every batch.

    Raises:
        CalibrationError: settings under which the long-run bound does not hold.
    """

    kappa: float = 0.2
    """The present threshold; not clipped, it acts as min(kappa, 1)."""
    step: float = 0.05
    """First step size, eta_1."""
    decay: float = 0.1
    """xi: the t-th step size is eta_1 t^(-1/2 - xi)."""
    bound: float = 1.0
    """B: critical thresholds are capped here; an unsolvable question's inf breaks the bound."""
    updates: int = 0
    """Number of updates so far."""

    def __post_init__(self) -> None:
        if self.step <= 0 or self.bound <= 0 or not -0.5 <= self.decay < 0.5:
            raise CalibrationError("online: step and bound must be > 0 and decay in [-0.5, 0.5)")
        if self.updates == 0 and not 0 <= self.kappa <= self.bound:
            raise CalibrationError(f"online: kappa must start between 0 and {self.bound:g}")


class OnlinePromise(Recorded, frozen=True, kw_only=True, tag="online"):
    """Coverage in the long run of one stream, while the threshold moves."""

    evidence: ClassVar[type] = OnlineThreshold
    right: ClassVar[Literal["answer", "sets", "given"]] = "sets"
    whole_sets: ClassVar[bool] = True
    caveat: ClassVar[str] = "the online threshold is no longer updated"

    alpha: Fraction
    """The promised miscoverage."""
    bound: float
    """The largest distance of the long-run error from alpha."""

    @property
    def promises(self) -> bool:
        """Whether the bound says anything."""
        return self.bound < 1

    def sentence(self, of: Certificate) -> str:
        if not self.promises:
            return f"{of.n} updates are too few to promise anything about their stream."
        level = exact_text(1 - self.alpha)
        return (
            f"Over the {of.n} updates of its stream the share of questions covered is within "
            f"{self.bound:.3g} of {level}, and nothing is promised once kappa is frozen: "
            f"{wording.meaning()}"
        )

    def plain_language(self, of: Certificate) -> str:
        del of
        if not self.promises:
            return "Nothing is promised yet: the stream of questions was too short."
        give_or_take = f"give or take {wording.of_hundred(self.bound)} of them"
        stream = "questions of a long stream like this one"
        return wording.of_hundred_covered(self.alpha, questions=stream, how_sure=give_or_take)

    @classmethod
    def tracked(cls, critical: FloatArray, alpha: Fraction) -> OnlineThreshold:
        """Return the threshold after a stream of critical thresholds [n]."""
        kappas = run_online(critical, alpha)
        return OnlineThreshold(kappa=float(kappas[-1]), updates=len(kappas) - 1)

    @classmethod
    def certified(
        cls, state: OnlineThreshold, alpha: Fraction, **about: Unpack[About]
    ) -> Certificate:
        """State what a threshold promises."""
        return certify(state, alpha, **about)

    def recompute(self, evidence: OnlineThreshold, of: Certificate) -> Certificate:
        return certify(evidence, self.alpha, **of.about)

    def too_short(self, of: Certificate) -> str:
        if self.promises:
            return ""
        return (
            f"an online promise begins at {updates_needed(OnlineThreshold()):,} updates of 10 "
            f"questions each, and this stream gave {of.n:,}; use --method split or pac"
        )


def certify(
    state: OnlineThreshold,
    alpha: Level,
    *,
    fingerprint: str,
    question_budget_nano: int | None = None,
) -> Certificate:
    """State what an online threshold promises about the stream that it was updated on.

    Args:
        state: the threshold after its last update.
        alpha: the target error, in (0, 1).
        fingerprint: SHA-256 of the traces of the stream.
        question_budget_nano: the budget a question that kappa* was computed under; None: without.

    Raises:
        CalibrationError: alpha outside (0, 1).
    """
    return Certificate(
        promise=OnlinePromise(alpha=exact_level(alpha), bound=long_run_bound(state)),
        kappa=state.kappa,
        n=state.updates,
        question_budget_nano=question_budget_nano,
        conditional_on=(BOUNDED, wording.CAPPED),
        invalid_when=(FROZEN, wording.cut_short(question_budget_nano)),
        fingerprint=fingerprint,
    )


def step_size(state: OnlineThreshold, t: int) -> float:
    """Return the size of the t-th step (t from 1), eta_t = eta_1 t^(-1/2 - xi)."""
    return float(state.step * t ** (-0.5 - state.decay))


def update(
    state: OnlineThreshold, critical: FloatArray, alpha: float | Fraction
) -> OnlineThreshold:
    """Return the threshold after a batch: kappa + eta_t (alpha - err), err = mean miss.

    A miss lowers kappa (equation 9 of CCPO as printed has the sign of a non-conformity score). A
    question is missed when min(kappa*, B) < kappa, with the kappa that was in force.

    Args:
        state: the threshold in force.
        critical: [batch] kappa* of the questions that it has met, not empty.
        alpha: the target error.

    Source: Angelopoulos, Barber and Bates 2024, equation 2.

    >>> missed = np.array([0.1, 0.1])
    >>> update(OnlineThreshold(kappa=0.2), missed, 0.1).kappa < 0.2
    True
    """
    t = state.updates + 1
    error = float(np.mean(np.minimum(critical, state.bound) < state.kappa))
    kappa = state.kappa + step_size(state, t) * (float(alpha) - error)
    return replace(state, kappa=kappa, updates=t)


def run_online(
    critical: FloatArray, alpha: Level, batch: int = 10, start: OnlineThreshold | None = None
) -> FloatArray:
    """Run the online threshold over a stream of questions.

    Args:
        critical: [n] kappa* in the order of the stream.
        alpha: the target error, in (0, 1).
        batch: questions per update; the last batch may be smaller.
        start: where to begin; none: the defaults.

    Returns:
        [batches + 1]: entry t is the threshold that met batch t, and the last is the final one.

    Raises:
        CalibrationError: a NaN or negative score (-inf too), alpha outside (0, 1), or batch
            below 1.

    >>> run_online(np.full(1000, 0.5), 0.1, batch=10).shape
    (101,)
    """
    if batch < 1:
        raise CalibrationError(f"batch is {batch}; an update needs at least one question")
    scores, target = as_scores(critical), float(exact_level(alpha))
    if (scores < 0).any():
        raise CalibrationError("online: a critical threshold of -inf breaks the long-run bound")
    state = start or OnlineThreshold()
    kappas = [state.kappa]
    for first in range(0, len(scores), batch):
        state = update(state, scores[first : first + batch], target)
        kappas.append(state.kappa)
    return np.array(kappas)


def long_run_bound(state: OnlineThreshold) -> float:
    """Return how far the mean error of the updates so far can be from alpha, at most.

    (B + eta_1) / (eta_T T) after T updates with steps that do not grow, whatever the questions;
    inf before the first.

    Source: Angelopoulos, Barber and Bates 2024, theorem 1.

    >>> round(long_run_bound(OnlineThreshold(updates=2000)), 3)
    1.004
    """
    if state.updates == 0:
        return float("inf")
    return (state.bound + state.step) / (step_size(state, state.updates) * state.updates)


def updates_needed(state: OnlineThreshold) -> int:
    """Return from how many updates on the long-run bound is below 1, and so says something.

    >>> updates_needed(OnlineThreshold())
    2021
    """
    rate = (state.bound + state.step) / state.step
    return math.floor(float(rate ** (1 / (0.5 - state.decay)))) + 1
