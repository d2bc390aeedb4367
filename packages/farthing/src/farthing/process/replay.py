"""Replay a policy over recorded traces, exactly and without a loop over episodes.

The rounds of a question do not depend on the actions taken, so everything about coverage is one
number per question: the critical threshold kappa* (`spec` of CCPO, section 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

Counts = NDArray[np.int16]
"""Small numbers, of which millions may be kept."""
EMPTY_SETS = ("argmax", "allow")
"""Whether each observation's likeliest action always belongs to the set, or sets may be empty."""


@dataclass(frozen=True)
class Paths:
    """How far a threshold may rise before each round and each answer is lost."""

    reach: FloatArray
    """[n, T] the largest threshold at which the round is run; 1.0 or more in round 1."""
    leaf: FloatArray
    """[n, T, L] the largest threshold at which the answer is in the set; -inf for no answer."""
    critical: FloatArray
    """[n] kappa*: the largest threshold that still covers the question; +inf if unsolvable."""
    score: FloatArray
    """[n, T, L] what the policy itself thinks of each answer; ranks those that are returned."""


@dataclass(frozen=True)
class ReplayOutcome:
    """What happened to each question under one policy and one threshold."""

    cost_nano: IntArray
    """[n] money spent, in nano-dollars."""
    in_set: BoolArray
    """[n] whether a right answer was returned."""
    covered: BoolArray
    """[n] whether a right answer was returned or none was ever recorded."""
    solvable: BoolArray
    """[n] whether any recorded answer is right."""
    best_correct: BoolArray
    """[n] whether the single best answer is right."""
    length: Counts
    """[n] deepest round that was run."""
    set_size: Counts
    """[n] number of distinct answers returned."""
    set_size_leaves: Counts
    """[n] number of answers returned, repetitions counted (the paper's count)."""
    latency_s: FloatArray | None = None
    """[n] seconds that its calls take, NaN where unknown; None where nothing was recorded."""

    def take(self, index: IntArray) -> "ReplayOutcome":
        """Return the outcome of the questions at an index."""
        columns: list[Any] = [getattr(self, name) for name in self.__dataclass_fields__]
        taken: list[Any] = [None if column is None else column[index] for column in columns]
        return ReplayOutcome(*taken)

    @classmethod
    def joined(cls, pieces: Sequence["ReplayOutcome"]) -> "ReplayOutcome":
        """Return what happened to the questions of several pieces, one piece after another."""
        columns: list[Any] = []
        for name in cls.__dataclass_fields__:
            parts = [getattr(piece, name) for piece in pieces]
            unknown = any(part is None for part in parts)
            columns.append(None if unknown else np.concatenate(parts))
        return cls(*columns)


R = TypeVar("R")


def at_worst(found: R, lost: BoolArray, dearest_nano: IntArray) -> R:
    """Return outcomes in which questions that meet a call that was not made come out at worst.

    From that call on nothing is known. At worst everyone is asked, and an answer is given that is
    wrong: it is neither withheld nor passed on to a reference.

    Args:
        found: a `ReplayOutcome`, [n], or `OperatingPoints`, [n, G].
        lost: in the shape of its columns, where such a call was met.
        dearest_nano: what asking everyone costs, in a shape that fits.
    """
    held = {name: getattr(found, name) for name in found.__dataclass_fields__}  # type: ignore[attr-defined]
    then = {"cost_nano": np.where(lost, dearest_nano, held["cost_nano"])}
    then |= {name: held[name] & ~lost for name in ("best_correct", "correct") if name in held}
    then |= {name: held[name] | lost for name in ("answered",) if name in held}
    sizes = ("set_size", "set_size_leaves", "answers")
    then |= {name: np.maximum(held[name], lost) for name in sizes if name in held}
    return replace(found, **then)  # type: ignore[type-var]


def paths(
    scores: FloatArray,
    traces: TraceArrays,
    empty: str = "argmax",
    bought: BoolArray | None = None,
) -> Paths:
    """Follow every branch of every question.

    Args:
        scores: [n, T, L + 1] the policy's scores; `next` is last and is ignored in round T.
        traces: the questions.
        empty: `argmax`: the likeliest action of each observation always belongs to the set, so its
            score counts as 1; `allow`: sets may be empty, as in the paper.
        bought: [n, T] the rounds that a budget allows, once what is before them was bought; None:
            all of them. A right answer that cannot be afforded is lost at every threshold, so that
            kappa* is -inf where there is no other.

    Returns:
        `reach`, `leaf` and `critical`; each set is nested in the threshold, so
        question q is covered at kappa exactly when `critical[q] >= kappa`.
    """
    score = scores[:, :, :-1]
    if bought is not None:
        scores = _never_beyond(scores, bought)
    if empty == "argmax":
        scores = _next_ends(scores)
    reach = np.ones(scores.shape[:2])
    for t in range(1, traces.horizon):  # quicker than along rows that are as short as these
        np.minimum(reach[:, t - 1], scores[:, t - 1, -1], out=reach[:, t])
    if bought is not None:
        reach[~bought] = -np.inf
    leaf = np.minimum(reach[:, :, None], scores[:, :, :-1])
    leaf[traces.answer == NO_ANSWER] = -np.inf
    right = np.where(_surely_correct(traces), leaf, -np.inf)
    each = right.reshape(-1, traces.horizon * traces.n_roles)
    critical = np.ascontiguousarray(each.T).max(axis=0)
    critical[~traces.solvable] = np.inf
    return Paths(reach, leaf, critical, score)


