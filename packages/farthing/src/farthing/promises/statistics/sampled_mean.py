"""Test a mean loss where chance drew the questions to be graded, and a judge spoke of all of them.

A judge predicts the loss f of a question. With probability pi the question is drawn and its loss L
is found out by a person. The term

    Z = f + (drawn / pi) (L - f)

has the expectation of L, whatever the judge says: a bad judge makes Z scatter, and no more. Bets
against a large mean of Z then prove a small one, and may be looked at after every grade.
"""

import math
from dataclasses import dataclass

import msgspec
import numpy as np

from farthing.errors import CalibrationError
from farthing.promises.certificate import BoolArray, FloatArray, IntArray

_BETS = np.geomspace(0.02, 0.99, 12)
"""Stakes, as shares of the largest that cannot ruin; the fortune is spread evenly over them."""


@dataclass(frozen=True)
class Sample:
    """Which questions chance drew, and what a judge predicts of all of them."""

    predicted: FloatArray
    """[n, G] predicted loss of each operating point, in [0, 1]; 0 where nobody predicts."""
    drawn: BoolArray
    """[n] whether a question is to be graded; what nobody has graded yet counts at worst."""
    order: IntArray
    """[n] the questions in the order of the test, which no grade may have chosen."""
    probability: float
    """With which each question was drawn, in (0, 1]."""
    judge: str | None = None
    """Who predicts; None: nobody."""

    def __post_init__(self) -> None:
        n = len(self.drawn)
        if self.predicted.ndim != 2 or len(self.predicted) != n:
            raise CalibrationError("a sample predicts one row a question and one column a point")
        if not 0 < self.probability <= 1:
            raise CalibrationError(f"a question is drawn with probability {self.probability}")
        if n and not 0 <= self.predicted.min() <= self.predicted.max() <= 1:
            raise CalibrationError("a predicted loss must be between 0 and 1")
        if not np.array_equal(np.sort(self.order), np.arange(n)):
            raise CalibrationError("the order of a sample must name every question once")


