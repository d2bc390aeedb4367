"""A candidate, as it is replayed on questions: what it reaches at what cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.methods.base import Fitted
from farthing.money import usd_from_nano
from farthing.process.base import Policy
from farthing.process.batch_replay import NestedReplay, PointReplay, replay
from farthing.process.replay import ReplayOutcome
from farthing.promises.certificate import Population
from farthing.promises.kinds.split import split_threshold
from farthing.promises.levels import Level
from farthing.recommendation.base import Candidate
from farthing.recommendation.metrics import NO_THRESHOLD, metrics, stream
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays

FRONTIER_POINTS = 200


@dataclass(frozen=True)
class ReplayedCandidate:
    """A candidate whose policy is trained and replayed on everything outside training."""

    candidate: Candidate
    fitted: Fitted
    replayed: NestedReplay | PointReplay

    @property
    def sampled(self) -> bool:
        """Whether it acts by drawing actions rather than through a threshold."""
        return self.candidate.calibration == "none" and self.fitted.policy.stochastic

    def threshold(self, calibrate: IntArray, alpha: Level, population: Population) -> float:
        """Return the threshold that it acts with after seeing a calibration part."""
        if self.candidate.calibration == "split":
            critical = self.replayed.critical[calibrate]
            return split_threshold(critical, alpha, population).kappa
        if self.candidate.calibration == "online":
            if self.fitted.kappa is None:
                raise RuntimeError(f"{self.candidate.name}: training left no threshold behind")
            return self.fitted.kappa
        return NO_THRESHOLD


def play(
    entrant: ReplayedCandidate, kappa: float, test: IntArray, rng: np.random.Generator
) -> ReplayOutcome:
    """Act on a test part: with the threshold, or by drawing for a pointwise policy."""
    chosen = entrant.replayed.take(test)
    if entrant.sampled and isinstance(chosen, NestedReplay):
        return chosen.draw(rng)
    return chosen.act(kappa)


def frontier(entrant: ReplayedCandidate) -> list[tuple[float, float]]:
    """Return (cost in USD a question, coverage) on all its questions as the threshold sweeps down.

    At most 200 points; for a policy without a threshold its one point.
    """
    if entrant.candidate.calibration == "none":
        everything = np.arange(len(entrant.replayed))
        found = metrics(play(entrant, NO_THRESHOLD, everything, stream(entrant.candidate.name)))
        return [(found["cost_usd"], found["coverage"])]
    return swept(entrant.replayed, FRONTIER_POINTS)


def swept(replayed: NestedReplay | PointReplay, points: int) -> list[tuple[float, float]]:
    """Return (cost in USD a question, coverage) at so many thresholds, from 1 down."""
    if isinstance(replayed, NestedReplay):
        followed = replayed.followed
        kappas = np.concatenate([followed.reach.reshape(-1), followed.critical, [1.0]])
        kappas = np.unique(np.minimum(kappas, 1.0))[::-1]
        return at_thresholds(replayed, kappas[_spread(len(kappas), points)])
    return at_thresholds(replayed, replayed.parameters)


def at_thresholds(
    replayed: NestedReplay | PointReplay, kappas: FloatArray
) -> list[tuple[float, float]]:
    """Return (cost in USD a question, coverage) at each threshold."""
    if isinstance(replayed, NestedReplay):
        return _at_thresholds(replayed, kappas)
    found = [metrics(replayed.act(float(kappa))) for kappa in kappas]
    return [(one["cost_usd"], one["coverage"]) for one in found]


def _at_thresholds(replayed: NestedReplay, kappas: FloatArray) -> list[tuple[float, float]]:
    """Return the same of nested sets.

    One sort answers for all thresholds: a round is paid at every threshold up to its reach, and a
    question is covered at every one up to its critical threshold.
    """
    reach = np.minimum(replayed.followed.reach, 1.0).reshape(-1)
    critical = np.minimum(replayed.followed.critical, 1.0)
    kappas = np.minimum(kappas, 1.0)
    spent = replayed.traces.round_cost_nano
    if replayed.decision_cost_nano is not None:
        spent = spent + replayed.decision_cost_nano
    order = np.argsort(-reach, kind="stable")
    paid = np.concatenate([[0], spent.reshape(-1)[order].cumsum()])
    n = len(critical)
    cost = paid[np.searchsorted(-reach[order], -kappas, side="right")] / n
    covered = np.searchsorted(np.sort(-critical), -kappas, side="right") / n
    return [(usd_from_nano(c), float(share)) for c, share in zip(cost, covered, strict=True)]


def at_coverage(
    policy: Policy, fresh: TraceArrays, coverage: float, empty: str = "argmax"
) -> Mapping[str, float]:
    """Return a policy's metrics with the threshold set to a coverage on these very questions.

    On a very large fresh sample this measures the policy and not its calibration's luck.

    Args:
        policy: any policy that acts through a threshold.
        fresh: many questions that it has not seen.
        coverage: what it is to reach, at least, in (0, 1].
        empty: as in `replay.paths`.
    """
    replayed = replay(policy, fresh, empty)
    critical = np.sort(replayed.critical)
    misses = int((1 - Fraction(repr(float(coverage)))) * len(critical))
    return metrics(replayed.act(float(critical[misses])))


def _spread(available: int, points: int) -> IntArray:
    if available <= points:
        return np.arange(available)
    return np.unique(np.linspace(0, available - 1, points).round().astype(np.int64))
