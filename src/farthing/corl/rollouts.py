"""Many episodes at once, sampled from a network that is being trained."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.corl.base import Episode, MadeCall, Mode
from farthing.corl.episode import Play, Rules, Written, begin
from farthing.corl.experts import Experts, Reply
from farthing.corl.syntax import STOPS, closed
from farthing.corl.trajectory import PLAIN, Decode, Encode, Layout
from farthing.models.base import Usage
from farthing.models.generation import Generated, Hook, Row, generate
from farthing.models.local import finished
from farthing.models.prices import FREE, Price


@dataclass(frozen=True)
class Voice:
    """A network with what reads and writes its tokens."""

    network: Any
    encode: Encode
    decode: Decode
    ends: frozenset[int]
    """Tokens that end what it writes."""
    layout: Layout = PLAIN
    price: Price = FREE
    max_tokens: int = 200
    """Most tokens of a turn."""
    hooks: tuple[Hook, ...] = ()
    """Change the logits, one after another: whatever it writes is drawn from what they leave."""

    def ids(self, play: Play) -> list[int]:
        """Return an episode so far as token ids; what was sampled is kept as it was."""
        begun = self.encode(self.layout.begin(play.prompt))
        pieces = (s.ids or self.encode(self.layout.text(s)) for s in play.segments)
        return [*begun, *(number for piece in pieces for number in piece)]

    def largest_nano(self, read: int) -> int:
        """Return the most that a turn can cost whose context has so many tokens."""
        return self.price.largest_nano(Usage(read, self.max_tokens), 0.0)

    def written(self, read: int, done: Generated) -> Written:
        """Return a turn: `read` tokens were its context.

        Its text is what a live model's would be: one that ends within a tag has closed it.
        """
        kept = done.ids[:-1] if done.ids[-1] in self.ends else done.ids
        usage = Usage(read, len(done.ids))
        cost = self.price.cost_nano(usage, 0.0)
        text = closed(*finished(self.decode(kept), done.reason, STOPS))
        return Written(text, cost, done.ids, done.logprobs)


@dataclass(frozen=True)
class Sampling:
    """How episodes are drawn."""

    temperature: float = 1.0
    """0: the likeliest tokens."""
    hard_nano: int | None = None
    """What an episode may cost at most, whatever its mode says; None: no such limit. A call that
    may cost more than is left is refused; such a turn of the controller's own ends the episode."""
    together: int = 256
    """Episodes of a batch."""


Asked = tuple[str, Mode]
Sampler = Callable[[Voice, Rules, Sequence[Asked], Experts, np.random.Generator], list[Episode]]
"""Plays episodes, one a question and mode, in their order; registered under `farthing.samplers`.

Each token of the controller's has its log-probability under the voice's hooks. What a sampler adds
of its own, such as words that end a thought, is a segment of the environment with `ids`: nothing is
put around it, and no loss is taken of it.
"""


def rollouts(
    voice: Voice,
    rules: Rules,
    asked: Sequence[Asked],
    experts: Experts,
    generator: np.random.Generator,
    sampling: Sampling | None = None,
) -> list[Episode]:
    """Play one episode for each question and mode, and return them in their order.

    Args:
        voice: the controller.
        rules: of all episodes.
        asked: questions, and their modes.
        experts: whom it calls.
        generator: draws a seed for each turn.
        sampling: how tokens are drawn; None: at temperature 1.
    """
    sampling = sampling or Sampling()
    plays = [begin(rules, question, mode) for question, mode in asked]
    while going := [at for at, play in enumerate(plays) if not play.over]:
        for start in range(0, len(going), sampling.together):
            some = going[start : start + sampling.together]
            after = _turn(voice, [plays[at] for at in some], experts, generator, sampling)
            for at, play in zip(some, after, strict=True):
                plays[at] = play
    return [play.episode() for play in plays]


def _turn(
    voice: Voice,
    plays: Sequence[Play],
    experts: Experts,
    generator: np.random.Generator,
    sampling: Sampling,
) -> list[Play]:
    after = [_unpaid(voice, play, sampling.hard_nano) for play in plays]
    going = [at for at, play in enumerate(after) if not play.over]
    contexts = [voice.ids(after[at]) for at in going]
    seeds = generator.integers(2**62, size=len(plays))[going].tolist()
    rows = [
        Row(
            ids,
            voice.max_tokens,
            sampling.temperature,
            seed=seed,
            ends=voice.ends,
            stop=_stop(voice),
        )
        for ids, seed in zip(contexts, seeds, strict=True)
    ]
    done = generate(voice.network, rows, voice.hooks)
    for at, ids, one in zip(going, contexts, done, strict=True):
        after[at] = after[at].wrote(voice.written(len(ids), one))
    return _replied(after, experts, sampling.hard_nano)


def _unpaid(voice: Voice, play: Play, hard_nano: int | None) -> Play:
    """End an episode whose next turn may cost more than is left."""
    if hard_nano is None:
        return play
    most = voice.largest_nano(len(voice.ids(play)))
    return play if _spent(play) + most <= hard_nano else play.stop("budget")


def _stop(voice: Voice) -> Callable[[Sequence[int]], bool]:
    """Return what tells that a turn is over, from its last tokens: a tag may be several."""
    return lambda ids: any(mark in voice.decode(ids[-_TAG_TOKENS:]) for mark in STOPS)


_TAG_TOKENS = 12


def _replied(plays: Sequence[Play], experts: Experts, hard_nano: int | None) -> list[Play]:
    """Return the episodes after the calls that they asked for."""
    after = [_refused(play, experts, hard_nano) for play in plays]
    asking = [at for at, play in enumerate(after) if play.asked is not None]
    calls = [(after[at].asked.expert, after[at].asks) for at in asking]  # type: ignore[union-attr]
    for at, (expert, _), reply in zip(asking, calls, experts.ask(calls), strict=True):
        after[at] = heard(after[at], expert, reply)
    return after


def heard(play: Play, expert: str, reply: Reply) -> Play:
    """Return an episode after the reply of the expert that it called."""
    made = MadeCall(
        play.turns, expert, play.asks, reply.text, reply.cost_nano, reply.usage, reply.error
    )
    return play.heard(reply.text, made)


def _refused(play: Play, experts: Experts, hard_nano: int | None) -> Play:
    if play.asked is None or hard_nano is None:
        return play
    most = experts.largest_nano(play.asked.expert, play.asks)
    return play if _spent(play) + most <= hard_nano else play.refuse()


def _spent(play: Play) -> int:
    return play.own_nano + sum(call.cost_nano for call in play.calls)
