"""What a learner is: recorded questions in, a policy out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from farthing.methods.base import Policy
from farthing.traces.arrays import FloatArray, TraceArrays


@dataclass(frozen=True)
class Fitted:
    """What training leaves behind."""

    policy: Policy
    kappa: float | None = None
    """The threshold at the end of training, where one was trained along with the policy."""
    curves: Mapping[str, FloatArray] = field(default_factory=dict)
    """Name to one value per update: `cost`, `coverage`, `kappa`, `violation`, ..."""
    stopped_early: bool = False
    """Whether training was interrupted; the policy is the one that it had reached."""


class Progress(Protocol):
    """Where a learner reports to while it works."""

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        """Say how many updates of how many are done, and the present figures."""
        ...


class Silent:
    """Reports nothing."""

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        """Ignore the report."""


class Learner(Protocol):
    """Fits a policy to recorded questions."""

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        """Train on `train` for miscoverage `alpha`; the same seed gives the same result."""
        ...
