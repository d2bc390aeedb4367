"""How near the known optimum each policy comes, at whatever coverage it reaches.

On the few questions of a comparison a policy pays for its calibration's luck as well, and one that
happens to cover more pays more. So each is played with its thresholds on many fresh questions of
the same generator, and its cost is divided by what the known optimum pays there for that coverage.
Both are played on the same questions, so that most of these questions' own luck cancels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import Dataset
from farthing.process.batch_replay import NestedReplay, PointReplay, replay
from farthing.recommendation.metrics import metrics, stream
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.comparison.replayed_candidate import ReplayedCandidate, at_thresholds, swept
from farthing_lab.generator import optimum
from farthing_lab.generator.config import GeneratorConfig
from farthing_lab.generator.generate import generate
from farthing_lab.methods.baselines.rounds import OptimumPolicy

FRESH = 20_000
"""Questions that are drawn; a cost over the optimum's is then known to about 0.01."""


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

    def times_optimum(
        self, entrant: ReplayedCandidate, kappas: Sequence[float], seed: int
    ) -> list[float]:
        """Return cost over the optimum's at the same coverage, for each threshold.

        Below the coverage of a single round nothing is cheaper than that round.

        Args:
            entrant: the policy.
            kappas: its thresholds; who draws its actions has none, and plays once for all of them.
            seed: of what it draws.

        Returns:
            Nothing where the policy cannot play these questions.
        """
        try:
            played = replay(entrant.fitted.policy, self.traces, entrant.candidate.empty)
        except InputError:
            return []
        cost, coverage = np.array(_points(entrant, played, kappas, seed)).T
        times: list[float] = (cost / np.interp(coverage, self.coverage, self.cost)).tolist()
        return times


def _points(
    entrant: ReplayedCandidate,
    played: NestedReplay | PointReplay,
    kappas: Sequence[float],
    seed: int,
) -> list[tuple[float, float]]:
    if not entrant.sampled or not isinstance(played, NestedReplay):
        return at_thresholds(played, np.asarray(kappas, dtype=np.float64))
    drawn = metrics(played.draw(stream(entrant.candidate.name, seed)))
    return [(drawn["cost_usd"], drawn["coverage"])] * len(kappas)


def known_optimum(dataset: Dataset) -> tuple[list[tuple[float, float]], list[str]]:
    """Return the frontier of the known optimum, or why there is none."""
    if dataset.generator is None:
        return [], []
    try:
        return optimum.frontier(dataset.generator), []
    except InputError as problem:
        return [], [f"the optimum is not known: {problem}"]