class Drawn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a certificate keeps of a sample."""

    questions: int
    """How many chance drew."""
    probability: float
    """With which each was drawn."""
    judge: str | None = None
    """Who predicted the grades of all of them; None: nobody."""

    @classmethod
    def of(cls, sample: Sample | None) -> "Drawn | None":
        """Return what is kept; None where every grade counts alike."""
        if sample is None:
            return None
        return cls(int(sample.drawn.sum()), sample.probability, sample.judge)

    def sentence(self) -> str:
        """Say what the proof rests on.

        >>> print(Drawn(80, 0.2, "mini").sentence())
        It rests on 80 questions that chance drew to be graded, and on what mini says of all.
        """
        judge = "" if self.judge is None else f", and on what {self.judge} says of all"
        return f"It rests on {self.questions} questions that chance drew to be graded{judge}."


def sampled_p_values(
    loss: FloatArray, counted: BoolArray, sample: Sample, mean: float
) -> FloatArray:
    """Return a p-value of each operating point's losing `mean` or more in expectation, [G].

    Valid at any time: it may be looked at after every grade, and the grading may stop whenever it
    is small enough, in whatever order the drawn questions were graded. For every stake is the same
    from the first question to the last, so a loss that turns out smaller than its worst can only
    raise the fortune.

    Args:
        loss: [n, G] in [-1, 1] as far as it is known, and at worst elsewhere; read where drawn.
        counted: [n, G] which questions the expectation is over.
        sample: what was drawn and predicted.
        mean: the hypothesis, in (0, 1).

    Source: active inference, Zrnic and Candes 2024; prediction-powered e-values, Csillag,
    Struchiner and Goedert 2025; betting, Waudby-Smith and Ramdas 2024.

    >>> n = 100
    >>> nobody = Sample(np.zeros((n, 1)), np.ones(n, bool), np.arange(n), 1.0)
    >>> everything = np.ones((n, 1), bool)
    >>> small, large = (np.full((n, 1), lost) for lost in (0.0, 0.2))
    >>> float(sampled_p_values(small, everything, nobody, 0.1)[0]) < 0.01
    True
    >>> float(sampled_p_values(large, everything, nobody, 0.1)[0])
    1.0
    """
    terms = corrected(loss, sample)[sample.order]
    among = counted[sample.order]
    most = 1 / sample.probability
    return np.array(
        [
            math.exp(-log_fortunes(column[some], mean, most).max(initial=0.0))
            for column, some in zip(terms.T, among.T, strict=True)
        ]
    )


def weighted_p_values(loss: FloatArray, weights: FloatArray, mean: float) -> FloatArray:
    """Return a p-value of each operating point's losing `mean` or more in expectation, [G].

    Questions were drawn with probabilities of their own, p, and each counts by w = min p / p. Then
    the expectation of w (loss - mean) over drawn questions is min p times that of loss - mean over
    all of them, so bets against the first prove the second. The smallest probability is taken for
    known beforehand, as it is where lots have a few. Equal probabilities need no weights: the exact
    tests are sharper.

    Args:
        loss: [n, G] in [-1, 1], of questions in an order that no loss has chosen.
        weights: [n] in (0, 1], inversely proportional to the probability of each draw.
        mean: the hypothesis, in (-1, 1).

    Source: betting, Waudby-Smith and Ramdas 2024; inverse probabilities, Horvitz and Thompson 1952.

    >>> weights = np.tile([1.0, 0.5], 100)
    >>> often, seldom = np.tile([1.0, 0.0], 100), np.repeat([1.0, 0.0], [2, 198])
    >>> weighted_p_values(np.stack([often, seldom], axis=1), weights, 0.1) < [1.0, 0.01]
    array([False,  True])
    """
    terms = weights[:, None] * (loss - mean)
    return np.array(
        [math.exp(-log_fortunes(column, 0.0, 1 - mean).max(initial=0.0)) for column in terms.T]
    )


def corrected(loss: FloatArray, sample: Sample) -> FloatArray:
    """Return the terms Z, [n, G], whose expectation is that of the loss; at most 1 / pi each.

    >>> sample = Sample(np.array([[0.0], [1.0]]), np.array([True, False]), np.arange(2), 0.5)
    >>> corrected(np.array([[1.0], [0.0]]), sample).tolist()
    [[2.0], [1.0]]
    """
    weight = sample.drawn[:, None] / sample.probability
    return np.asarray(sample.predicted + weight * (loss - sample.predicted))


def log_fortunes(terms: FloatArray, mean: float, most: float) -> FloatArray:
    """Return the logarithm of a gambler's fortune after each term, [n]; he bets on a smaller mean.

    It begins at 0 and is spread over twelve stakes, each of which stays as it is. Where the
    expectation is `mean` or more the fortune exceeds 1 / delta at any time with probability at most
    delta (Ville 1939).

    Args:
        terms: [n] at most `most` each, in an order that was fixed beforehand.
        mean: the hypothesis, below `most`.
        most: the largest value that a term can have.
    """
    stakes = _BETS / (most - mean)
    logs = np.log1p(-stakes * (terms[:, None] - mean)).cumsum(axis=0)
    top = logs.max(axis=1, initial=-np.inf)
    found: FloatArray = top + np.log(np.exp(logs - top[:, None]).mean(axis=1))
    return found


def more_needed(
    terms: FloatArray, labels: IntArray, mean: float, most: float, delta: float
) -> int | None:
    """Estimate how many more labels a proof takes; None: that cannot be said.

    It supposes that the fortune goes on growing by as much a label as it did so far. It is an
    estimate, and no promise rests on it.

    Args:
        terms: [m] of the questions that are graded, or need no grade.
        labels: [m] how many labels each took, 0 or 1.
        mean: as in `log_fortunes`, with `most`.
        most: the largest value of a term.
        delta: how often the promise may fail.
    """
    logs, paid = log_fortunes(terms, mean, most), int(labels.sum())
    if not paid or logs[-1] <= 0:
        return None
    return max(0, math.ceil((-math.log(delta) - float(logs.max())) * paid / float(logs[-1])))
