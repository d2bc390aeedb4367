"""Who does each step of a task: boundary policies, a random mixture and BoPO, under one budget.

Tasks are generated, or are multi-step arithmetic before the embedded networks: a row of chains; the
value of each is the value that the next one begins with, and the last one's is the answer. Each
chain is one step and one call. `small` is nearly always right on up to four operations and guesses
beyond; `large` errs now and then at any length. How long a chain is stands in the question, so a
policy sees it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Annotated

import numpy as np

from farthing.errors import InputError, UnknownNameError
from farthing.models.base import Completion, Message, Model, Prompt
from farthing.models.prices import PriceTable
from farthing.money import NANO_PER_USD, dollars, usd_from_nano
from farthing.reports.table import Record, Table, counted
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.generator.steps import evaluate, optimum, two_models
from farthing_lab.methods.routers.bopo.policy import (
    CLASSES,
    NOBODY,
    SHORT,
    UNLIMITED,
    BopoConfig,
    Boundaries,
    Chances,
    GeneratedTasks,
    TaskChain,
    always,
    at_random,
    learn,
    run,
)
from farthing_lab.models.embedded import EmbeddedSettings
from farthing_lab.studies.study import Seed, StudyContext, StudyOption, StudyReport, percent
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
        steps = self.chains[step].chain
        worth = steps[0].plus if step == 0 else value
        for one in steps[1:]:
            worth = one.value(worth)
        return worth

    @property
    def answer(self) -> int:
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
        return STEPS

    @property
    def tasks(self) -> int:
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


TASKS = {
    "generated": "made-up tasks",
    "embedded": "chains of arithmetic before two embedded networks",
}
PRICES = (0.1, 0.3, 0.6)
"""What all steps large instead of small cost, as a share of a success, where nobody says."""


@dataclass(frozen=True)
class StepRouting:
    """Choose a small or a large model at each step of a task, never over the task's budget.

    BoPO learns it from episodes with one outcome at their end. Beside it stand both boundary
    policies and mixtures of them, on tasks that nothing was learned from.

    Example: farthing study steps --on generated --budget 0.003
    """

    on: Annotated[
        str,
        StudyOption(
            "generated: made-up tasks whose optimum is known; embedded: chains of arithmetic "
            "before two networks on this machine."
        ),
    ] = "generated"
    budget: Annotated[Fraction | None, StudyOption("Most that a task may cost.")] = None
    price: Annotated[
        list[float] | None,
        StudyOption(
            "What all steps large instead of small cost, as a share of a success; give it "
            "again for several.  [default: 0.1, 0.3, 0.6]",
            flag="--lambda",
            metavar="X",
            least=0.0,
        ),
    ] = None
    train: Annotated[int, StudyOption("Tasks to learn from.", least=10)] = 200
    test: Annotated[int, StudyOption("Tasks to judge on.", least=10)] = 400
    seed: Seed = 0

    def measure(self, context: StudyContext) -> Record:
        train, test = _chains(self.on, self.train, self.test, self.seed)
        nano = None if self.budget is None else int(self.budget * NANO_PER_USD)
        if nano is not None:
            state = test.begin(np.arange(test.tasks))
            least = int((test.largest_nano(state, 0)[:, 0] + test.rest_nano(state, 0)).min())
            if nano < least:
                raise InputError(
                    f"a budget of {dollars(nano)} pays for no task; one by the small model alone "
                    f"can cost {dollars(least)}"
                )
        prices = self.price or PRICES
        base = SHORT if self.on == "embedded" else BopoConfig()
        learned = {
            name: learn(train, config, np.random.default_rng(self.seed), context.progress(name))
            for name, config in configs(prices, base).items()
        }
        context.remark(
            f"learned from {counted(self.train, 'task')}, judged on {self.test:,} others"
        )
        policies = {name: router.policy.surely for name, router in learned.items()}
        rng = np.random.default_rng(self.seed + 1)
        return {
            "classes": classes(next(iter(learned.values())).boundaries),
            "rows": compare(test, policies, nano, rng),
            "optimum": _optimum(prices, nano) if self.on == "generated" else {},
        }

    def report(self, measured: Record) -> StudyReport:
        def succeeded(row: Record) -> str:
            rate = row["success"]
            return f"{rate:.3f} ± {(rate * (1 - rate) / self.test) ** 0.5:.3f}"

        columns = (
            ("Who does the steps", lambda row: row["policy"]),
            ("USD a task", lambda row: f"{row['cost_usd']:.3g}"),
            ("at most", lambda row: f"{row['most_usd']:.3g}"),
            ("succeeded", succeeded),
            percent("large", "large", 0),
            ("over", lambda row: str(row["over_budget"])),
        )
        nano = int((self.budget or 0) * NANO_PER_USD)
        limit = "without a budget" if self.budget is None else f"at most {dollars(nano)} each"
        kinds = ", ".join(f"{share:.0%} {name}" for name, share in measured["classes"].items())
        return StudyReport(
            f"{TASKS[self.on]}: {counted(self.test, 'task')}, {limit}",
            (
                Table(columns, measured["rows"]),
                f"Tasks, by what the boundaries come to on them: {kinds}.",
                *(
                    f"At best, {name}: {best['success']:.3f} for ${best['cost_usd']:.6f}."
                    for name, best in measured["optimum"].items()
                ),
            ),
            measured,
        )


def _chains(on: str, train: int, test: int, seed: int) -> tuple[TaskChain, TaskChain]:
    rng = np.random.default_rng(seed)
    if on == "generated":
        return GeneratedTasks.draw(two_models(), train, rng), GeneratedTasks.draw(
            two_models(), test, rng
        )
    if on != "embedded":
        raise UnknownNameError("chain of steps", on, TASKS)
    small, large = (
        EmbeddedSettings(model=name, batch=256).open(PriceTable()) for name in ("small", "large")
    )
    return Arithmetic(draw(train, rng), (small, large)), Arithmetic(draw(test, rng), (small, large))


def _optimum(prices: Sequence[float], budget_nano: int | None) -> dict[str, dict[str, float]]:
    """Return what the best policy comes to for each lambda."""
    config, best = two_models(), {}
    for price in prices:

        def worth(large: int, price: float = price) -> float:
            return 1.0 - price * large / config.steps

        done = evaluate(config, optimum(config, worth, budget_nano).chances, worth)
        best[f"lambda {price:g}"] = {
            "success": done.success,
            "cost_usd": usd_from_nano(done.cost_nano),
        }
    return best


def played(
    name: str, chain: TaskChain, chances: Chances, budget_nano: IntArray, rng: np.random.Generator
) -> Record:
    """Play every task once under its budget, [tasks].

    Returns:
        The row of a policy. `large` is the share of a task's steps that the large model did,
        `over_budget` the tasks that cost more than the budget: none, ever.
    """
    done = run(chain, np.arange(chain.tasks), chances, budget_nano, rng)
    large = (done.action == 1).sum(axis=1) / np.maximum((done.action >= 0).sum(axis=1), 1)
    return {
        "policy": name,
        "success": float(done.success.mean()),
        "cost_usd": usd_from_nano(done.cost_nano.mean()),
        "most_usd": usd_from_nano(done.cost_nano.max()),
        "large": float(large.mean()),
        "over_budget": int((done.cost_nano > budget_nano).sum()),
    }


def compare(
    chain: TaskChain,
    policies: Mapping[str, Chances],
    budget_nano: int | None,
    rng: np.random.Generator,
) -> list[Record]:
    """Play all tasks under one budget each: the boundaries, mixtures of both, and policies."""
    budget = np.full(chain.tasks, UNLIMITED if budget_nano is None else budget_nano)
    every: dict[str, Chances] = {"always small": always(0), "always large": always(1)}
    for share in (0.25, 0.5, 0.75):
        every[f"drawn, {share:.0%} large"] = at_random(np.full(chain.tasks, share))
    return [
        played(name, chain, chances, budget, rng) for name, chances in {**every, **policies}.items()
    ]


def classes(known: Boundaries) -> dict[str, float]:
    """Return the share of the tasks in each class."""
    count = np.bincount(known.kind, minlength=len(CLASSES))
    return dict(zip(CLASSES, (count / count.sum()).tolist(), strict=True))


def configs(prices: Sequence[float], config: BopoConfig) -> dict[str, BopoConfig]:
    """Return how to learn for each lambda, by the name of its row."""
    return {f"BoPO, lambda {price:g}": replace(config, price=price) for price in prices}
