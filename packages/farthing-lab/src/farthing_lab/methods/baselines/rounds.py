"""What methods in rounds are held against: lots, and what knows the generator."""

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from farthing.methods.base import Method, Variant
from farthing.methods.baselines.fixed import FixedLearner
from farthing.methods.serialization import DataclassState
from farthing.process.base import InRounds
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.generator.config import GeneratorConfig
from farthing_lab.generator.optimum import optimal_scores


@dataclass(frozen=True)
class RandomPolicy(DataclassState, InRounds):
    """Every allowed action is equally likely: the floor that any policy must beat."""

    stochastic: bool = True

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 / (L + 1) for each action, and 1 / L for each role in the last round."""
        n_roles = traces.n_roles
        scores = np.full((len(traces), traces.horizon, n_roles + 1), 1 / (n_roles + 1))
        scores[:, -1] = [1 / n_roles] * n_roles + [0.0]
        return scores


@dataclass(frozen=True)
class OptimumPolicy(InRounds):
    """Knows the generator's probabilities, as no policy that ships can.

    Its few histories give whole classes of questions one score. A lot, drawn from the seed and the
    question's id alone, breaks these ties.
    """

    generator: GeneratorConfig
    stochastic: bool = False
    seed: int = 0

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for each role, and for `next` what it gains for its money, [n, T, 3]."""
        drawn = [
            np.random.default_rng([self.seed, crc32(name.encode())]).random()
            for name in traces.ids.tolist()
        ]
        lots = 1.0 - np.array(drawn, dtype=np.float64)  # the same whichever are beside it
        return optimal_scores(self.generator, traces, lots)


RANDOM = Method(
    name="random",
    label="Random",
    meaning="Chooses among the allowed actions by lot: the floor that any policy must beat",
    paper="2511.11828",
    policy=RandomPolicy,
    learner=FixedLearner(RandomPolicy()),
    action_spaces=("rounds", "cascade"),
    calibration="none",
    varies_with=frozenset(),
    place=0,
)


OPTIMUM = Method(
    name="optimum",
    label="Optimum (known)",
    meaning="Knows the generator's probabilities, as no policy that ships can",
    policy=OptimumPolicy,
    needs=("generator",),
    varies_with=frozenset(),
    variants=lambda dataset: (
        [Variant("optimum", "Optimum (known)", FixedLearner(OptimumPolicy(dataset.generator)))]
        if dataset.generator is not None
        else []
    ),
    place=99,
)
