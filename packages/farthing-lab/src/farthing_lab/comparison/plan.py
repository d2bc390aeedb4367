"""What a comparison is asked to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from farthing.methods.base import Gives
from farthing.promises.base import Promise
from farthing.promises.certificate import Population

EVERYONE = "all"
"""In place of names: everything that can run."""


@dataclass(frozen=True)
class Plan:
    """Who is compared, and how thoroughly."""

    alphas: tuple[Fraction, ...]
    """The promised shares of misses."""
    policies: tuple[str, ...] | None = None
    """Names of candidates; None: those that can win; `all` alone: everything that can run."""
    splits: int = 100
    """How many times calibration and test are drawn anew."""
    seeds: int = 1
    """Each policy is trained under the seeds seed, seed + 1, ..."""
    seed: int = 0
    sizes: Mapping[str, int | None] = field(default_factory=dict)
    """Questions to `train`, `calibrate` and `test`; what is not given is its share."""
    workers: int = 0
    """Processes to train in; 0: as many as there are cores. The results are the same."""
    population: Population = "all"
    """Which questions thresholds are set on; `solvable`: the promise is about those."""
    space: Literal["rounds", "calls", "pool"] | None = None
    """`rounds`: whole rounds only; `calls`: single calls as well; `pool`: models, not rounds.
    None: everything that applies."""
    engine: Literal["processes", "ray"] = "processes"
    """A name of `ENGINES`. The results are the same."""
    promise: Promise | None = None
    """What is proved on each calibration part, if not coverage; `alphas` are what is trained for
    and, of a selective promise, the shares of wrong answers."""

    @property
    def everyone(self) -> bool:
        return self.policies == (EVERYONE,)

    @property
    def gives(self) -> Gives:
        return "set" if self.promise is None else "one"

    @property
    def seeds_used(self) -> list[int]:
        return list(range(self.seed, self.seed + self.seeds))
