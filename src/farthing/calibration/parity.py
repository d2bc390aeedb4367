"""Parity: the cheapest setting whose accuracy is proved close to the reference model's."""

from dataclasses import dataclass

import numpy as np

from farthing.calibration.base import BoolArray, FloatArray, IntArray, Level, exact_level
from farthing.calibration.sequence import proven
from farthing.calibration.trinomial import loss_p_value
from farthing.errors import CalibrationError


@dataclass(frozen=True)
class Paired:
    """A menu and a reference model on the same questions."""

    cost_nano: IntArray
    """[n, G] nano-dollars, settings from the cheapest to the dearest."""
    correct: BoolArray
    """[n, G] whether the setting's answer is right; an abstention is not."""
    reference: BoolArray
    """[n] whether the reference model's answer is right."""

    def __post_init__(self) -> None:
        shape = self.correct.shape
        if len(shape) != 2 or not shape[0] or self.cost_nano.shape != shape:
            raise CalibrationError(
                f"correct has shape {shape} and cost_nano {self.cost_nano.shape}; give both one "
                "row a question and one column a setting"
            )
        if self.reference.shape != shape[:1]:
            raise CalibrationError(
                f"{shape[0]} questions but the reference has shape {self.reference.shape}"
            )
        if self.correct.dtype != np.bool_ or self.reference.dtype != np.bool_:
            raise CalibrationError("correct and reference must be arrays of bool")


def parity_setting(paired: Paired, epsilon: Level, delta: Level) -> int | None:
    """Return the cheapest setting proved to lose less than epsilon against the reference.

    With confidence 1 - delta over the draw of independent questions its accuracy is above the
    reference's minus epsilon. Settings are tested from the dearest down until one fails, so the
    menu's order must not come from these questions.

    Returns:
        Its index; None where nothing is proved: use the reference model, which needs no proof.

    Raises:
        CalibrationError: epsilon or delta outside (0, 1).

    >>> right = np.ones((200, 2), bool)
    >>> cost = np.tile([10, 90], (200, 1))
    >>> parity_setting(Paired(cost, right, right[:, 0]), 0.02, 0.1)
    0
    """
    p_values = parity_p_values(paired, epsilon)
    found = np.flatnonzero(proven(p_values[::-1], float(exact_level(delta, "delta")))[::-1])
    total = paired.cost_nano.sum(axis=0)
    return int(found[np.argmin(total[found])]) if found.size else None


def parity_p_values(paired: Paired, epsilon: Level) -> FloatArray:
    """Return the exact p-value of each setting's losing epsilon or more, [G]."""
    margin, n = float(exact_level(epsilon, "epsilon")), len(paired.reference)
    reference = paired.reference[:, None]
    lost = (reference & ~paired.correct).sum(axis=0)
    won = (~reference & paired.correct).sum(axis=0)
    pairs = zip(lost, won, strict=True)
    return np.array([loss_p_value(int(minus), int(plus), n, margin) for minus, plus in pairs])
