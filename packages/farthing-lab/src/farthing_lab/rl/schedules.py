"""Learning rates for a fixed number of updates: the share of the first rate at each of them.

UBA has one number, phi, that says how fast the rate falls:

    2 (1 + c) / (2 phi + (2 - phi) (1 + c)),   c = cos(pi z),   z the share of the updates done

With phi = 2 it is the cosine, with phi = 1 it is REX where REX has the cosine for what is left; a
smaller phi stays high for longer, and a larger one falls sooner. The paper ties phi to how
differently the loss is curved along its directions.

Source: UBA (Stepsize Anything, arXiv 2505.24452), in one cycle down to 0. The paper's formulas were
not at hand. A public training by UBA writes this one (galaxy10_training.py of github.com/ukiyois,
Deep-Learning-in-Astronomy-WaveltMamba); other public code of that name has (1 - z)^phi.
"""

from collections.abc import Callable, Mapping
from math import cos, pi
from typing import Literal


def rex(progress: float, warm: float = 0.0) -> float:
    """Return the share of the first learning rate, after so much of the training.

    It is (1 - z) / (1/2 + 1/2 (1 - z)) at progress z: high for long, 0 at the end. In the warm-up
    that is multiplied by z / warm, so that the rate rises from 0.

    Args:
        progress: z, the share of all updates that are done, in [0, 1].
        warm: the share of all updates that the warm-up takes, in [0, 1]; 0: none.

    Raises:
        ValueError: either is outside [0, 1].

    Source: Chen et al. 2021, "REX: Revisiting Budgeted Training with an Improved Schedule"
    (arXiv 2107.04197); the warm-up is ours.

    >>> rex(0.0), rex(0.5), rex(1.0)
    (1.0, 0.6666666666666666, 0.0)
    >>> rex(0.0, warm=0.2), rex(0.1, warm=0.2) == rex(0.1) / 2, rex(0.5, warm=0.2) == rex(0.5)
    (0.0, True, True)
    """
    if not (0.0 <= progress <= 1.0 and 0.0 <= warm <= 1.0):
        raise ValueError(f"progress {progress} and warm {warm} must both be in [0, 1]")
    left = 1.0 - progress
    risen = min(1.0, progress / warm) if warm else 1.0
    return risen * left / (0.5 + 0.5 * left)


Schedule = Callable[[float], float]
"""Share of the updates that are done, to the share of the first rate."""


def uba(progress: float, phi: float = 1.0) -> float:
    """Return the share of the first learning rate, after so much of the training.

    Args:
        progress: z, the share of all updates that are done, in [0, 1].
        phi: how fast it falls, above 0.

    Raises:
        ValueError: one of them is outside.

    >>> uba(0.0), round(uba(0.5), 3), uba(1.0)
    (1.0, 0.667, 0.0)
    """
    if not 0.0 <= progress <= 1.0 or not phi > 0.0:
        raise ValueError(f"progress {progress} must be in [0, 1], and phi {phi} above 0")
    up = 1.0 + cos(pi * progress)
    return 2.0 * up / (2.0 * phi + (2.0 - phi) * up)


def linear(progress: float) -> float:
    """Return 1 - z."""
    return 1.0 - progress


def cosine(progress: float) -> float:
    """Return half of 1 + cos(pi z)."""
    return (1.0 + cos(pi * progress)) / 2.0


def constant(_: float) -> float:
    """Return 1: the rate stays."""
    return 1.0


ScheduleName = Literal["rex", "uba", "linear", "cosine", "constant"]
SCHEDULES: Mapping[ScheduleName, Schedule] = {
    "rex": rex,
    "uba": uba,
    "linear": linear,
    "cosine": cosine,
    "constant": constant,
}
"""By the name that a training's settings have."""
