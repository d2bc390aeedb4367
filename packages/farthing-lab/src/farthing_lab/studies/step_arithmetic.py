"""Multi-step arithmetic before the embedded networks: at each step a small or a large one.

A task is a row of chains of arithmetic; the value of each is the value that the next one begins
with, and the last one's is the answer. Each chain is one step and one call. `small` is nearly
always right on up to four operations and guesses beyond; `large` errs now and then at any length.
How long a chain is stands in the question, so a policy sees it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from farthing.models.base import Completion, Message, Model, Prompt
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.methods.routers.bopo.policy import NOBODY
from farthing_lab.tasks.arithmetic import ChainProblem, Recipe, draw_of, normalise

HOPS = (2, 3, 4, 5, 6)
"""Operations of a chain; each is as likely as the others."""
STEPS = 3
MAX_TOKENS = 100
"""Most output tokens of a call."""
UNREAD = 10
"""Stands for a reply without a digit: whatever comes after it is lost."""


@dataclass(frozen=True)
class ChainTask:
    """Chains that follow one another."""

    chains: tuple[ChainProblem, ...]

    def text(self, step: int, value: int) -> str:
        """Return a step's question, whose first letter is worth what the step before said."""
        chain = self.chains[step]
        if step == 0:
            return chain.text
        first = chain.chain[0]
        *lines, asked = chain.text.split(";")
        told = [f"{first.target}={value}" if line == first.said() else line for line in lines]
        return ";".join([*told, asked])

    def after(self, step: int, value: int) -> int:
        """Return what a step's question is really worth."""
        steps = self.chains[step].chain
        worth = steps[0].plus if step == 0 else value
        for one in steps[1:]:
            worth = one.value(worth)
        return worth

    @property
    def answer(self) -> int:
        """The digit that is right in the end."""
        value = 0
        for step in range(len(self.chains)):
            value = self.after(step, value)
        return value


def draw(tasks: int, rng: np.random.Generator) -> tuple[ChainTask, ...]:
    """Draw tasks of chains that no network learned from as they stand."""
    chains = draw_of("test", [Recipe("affine", hops) for hops in HOPS], rng)
    return tuple(ChainTask(tuple(next(chains) for _ in range(STEPS))) for _ in range(tasks))


@dataclass
class Arithmetic:
    """Tasks as a chain of steps; a question that was asked before is not asked again.

    The networks answer at temperature 0, so that they would say the same.
    """

    problems: Sequence[ChainTask]
    models: tuple[Model, Model]
    """The small one, the large one."""
    known: dict[tuple[int, int, int, int], tuple[int, int]] = field(default_factory=dict)
    """Task, step, value and model to the digit that was said and what it cost."""

    @property
    def steps(self) -> int:
        """Steps of a task."""
        return STEPS

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.problems)

    def begin(self, task: IntArray) -> IntArray:
        return np.stack([task, np.zeros_like(task)], axis=1)

    def features(self, state: IntArray, step: int, spare: FloatArray) -> FloatArray:
        """Return a 1 for the length of the step's chain, times 1, `spare` and what is to come.

        That is the share of the later chains that are longer than four, which want the same money.
        """
        hops = self._hops[state[:, 0]]
        one = (hops[:, step, None] == np.array(HOPS)).astype(np.float64)
        later = (hops[:, step + 1 :] > 4).sum(axis=1, keepdims=True) / STEPS
        return np.concatenate([one, one * spare[:, None], one * later], axis=1)

    def largest_nano(self, state: IntArray, step: int) -> IntArray:
        largest: IntArray = self._largest[state[:, 0], step]
        return largest

    def rest_nano(self, state: IntArray, step: int) -> IntArray:
        rest: IntArray = self._largest[state[:, 0], step + 1 :, 0].sum(axis=1)
        return rest

    def act(
        self, state: IntArray, step: int, model: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        """Ask who is to be asked, all at once, and pass the digits on."""
        del rng
        wanted = [(int(t), step, int(v), int(m)) for (t, v), m in zip(state, model, strict=True)]
        new = {one for one in wanted if one[3] != NOBODY and one[2] != UNREAD} - set(self.known)
        if new:
            self.known |= asyncio.run(self._ask(sorted(new)))
        said = [self.known.get(one, (UNREAD, 0)) for one in wanted]  # no digit: nobody is asked
        value, cost = np.array(said, dtype=np.int64).reshape(-1, 2).T
        return np.stack([state[:, 0], value], axis=1), cost

    def succeeded(self, state: IntArray, rng: np.random.Generator) -> BoolArray:
        del rng
        return np.array([self.problems[t].answer == v for t, v in state], dtype=bool)

    @cached_property
    def _hops(self) -> IntArray:
        """[tasks, H] operations of every chain."""
        return np.array([[one.recipe.hops for one in task.chains] for task in self.problems])

    @cached_property
    def _largest(self) -> IntArray:
        """[tasks, H, 2] the most of every call: the same for any digit, as all are one symbol."""
        prompts = [[_prompt(task.text(step, 0)) for step in range(STEPS)] for task in self.problems]
        largest = [[[m.largest_cost_nano(p) for m in self.models] for p in row] for row in prompts]
        return np.array(largest, dtype=np.int64)

    async def _ask(
        self, new: list[tuple[int, int, int, int]]
    ) -> dict[tuple[int, int, int, int], tuple[int, int]]:
        prompts = [(_prompt(self.problems[t].text(s, v)), self.models[m]) for t, s, v, m in new]
        done = await asyncio.gather(*(model.complete(prompt) for prompt, model in prompts))
        return {one: _read(completion) for one, completion in zip(new, done, strict=True)}


def _prompt(text: str) -> Prompt:
    return Prompt((Message("user", text),), max_tokens=MAX_TOKENS)


def _read(completion: Completion) -> tuple[int, int]:
    digit = normalise(completion.text)
    value = int(digit) if len(digit) == 1 and digit.isdecimal() else UNREAD
    return value, completion.cost_nano or 0
