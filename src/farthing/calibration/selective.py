"""Selective accuracy: answer where answers are right often enough, else abstain or escalate."""

from dataclasses import dataclass

import numpy as np

from farthing.calibration.base import BoolArray, FloatArray, Level, exact_level
from farthing.calibration.binomial import binomial_cdf
from farthing.calibration.sequence import proven
from farthing.errors import CalibrationError


@dataclass(frozen=True)
class Answers:
    """What each setting answered, from the most cautious setting to the boldest."""

    answered: BoolArray
    """[n, G] whether the setting answers the question; where not, it abstains or escalates."""
    correct: BoolArray
    """[n, G] whether its answer is right; not read where there is none."""
    thresholds: FloatArray | None = None
    """[G] the confidence from which each setting answers, where that is what sets them apart."""

    def __post_init__(self) -> None:
        if self.answered.ndim != 2 or self.answered.shape != self.correct.shape:
            raise CalibrationError(
                f"answered has shape {self.answered.shape} and correct {self.correct.shape}; "
                "give both one row a question and one column a setting"
            )
        if self.answered.dtype != np.bool_ or self.correct.dtype != np.bool_:
            raise CalibrationError("answered and correct must be arrays of bool")


def selective_setting(answers: Answers, alpha: Level, delta: Level) -> int | None:
    """Return the setting that answers most among those proved right often enough.

    With confidence 1 - delta over the draw of independent questions, Pr[wrong | answered] <= alpha
    at that setting. Settings are tested in their order, each by the exact binomial distribution of
    wrong answers given how many were answered, until one fails.

    Returns:
        Its index; None where nothing is proved: abstain from everything.

    Raises:
        CalibrationError: alpha or delta outside (0, 1).

    Source: learn then test (Angelopoulos et al. 2025); Trust or Escalate (Jung et al. 2025).

    >>> right = np.array([[True]] * 30)
    >>> selective_setting(Answers(right, right), 0.1, 0.05)
    0
    >>> selective_setting(Answers(right[:28], right[:28]), 0.1, 0.05) is None
    True
    """
    level, limit = float(exact_level(alpha)), float(exact_level(delta, "delta"))
    numbers = answers.answered.sum(axis=0)
    wrong = (answers.answered & ~answers.correct).sum(axis=0)
    p_values = np.array(
        [binomial_cdf(int(w), int(m), level) for w, m in zip(wrong, numbers, strict=True)]
    )
    found = np.flatnonzero(proven(p_values, limit))
    return int(found[np.argmax(numbers[found])]) if found.size else None


def answers_above(confidence: FloatArray, correct: BoolArray, thresholds: FloatArray) -> Answers:
    """Return the menu of answering where confidence >= threshold.

    Args:
        confidence: [n] of the single answer to each question.
        correct: [n] whether it is right.
        thresholds: [G] falling, so that the most cautious comes first; fixed before these
            questions were seen.

    Raises:
        CalibrationError: shapes that do not fit, a NaN, or thresholds that rise or are infinite.
    """
    confidence, thresholds = np.asarray(confidence, float), np.asarray(thresholds, float)
    if confidence.ndim != 1 or confidence.shape != np.shape(correct):
        raise CalibrationError("confidence and correct must both have one number a question")
    if np.isnan(confidence).any():
        raise CalibrationError("a confidence is NaN; use a number below every threshold for 'none'")
    if not np.isfinite(thresholds).all() or (np.diff(thresholds) > 0).any():
        raise CalibrationError("thresholds must be finite and must not rise")
    answered = confidence[:, None] >= thresholds
    right = np.broadcast_to(np.asarray(correct, dtype=bool)[:, None], answered.shape)
    return Answers(answered, right, thresholds)


def candidate_thresholds(
    confidence: FloatArray, correct: BoolArray, alpha: Level, most: int = 50
) -> FloatArray:
    """Return falling thresholds to test in turn, from other questions than will be calibrated on.

    The first is where those questions make the clearest case, so that the sequence does not end by
    bad luck among a few very cautious answers; from there down to where everything is answered.

    Args:
        confidence: [m] of training questions.
        correct: [m] whether their answers are right.
        alpha: share of wrong answers to promise.
        most: largest number of thresholds.

    Raises:
        CalibrationError: no training questions, or as `answers_above`.

    >>> confidence = np.linspace(0, 1, 101)
    >>> candidate_thresholds(confidence, confidence > 0.4, 0.1, most=5).round(2).tolist()
    [0.4, 0.2, 0.0]
    """
    level = float(exact_level(alpha))
    if not len(confidence):
        raise CalibrationError("no training questions; give the confidences of some")
    thresholds = np.unique(np.quantile(confidence, 1 - np.arange(1, most + 1) / most))[::-1]
    answers = answers_above(confidence, correct, thresholds)
    numbers = answers.answered.sum(axis=0)
    wrong = (answers.answered & ~answers.correct).sum(axis=0)
    start = int(np.argmax((level * numbers - wrong) / np.sqrt(numbers)))
    found: FloatArray = thresholds[start:]
    return found
