"""What a policy sees of a round: named numbers, standardised on the training split alone.

A feature of round t is a function of rounds 1..t, of what was recorded and never of a grade.
`docs/reference/features.md` lists them all.
"""

from collections.abc import Sequence
from typing import Any, Self

import msgspec
import numpy as np

from farthing.errors import BundleError, InputError, TooFewTracesError, UnknownNameError
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, TraceArrays
from farthing.traces.base import GRADES

VERSION = 1
CLIP = 10.0
"""Standardised values end here, so that one outlier cannot drown a network."""
OF_THOUGHTS = ("mean_logprob", "entropy")
"""What is known of a cut of a thought, beside what any call may have."""
MISSING = "missing "
"""How the name of a missing-indicator begins."""


class FeatureSet(msgspec.Struct, frozen=True, kw_only=True):
    """Which features are on, and how each is standardised."""

    version: int = VERSION
    roles: tuple[str, ...]
    """The roles of the training traces; others cannot be transformed."""
    horizon: int
    """The rounds of the training traces; more cannot be transformed."""
    extra: tuple[str, ...] = ()
    """Recorded numbers that were asked for by name."""
    names: tuple[str, ...]
    """[F] the features that are on, in the order of the columns."""
    mean: tuple[float, ...]
    """[F] mean over the rounds of the training traces; stands in for what is missing."""
    scale: tuple[float, ...]
    """[F] standard deviation over the same rounds, above 0."""
    off: dict[str, str]
    """The features that are off, and why."""

    @classmethod
    def fit(cls, train: TraceArrays, extra: Sequence[str] = ()) -> Self:
        """Choose the features and learn their normalisers from training traces.

        Args:
            train: the training split, and nothing else.
            extra: recorded numbers to use beside the built-in features.
        """
        extra = tuple(dict.fromkeys(extra))
        _check_extra(train, extra)
        rows = np.arange(train.horizon) < train.recorded[:, None]
        if not rows.any():
            raise TooFewTracesError("features are fitted on training traces, and there is none")
        statistics: dict[str, tuple[float, float]] = {}
        off: dict[str, str] = {}
        for name, column in columns(train, extra, train.horizon).items():
            values = column[rows]
            missing = np.isnan(values)
            reason = _why_off(name, values[~missing])
            if reason:
                off[name] = reason
                continue
            statistics[name] = _mean_and_scale(values[~missing])
            if missing.any():
                statistics[MISSING + name] = _mean_and_scale(missing.astype(np.float64))
        return cls(
            roles=train.roles,
            horizon=train.horizon,
            extra=extra,
            names=tuple(statistics),
            mean=tuple(mean for mean, _ in statistics.values()),
            scale=tuple(scale for _, scale in statistics.values()),
            off=off,
        )

    def raw(self, arrays: TraceArrays) -> FloatArray:
        """Return the features in their own units, [n, T, F], each gap filled with its mean."""
        return _last(self._filled(arrays))

    def transform(self, arrays: TraceArrays) -> FloatArray:
        """Return (raw - mean) / scale, [n, T, F], within [-10, 10]; always finite."""
        values = self._filled(arrays)
        values -= np.asarray(self.mean)[:, None, None]
        with np.errstate(over="ignore"):
            values /= np.asarray(self.scale)[:, None, None]
        return _last(np.clip(values, -CLIP, CLIP, out=values))

    def _filled(self, arrays: TraceArrays) -> FloatArray:
        """Return the features feature by feature, [F, n, T]: long rows are quick to work on."""
        self._check(arrays)
        found = columns(arrays, self.extra, self.horizon)
        out = np.empty((len(self.names), len(arrays), arrays.horizon))
        for k, name in enumerate(self.names):
            values = found[name.removeprefix(MISSING)]
            gaps = np.isnan(values)
            if name.startswith(MISSING):
                out[k] = gaps
            else:
                out[k] = values
                np.copyto(out[k], self.mean[k], where=gaps)
        return out

    def to_json(self) -> dict[str, Any]:
        """Return what a bundle keeps, as plain JSON values."""
        state: dict[str, Any] = msgspec.to_builtins(self)
        return state

    @classmethod
    def from_json(cls, state: Any) -> Self:
        """Rebuild the feature set from what `to_json` returned."""
        version = state.get("version") if isinstance(state, dict) else None
        if version != VERSION:
            raise BundleError(
                f"the bundle's features have version {version}; this program computes version "
                f"{VERSION}: train again, or install the version that wrote the bundle"
            )
        try:
            features = msgspec.convert(state, cls)
        except msgspec.ValidationError as problem:
            raise BundleError(
                f"the bundle's features are damaged: {problem}; train again"
            ) from None
        if not len(features.names) == len(features.mean) == len(features.scale):
            raise BundleError("the bundle's features are damaged: lengths differ; train again")
        return features

    def _check(self, arrays: TraceArrays) -> None:
        if arrays.roles != self.roles:
            raise InputError(
                f"the features were fitted for the roles {', '.join(self.roles)}; these traces "
                f"have {', '.join(arrays.roles)}: train on traces of that kind"
            )
        if arrays.horizon > self.horizon:
            raise InputError(
                f"the features were fitted for {self.horizon} rounds; these traces have "
                f"{arrays.horizon}: train on traces that are as long"
            )


