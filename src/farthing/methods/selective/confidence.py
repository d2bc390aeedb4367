"""How sure an answer is, in (0, 1]: by what was recorded of its call, or learnt from evidence.

Each kind is called in the same way: with the questions [n, T, L], which calls are known after each
purchase [n, S, T * L], which call each answer of the purchase is [n, S, U], and the answers
[n, S, U]. It returns [n, S, U], 0 where there is no answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.methods.forest import Forest
from farthing.methods.selective.features import CONFIDENCE, Answers, Evidence, Votes
from farthing.methods.serialization import rebuilt, state_of
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

LEAST = 1e-6
"""No answer scores less: a threshold of 0 alone returns what is masked."""


@dataclass(frozen=True)
class Own:
    """The confidence that was recorded beside the answer's own call."""

    def __call__(
        self, traces: TraceArrays, seen: BoolArray, calls: IntArray, answer: Answers
    ) -> FloatArray:
        """Return it; the least of all where none was recorded."""
        if CONFIDENCE not in traces.signals:
            return np.where(answer != NO_ANSWER, LEAST, 0.0)
        n = len(traces)
        recorded = traces.signals[CONFIDENCE].reshape(n, -1).astype(np.float64)
        own = np.nan_to_num(recorded[np.arange(n)[:, None, None], calls])
        return np.where(answer != NO_ANSWER, np.clip(own, LEAST, 1.0), 0.0)


@dataclass(frozen=True)
class Agreement:
    """The share of the known answers that are the same."""

    def __call__(
        self, traces: TraceArrays, seen: BoolArray, calls: IntArray, answer: Answers
    ) -> FloatArray:
        """Return it."""
        said = traces.answer.reshape(len(traces), -1)
        given = (seen & (said != NO_ANSWER)[:, None])[:, :, None]
        same = given & (said[:, None, None] == answer[..., None])
        share = same.sum(axis=3) / np.maximum(given.sum(axis=3), 1)
        return np.where(answer != NO_ANSWER, np.maximum(share, LEAST), 0.0)


@dataclass(frozen=True)
class Mixture:
    """A logistic regression on who agrees with an answer and how sure each says that it is."""

    votes: Votes
    weights: FloatArray
    """[2 K + 1] log-odds, the constant last."""

    def __call__(
        self, traces: TraceArrays, seen: BoolArray, calls: IntArray, answer: Answers
    ) -> FloatArray:
        """Return the probability that an answer is right."""
        given = answer != NO_ANSWER
        sure = np.zeros(given.shape)
        known = self.votes.of(traces, seen, answer)[given]
        sure[given] = np.maximum(logistic(known, self.weights), LEAST)
        return sure


@dataclass(frozen=True)
class Confidence:
    """A logistic regression and a forest, on all that was recorded."""

    evidence: Evidence
    weights: FloatArray
    """[F + 1] log-odds, the constant last."""
    forest: Forest
    """One output: the same probability."""

    def __call__(
        self, traces: TraceArrays, seen: BoolArray, calls: IntArray, answer: Answers
    ) -> FloatArray:
        """Return the probability that an answer is right."""
        given = answer != NO_ANSWER
        sure = np.zeros(given.shape)
        sure[given] = self.of(self.evidence.of(traces, seen, answer)[given])
        return sure

    def of(self, known: FloatArray) -> FloatArray:
        """Return the probability by evidence [R, F], [R]: the mean of both estimates.

        The one needs little data, the other sees what depends on what.
        """
        linear = logistic(known, self.weights)
        mean: FloatArray = (linear + self.forest.predict(known)[:, 0]) / 2.0
        return np.maximum(mean, LEAST)


def logistic(known: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the probabilities, [R], by evidence [R, F] and weights [F + 1], the constant last."""
    odds = (known * weights[:-1]).sum(axis=1) + weights[-1]
    linear: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(odds, -30.0, 30.0)))
    return linear


Sureness = Own | Agreement | Mixture | Confidence
KINDS: Mapping[str, type[Sureness]] = {
    "own": Own,
    "agreement": Agreement,
    "mixture": Mixture,
    "confidence": Confidence,
}


def saved(sureness: Sureness) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the settings that a bundle keeps."""
    (kind,) = (name for name, of in KINDS.items() if isinstance(sureness, of))
    arrays, settings = state_of(sureness)
    return {f"sure.{name}": values for name, values in arrays.items()}, {
        "kind": kind,
        "settings": settings,
    }


def restored(arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Sureness:
    """Rebuild what `saved` returned."""
    own = {n.removeprefix("sure."): a for n, a in arrays.items() if n.startswith("sure.")}
    found: Sureness = rebuilt(KINDS[settings["kind"]], own, settings["settings"])
    return found
