"""Train a network to think no longer than it must, by whatever thinker judges its thoughts.

    draw questions -> thoughts -> an answer at each cut -> advantages -> update

Where a thinker has it so, the network is fine-tuned on thoughts of its own before the first update.

The answer is one token; it is drawn, as the thought is. (Its probability in place of a draw would
give every guess a tenth of a right answer, and advantages that are divided by their deviation make
that whole.) The update is that of CORL's controllers (`lm/masked_ppo.py`), with the thinker's
advantages given.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.lm import supervised
from farthing_lab.lm.masked_ppo import EpisodeBatch, Learners, MaskedTrainer, Settings
from farthing_lab.lm.overthinking import RECIPES
from farthing_lab.lm.supervised import Example, TrainingCourse
from farthing_lab.lm.symbols import END, NUMBERS, encode
from farthing_lab.methods.thinkers.base import UNTOLD_ALONE, Taught, Thinker, Thoughts, part_of
from farthing_lab.models.generation import Hook, generate
from farthing_lab.models.generation_rows import Generated, GenerationRow
from farthing_lab.rl.schedules import SCHEDULES, ScheduleName, rex
from farthing_lab.tasks.arithmetic import ChainProblem, draw_of

ENDS = NUMBERS["<answer>"]
"""What ends a thought; the answer follows."""
DIGITS = [NUMBERS[digit] for digit in "0123456789"]
TOGETHER = 256
"""Thoughts that are drawn, or asked, in one batch."""
TUNING = TrainingCourse(steps=128, muon=0.01, adam=0.002, warm=8)
"""How it is fine-tuned; after half as many steps it does not have the tags yet."""
SETTINGS = Settings(advantage="given", kl=0.02, entropy=0.0)
"""How the embedded network learns."""


@dataclass(frozen=True)
class ThinkingCourse:
    """How long a thinker's network learns."""

    updates: int = 30
    prompts: int = 16
    """Questions of an update."""
    rollouts: int = 8
    """Thoughts a question; they are told the thinker's modes in turn."""
    cap: int = 128
    """L: most tokens of a thought."""
    taught: int = 256
    """Questions it thinks about, as often each, to be fine-tuned, where a thinker has it so."""
    tuning: TrainingCourse = TUNING
    """How long that takes."""
    schedule: ScheduleName = "rex"
    """How the trainer's rate falls."""


WARM = 0.05
"""Share of the updates in which the rate rises."""
LEAST = 1e-3
"""Least share of the rate; at 0 an update would be for nothing."""


@dataclass(frozen=True)
class ThinkingUpdate:
    """What one update saw."""

    update: int
    right: float
    """Share of the thoughts that are right at their end."""
    length: float
    """Mean tokens of a thought."""
    kl: float
    """Divergence from what it began as, in nats a token."""


Watch = Callable[[ThinkingUpdate], None]


@dataclass(frozen=True)
class DrawnThoughts:
    """Thoughts with the questions that they are about, [n] each."""

    problems: Sequence[ChainProblem]
    prompts: Sequence[Sequence[int]]
    """What was written before each, as token ids."""
    thoughts: Sequence[Generated]


def train(
    network: Any,
    thinker: Thinker,
    course: ThinkingCourse,
    *,
    seed: int,
    settings: Settings = SETTINGS,
    watch: Watch = lambda _: None,
) -> list[ThinkingUpdate]:
    """Train a network in place, and return how it went; the seed draws all that is drawn."""
    generator = np.random.default_rng(seed)
    if isinstance(thinker, Taught):
        teach(network, thinker, course, generator)
    longest = int(thinker.cuts[-1] * course.cap)
    trainer = MaskedTrainer(Learners.of(network, settings), settings)
    log: list[ThinkingUpdate] = []
    for number in range(course.updates):
        problems, told = _asked(course.prompts, thinker.modes, course, generator)
        network.eval()
        prompts = [encode(mode + one.text) for one, mode in zip(problems, told, strict=True)]
        drawn = think(network, prompts, longest, generator)
        asked = DrawnThoughts(problems, prompts, drawn)
        found = judged(trainer, thinker, asked, course, generator)
        found = replace(found, progress=number / course.updates)
        advantage = spread(thinker.advantage(found), thinker.cuts, drawn, course.cap)
        parts = [
            (prompt, one.ids, [1] * len(one.ids), one.logprobs)
            for prompt, one in zip(prompts, drawn, strict=True)
        ]
        batch = EpisodeBatch.of(parts, found.final, found.group.tolist(), given=advantage)
        network.train()
        figures = trainer.update(batch, rate(course, number), generator)
        network.eval()
        told_of = (float(found.final.mean()), float(found.length.mean()), figures.kl)
        log.append(ThinkingUpdate(number + 1, *told_of))
        watch(log[-1])
    return log