def columns(arrays: TraceArrays, extra: Sequence[str], horizon: int) -> dict[str, FloatArray]:
    """Compute every feature there is, on or off, in its own unit.

    Args:
        arrays: the questions.
        extra: recorded numbers to add.
        horizon: number of rounds to have an indicator for, at least those of `arrays`.

    Returns:
        Name to [n, T]; NaN where it is not known. Round t depends on rounds 1..t alone.
    """
    shape = arrays.answer.shape[:2]
    found: dict[str, FloatArray] = {}
    for t in range(horizon):
        found[f"round={t + 1}"] = np.broadcast_to(np.arange(shape[1]) == t, shape).astype(float)
    for place, role in enumerate(arrays.roles):
        found |= _of_role(arrays, place, role, extra)
    found |= _agreement(arrays)
    verdict = _signal(arrays, "verdict")
    unknown = np.where("verdict" in arrays.signals, 0.0, np.nan)
    found["yes"] = (verdict == 1).sum(axis=2).cumsum(axis=1) + unknown
    found["no"] = (verdict == 0).sum(axis=2).cumsum(axis=1) + unknown
    found["cost"] = np.log1p(arrays.round_cost_nano.cumsum(axis=1))
    return found


def _of_role(
    arrays: TraceArrays, place: int, role: str, extra: Sequence[str]
) -> dict[str, FloatArray]:
    """What was recorded beside one role's answers; the first role is the one that is judged."""
    recorded = ["verdict"] if place > 0 else []
    recorded += ["confidence", "uncertainty", *(OF_THOUGHTS if arrays.cuts else ()), *extra]
    found = {f"{name}[{role}]": _signal(arrays, name)[:, :, place] for name in recorded}
    if place == arrays.n_roles - 1:
        found[f"tokens[{role}]"] = _tokens_so_far(arrays, place)
    answer = arrays.answer[:, :, place]
    found[f"no_answer[{role}]"] = (answer == NO_ANSWER).astype(float)
    repeats = np.zeros(answer.shape)
    repeats[:, 1:] = (answer[:, 1:] == answer[:, :-1]) & (answer[:, 1:] != NO_ANSWER)
    found[f"repeats[{role}]"] = repeats
    if arrays.cuts:
        found[f"unchanged[{role}]"] = unchanged(arrays)
    return found


