"""The known optimum of a generator, as a policy among others."""

from dataclasses import dataclass

from farthing.process.base import InRounds
from farthing.process.generator.generate import GeneratorConfig
from farthing.process.generator.optimum import optimal_scores
from farthing.traces.arrays import FloatArray, TraceArrays


@dataclass(frozen=True)
class OptimumPolicy(InRounds):
    """Knows the generator's probabilities, as no policy that ships can."""

    generator: GeneratorConfig
    stochastic: bool = False

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for each role, and for `next` what it gains for its money, [n, T, 3]."""
        return optimal_scores(self.generator, traces)
