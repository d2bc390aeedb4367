"""What a bundle decides after a round, by the very code that replays recorded traces."""

from dataclasses import dataclass

import numpy as np

from farthing.environments.replay import paths
from farthing.policies.bundle import Bundle
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, TraceArrays

AS_IT_IS = 1.0
"""The threshold of a policy that is neither sampled nor calibrated: what it scores 1 is done."""


@dataclass(frozen=True)
class Decision:
    """What is returned if the question ends here, and whether it should."""

    go_on: bool
    """Whether the policy pays for another round."""
    member: BoolArray
    """[T, L] whether the answer is returned."""
    score: FloatArray
    """[T, L] what the policy thinks of the answer."""

    @property
    def leaves(self) -> list[tuple[int, int]]:
        """Round and role, both from 0, of what is returned, the best first, as a replay ranks it.

        That is by score; of equals the latest is first, and there the last role.
        """
        ranked = [(self.score[at], *at) for at in zip(*np.nonzero(self.member), strict=True)]
        return [(int(t), int(role)) for _, t, role in sorted(ranked, reverse=True)]


def threshold(bundle: Bundle, group: str | None) -> float | None:
    """Return the threshold for a question: its group's, where the promise is per group.

    None where the policy's actions are to be drawn.
    """
    if bundle.kappa is None:
        return None if bundle.policy.stochastic else AS_IT_IS
    groups = bundle.certificate.groups if bundle.certificate else {}
    return groups[group].kappa if group in groups else bundle.kappa


def decide(bundle: Bundle, traces: TraceArrays, kappa: float) -> Decision:
    """Decide with a threshold: C(o) = {a : score(a, o) >= min(kappa, 1)}.

    Args:
        bundle: the policy.
        traces: the rounds so far of one question, [1, T, L].
        kappa: the threshold; it acts as min(kappa, 1).
    """
    now = int(traces.recorded[0])
    followed = paths(bundle.policy.scores(traces), traces, bundle.empty)
    kappa = min(kappa, 1.0)
    go_on = now < traces.horizon and bool(followed.reach[0, now] >= kappa)
    return Decision(go_on, followed.leaf[0] >= kappa, followed.score[0])


def draw(bundle: Bundle, traces: TraceArrays, uniform: float) -> Decision:
    """Decide by lot: one action of the present round, all earlier ones having been `next`.

    Args:
        bundle: a policy whose scores are probabilities.
        traces: the rounds so far of one question, [1, T, L].
        uniform: a number drawn from [0, 1).
    """
    now = int(traces.recorded[0]) - 1
    scores = bundle.policy.scores(traces)[0]
    cumulative = scores[now].cumsum()
    action = int((uniform * cumulative[-1] >= cumulative[:-1]).sum())
    member = np.zeros(traces.answer.shape[1:], dtype=bool)
    if action < traces.n_roles:
        member[now, action] = traces.answer[0, now, action] != NO_ANSWER
    return Decision(action == traces.n_roles, member, scores[:, :-1])


def at_least_one(decision: Decision, traces: TraceArrays) -> Decision:
    """Return the best of all answers so far where none would be returned.

    For a question that was cut off where the policy would have gone on.
    """
    answered = Decision(go_on=False, member=traces.answer[0] != NO_ANSWER, score=decision.score)
    if decision.member.any() or not answered.leaves:
        return decision
    member = np.zeros_like(decision.member)
    member[answered.leaves[0]] = True
    return Decision(go_on=False, member=member, score=decision.score)
