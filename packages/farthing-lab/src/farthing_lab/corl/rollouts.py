"""Many episodes at once, sampled from a network in training that calls frozen experts.

A trainer reads an episode as token ids with a mask, which is 1 where the controller wrote and 0
where the environment did, whose tokens no loss is taken of. Ids that were sampled are kept as they
are: a text that is encoded again may come out as other tokens, whose probabilities nobody has
computed. `PoolSession` is a pool with its weights loaded and its experts opened, ready to play.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from farthing import plugins
from farthing.errors import InputError, MissingExtraError, ModelError
from farthing.models.base import Message, Model, Prompt, Usage
from farthing.models.prices import FREE, Price
from farthing.tasks.base import Task
from farthing_lab.corl.base import MadeCall, Mode, Segment
from farthing_lab.corl.episode import STOPS, ControllerTurn, Episode, Rules, begin, closed
from farthing_lab.corl.live import check_readable
from farthing_lab.corl.pool import ControllerPool
from farthing_lab.lm import symbols
from farthing_lab.models.generation import Hook, generate
from farthing_lab.models.generation_rows import Generated, GenerationRow
from farthing_lab.models.local import ends_of, finished
from farthing_lab.models.weights import load

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

    >>> texts = Segment("controller", "ab"), Segment("environment", "c")
    >>> ended = Episode(Rules(()), "q", Mode("low", 0), (Message("user", "q"),), texts)
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


@dataclass(frozen=True)
class ExpertReply:
    """What came of a call."""

    text: str
    cost_nano: int
    usage: Usage | None = None
    error: str = ""


class Experts(Protocol):
    """Whoever replies to calls."""

    def ask(self, calls: Sequence[tuple[str, str]]) -> list[ExpertReply]:
        """Return the reply to each (expert, question)."""
        ...

    def largest_nano(self, expert: str, question: str) -> int:
        """Return the most that a call can cost, in nano-dollars."""
        ...


@dataclass
class FrozenExperts:
    """Models that always reply the same, as they take the likeliest tokens: each is asked once.

    A call costs what it costs whenever it is made, whether the reply was known or not. They are
    asked in an event loop of their own; `with` closes it, and them.
    """

    models: Mapping[str, Model]
    max_tokens: int = 256
    shown: Callable[[str], str] = str
    """What of a reply the controller is shown."""
    together: int = 256
    """Most calls that are under way at once."""
    _known: dict[tuple[str, str], ExpertReply] = field(default_factory=dict)
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._close())
        self._runner.close()

    def ask(self, calls: Sequence[tuple[str, str]]) -> list[ExpertReply]:
        unknown = [call for call in dict.fromkeys(calls) if call not in self._known]
        if unknown:
            self._known |= zip(unknown, self._runner.run(self._all(unknown)), strict=True)
        return [self._known[call] for call in calls]

    def largest_nano(self, expert: str, question: str) -> int:
        return self.models[expert].largest_cost_nano(self._prompt(question))

    async def _close(self) -> None:
        await asyncio.gather(*(model.aclose() for model in self.models.values()))

    async def _all(self, calls: Sequence[tuple[str, str]]) -> list[ExpertReply]:
        places = asyncio.Semaphore(self.together)

        async def one(expert: str, question: str) -> ExpertReply:
            prompt = self._prompt(question)
            try:
                async with places:
                    done = await self.models[expert].complete(prompt)
            except ModelError as error:
                cost = self.models[expert].largest_cost_nano(prompt)
                return ExpertReply("", cost, error=str(error))
            return ExpertReply(self.shown(done.text), done.cost_nano or 0, done.usage)

        return await asyncio.gather(*(one(*call) for call in calls))

    def _prompt(self, question: str) -> Prompt:
        return Prompt((Message("user", question),), max_tokens=self.max_tokens)


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

    def ids(self, play: Episode) -> list[int]:
        """Return an episode so far as token ids; what was sampled is kept as it was."""
        begun = self.encode(self.layout.begin(play.prompt))
        pieces = (s.ids or self.encode(self.layout.text(s)) for s in play.segments)
        return [*begun, *(number for piece in pieces for number in piece)]

    def largest_nano(self, read: int) -> int:
        """Return the most that a turn can cost whose context has so many tokens."""
        return self.price.largest_nano(Usage(read, self.max_tokens), 0.0)

    def written(self, read: int, done: Generated) -> ControllerTurn:
        """Return a turn: `read` tokens were its context.

        Its text is what a live model's would be: one that ends within a tag has closed it.
        """
        kept = done.ids[:-1] if done.ids[-1] in self.ends else done.ids
        usage = Usage(read, len(done.ids))
        cost = self.price.cost_nano(usage, 0.0)
        text = closed(*finished(self.decode(kept), done.reason, STOPS))
        return ControllerTurn(text, cost, done.ids, done.logprobs)


@dataclass(frozen=True)
class RolloutSampling:
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
    sampling: RolloutSampling | None = None,
) -> list[Episode]:
    """Play one episode for each question and mode, and return them in their order.

    The generator draws a seed for each turn; without `sampling` tokens are drawn at temperature 1.
    """
    sampling = sampling or RolloutSampling()
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
    plays: Sequence[Episode],
    experts: Experts,
    generator: np.random.Generator,
    sampling: RolloutSampling,
) -> list[Episode]:
    after, hard = list(plays), sampling.hard_nano
    if hard is not None:
        largest = [voice.largest_nano(len(voice.ids(play))) for play in plays]
        paid = [play.cost_nano + nano <= hard for play, nano in zip(plays, largest, strict=True)]
        after = [one if fits else one.stop("budget") for one, fits in zip(plays, paid, strict=True)]
    going = [at for at, play in enumerate(after) if not play.over]
    contexts = [voice.ids(after[at]) for at in going]
    seeds = generator.integers(2**62, size=len(plays))[going].tolist()
    most, heat = voice.max_tokens, sampling.temperature

    def ended(ids: Sequence[int]) -> bool:  # by its last tokens: a tag may be several
        return any(mark in voice.decode(ids[-_TAG_TOKENS:]) for mark in STOPS)

    rows = [
        GenerationRow(ids, most, heat, seed=seed, ends=voice.ends, stop=ended)
        for ids, seed in zip(contexts, seeds, strict=True)
    ]
    done = generate(voice.network, rows, voice.hooks)
    for at, ids, generated in zip(going, contexts, done, strict=True):
        after[at] = after[at].wrote(voice.written(len(ids), generated))
    return _replied(after, experts, hard)


_TAG_TOKENS = 12


def _replied(plays: Sequence[Episode], experts: Experts, hard_nano: int | None) -> list[Episode]:
    after = list(plays)
    for at, play in enumerate(plays):
        if hard_nano is not None and play.asked is not None:
            most = play.cost_nano + experts.largest_nano(play.asked.expert, play.asks)
            after[at] = play if most <= hard_nano else play.refuse()
    asking = [at for at, play in enumerate(after) if play.asked is not None]
    calls = [(after[at].asked.expert, after[at].asks) for at in asking]  # type: ignore[union-attr]
    for at, (expert, _), reply in zip(asking, calls, experts.ask(calls), strict=True):
        after[at] = heard(after[at], expert, reply)
    return after


def heard(play: Episode, expert: str, reply: ExpertReply) -> Episode:
    """Return an episode after the reply of the expert that it called."""
    made = MadeCall(
        play.turns, expert, play.asks, reply.text, reply.cost_nano, reply.usage, reply.error
    )
    return play.heard(reply.text, made)


@dataclass(frozen=True)
class PoolSession:
    """What episodes of a pool need."""

    pool: ControllerPool
    voice: Voice
    tokenizer: Any
    """Written beside weights that were trained."""
    experts: FrozenExperts
    rules: Rules
    task: Task

    @classmethod
    def of(cls, pool: ControllerPool, device: str = "cpu") -> Self:
        check_readable(pool, *pool.questions.texts)
        rules, task = pool.rules, pool.grader()
        voice, tokenizer = load_voice(
            pool.weights(), pool.price(pool.controller), pool.max_tokens, device
        )
        hooks = tuple(plugins.load("logits_hooks", name)(voice) for name in pool.hooks)
        voice = replace(voice, hooks=hooks)
        sections = {name: pool.models.sections[name] for name in pool.experts}
        models = replace(pool.models, sections=sections).open()
        shown = task.normalise if pool.style == "compact" else str
        experts = FrozenExperts(models, pool.max_tokens, shown)
        return cls(pool, voice, tokenizer, experts, rules, task)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.experts.__exit__()

    @property
    def modes(self) -> tuple[Mode, ...]:
        return self.pool.modes


def load_voice(
    folder: Path, price: Price, max_tokens: int, device: str = "cpu"
) -> tuple[Voice, Any]:
    """Load a controller from a folder of the transformers library; return its tokenizer, too."""
    try:
        network, tokenizer = load(str(folder), "float32", device)
    except ImportError:
        raise MissingExtraError("a controller of one's own", "lm", "farthing-lab") from None
    except (OSError, ValueError) as error:
        problem = str(error).splitlines()[0]
        raise InputError(f"{folder}: the controller cannot be loaded: {problem}") from None
    network.eval()
    ends = ends_of(network, tokenizer)
    reads: tuple[Encode, Decode, Layout] = symbols.encode, symbols.said, PLAIN
    if tokenizer.get_vocab() != symbols.NUMBERS:
        encode = partial(tokenizer.encode, add_special_tokens=False)
        decode = partial(tokenizer.decode, skip_special_tokens=True)
        reads = encode, decode, chat_layout(tokenizer, folder)
    return Voice(network, *reads[:2], ends, reads[2], price, max_tokens), tokenizer


def chat_layout(tokenizer: Any, folder: Path) -> Layout:
    """Return how a tokenizer's chat template lays an episode out.

    What stands between two turns is read off a conversation that the template wrote.
    """
    if not tokenizer.chat_template:
        raise InputError(f"{folder}: its tokenizer has no chat template; a controller needs one")

    def begin(messages: Sequence[Message]) -> str:
        said = [{"role": message.role, "content": message.content} for message in messages]
        text: str = tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
        return text

    question, own, reply = "first-text", "second-text", "third-text"
    speakers = (("user", question), ("assistant", own), ("user", reply))
    whole = begin([Message(role, text) for role, text in speakers])  # type: ignore[arg-type]
    start = begin([Message("user", question)])
    if not whole.startswith(f"{start}{own}") or whole.count(reply) != 1:
        raise InputError(f"{folder}: its chat template changes earlier turns; use another model")
    before, after = whole.removeprefix(f"{start}{own}").split(reply)
    return Layout(begin, before, after)
