"""Critical thresholds as they may be calibrated on, and the refusal of what they cannot keep."""

from fractions import Fraction

import numpy as np

from farthing.errors import CalibrationError
from farthing.promises.certificate import FloatArray
from farthing.promises.levels import exact_text


def as_scores(critical: FloatArray) -> FloatArray:
    """Return critical thresholds [n] as they may be calibrated on: each -inf or in [0, inf].

    inf is an unsolvable question; -inf a solvable one whose right answer a budget cannot pay for.
    """
    scores = np.asarray(critical, dtype=np.float64)
    if scores.ndim != 1:
        raise CalibrationError(
            f"critical thresholds have shape {scores.shape}; give one a question"
        )
    unknown = int(np.isnan(scores).sum())
    if unknown:
        raise CalibrationError(
            f"{unknown} of {len(scores)} critical thresholds are NaN: truncated traces cannot "
            "calibrate; leave them out of the calibration split"
        )
    negative = scores[(scores < 0) & (scores > -np.inf)]
    if negative.size:
        raise CalibrationError(
            f"a critical threshold is {negative.min():g}; scores of actions must be >= 0"
        )
    return scores


def out_of_reach(lost: float, alpha: Fraction) -> CalibrationError:
    """Return the refusal of a promise that no threshold keeps, since a budget loses too much.

    Args:
        lost: the share of the calibration questions with kappa* = -inf.
        alpha: the miscoverage that was asked for.
    """
    return CalibrationError(
        f"this budget reaches a coverage of {1 - lost:.3g} at most on the calibration questions: "
        f"for {lost:.3g} of them no threshold has a right answer that it can pay for. That is too "
        f"little to promise {exact_text(1 - alpha)} of new ones; give a larger "
        "--question-budget (in Python budget_usd) or a larger --alpha (alpha)"
    )
