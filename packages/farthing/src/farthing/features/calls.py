"""What any set of calls says: named numbers for a policy that may ask for calls in any order.

A number depends on the calls that were made and on nothing else, and never on a grade.
"""

from collections.abc import Mapping
from typing import Self

import msgspec
import numpy as np

from farthing.errors import InputError
from farthing.traces.arrays import (
    NO_ANSWER,
    BoolArray,
    FloatArray,
    IntArray,
    Signal,
    TraceArrays,
)
from farthing.traces.text_signals import OF_QUESTION

VERSION = 1
COUNTED = ("input_tokens", "output_tokens", "tool_calls")
"""Signals of which the logarithm is taken."""
LEFT_OUT = ("latency_s",)
"""Signals that say more about the machine than about the question."""

VERDICT = "verdict"
"""Compares a guide's answer with the base's of its round: unknown until both were asked."""


def columns(traces: TraceArrays, row: IntArray, seen: BoolArray) -> dict[str, FloatArray]:
    """Compute every number there is.

    Args:
        traces: the questions, [n, T, L].
        row: [R] which question each case is about.
        seen: [R, T * L] which of its calls were made, round by round.

    Returns:
        Name to [R]; NaN where nothing that was seen tells it.
    """
    answer = np.where(seen, traces.answer.reshape(len(traces), -1)[row], NO_ANSWER)
    given = answer != NO_ANSWER
    same = (answer[:, :, None] == answer[:, None, :]) & given[:, :, None] & given[:, None, :]
    votes = same.sum(axis=2)
    leads = same[np.arange(len(row)), votes.argmax(axis=1)]
    found = _votes(seen, given, votes, leads)
    names, role = speakers(traces)
    for place, name in enumerate(names):
        of = role == place
        found |= _of_role(name, seen[:, of], given[:, of], leads[:, of], same[:, of][:, :, of])
    for signal in OF_QUESTION:
        if signal in traces.signals:
            found[signal] = _of_question(traces.signals[signal].reshape(len(traces), -1))[row]
    signals = {
        signal: _known(signal, traces, row, seen)
        for signal in sorted(set(traces.signals).difference(LEFT_OUT, OF_QUESTION))
    }
    for signal, numbers in _of_signals(signals, names).items():
        found |= numbers
        if signal == "confidence":
            found |= _weighed(np.nan_to_num(signals[signal]), leads, given)
    return found


def with_its_base(roles: tuple[str, ...], seen: BoolArray) -> BoolArray:
    """Return of which calls the base's call of the same round was made too, [..., T * L].

    In a pool, which has no base, all that were made.
    """
    if "base" not in roles:
        return seen
    base = seen[..., roles.index("base") :: len(roles)]
    return np.repeat(base, len(roles), axis=-1)


