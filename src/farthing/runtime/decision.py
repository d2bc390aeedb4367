"""What a bundle decides after a round, by the very code that replays recorded traces."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from farthing.bundle import Bundle
from farthing.calibration.guarantees.groups import groups_of
from farthing.process.replay import paths
from farthing.runtime.answer import Returned
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, TraceArrays
from farthing.traces.base import Call
from farthing.traces.shapes import PROTOCOL_ROLES

AS_IT_IS = 1.0
"""The threshold of a policy that is neither sampled nor calibrated: what it scores 1 is done."""

Steps = Sequence[Sequence[Call]]
"""The calls of each step that was played in full."""


@dataclass(frozen=True)
class Decision:
    """What is returned if the question ends here, and whether it should."""

    go_on: bool
    """Whether the policy pays for another step."""
    answers: tuple[Returned, ...]
    """The set: distinct answers, the best first, as a replay ranks them; that is by score, and of
    equals the latest is first, and there the last role."""
    otherwise: Returned | None
    """The best of all answers so far, for a question that is cut where the set is empty."""


def returned(call: Call, score: float, step: int) -> Returned:
    """Return a call's answer; steps count from 0."""
    number = call.round if call.role in PROTOCOL_ROLES else step + 1
    return Returned(call.answer or "", score, number, call.role)


def distinct(ranked: Iterable[tuple[int, Returned]]) -> tuple[Returned, ...]:
    """Return the first of each code, in order."""
    found: dict[int, Returned] = {}
    for code, of in ranked:
        found.setdefault(code, of)
    return tuple(found.values())


def threshold(bundle: Bundle, group: str | None) -> float | None:
    """Return the threshold for a question: its group's, where the promise is per group.

    None where the policy's actions are to be drawn.
    """
    if bundle.kappa is None:
        return None if bundle.policy.stochastic else AS_IT_IS
    groups = groups_of(bundle.certificate)
    return groups[group].kappa if group in groups else bundle.kappa


def decide(
    scores: FloatArray, traces: TraceArrays, steps: Steps, bundle: Bundle, kappa: float
) -> Decision:
    """Decide with a threshold: C(o) = {a : score(a, o) >= min(kappa, 1)}.

    Args:
        scores: [1, T, L + 1] the policy's.
        traces: the steps so far of one question, [1, T, L].
        steps: the same, as calls.
        bundle: the policy's.
        kappa: the threshold; it acts as min(kappa, 1).
    """
    followed = paths(scores, traces, bundle.empty)
    kappa, now = min(kappa, 1.0), len(steps)
    go_on = now < traces.horizon and bool(followed.reach[0, now] >= kappa)
    return _decision(go_on, followed.leaf[0] >= kappa, followed.score[0], traces, steps)


def draw(bundle: Bundle, traces: TraceArrays, steps: Steps, uniform: float) -> Decision:
    """Decide by lot: one action of the present round, all earlier ones having been `next`.

    Args:
        bundle: a policy whose scores are probabilities.
        traces: the rounds so far of one question, [1, T, L].
        steps: the same, as calls.
        uniform: a number drawn from [0, 1).
    """
    now = len(steps) - 1
    scores = bundle.policy.scores(traces)[0]
    cumulative = scores[now].cumsum()
    action = int((uniform * cumulative[-1] >= cumulative[:-1]).sum())
    member = np.zeros(traces.answer.shape[1:], dtype=bool)
    if action < traces.n_roles:
        member[now, action] = traces.answer[0, now, action] != NO_ANSWER
    return _decision(action == traces.n_roles, member, scores[:, :-1], traces, steps)


def _decision(
    goes_on: bool,  # noqa: FBT001 - private, and the first of a decision
    member: BoolArray,
    score: FloatArray,
    traces: TraceArrays,
    steps: Steps,
) -> Decision:
    """Name the answers behind members and scores, [T, L] each."""

    def ranked(among: BoolArray) -> list[tuple[int, Returned]]:
        places = sorted((float(score[t, i]), t, i) for t, i in np.argwhere(among).tolist())
        return [(int(traces.answer[0, t, i]), named(t, i, of)) for of, t, i in reversed(places)]

    def named(t: int, place: int, of: float) -> Returned:
        role, calls = traces.roles[place], steps[t]
        call = next(call for call in calls if len(calls) == 1 or call.role == role)
        return returned(call, of, t)

    best = ranked(traces.answer[0] != NO_ANSWER)
    return Decision(goes_on, distinct(ranked(member)), best[0][1] if best else None)
