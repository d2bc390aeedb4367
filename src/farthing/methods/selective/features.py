"""What speaks for an answer and what against it, as numbers that a regression can weigh."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from farthing.features.calls import LEFT_OUT, VERDICT, speakers, with_its_base
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.text_signals import OF_QUESTION

Answers = NDArray[np.int16]


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


CONFIDENCE = "confidence"
_CLIP = 1e-6
"""Between 0.9999 and 1 there is still much to tell apart."""


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
