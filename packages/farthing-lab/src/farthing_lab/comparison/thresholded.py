"""Candidates at the thresholds of each split's calibration part: the rows about coverage.

They are also laid beside the known optimum, at whatever coverage they reach. On the few questions
of a comparison a policy pays for its calibration's luck as well, and one that happens to cover more
pays more. So each is played with its thresholds on many fresh questions of the same generator, and
its cost is divided by what the known optimum pays there for that coverage. Both are played on the
same questions, so that most of these questions' own luck cancels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import Fitted
from farthing.money import usd_from_nano
from farthing.process.base import Policy
from farthing.process.batch_replay import NestedReplay, PointReplay, replay
from farthing.promises.certificate import Population
from farthing.promises.kinds.split import split_threshold
from farthing.recommendation.base import TIMES_OPTIMUM, Candidate, Event, Row, Watch
from farthing.recommendation.metrics import NO_THRESHOLD, metrics, stream
from farthing.recommendation.played import grid, operating_points_of
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.comparison.lines import Line, Points, Split
from farthing_lab.generator.config import GeneratorConfig
from farthing_lab.generator.generate import generate
from farthing_lab.methods.baselines.rounds import OptimumPolicy

FRONTIER_POINTS = 200
FRESH = 20_000
"""Questions that are drawn; a cost over the optimum's is then known to about 0.01."""


@dataclass(frozen=True)
class ThresholdedCandidate:
    """A candidate whose policy is trained and replayed on everything outside training."""

    candidate: Candidate
    fitted: Fitted
    replayed: NestedReplay | PointReplay
    alpha: Fraction
    population: Population = "all"

    @property
    def sampled(self) -> bool:
        """Whether it acts by drawing actions rather than through a threshold."""
        return self.candidate.calibration == "none" and self.fitted.policy.stochastic

    def play(self, split: Split, *key: int) -> dict[str, float]:
        calibrate, test = split
        kappa = NO_THRESHOLD
        if self.candidate.calibration == "split":
            critical = self.replayed.critical[calibrate]
            kappa = split_threshold(critical, self.alpha, self.population).kappa
        elif self.candidate.calibration == "online":
            if self.fitted.kappa is None:
                raise RuntimeError(f"{self.candidate.name}: training left no threshold behind")
            kappa = self.fitted.kappa
        return {**self._acted(self.replayed.take(test), kappa, *key), "kappa": kappa}

    def frontier(self) -> Points:
        """Return at most 200 points; of a policy without a threshold its one point."""
        if self.candidate.calibration == "none":
            found = self._acted(self.replayed, NO_THRESHOLD)
            return [(found["cost_usd"], found["coverage"])]
        return swept(self.replayed, FRONTIER_POINTS)

    def curve(self) -> Points:
        if self.candidate.calibration == "none":
            found = self._acted(self.replayed, NO_THRESHOLD)
            return [(found["cost_usd"], found["accuracy"])]
        points = operating_points_of(self.replayed, grid(self.replayed))
        return points.cost_and(points.correct)

    def on(self, fresh: TraceArrays, kappas: Sequence[float], seed: int) -> Points:
        """Return cost and coverage on other questions, for each threshold.

        Who draws its actions has no threshold, and plays once for all of them.

        Raises:
            InputError: the policy cannot play these questions.
        """
        played = replay(self.fitted.policy, fresh, self.candidate.empty)
        if not self.sampled or not isinstance(played, NestedReplay):
            return at_thresholds(played, np.asarray(kappas, dtype=np.float64))
        drawn = self._acted(played, NO_THRESHOLD, seed)
        return [(drawn["cost_usd"], drawn["coverage"])] * len(kappas)

    def _acted(
        self, replayed: NestedReplay | PointReplay, kappa: float, *key: int
    ) -> dict[str, float]:
        if self.sampled and isinstance(replayed, NestedReplay):
            return metrics(replayed.draw(stream(self.candidate.name, *key)))
        return metrics(replayed.act(kappa))


def swept(replayed: NestedReplay | PointReplay, points: int) -> Points:
    """Return (cost in USD a question, coverage) at so many thresholds, from 1 down."""
    if isinstance(replayed, PointReplay):
        return at_thresholds(replayed, replayed.parameters)
    followed = replayed.followed
    kappas = np.concatenate([followed.reach.reshape(-1), followed.critical, [1.0]])
    kappas = np.unique(np.minimum(kappas, 1.0))[::-1]
    if len(kappas) > points:
        kappas = kappas[np.unique(np.linspace(0, len(kappas) - 1, points).round().astype(int))]
    return at_thresholds(replayed, kappas)


def at_thresholds(replayed: NestedReplay | PointReplay, kappas: FloatArray) -> Points:
    """Return (cost in USD a question, coverage) at each threshold.

    Of nested sets one sort answers for all thresholds: a round is paid at every threshold up to its
    reach, and a question is covered at every one up to its critical threshold.
    """
    if isinstance(replayed, PointReplay):
        found = [metrics(replayed.act(float(kappa))) for kappa in kappas]
        return [(one["cost_usd"], one["coverage"]) for one in found]
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


@dataclass(frozen=True)
class FreshSample:
    """New questions of a generator, and the curve of its optimum over them."""

    traces: TraceArrays
    cost: FloatArray
    """[V] least cost of a question, in USD."""
    coverage: FloatArray
    """[V] that it buys, rising."""

    @classmethod
    def draw(cls, config: GeneratorConfig, seed: int) -> Self:
        """Draw questions that nobody was trained, calibrated or tested on."""
        traces = generate(config, FRESH, stream("fresh questions", seed))
        known = swept(replay(OptimumPolicy(config), traces, "argmax"), FRESH)
        # the dearest of equal coverages comes first: to cover all, it leaves none of them to luck
        coverage, dearest = np.unique([share for _, share in known[::-1]], return_index=True)
        return cls(traces, np.array([cost for cost, _ in known[::-1]])[dearest], coverage)

    def beside(
        self, lines: Sequence[Line[ThresholdedCandidate]], rows: Sequence[Row], watch: Watch
    ) -> list[Row]:
        """Say of each row what it costs over the known optimum; what Ctrl-C cuts off stays unsaid.

        Below the coverage of a single round nothing is cheaper than that round. Of a policy that
        cannot play these questions nothing is said.
        """
        found = list(rows)
        try:
            for place, (line, row) in enumerate(zip(lines, rows, strict=True)):
                if row.per_split:
                    each, times = len(row.kappa) // len(line.entrants), list[float]()
                    for seed, entrant in enumerate(line.entrants):
                        kappas = row.kappa[seed * each : (seed + 1) * each]
                        times += self._times_optimum(entrant, kappas, seed)
                    per_split = {**row.per_split, TIMES_OPTIMUM: times}
                    found[place] = replace(row, per_split=per_split)
                watch(Event("optimum", "", place + 1, len(rows)))
        except KeyboardInterrupt:
            pass
        return found

    def _times_optimum(
        self, entrant: ThresholdedCandidate, kappas: Sequence[float], seed: int
    ) -> list[float]:
        try:
            cost, coverage = np.array(entrant.on(self.traces, kappas, seed)).T
        except InputError:
            return []
        times: list[float] = (cost / np.interp(coverage, self.coverage, self.cost)).tolist()
        return times
