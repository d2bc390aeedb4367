"""Who does each step of a task: boundary policies, a random mixture and BoPO, under one budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from farthing.errors import InputError, UnknownNameError
from farthing.models.prices import PriceTable
from farthing.money import NANO_PER_USD, dollars
from farthing.reports.table import Record, Table, counted
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.generator.steps import evaluate, optimum, two_models
from farthing_lab.methods.routers.bopo.episodes import (
    UNLIMITED,
    Chances,
    GeneratedTasks,
    TaskChain,
    always,
    at_random,
    run,
)
from farthing_lab.methods.routers.bopo.learner import SHORT, BopoConfig, BopoFit, Boundaries, learn
from farthing_lab.methods.routers.bopo.policy import CLASSES
from farthing_lab.models.embedded import EmbeddedSettings
from farthing_lab.studies.step_arithmetic import Arithmetic, draw
from farthing_lab.studies.study import Seed, StudyContext, StudyOption, StudyReport

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

    @property
    def budget_nano(self) -> int | None:
        """The budget of a task; None for no limit."""
        return None if self.budget is None else int(self.budget * NANO_PER_USD)

    def measure(self, context: StudyContext) -> "RoutedSteps":
        train, test = _chains(self.on, self.train, self.test, self.seed)
        if self.budget_nano is not None:
            state = test.begin(np.arange(test.tasks))
            least = int((test.largest_nano(state, 0)[:, 0] + test.rest_nano(state, 0)).min())
            if self.budget_nano < least:
                raise InputError(
                    f"a budget of {dollars(self.budget_nano)} pays for no task; one by the small "
                    f"model alone can cost {dollars(least)}"
                )
        prices = self.price or PRICES
        learned: dict[str, BopoFit] = {}
        base = SHORT if self.on == "embedded" else BopoConfig()
        for name, config in configs(prices, base).items():
            rng = np.random.default_rng(self.seed)
            learned[name] = learn(train, config, rng, context.progress(name))
        context.remark(
            f"learned from {counted(self.train, 'task')}, judged on {self.test:,} others"
        )
        policies = {name: router.policy.surely for name, router in learned.items()}
        rng = np.random.default_rng(self.seed + 1)
        return RoutedSteps(
            tuple(compare(test, policies, self.budget_nano, rng)),
            classes(next(iter(learned.values())).boundaries),
            _optimum(prices, self.budget_nano) if self.on == "generated" else {},
        )

    def report(self, measured: "RoutedSteps") -> StudyReport:

        def succeeded(record: Record) -> str:
            rate = record["success"]
            return f"{rate:.3f} ± {(rate * (1 - rate) / self.test) ** 0.5:.3f}"

        table = Table(
            (
                ("Who does the steps", lambda r: r["policy"]),
                ("USD a task", lambda r: f"{r['cost_usd']:.3g}"),
                ("at most", lambda r: f"{r['most_usd']:.3g}"),
                ("succeeded", succeeded),
                ("large", lambda r: f"{r['large']:.0%}"),
                ("over", lambda r: str(r["over_budget"])),
            ),
            [row.record for row in measured.rows],
        )
        nano = self.budget_nano
        limit = "without a budget" if nano is None else f"at most {dollars(nano)} each"
        kinds = ", ".join(f"{share:.0%} {name}" for name, share in measured.classes.items())
        return StudyReport(
            f"{TASKS[self.on]}: {counted(self.test, 'task')}, {limit}",
            (
                table,
                f"Tasks, by what the boundaries come to on them: {kinds}.",
                *(
                    f"At best, {name}: {best['success']:.3f} for ${best['cost_usd']:.6f}."
                    for name, best in measured.optimum.items()
                ),
            ),
            {"classes": measured.classes, "rows": table.records, "optimum": measured.optimum},
        )


@dataclass(frozen=True)
class RoutedSteps:
    """What the policies came to."""

    rows: tuple["StepRow", ...]
    classes: dict[str, float]
    """Share of the tasks in each class."""
    optimum: dict[str, dict[str, float]]
    """What the best policy comes to for each lambda, where that is known."""


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
    config, best = two_models(), {}
    for price in prices:

        def worth(large: int, price: float = price) -> float:
            return 1.0 - price * large / config.steps

        done = evaluate(config, optimum(config, worth, budget_nano).chances, worth)
        best[f"lambda {price:g}"] = {"success": done.success, "cost_usd": done.cost_nano / 1e9}
    return best


@dataclass(frozen=True)
class StepRow:
    """What one policy came to on tasks that nobody learned from."""

    name: str
    success: FloatArray
    """[n] 1 where the episode succeeded."""
    cost_nano: IntArray
    """[n]"""
    large: FloatArray
    """[n] share of the steps that the large model did."""
    over: int
    """Episodes that cost more than the budget: none, ever."""

    @property
    def rate(self) -> float:
        """Share of the episodes that succeeded."""
        return float(self.success.mean())

    @property
    def cost_usd(self) -> float:
        """Mean dollars of a task."""
        return float(self.cost_nano.mean()) / 1e9

    @property
    def record(self) -> dict[str, Any]:
        """The row for JSON."""
        return {
            "policy": self.name,
            "success": self.rate,
            "cost_usd": self.cost_usd,
            "most_usd": int(self.cost_nano.max()) / 1e9,
            "large": float(self.large.mean()),
            "over_budget": self.over,
        }


def played(
    name: str, chain: TaskChain, chances: Chances, budget_nano: IntArray, rng: np.random.Generator
) -> StepRow:
    """Play every task once under its budget, [tasks]."""
    done = run(chain, np.arange(chain.tasks), chances, budget_nano, rng)
    made: BoolArray = done.action >= 0
    large = (done.action == 1).sum(axis=1) / np.maximum(made.sum(axis=1), 1)
    over = int((done.cost_nano > budget_nano).sum())
    return StepRow(name, done.success.astype(float), done.cost_nano, large, over)


def compare(
    chain: TaskChain,
    policies: Mapping[str, Chances],
    budget_nano: int | None,
    rng: np.random.Generator,
) -> list[StepRow]:
    """Play all tasks under one budget each: the boundaries, mixtures of both, and policies."""
    budget = np.full(chain.tasks, UNLIMITED if budget_nano is None else budget_nano)
    shares = {f"drawn, {share:.0%} large": share for share in (0.25, 0.5, 0.75)}
    every: dict[str, Chances] = {"always small": always(0), "always large": always(1)}
    every |= {
        name: at_random(np.full(chain.tasks, share)) for name, share in shares.items()
    } | dict(policies)
    return [played(name, chain, chances, budget, rng) for name, chances in every.items()]


def classes(known: Boundaries) -> dict[str, float]:
    """Return the share of the tasks in each class."""
    count = np.bincount(known.kind, minlength=len(CLASSES))
    return dict(zip(CLASSES, (count / count.sum()).tolist(), strict=True))


def configs(prices: Sequence[float], config: BopoConfig) -> dict[str, BopoConfig]:
    """Return how to learn for each lambda, by the name of its row."""
    return {f"BoPO, lambda {price:g}": replace(config, price=price) for price in prices}
