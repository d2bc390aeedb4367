"""Trajectories as the distributed engines take them, and back: field by field, without the engines.

verl (0.9) trains on what an agent loop returns, `AgentLoopOutput`; TRL (1.8) on what a
`rollout_func` returns, whose key `env_mask` masks the environment's tokens. Both masks are ours: 1
for the controller's tokens, 0 for the environment's. So the task, the parsers and the reward are
the same there, and `AgentLoopOutput(**agent_loop_output(...))` is what is left to write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farthing.corl.base import Episode
from farthing.corl.trajectory import Trajectory


@dataclass(frozen=True)
class Counted:
    """What verl keeps beside the tokens."""

    num_turns: int = 0
    """Messages: the prompt's one, the controller's turns and the environment's replies."""
    generating_s: float = 0.0
    """Seconds that the controller wrote for."""
    calling_s: float = 0.0
    """Seconds that experts were called for."""

    @classmethod
    def of(cls, episode: Episode) -> "Counted":
        """Count the messages of an episode."""
        return cls(1 + len(episode.segments))


def agent_loop_output(of: Trajectory, counted: Counted) -> dict[str, Any]:
    """Return the fields of verl's `AgentLoopOutput`.

    >>> made = Trajectory((5,), (6, 7), (1, 0), (-0.5, 0.0), reward=1.0)
    >>> agent_loop_output(made, Counted(num_turns=3))["response_mask"]
    [1, 0]
    """
    logprobs = of.response_logprobs
    return {
        "prompt_ids": list(of.prompt_ids),
        "response_ids": list(of.response_ids),
        "response_mask": list(of.response_mask),
        "response_logprobs": None if logprobs is None else list(logprobs),
        "reward_score": of.reward,
        "num_turns": counted.num_turns,
        "metrics": {
            "generate_sequences": counted.generating_s,
            "tool_calls": counted.calling_s,
        },
        "extra_fields": {},
    }


def from_agent_loop_output(fields: Mapping[str, Any]) -> Trajectory:
    """Return the trajectory that verl's fields hold; no reward counts as 0."""
    logprobs = fields.get("response_logprobs")
    return Trajectory(
        tuple(fields["prompt_ids"]),
        tuple(fields["response_ids"]),
        tuple(fields["response_mask"]),
        None if logprobs is None else tuple(logprobs),
        float(fields.get("reward_score") or 0.0),
    )


def rollout(batch: Sequence[Trajectory]) -> dict[str, Any]:
    """Return what TRL's `rollout_func` returns for a batch.

    Every key but the first four reaches the reward functions; `reward` is for one that returns it.

    Raises:
        ValueError: some trajectory has no log-probabilities, which TRL needs.

    >>> rollout([Trajectory((5,), (6, 7), (1, 0), (-0.5, 0.0), reward=1.0)])["env_mask"]
    [[1, 0]]
    """
    logprobs = [list(one.response_logprobs) for one in batch if one.response_logprobs is not None]
    if len(logprobs) < len(batch):
        raise ValueError("TRL needs log-probabilities, and a trajectory has none; sample with them")
    return {
        "prompt_ids": [list(one.prompt_ids) for one in batch],
        "completion_ids": [list(one.response_ids) for one in batch],
        "logprobs": logprobs,
        "env_mask": [list(one.response_mask) for one in batch],
        "reward": [one.reward for one in batch],
    }


def from_rollout(fields: Mapping[str, Any]) -> tuple[Trajectory, ...]:
    """Return the trajectories that TRL's lists hold."""
    columns = ("prompt_ids", "completion_ids", "env_mask", "logprobs", "reward")
    rows = zip(*(fields[name] for name in columns), strict=True)
    return tuple(
        Trajectory(tuple(prompt), tuple(ids), tuple(mask), tuple(logprobs), float(reward))
        for prompt, ids, mask, logprobs, reward in rows
    )
