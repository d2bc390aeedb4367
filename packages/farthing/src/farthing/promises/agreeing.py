"""Operating points whose answers are a reference model's or not: the test of agreement."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import msgspec
import numpy as np

from farthing.errors import CalibrationError, InputError
from farthing.promises.certificate import BoolArray, FloatArray, IntArray
from farthing.promises.levels import Level, exact_level, exact_text
from farthing.promises.statistics import clusters as clustered
from farthing.promises.statistics.binomial import binomial_cdf, binomial_upper, trials_needed
from farthing.promises.statistics.clusters import Clusters, clustered_p_values
from farthing.promises.statistics.fixed_sequence import cheapest_proven, check_shapes
from farthing.promises.statistics.sampled_mean import weighted_p_values


@dataclass(frozen=True)
class Checks:
    """A judge's word that answers are the same, checked on questions that chance drew."""

    judge: str
    """The judge."""
    checked: int
    """Questions that chance drew; a person compared whatever the judge called the same on them."""
    errors: int
    """Those of them on which something was not; what nobody compared counts as an error."""


@dataclass(frozen=True)
class Agreeing:
    """Operating points, and whether their answers are the reference's."""

    cost_nano: IntArray
    """[n, G] nano-dollars, operating points from the cheapest to the dearest."""
    same: BoolArray
    """[n, G] whether the operating point's answer is the reference's; a missing one never is."""
    role: str
    """The role that the reference model fills."""
    kappas: FloatArray | None = None
    """[G] the threshold of each operating point, where they are one policy at several
    thresholds."""
    checks: Checks | None = None
    """Whose word `same` takes, and how that was checked; None: the task's own equality alone."""
    reference_nano: IntArray | None = None
    """[n] what the reference costs alone, in nano-dollars; a point that costs as much is not
    chosen. None: it is not known, or points may cost more."""
    weights: FloatArray | None = None
    """[n] what each question counts, inversely to the probability with which it was drawn, in
    (0, 1]; None: all alike."""
    share: Fraction = Fraction(1)
    """Of delta, which of several that are proved side by side this one has: where all shares are at
    most 1 together, the promises of all of them hold together, and any may be chosen."""
    clusters: Clusters | None = None
    """Of a promise per request: which rows ask the same; None: each row is another question."""

    def __post_init__(self) -> None:
        check_shapes("same", self.same, "cost_nano", self.cost_nano)
        if self.same.dtype != np.bool_:
            raise CalibrationError("same must be an array of bool")
        clustered.check(self.clusters, len(self.same), self.checks)

    def cheaper(self) -> Self | None:
        """Return the points that cost less than the reference alone; None: there are none."""
        if self.reference_nano is None:
            return None
        less = self.cost_nano.sum(axis=0) < self.reference_nano.sum()
        if not less.any():
            return None
        kappas = None if self.kappas is None else self.kappas[less]
        cost, same = self.cost_nano[:, less], self.same[:, less]
        return replace(self, cost_nano=cost, same=same, kappas=kappas)


class JudgeShare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of epsilon and delta goes to a judge who says what is the same."""

    epsilon: Fraction
    """The share of questions on which its "same" may be false."""
    delta: Fraction
    """How often the bound of that share may fail."""

    @property
    def pairs(self) -> int:
        """How many checked questions prove it, if there is no error on any.

        >>> JudgeShare(epsilon=Fraction("0.025"), delta=Fraction("0.05")).pairs
        119
        """
        return trials_needed(self.epsilon, self.delta)

    @classmethod
    def of(
        cls,
        levels: tuple[Fraction, Fraction],
        shares: tuple[Fraction | None, Fraction | None] = (None, None),
    ) -> Self:
        """Return shares of epsilon and delta; by default half of each."""
        epsilon, delta = (share or whole / 2 for share, whole in zip(shares, levels, strict=True))
        if not (epsilon < levels[0] and delta < levels[1]):
            raise InputError(
                "--judge-epsilon and --judge-delta must be below --epsilon and --delta"
            )
        return cls(epsilon=epsilon, delta=delta)


class Judged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a certificate keeps of a judge who said what is the same."""

    name: str
    """The judge."""
    share: JudgeShare
    checked: int
    """Questions that were checked."""
    errors: int
    """Those of them on which its "same" was false."""

    def sentence(self) -> str:
        """Say how the levels are split."""
        epsilon, delta = exact_text(self.share.epsilon), exact_text(self.share.delta)
        return (
            f"What is the same {self.name} says as well: of epsilon {epsilon} and of delta {delta} "
            f"are spent on its errors, of which {self.checked} checked questions show "
            f"{self.errors}; that the accuracy is close to the reference's does not follow."
        )


def agreement_point(agreeing: Agreeing, epsilon: Level, delta: Level) -> int | None:
    """Return the cheapest operating point proved to differ from the reference less than epsilon.

    The number of differing answers among n independent questions is binomial, so its distribution
    function at epsilon is an exact p-value. Operating points are tested from the dearest down until
    one fails, so the order must not come from these questions.

    Returns:
        Its index; None where nothing is proved: use the reference itself, which needs no proof.

    >>> same = np.arange(100)[:, None] >= [9, 1]          # 9 and 1 answers differ
    >>> cost = np.tile([10, 90], (100, 1))
    >>> agreement_point(Agreeing(cost, same, "gpt-4o"), 0.05, 0.1)
    1
    """
    p_values = agreement_p_values(agreeing, epsilon)
    limit = exact_level(delta, "delta")
    return cheapest_proven(p_values, limit, agreeing.cost_nano, agreeing.reference_nano)


def agreement_p_values(agreeing: Agreeing, epsilon: Level) -> FloatArray:
    """Return the p-value of each operating point's differing by epsilon or more, [G].

    Exact; by bets where questions count differently; per request, by a bet on each question.
    """
    chance, n = float(exact_level(epsilon, "epsilon")), len(agreeing.same)
    if agreeing.weights is not None:
        return weighted_p_values((~agreeing.same).astype(np.float64), agreeing.weights, chance)
    if agreeing.clusters is not None:
        return clustered_p_values((~agreeing.same).astype(np.float64), agreeing.clusters, chance)
    differ = (~agreeing.same).sum(axis=0)
    return np.array([binomial_cdf(int(number), n, chance) for number in differ])


def levels_left(
    agreeing: Agreeing, epsilon: Fraction, delta: Fraction, share: JudgeShare | None
) -> tuple[Judged | None, tuple[Fraction, Fraction] | None]:
    """Return the judge's part, and the levels that are left to the policy; None: too many err."""
    checks = agreeing.checks
    if checks is None:
        return None, (epsilon, delta)
    if share is None or not (share.epsilon < epsilon and share.delta < delta):
        raise CalibrationError(
            f"{checks.judge} said what is the same; give its errors a share of epsilon "
            f"({exact_text(epsilon)}) and of delta ({exact_text(delta)}), less than the whole"
        )
    found = Judged(name=checks.judge, share=share, checked=checks.checked, errors=checks.errors)
    upper = binomial_upper(checks.errors, checks.checked, float(share.delta))
    kept = upper <= float(share.epsilon)
    return found, (epsilon - share.epsilon, delta - share.delta) if kept else None
