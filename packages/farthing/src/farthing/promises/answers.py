"""What operating points answered, and whether that is right often enough: the selective test."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from farthing.errors import CalibrationError
from farthing.promises.certificate import BoolArray, FloatArray, IntArray
from farthing.promises.levels import Level, exact_level
from farthing.promises.statistics.binomial import binomial_cdf
from farthing.promises.statistics.fixed_sequence import Candidates, proven_each
from farthing.promises.statistics.sampled_mean import Sample, sampled_p_values


@dataclass(frozen=True)
class Answers:
    """What each operating point answered, from the most cautious operating point to the boldest."""

    answered: BoolArray
    """[n, G] whether the operating point answers the question; where not, it abstains or
    escalates."""
    correct: BoolArray
    """[n, G] whether its answer is right; not read where there is none."""
    thresholds: FloatArray | None = None
    """[G] the confidence from which each operating point answers, where that is what sets them
    apart."""
    kappas: FloatArray | None = None
    """[G] the threshold of each operating point, where they are one policy at several
    thresholds."""
    candidates: Candidates | None = None
    """Where the operating points are of several candidates: whose each is; then the order of
    caution is within each."""
    cost_nano: IntArray | None = None
    """[n, G] what each operating point costs, in nano-dollars; None: all the same."""
    sample: Sample | None = None
    """What chance drew to be graded; None: every question is."""
    share: Fraction = Fraction(1)
    """Of delta, which of several that are proved side by side this one has."""

    def __post_init__(self) -> None:
        if self.answered.ndim != 2 or self.answered.shape != self.correct.shape:
            raise CalibrationError(
                f"answered has shape {self.answered.shape} and correct {self.correct.shape}; "
                "give both one row a question and one column an operating point"
            )
        if self.answered.dtype != np.bool_ or self.correct.dtype != np.bool_:
            raise CalibrationError("answered and correct must be arrays of bool")
        if self.sample is not None and self.sample.predicted.shape != self.answered.shape:
            raise CalibrationError("the sample must be of the same questions and operating points")
        if self.cost_nano is not None and self.cost_nano.shape != self.answered.shape:
            raise CalibrationError("give cost_nano the shape of answered, or leave it out")


def selective_point(answers: Answers, alpha: Level, delta: Level) -> int | None:
    """Return the operating point that answers most among those proved right often enough.

    With confidence 1 - delta over the draw of independent questions, Pr[wrong | answered] <= alpha
    at that operating point. Operating points are tested in their order, each by the exact binomial
    distribution of wrong answers given how many were answered, until one fails; those of several
    candidates at each one's share of delta. Of those proved that answer as many as the best,
    within one standard error, the cheapest is taken and, of equally cheap ones, what answers most.

    Returns:
        Its index; None where nothing is proved: abstain from everything.

    Source: learn then test (Angelopoulos et al. 2025); Trust or Escalate (Jung et al. 2025).

    >>> right = np.array([[True]] * 30)
    >>> selective_point(Answers(right, right), 0.1, 0.05)
    0
    >>> selective_point(Answers(right[:28], right[:28]), 0.1, 0.05) is None
    True
    """
    found = np.flatnonzero(selective_proved(answers, alpha, delta))
    if not found.size:
        return None
    n, numbers = len(answers.answered), answers.answered.sum(axis=0)[found]
    most = numbers.max()
    near = numbers >= most - np.sqrt(most * (n - most) / n)
    cost = np.zeros(len(found))
    if answers.cost_nano is not None:
        cost += answers.cost_nano.sum(axis=0)[found]
    return int(found[np.lexsort((-numbers, np.where(near, cost, np.inf)))[0]])


def selective_proved(answers: Answers, alpha: Level, delta: Level) -> BoolArray:
    """Return which operating points are proved right often enough, [G]; see `selective_point`."""
    limit = exact_level(delta, "delta") * answers.share
    return proven_each(selective_p_values(answers, alpha), limit, answers.candidates)


def selective_p_values(answers: Answers, alpha: Level) -> FloatArray:
    """Return the p-value of each operating point's answers being wrong too often, [G].

    Exact; of a sample, by bets that may be looked at after every grade.
    """
    level = float(exact_level(alpha))
    if answers.sample is not None:
        loss = (~answers.correct).astype(np.float64)
        return sampled_p_values(loss, answers.answered, answers.sample, level)
    numbers = answers.answered.sum(axis=0)
    wrong = (answers.answered & ~answers.correct).sum(axis=0)
    pairs = zip(wrong, numbers, strict=True)
    return np.array([binomial_cdf(int(w), int(m), level) for w, m in pairs])


def at_point(answers: Answers, point: int | None, delta: Fraction) -> dict[str, Any]:
    """Return what a certificate says of a point's answers and of the candidates that were tested.

    The fields that differ from their defaults: `threshold`, `answered`, `candidates`, `candidate`
    and `candidate_delta`.
    """
    candidates, thresholds = answers.candidates, answers.thresholds
    said: dict[str, Any] = {} if candidates is None else {"candidates": len(candidates.names)}
    if point is None:
        return said
    said["answered"] = int(answers.answered[:, point].sum())
    if thresholds is not None:
        said["threshold"] = float(thresholds[point])
    if candidates is not None:
        which = int(candidates.of_point[point])
        said["candidate"] = candidates.names[which]
        said["candidate_delta"] = delta * candidates.shares[which]
    return said


def answers_above(confidence: FloatArray, correct: BoolArray, thresholds: FloatArray) -> Answers:
    """Return the operating points of answering where confidence >= threshold.

    Args:
        confidence: [n] of the single answer to each question.
        correct: [n] whether it is right.
        thresholds: [G] falling, so that the most cautious comes first; fixed before these
            questions were seen.
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
