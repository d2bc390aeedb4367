"""How sure an answer is, in (0, 1]: by what was recorded of its call, or learnt from evidence.

Each kind is called in the same way: with the questions [n, T, L], which calls are known after each
purchase [n, S, T * L], which call each answer of the purchase is [n, S, U], and the answers
[n, S, U]. It returns [n, S, U], 0 where there is no answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from farthing.features.calls import LEFT_OUT, VERDICT, speakers, with_its_base
from farthing.methods.forest import Forest
from farthing.methods.serialization import rebuilt, state_of, under
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.text_signals import OF_QUESTION

LEAST = 1e-6
"""No answer scores less: a threshold of 0 alone returns what is masked."""
Answers = NDArray[np.int16]
CONFIDENCE = "confidence"
_CLIP = 1e-6
"""Between 0.9999 and 1 there is still much to tell apart."""


@dataclass(frozen=True)
class Evidence:
    """How to read what speaks for an answer and what against it."""

    signals: tuple[str, ...]
    """[G] recorded numbers of calls."""
    mean: FloatArray
    """[G, K] their means, speaker by speaker."""
    scale: FloatArray
    """[G, K] their standard deviations, likewise."""

    @classmethod
    def fit(cls, train: TraceArrays) -> Self:
        """Take means and deviations from training questions; a signal that is constant is out."""
        names, speaker = speakers(train)
        found = {}
        for name in sorted(set(train.signals).difference(LEFT_OUT, OF_QUESTION)):
            values = train.signals[name].reshape(len(train), -1).astype(np.float64)
            own = [values[:, speaker == k] for k in range(len(names))]
            known = [of[~np.isnan(of)] for of in own]
            mean = np.array([of.mean() if of.size else 0.0 for of in known])
            scale = np.array([of.std() if of.size else 0.0 for of in known])
            if scale.any():
                found[name] = mean, np.where(scale > 0, scale, 1.0)
        shape = (len(found), len(names))
        means, scales = (np.array([pair[i] for pair in found.values()]) for i in range(2))
        return cls(tuple(found), means.reshape(shape), scales.reshape(shape))

    def of(self, traces: TraceArrays, seen: BoolArray, candidate: Answers) -> FloatArray:
        """Return what is known of each candidate answer, [n, S, U, F].

        Each speaker's calls that gave it and that gave another, its share of all, its lead over the
        next, how many other answers there are, and each signal, summed over the calls for it and
        over those against it, in deviations from its speaker's mean.

        Args:
            traces: the questions, [n, T, L].
            seen: [n, S, T * L] which calls are known after each purchase.
            candidate: [n, S, U] answers.
        """
        names, speaker = speakers(traces)
        answer = traces.answer.reshape(len(traces), -1)
        given = (seen & (answer != NO_ANSWER)[:, None])[:, :, None]
        backs = given & (answer[:, None, None] == candidate[..., None])
        others = given & ~backs
        same = (answer[:, :, None] == answer[:, None]).astype(np.float64)
        crowd = others.astype(np.float64) @ same[:, None] * others  # votes of each other answer
        votes, rest = backs.sum(axis=3), others.sum(axis=3)
        columns = [
            *((backs & (speaker == k)).sum(axis=3) for k in range(len(names))),
            *((others & (speaker == k)).sum(axis=3) for k in range(len(names))),
            votes / np.maximum(votes + rest, 1),
            votes - crowd.max(axis=3),
            (others / np.maximum(crowd, 1.0)).sum(axis=3),
        ]
        for g, signal in enumerate(self.signals):
            value = self._deviations(traces, g, signal, speaker)[:, None, None]
            if signal == VERDICT:
                value = value * with_its_base(traces.roles, seen)[:, :, None]
            columns += [(value * backs).sum(axis=3), (value * others).sum(axis=3)]
        return np.stack(columns, axis=3).astype(np.float64)

    def _deviations(
        self, traces: TraceArrays, g: int, signal: str, speaker: IntArray
    ) -> FloatArray:
        if signal not in traces.signals:
            return np.zeros((len(traces), len(speaker)))
        values = traces.signals[signal].reshape(len(traces), -1)
        known: FloatArray = (values - self.mean[g, speaker]) / self.scale[g, speaker]
        return np.nan_to_num(known)


@dataclass(frozen=True)
class Votes:
    """How to read who agrees with an answer, and how sure each says that it is."""

    mean: FloatArray
    """[K] mean log-odds of each speaker's recorded confidence; 0 where there is none."""
    scale: FloatArray
    """[K] their standard deviations; 1 where there is none."""

    @classmethod
    def fit(cls, train: TraceArrays) -> Self:
        """Take means and deviations from training questions."""
        names, speaker = speakers(train)
        odds = log_odds(train)
        mean, scale = np.zeros(len(names)), np.ones(len(names))
        for k in range(len(names)):
            own = odds[:, speaker == k]
            known = own[~np.isnan(own)]
            if known.size and known.std() > 1e-9:
                mean[k], scale[k] = known.mean(), known.std()
        return cls(mean, scale)

    def of(self, traces: TraceArrays, seen: BoolArray, candidate: Answers) -> FloatArray:
        """Return what is known of each candidate answer, [n, S, U, 2 K].

        For each speaker its calls that gave it less those that gave another; then the same with
        each call weighed by its confidence, as log-odds in deviations from its speaker's mean.

        Args:
            traces: the questions, [n, T, L].
            seen: [n, S, T * L] which calls are known after each purchase.
            candidate: [n, S, U] answers.
        """
        names, speaker = speakers(traces)
        answer = traces.answer.reshape(len(traces), -1)
        given = (seen & (answer != NO_ANSWER)[:, None])[:, :, None]
        same = answer[:, None, None] == candidate[..., None]
        votes = np.where(given, np.where(same, 1.0, -1.0), 0.0)
        weight = np.nan_to_num((log_odds(traces) - self.mean[speaker]) / self.scale[speaker])
        columns = [
            (values * (speaker == k)).sum(axis=3)
            for values in (votes, votes * weight[:, None, None])
            for k in range(len(names))
        ]
        return np.stack(columns, axis=3)


def log_odds(traces: TraceArrays) -> FloatArray:
    """Return the log-odds of every call's recorded confidence, [n, T * L]; NaN where none is."""
    if CONFIDENCE not in traces.signals:
        return np.full(traces.answer.reshape(len(traces), -1).shape, np.nan)
    values = traces.signals[CONFIDENCE].reshape(len(traces), -1).astype(np.float64)
    values = np.clip(values, _CLIP, 1 - _CLIP)
    found: FloatArray = np.log(values / (1 - values))
    return found


@dataclass(frozen=True)
class OwnConfidence:
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
class AnswerAgreement:
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


Sureness = OwnConfidence | AnswerAgreement | Mixture | Confidence
KINDS: Mapping[str, type[Sureness]] = {
    "own": OwnConfidence,
    "agreement": AnswerAgreement,
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
    kind = KINDS[settings["kind"]]
    sureness: Sureness = rebuilt(kind, under("sure.", arrays), settings["settings"])
    return sureness