def outcome(
    followed: Paths,
    traces: TraceArrays,
    kappa: float,
    decision_cost_nano: IntArray | None = None,
) -> ReplayOutcome:
    """Act on every question with one threshold: C(o) = {a : score(a, o) >= min(kappa, 1)}.

    Args:
        followed: what `paths` returned for these questions.
        traces: the questions.
        kappa: the threshold; it acts as min(kappa, 1).
        decision_cost_nano: [n, T] what each decision costs beyond the calls, if anything.
    """
    kappa = min(kappa, 1.0)
    run = followed.reach >= kappa
    member = followed.leaf >= kappa
    spent = traces.round_cost_nano
    if decision_cost_nano is not None:
        spent = spent + decision_cost_nano
    return _outcome(run, member, followed.score, spent, traces)


def sample(
    probabilities: FloatArray,
    traces: TraceArrays,
    rng: np.random.Generator,
    decision_cost_nano: IntArray | None = None,
) -> ReplayOutcome:
    """Draw one action a round until an answer is chosen: how pointwise policies are evaluated.

    Args:
        probabilities: [n, T, L + 1], summing to 1 in each round.
        traces: the questions.
        rng: the only source of randomness.
        decision_cost_nano: [n, T] what each decision costs beyond the calls, if anything.
    """
    cumulative = probabilities.cumsum(axis=2)
    draw = rng.random(probabilities.shape[:2])[:, :, None] * cumulative[:, :, -1:]
    action = (draw >= cumulative[:, :, :-1]).sum(axis=2)
    goes_on = action[:, :-1] == traces.n_roles
    run = np.ones(action.shape, dtype=bool)
    np.logical_and.accumulate(goes_on, axis=1, out=run[:, 1:])
    member = run[:, :, None] & (action[:, :, None] == np.arange(traces.n_roles))
    member &= traces.answer != NO_ANSWER
    spent = traces.round_cost_nano
    if decision_cost_nano is not None:
        spent = spent + decision_cost_nano
    return _outcome(run, member, probabilities[:, :, :-1], spent, traces)


def _outcome(
    run: BoolArray, member: BoolArray, score: FloatArray, spent: IntArray, traces: TraceArrays
) -> ReplayOutcome:
    in_set: BoolArray = np.any(member & _surely_correct(traces), axis=(1, 2))
    cost_nano = np.einsum("nt,nt->n", run, spent)
    found = ReplayOutcome(
        cost_nano=cost_nano,
        in_set=in_set,
        covered=in_set | ~traces.solvable,
        solvable=traces.solvable,
        best_correct=_best_is_correct(member, score, traces),
        length=run.sum(axis=1, dtype=np.int16),
        set_size=_distinct(member, traces),
        set_size_leaves=member.sum(axis=(1, 2), dtype=np.int16),
    )
    if not traces.at_worst:
        return found
    lost: BoolArray = np.any(run & ~traces.made.all(axis=2), axis=1)
    deciding = (spent - traces.round_cost_nano).sum(axis=1)
    return at_worst(found, lost, traces.dearest_nano + deciding)


def _surely_correct(traces: TraceArrays) -> BoolArray:
    """Return the right answers, [n, T, L]; at worst those before the first call that is unknown.

    Sets only grow with every round, so such an answer stays in the set whatever comes after it.
    """
    if not traces.at_worst:
        return traces.correct
    known = np.logical_and.accumulate(traces.made.all(axis=2), axis=1)
    return traces.correct & known[:, :, None]


def likeliest_counts_as_one(scores: FloatArray) -> FloatArray:
    """Return the scores [..., A] with the greatest of each observation raised to 1."""
    raised = scores.copy()
    np.put_along_axis(raised, raised.argmax(axis=-1)[..., None], 1.0, axis=-1)
    return raised


def _never_beyond(scores: FloatArray, bought: BoolArray) -> FloatArray:
    possible = scores.copy()
    possible[:, :-1, -1] = np.where(bought[:, 1:], scores[:, :-1, -1], -1.0)
    return possible


def _next_ends(scores: FloatArray) -> FloatArray:
    raised = scores.copy()
    raised[:, -1, -1] = -1.0  # `next` is no action in the last round
    return likeliest_counts_as_one(raised)


def _best_is_correct(member: BoolArray, score: FloatArray, traces: TraceArrays) -> BoolArray:
    """The best answer is the highest-scored one; of equals the latest, and there the last role."""
    n = len(traces)
    ranked = np.where(member, score, -np.inf).reshape(n, -1)
    last = ranked.shape[1] - 1 - ranked[:, ::-1].argmax(axis=1)
    right = (traces.correct & member).reshape(n, -1)
    chosen: BoolArray = right[np.arange(n), last]
    return chosen


def _distinct(member: BoolArray, traces: TraceArrays) -> Counts:
    codes = np.where(member, traces.answer, NO_ANSWER).reshape(len(traces), -1)
    ordered = np.sort(codes, axis=1)
    new = np.ones(ordered.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    distinct: Counts = (new & (ordered != NO_ANSWER)).sum(axis=1, dtype=np.int16)
    return distinct