def rate(course: ThinkingCourse, done: int) -> float:
    """Return the share of the rate after so many updates; it rises first.

    >>> rate(ThinkingCourse(), 0), rate(ThinkingCourse(schedule="linear"), 15)
    (0.001, 0.5)
    """
    share = done / course.updates
    if course.schedule == "rex":  # with its own warm-up, which rounds otherwise in the last digit
        return max(rex(share, WARM), LEAST)
    return max(SCHEDULES[course.schedule](share) * min(1.0, share / WARM), LEAST)


def teach(
    network: Any, thinker: Taught, course: ThinkingCourse, generator: np.random.Generator
) -> None:
    """Fine-tune a network in place on those of its thoughts that a thinker selects, if any."""
    problems, _ = _asked(course.taught, UNTOLD_ALONE, course, generator)
    prompts = [encode(one.text) for one in problems]
    network.eval()
    drawn = DrawnThoughts(problems, prompts, think(network, prompts, course.cap, generator))
    lengths = np.array([length(one, course.cap) for one in drawn.thoughts])
    stops = np.ceil(lengths[:, None] * np.array(thinker.parts)).astype(np.int64)
    own = Thoughts(
        length=lengths,
        cap=course.cap,
        right=right_at(network, drawn, stops, generator),
        group=np.repeat(np.arange(course.taught), course.rollouts),
        told=np.zeros(len(problems), np.int64),
        begins=_begins(drawn),
        surprisal=lambda: np.array([-sum(one.logprobs) for one in drawn.thoughts]),
    )
    examples = []
    for one in thinker.lessons(own):
        problem, stop = problems[one.thought], stops[one.thought, one.part]
        answer = encode(f"<answer>{problem.answer}</answer>{END}")
        written = [*one.begins, *drawn.thoughts[one.thought].ids[:stop], *answer]
        examples.append(Example(encode(one.told + problem.text), written))
    if examples:
        seed = int(generator.integers(2**31))
        supervised.train(
            network, lambda rng: examples[rng.integers(len(examples))], course.tuning, seed=seed
        )


def _asked(
    count: int, modes: Sequence[str], course: ThinkingCourse, generator: np.random.Generator
) -> tuple[list[ChainProblem], list[str]]:
    drawn = draw_of("train", RECIPES, generator)
    problems = [next(drawn) for _ in range(count)]
    each = [modes[at % len(modes)] for at in range(course.rollouts)]
    return [one for one in problems for _ in each], each * count


def think(
    network: Any,
    prompts: Sequence[Sequence[int]],
    cap: int,
    generator: np.random.Generator,
    hooks: Sequence[Hook] = (),
) -> list[Generated]:
    """Draw a thought after each prompt, at temperature 1; `<answer>` or the cap ends it."""
    seeds = generator.integers(2**62, size=len(prompts)).tolist()
    rows = [
        GenerationRow(ids, cap + 1, 1.0, seed=seed, ends=frozenset({ENDS}))
        for ids, seed in zip(prompts, seeds, strict=True)
    ]
    return [one for some in _batches(rows) for one in generate(network, some, hooks)]


def length(thought: Generated, cap: int) -> int:
    """Return the tokens of a thought, without what ends it."""
    return min(cap, len(thought.ids) - (thought.ids[-1] == ENDS))