def speakers(traces: TraceArrays) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of those who answer, and whose each of the T * L calls is, [T * L].

    They are the roles; in a cascade each round is another model's.
    """
    return names_of_speakers(traces.roles, traces.horizon)


def names_of_speakers(roles: tuple[str, ...], horizon: int) -> tuple[tuple[str, ...], IntArray]:
    """Return the same for so many rounds of these roles."""
    calls = np.arange(horizon * len(roles))
    if len(roles) > 1:
        return roles, calls % len(roles)
    return tuple(f"{roles[0]} {t + 1}" for t in range(horizon)), calls


def _votes(
    seen: BoolArray, given: BoolArray, votes: IntArray, leads: BoolArray
) -> dict[str, FloatArray]:
    answers = given.sum(axis=1)
    first = votes.max(axis=1)
    return {
        "calls": seen.sum(axis=1).astype(np.float64),
        "answers": answers.astype(np.float64),
        "distinct": (given / np.maximum(votes, 1)).sum(axis=1),
        "votes": first.astype(np.float64),
        "share": first / np.maximum(answers, 1),
        "runner_up": np.where(given & ~leads, votes, 0).max(axis=1).astype(np.float64),
    }


def _of_role(
    name: str, seen: BoolArray, given: BoolArray, leads: BoolArray, same: BoolArray
) -> dict[str, FloatArray]:
    made = seen.sum(axis=1)
    found = {f"calls[{name}]": made.astype(np.float64), f"backs[{name}]": _share(leads, made)}
    found[f"no_answer[{name}]"] = (seen & ~given).sum(axis=1).astype(np.float64)
    if seen.shape[1] > 1:
        votes = same.sum(axis=2)
        found[f"votes[{name}]"] = votes.max(axis=1).astype(np.float64)
        found[f"distinct[{name}]"] = (given / np.maximum(votes, 1)).sum(axis=1)
    return found


def _share(of: BoolArray, made: IntArray) -> FloatArray:
    share: FloatArray = np.where(made > 0, of.sum(axis=1) / np.maximum(made, 1), np.nan)
    return share


def _known(signal: str, traces: TraceArrays, row: IntArray, seen: BoolArray) -> FloatArray:
    """Return a signal of the calls that were made, [R, T * L]; NaN elsewhere."""
    values = traces.signals[signal].reshape(len(traces), -1)[row].astype(np.float64)
    values[~seen] = np.nan
    if signal == VERDICT:
        values[~with_its_base(traces.roles, seen)] = np.nan
    return np.log1p(values) if signal in COUNTED else values


def _of_signals(
    signals: Mapping[str, FloatArray], names: tuple[str, ...]
) -> dict[str, dict[str, FloatArray]]:
    """Return of each signal, [R, T * L], mean, spread and last value of each speaker's calls."""
    if not signals:
        return {}
    whole = np.stack(list(signals.values()))
    calls = whole.shape[2] // len(names)
    of_each = whole.reshape(*whole.shape[:2], calls, len(names))  # round by round
    own = np.ascontiguousarray(of_each.swapaxes(2, 3))
    known = ~np.isnan(own)
    count = known.sum(axis=3)
    total = np.where(known, own, 0.0).sum(axis=3)
    of = {"": np.where(count, total / np.maximum(count, 1), np.nan)}
    if own.shape[3] > 1:
        spread = np.fmax.reduce(own, axis=3) - np.fmin.reduce(own, axis=3)
        of["spread "] = np.where(count > 1, spread, np.nan)
        last = own.shape[3] - 1 - known[..., ::-1].argmax(axis=3)
        of["last "] = np.take_along_axis(own, last[..., None], axis=3)[..., 0]
    return {
        signal: {
            f"{which}{signal}[{name}]": values[g, :, k]
            for k, name in enumerate(names)
            for which, values in of.items()
        }
        for g, signal in enumerate(signals)
    }


def _of_question(values: Signal) -> FloatArray:
    """Return what every recorded call repeats, [n]; NaN where none does."""
    known = ~np.isnan(values)
    said = np.where(known, values, -np.inf).max(axis=1)
    return np.where(known.any(axis=1), said, np.nan).astype(np.float64)


def _weighed(confidence: FloatArray, leads: BoolArray, given: BoolArray) -> dict[str, FloatArray]:
    """Confidence behind the leading answer and behind the others."""
    others = given & ~leads
    return {
        "confidence for": (confidence * leads).sum(axis=1),
        "confidence against": (confidence * others).sum(axis=1),
        "best confidence for": (confidence * leads).max(axis=1),
        "best confidence against": (confidence * others).max(axis=1),
    }


class CallFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the numbers are on, and what stands in for those that are not known."""

    version: int = VERSION
    roles: tuple[str, ...]
    """The roles of the training traces; others cannot be looked at."""
    horizon: int
    """The rounds of the training traces."""
    names: tuple[str, ...]
    """[F] the numbers that are on, in the order of the columns."""
    missing: tuple[float, ...]
    """[F] mean of the training cases."""

    @classmethod
    def fit(cls, train: TraceArrays, row: IntArray, seen: BoolArray) -> Self:
        """Choose the numbers that vary over some cases of the training traces.

        The number of calls is always on, so that there is one where nothing varies.
        """
        means = {}
        for name, values in columns(train, row, seen).items():
            known = values[np.isfinite(values)]
            if name == "calls" or (known.size and np.ptp(known) > 0):
                means[name] = float(known.mean())
        return cls(
            roles=train.roles,
            horizon=train.horizon,
            names=tuple(means),
            missing=tuple(means.values()),
        )

    def look(self, traces: TraceArrays, row: IntArray, seen: BoolArray) -> FloatArray:
        """Return the numbers of some cases, [R, F]; always finite."""
        if (traces.roles, traces.horizon) != (self.roles, self.horizon):
            raise InputError(
                f"the policy was trained for {self.horizon} rounds of {', '.join(self.roles)}; "
                f"these traces have {traces.horizon} of {', '.join(traces.roles)}"
            )
        found = columns(traces, row, seen)
        unknown = np.full(len(row), np.nan)
        known = np.stack([found.get(name, unknown) for name in self.names], axis=1)
        return np.where(np.isfinite(known), known, np.asarray(self.missing))
