"""The known optimum of a generator, as a policy among others."""

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from farthing.process.base import InRounds
from farthing.process.generator.config import GeneratorConfig
from farthing.process.generator.optimum import optimal_scores
from farthing.traces.arrays import FloatArray, TraceArrays


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
        return optimal_scores(self.generator, traces, self._lots(traces))

    def _lots(self, traces: TraceArrays) -> FloatArray:
        """Return a number in (0, 1] for each question, [n], the same whichever are beside it."""
        drawn = [
            np.random.default_rng([self.seed, crc32(name.encode())]).random()
            for name in traces.ids.tolist()
        ]
        return 1.0 - np.array(drawn, dtype=np.float64)