@torch.no_grad()
def digits(network: Any, contexts: Sequence[Sequence[int]]) -> FloatArray:
    """Return the probability of each digit as the answer after each context, [n, 10]."""
    found = []
    for some in _batches(contexts):
        rows = [torch.tensor([*ids, ENDS]) for ids in some]
        tokens = pad_sequence(rows, batch_first=True)
        last = torch.tensor([len(row) - 1 for row in rows])
        hidden = network.model(tokens.to(network.device)).last_hidden_state
        logits = network.lm_head(hidden[torch.arange(len(rows)), last])
        found.append(logits.softmax(dim=1)[:, DIGITS].double().cpu().numpy())
    return np.concatenate(found)


def chance_at(network: Any, drawn: DrawnThoughts, stops: IntArray) -> FloatArray:
    """Return the probability of the right answer where each thought is stopped, [n, S].

    `stops` [n, S] are tokens; one that is asked twice at the same place is asked once.
    """
    contexts: dict[tuple[int, int], list[int]] = {}
    for row, (prompt, thought) in enumerate(zip(drawn.prompts, drawn.thoughts, strict=True)):
        for stop in stops[row].tolist():
            contexts[row, stop] = [*prompt, *thought.ids[:stop]]
    known = dict(zip(contexts, digits(network, list(contexts.values())), strict=True))
    right = [int(problem.answer) for problem in drawn.problems]
    return np.array(
        [[known[row, stop][right[row]] for stop in some] for row, some in enumerate(stops.tolist())]
    )


def judged(
    trainer: MaskedTrainer,
    thinker: Thinker,
    drawn: DrawnThoughts,
    course: ThinkingCourse,
    generator: np.random.Generator,
) -> Thoughts:
    """Return what came of thoughts, as a thinker reads it."""
    places = (np.array(thinker.cuts) * course.cap).astype(np.int64)
    lengths = np.array([length(one, places[-1]) for one in drawn.thoughts])
    stops = np.minimum(lengths[:, None], places[None, :])
    right = right_at(trainer.learners.policy, drawn, stops, generator)
    group = np.repeat(np.arange(course.prompts), course.rollouts)
    told = np.tile(np.arange(course.rollouts) % len(thinker.modes), course.prompts)
    asked = partial(surprisal, trainer, drawn)
    return Thoughts(lengths, course.cap, right, group, told, _begins(drawn), asked)


def right_at(
    network: Any, drawn: DrawnThoughts, stops: IntArray, generator: np.random.Generator
) -> FloatArray:
    """Draw an answer where each thought is stopped, and return whether it is right, [n, S]."""
    chance = chance_at(network, drawn, stops)
    # One draw a thought: where it ends before a cut, both have the same answer.
    return (generator.random((len(stops), 1)) < chance).astype(np.float64)


def _begins(drawn: DrawnThoughts) -> IntArray:
    return np.array([one.ids[0] for one in drawn.thoughts])


@torch.no_grad()
def surprisal(trainer: MaskedTrainer, drawn: DrawnThoughts) -> FloatArray:
    """Return -log Q of each thought, in nats, [n]; Q is what the network began as."""
    found = []
    for some in _batches(list(zip(drawn.prompts, drawn.thoughts, strict=True))):
        rows = [torch.tensor([*prompt, *one.ids]) for prompt, one in some]
        tokens = pad_sequence(rows, batch_first=True)
        logprobs = trainer.learners.reference(tokens)[:, :-1].log_softmax(dim=2)
        taken = logprobs.gather(2, tokens[:, 1:, None])[:, :, 0]
        for row, (prompt, one) in enumerate(some):
            begin = len(prompt) - 1
            found.append(-float(taken[row, begin : begin + len(one.ids)].sum()))
    return np.array(found)


def spread(
    advantage: FloatArray, cuts: Sequence[float], drawn: Sequence[Generated], cap: int
) -> list[FloatArray]:
    """Give each token the advantage of the first cut that it stands before, [n, S] to [length]."""
    of_token = part_of(cuts, cap)
    return [row[of_token[: len(one.ids)]] for row, one in zip(advantage, drawn, strict=True)]


_T = TypeVar("_T")


def _batches(rows: Sequence[_T]) -> Iterator[Sequence[_T]]:
    return (rows[at : at + TOGETHER] for at in range(0, len(rows), TOGETHER))