def unchanged(cuts: TraceArrays) -> FloatArray:
    """Return at how many cuts in a row, up to each, the answer is the present one, [n, T].

    >>> from farthing.traces.assemble import assemble
    >>> from farthing.traces.base import Call, Trace
    >>> from farthing.traces.pool import cascade
    >>> calls = [Call(round=t, role="r1", answer=said) for t, said in enumerate("4554", start=1)]
    >>> unchanged(cascade(assemble([Trace(id="q", calls=calls)]))).tolist()
    [[1.0, 1.0, 2.0, 1.0]]
    """
    answer = cuts.answer[:, :, 0]
    found: FloatArray = (answer != NO_ANSWER).astype(np.float64)
    for t in range(1, answer.shape[1]):
        found[:, t] *= 1 + found[:, t - 1] * (answer[:, t] == answer[:, t - 1])
    return found


def _signal(arrays: TraceArrays, name: str) -> FloatArray:
    """[n, T, L] a recorded number, NaN where unknown."""
    if name not in arrays.signals:
        return np.full(arrays.answer.shape, np.nan)
    values = arrays.signals[name].astype(np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def _tokens_so_far(arrays: TraceArrays, place: int) -> FloatArray:
    """[n, T] log(1 + tokens read and written so far by one role); NaN once a count is unknown."""
    known = [name for name in ("input_tokens", "output_tokens") if name in arrays.signals]
    if not known:
        return np.full(arrays.answer.shape[:2], np.nan)
    tokens = np.sum([_signal(arrays, name)[:, :, place] for name in known], axis=0)
    so_far: FloatArray = np.log1p(np.maximum(tokens, 0.0).cumsum(axis=1))
    return so_far


def _agreement(arrays: TraceArrays) -> dict[str, FloatArray]:
    """Who says the same as whom: counts over the answers of this and earlier rounds."""
    n, horizon, n_roles = arrays.answer.shape
    said = np.ascontiguousarray(arrays.answer.reshape(n, -1).T)  # [T L, n], in order of time
    present = said != NO_ANSWER
    votes = np.zeros(said.shape)
    new = np.zeros((horizon, n))
    share = np.zeros((horizon, n_roles, n))
    top = np.zeros((horizon, n))
    for t in range(horizon):
        start, stop = t * n_roles, (t + 1) * n_roles
        for j in range(start, stop):
            same = (said[:j] == said[j]) & present[j]
            votes[:j] += same
            votes[j] = same.sum(axis=0) + present[j]
            new[t] += present[j] & ~same.any(axis=0)
        total = np.maximum(present[:stop].sum(axis=0), 1)
        share[t] = votes[start:stop] / total
        top[t] = votes[:stop].max(axis=0) / total
    found = {f"share[{role}]": share[:, place].T for place, role in enumerate(arrays.roles)}
    found["top_share"] = top.T
    found["distinct"] = new.cumsum(axis=0).T
    if n_roles > 1:
        first = arrays.answer[:, :, :1]
        found["agree"] = ((arrays.answer == first) & (first != NO_ANSWER)).all(axis=2).astype(float)
    return found


def _last(values: FloatArray) -> FloatArray:
    """Bring the features last: [F, n, T] to [n, T, F]."""
    return np.ascontiguousarray(np.moveaxis(values, 0, -1))


def _check_extra(train: TraceArrays, extra: Sequence[str]) -> None:
    known = [name for name in train.signals if name not in GRADES]
    for name in extra:
        if name in GRADES:
            raise InputError(f"'{name}' is a grade; a grade is never a feature, so leave it out")
        if name not in known:
            raise UnknownNameError("feature", name, known)


def _why_off(name: str, known: FloatArray) -> str:
    """Why a feature says nothing about the training traces; empty where it says something."""
    if not known.size:
        what, _, role = name.rstrip("]").partition("[")
        return f"no {role} call records {what}" if role else "no call records a verdict"
    if np.ptp(known) <= 1e-9 * np.abs(known).max():
        return "the same in every round of the training traces"
    return ""


def _mean_and_scale(values: FloatArray | BoolArray) -> tuple[float, float]:
    return float(values.mean()), float(values.std())
