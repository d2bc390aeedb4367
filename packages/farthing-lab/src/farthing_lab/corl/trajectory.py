"""An episode as token ids with a mask: what a trainer reads, whichever engine it is.

The mask is 1 where the controller wrote and 0 where the environment did, whose tokens no loss is
taken of. Ids that were sampled are kept as they are: a text that is encoded again may come out as
other tokens, whose probabilities nobody has computed.

The distributed engines take the same, field by field, without being imported. verl (0.9) trains on
what an agent loop returns, `AgentLoopOutput`; TRL (1.8) on what a `rollout_func` returns, whose key
`env_mask` is our mask. So the task, the parsers and the reward are the same there, and
`AgentLoopOutput(**agent_loop_output(...))` is what is left to write.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from farthing.models.base import Message
from farthing_lab.corl.base import Episode, Segment

Encode = Callable[[str], Sequence[int]]
Decode = Callable[[Sequence[int]], str]


def as_one_text(messages: Sequence[Message]) -> str:
    """Return the texts of messages one after another, as embedded models read them."""
    return "".join(message.content for message in messages)


@dataclass(frozen=True)
class Layout:
    """How a model's chat template lays an episode out as one text."""

    begin: Callable[[Sequence[Message]], str] = as_one_text
    """The prompt, up to where the controller writes."""
    before_reply: str = ""
    """Between the controller's text and the environment's."""
    after_reply: str = ""
    """Between the environment's text and the controller's next turn."""

    def text(self, segment: Segment) -> str:
        """Return the text of a segment with what stands around it; that is the environment's."""
        if segment.author == "controller":
            return segment.text
        return f"{self.before_reply}{segment.text}{self.after_reply}"


PLAIN = Layout()
"""Nothing but the texts."""


@dataclass(frozen=True)
class Trajectory:
    """One episode for training; prompt P tokens, response R tokens."""

    prompt_ids: tuple[int, ...]
    """[P]"""
    response_ids: tuple[int, ...]
    """[R] what the controller and the environment wrote."""
    response_mask: tuple[int, ...]
    """[R] 1 for the controller's tokens, 0 for the environment's."""
    response_logprobs: tuple[float, ...] | None
    """[R] of each token when it was sampled, 0 for the environment's; None where nobody knows."""
    reward: float

    def __post_init__(self) -> None:
        """Refuse parts of different length."""
        lengths = {len(self.response_ids), len(self.response_mask)}
        if self.response_logprobs is not None:
            lengths.add(len(self.response_logprobs))
        if len(lengths) > 1:
            raise ValueError(f"ids, mask and log-probabilities have lengths {sorted(lengths)}")


def trajectory(
    episode: Episode, reward: float, encode: Encode, layout: Layout = PLAIN
) -> Trajectory:
    """Return an episode as token ids.

    Args:
        episode: what was written. Log-probabilities are kept where all of the controller's
            segments have them.
        reward: what it earned.
        encode: text to token ids, without special tokens.
        layout: how the controller's model reads a conversation.

    >>> from farthing_lab.corl.base import Mode
    >>> texts = Segment("controller", "ab"), Segment("environment", "c")
    >>> asked, mode = (Message("user", "q"),), Mode("low", 0)
    >>> ended = Episode("q", mode, asked, texts, (), None, "turns", 0, 1)
    >>> made = trajectory(ended, 0.0, lambda text: [ord(letter) for letter in text])
    >>> made.response_ids, made.response_mask
    ((97, 98, 99), (1, 1, 0))
    """
    ids: list[int] = []
    mask: list[int] = []
    logprobs: list[float] = []
    for segment in episode.segments:
        some = tuple(segment.ids or encode(layout.text(segment)))
        own = segment.author == "controller"
        if segment.logprobs and len(segment.logprobs) != len(some):
            raise ValueError(f"{len(some)} tokens and {len(segment.logprobs)} log-probabilities")
        ids += some
        mask += [int(own)] * len(some)
        logprobs += segment.logprobs if own else (0.0,) * len(some)
    return Trajectory(
        prompt_ids=tuple(encode(layout.begin(episode.prompt))),
        response_ids=tuple(ids),
        response_mask=tuple(mask),
        response_logprobs=tuple(logprobs) if len(logprobs) == len(ids) else None,
        reward=reward,
    )


def segments(of: Trajectory, decode: Decode, layout: Layout = PLAIN) -> tuple[Segment, ...]:
    """Return what was written by whom; the inverse of `trajectory`.

    It is exact where `decode` undoes the encoding, since authors take turns: an environment's
    segment comes back without ids, a controller's with its ids and log-probabilities.
    """
    found, start = [], 0
    for own, run in groupby(of.response_mask):
        end = start + len(list(run))
        ids = of.response_ids[start:end]
        text = decode(ids)
        if own:
            kept = of.response_logprobs[start:end] if of.response_logprobs else ()
            found.append(Segment("controller", text, ids, kept))
        else:
            text = text.removeprefix(layout.before_reply).removesuffix(layout.after_reply)
            found.append(Segment("environment", text))
        start = end
    return tuple(found)


@dataclass(frozen=True)
class EpisodeCounts:
    """What verl keeps beside the tokens."""

    num_turns: int = 0
    """Messages: the prompt's one, the controller's turns and the environment's replies."""
    generating_s: float = 0.0
    """Seconds that the controller wrote for."""
    calling_s: float = 0.0
    """Seconds that experts were called for."""

    @classmethod
    def of(cls, episode: Episode) -> "EpisodeCounts":
        """Count the messages of an episode."""
        return cls(1 + len(episode.segments))


def agent_loop_output(of: Trajectory, counted: EpisodeCounts) -> dict[str, Any]:
    """Return the fields of verl's `AgentLoopOutput`.

    >>> made = Trajectory((5,), (6, 7), (1, 0), (-0.5, 0.0), reward=1.0)
    >>> agent_loop_output(made, EpisodeCounts(num_turns=3))["response_mask"]
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


def rollout(batch: Sequence[Trajectory]) -> dict[str, Any]:
    """Return what TRL's `rollout_func` returns for a batch.

    Every key but the first four reaches the reward functions; `reward` is for one that returns it.

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
