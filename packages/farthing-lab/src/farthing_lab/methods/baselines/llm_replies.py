"""An LLM that decides: replayed from its recorded replies, never invented.

Two kinds. The LLM as policy is shown the question, both answers and the guide's uncertainty, and
names an action. LLM-EXIT (Lu et al. 2025) is one model that answers and says itself whether to go
on. A reply that could not be read goes on to the next round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import Dataset, Method, Variant
from farthing.methods.baselines.fixed import FixedLearner
from farthing.methods.serialization import DataclassState
from farthing.process.base import InRounds
from farthing.traces.arrays import FloatArray, IntArray, PolicyReplies, TraceArrays

NO_REPLIES = "no replies recorded"


@dataclass(frozen=True)
class LlmPolicy(DataclassState, InRounds):
    """Takes the action that the recorded reply of each round names."""

    replies: str
    """Under which role the replies were recorded, such as `policy-gpt-4o`."""
    stochastic: bool = True

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for the action that was named and 0 for the others.

        In the last round a reply that does not choose an answer counts as the guide's.
        """
        action = _replies(traces, self.replies).action.astype(np.int64)
        action = np.where(action < 0, traces.n_roles, action)
        action[:, -1] = np.minimum(action[:, -1], traces.n_roles - 1)
        return _one_hot(action, traces.n_roles + 1)

    def decision_cost_nano(self, traces: TraceArrays) -> IntArray:
        return _replies(traces, self.replies).cost_nano


@dataclass(frozen=True)
class LlmExitPolicy(DataclassState, InRounds):
    """Returns its own role's answer in the round in which its recorded reply says to stop."""

    replies: str
    """Under which role the replies were recorded, such as `exit-guide`."""
    role: str
    """The role that answers, such as `guide`; the other roles are never asked, nor paid."""
    stochastic: bool = True

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for `next` where the reply goes on and 1 for the role where it stops."""
        action = _replies(traces, self.replies).action
        goes_on = (action < 0) | (action == traces.n_roles)
        goes_on[:, -1] = False
        chosen = np.where(goes_on, traces.n_roles, _index(traces, self.role))
        return _one_hot(chosen, traces.n_roles + 1)

    def decision_cost_nano(self, traces: TraceArrays) -> IntArray:
        """Return the price of the replies less that of the calls that EXIT does not make, [n, T].

        A replay charges every role's call of a round; EXIT runs one model alone.
        """
        own = traces.cost_nano[:, :, _index(traces, self.role)]
        return _replies(traces, self.replies).cost_nano + own - traces.round_cost_nano


def _replies(traces: TraceArrays, role: str) -> PolicyReplies:
    if role not in traces.replies:
        known = ", ".join(sorted(traces.replies)) or "none"
        raise InputError(f"{NO_REPLIES} under the role '{role}' (recorded: {known})")
    return traces.replies[role]


def _index(traces: TraceArrays, role: str) -> int:
    if role not in traces.roles:
        raise InputError(f"the traces have no role '{role}'; they have {', '.join(traces.roles)}")
    return traces.roles.index(role)


def _one_hot(action: IntArray, n_actions: int) -> FloatArray:
    scores: FloatArray = (action[:, :, None] == np.arange(n_actions)).astype(np.float64)
    return scores


def _model(dataset: Dataset, role: str) -> str:
    traces = dataset.arranged("rounds")
    return dict(zip(traces.roles, traces.models, strict=True)).get(role) or role


def _recorded_under(dataset: Dataset, kind: str, role: str) -> str | None:
    """Return the role under which replies were recorded: by the role, or by its model's name."""
    named = (f"{kind}-{role}", f"{kind}-{_model(dataset, role)}")
    known = dataset.arranged("rounds").replies
    return next((name for name in named if name in known), None)


def _card(
    kind: Literal["policy", "exit"], role: Literal["guide", "base"], meaning: str, place: int
) -> Method:
    exits = kind == "exit"
    name = f"exit-{role}" if exits else f"llm-policy-{role}"
    title = "LLM-EXIT" if exits else "LLM policy"

    def variants(dataset: Dataset) -> Sequence[Variant]:
        label = f"{title} ({_model(dataset, role)})"
        replies = _recorded_under(dataset, kind, role)
        if replies is None or (exits and role not in dataset.traces.roles):
            return [Variant(name, label, None, NO_REPLIES)]
        policy = LlmExitPolicy(replies, role) if exits else LlmPolicy(replies)
        return [Variant(name, label, FixedLearner(policy))]

    return Method(
        name=name,
        label=f"{title} ({role})",
        meaning=f"The {role}'s model {meaning}",
        paper="2511.11828",
        policy=LlmExitPolicy if exits else LlmPolicy,
        needs=("replies",),
        calibration="none",
        varies_with=frozenset(),
        variants=variants,
        place=place,
    )


_NAMES = "is shown both answers and names the action"
_STOPS = "answers alone, and says itself when to stop"
LLM_POLICY_GUIDE = _card("policy", "guide", _NAMES, 10)
LLM_POLICY_BASE = _card("policy", "base", _NAMES, 11)
EXIT_GUIDE, EXIT_BASE = _card("exit", "guide", _STOPS, 12), _card("exit", "base", _STOPS, 13)
