"""An episode as token ids with a mask: what a trainer reads.

The mask is 1 where the controller wrote and 0 where the environment did, whose tokens no loss is
taken of. Ids that were sampled are kept as they are: a text that is encoded again may come out as
other tokens, whose probabilities nobody has computed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
