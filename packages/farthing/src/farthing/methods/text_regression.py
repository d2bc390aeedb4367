"""Regression on a question's text: kernel ridge over the tf-idf of its character n-grams.

What it says of a question that it was fitted on is said as if that question had been left out; so
its skill is known without other questions.

Source: tf-idf with smoothed idf as scikit-learn's; leave-one-out residuals of ridge regression by
the diagonal of the hat matrix (Allen 1974, PRESS).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InputError
from farthing.features.ngrams import DIMENSIONS, ngram_counts
from farthing.traces.arrays import FloatArray, TraceArrays

STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0)
"""Of the penalty, in mean eigenvalues of the kernel; leaving one out chooses."""


@dataclass(frozen=True)
class TextRegression:
    """Linear functions of a text's tf-idf vector; one without outputs reads no text."""

    idf: FloatArray
    """[D] of each place of the n-grams."""
    weight: FloatArray
    """[D, Y]"""
    constant: FloatArray
    """[Y] what is said of a text without n-grams."""

    @property
    def reads(self) -> bool:
        """Whether it says anything."""
        return bool(self.constant.size)

    def beside(self, other: "TextRegression") -> "TextRegression":
        """Return one with the outputs of both, which were fitted to the same texts."""
        weight = np.hstack([self.weight, other.weight])
        return TextRegression(self.idf, weight, np.append(self.constant, other.constant))

    def predict(self, traces: TraceArrays) -> FloatArray:
        """Return what is expected of each question by its text, [n, Y].

        Raises:
            InputError: questions whose texts are not known.
        """
        found = np.empty((len(traces), len(self.constant)))
        if self.reads:
            for row, text in enumerate(texts_of(traces)):
                places, counts = ngram_counts(text)
                tfidf = counts * self.idf[places]
                length = max(float(np.sqrt((tfidf * tfidf).sum())), 1e-9)
                found[row] = tfidf / length @ self.weight[places] + self.constant
        return found


NO_TEXT = TextRegression(np.zeros(0), np.zeros((0, 0)), np.zeros(0))


@dataclass(frozen=True)
class TextFit:
    """What was learned, and how good it is."""

    regression: TextRegression
    left_out: FloatArray
    """[n, Y] what is expected of each training question, fitted without it."""
    skill: float
    """1 - squared error over variance, both of questions left out, all outputs together."""


def texts_of(traces: TraceArrays) -> list[str]:
    """Return the questions' texts."""
    if traces.question is None:
        raise InputError("these questions have no text, and the policy was trained to read it")
    texts: list[str] = traces.question.tolist()
    return texts


def fit_text(texts: Sequence[str], *targets: FloatArray) -> list[TextFit]:
    """Fit kernel ridge regressions to the same texts.

    Args:
        texts: n of them.
        targets: [n, Y] each; every one has a penalty of its own.

    >>> texts = ["the Rhine", "the Rhine!", "2 + 2", "3 + 2"]
    >>> (fit,) = fit_text(texts, np.eye(2)[[0, 0, 1, 1]])
    >>> fit.skill > 0.5, fit.left_out.argmax(axis=1).tolist()
    (True, [0, 0, 1, 1])
    """
    n = len(texts)
    seen = np.zeros((n, DIMENSIONS), dtype=np.float32)
    for row, text in enumerate(texts):
        places, counts = ngram_counts(text)
        seen[row, places] = counts
    idf = np.log((1 + n) / (1 + (seen > 0).sum(axis=0))) + 1
    seen *= idf.astype(np.float32)
    seen /= np.maximum(np.linalg.norm(seen, axis=1, keepdims=True), 1e-9)
    centre = seen.mean(axis=0)
    seen -= centre
    eigenvalues, basis = np.linalg.eigh((seen @ seen.T).astype(np.float64))
    kernel = _Kernel(idf, centre, seen, np.maximum(eigenvalues, 0.0), basis)
    return [kernel.fit(each) for each in targets]


@dataclass(frozen=True)
class _Kernel:
    """Texts as centred tf-idf vectors, and the eigenvectors of their inner products."""

    idf: FloatArray
    centre: NDArray[np.float32]
    """[D]"""
    seen: NDArray[np.float32]
    """[n, D]"""
    eigenvalues: FloatArray
    """[n]"""
    basis: FloatArray
    """[n, n]"""

    def fit(self, targets: FloatArray) -> TextFit:
        """Fit ridge regression; what is said of left-out questions chooses the penalty."""
        n, level = len(targets), targets.mean(axis=0)
        inside = self.basis.T @ (targets - level)
        best = (np.inf, np.zeros(0), targets)
        for strength in STRENGTHS:
            shrunk = 1 / (self.eigenvalues + strength * self.eigenvalues.mean() + 1e-12)
            fitted = self.basis @ ((self.eigenvalues * shrunk)[:, None] * inside)
            own = (self.basis * self.basis) @ (self.eigenvalues * shrunk) + 1 / n
            residual = (targets - level - fitted) / np.maximum(1 - own, 1e-9)[:, None]
            error = float((residual**2).sum())
            best = min(best, (error, shrunk, residual), key=lambda fit: fit[0])
        error, shrunk, residual = best
        weight = self.seen.T.astype(np.float64) @ (self.basis @ (shrunk[:, None] * inside))
        spread = float((((targets - level) * n / (n - 1)) ** 2).sum())
        constant = level - self.centre.astype(np.float64) @ weight
        regression = TextRegression(self.idf, weight, constant)
        return TextFit(regression, targets - residual, 1 - error / spread if spread else 0.0)
