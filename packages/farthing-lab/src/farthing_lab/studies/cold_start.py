"""What a model is worth to a pool that it would join, by a handful of its outcomes.

Nothing is asked and nothing trained on it: its ability is read from the outcomes (V_0). What makes
questions hard is learned on 60 % of the pool's. The others stand for those to come: they are routed
as if nobody had answered them, and then a model of the pool is as right as it was recorded, the
newcomer as right as is estimated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from farthing.errors import InputError
from farthing.money import NANO_PER_USD, dollars, significant, usd_from_nano
from farthing.reports.table import Table, counted
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.copies import CopyGroups
from farthing_lab.features.question import QuestionFeatures
from farthing_lab.methods.estimators.base import OutcomeHistory, refuse_rounds
from farthing_lab.methods.estimators.v0 import V0
from farthing_lab.methods.routers.v0 import V0Policy, chosen, router, with_one_more
from farthing_lab.studies.study import (
    LEVEL,
    Seed,
    StudyContext,
    StudyOption,
    StudyReport,
    TracesFiles,
)

DRAWS = 1_000
"""Of the newcomer's ability, for the interval of its accuracy."""
LEARNED = 0.6
"""Share of the pool's questions that is learned from; the others are routed."""
BUDGETS = 5
"""Between the cheapest and the most expensive model's price, where nobody names one."""


KEY = (
    "Each question goes to one model, by estimated success and price, on average within the "
    "budget. Right: on {} held out, as recorded of the others, as estimated of the "
    "one that joins."
)


@dataclass(frozen=True)
class ColdStart:
    """Say what a model would be worth to a pool that it joins, from a handful of its outcomes.

    What makes questions hard is learned from the pool; how able the newcomer is, from its few
    outcomes, without training anything on it. Then questions are routed by estimated success and
    price, with it and without it.

    Example: farthing study joins pool.jsonl.gz --new few.jsonl --budget 0.0002
    """

    traces: TracesFiles
    new: Annotated[Path, StudyOption("Graded calls of the model that joins.")]
    model: Annotated[str | None, StudyOption("Which one joins, where FILE has several.")] = None
    budget: Annotated[
        list[Fraction] | None, StudyOption("For a question, on average; may be repeated.")
    ] = None
    seed: Seed = 0

    def measure(self, context: StudyContext) -> "Joined":
        pool = context.read_traces(*self.traces)
        newcomer = Newcomer.of(context.read_traces(self.new), self.model)
        context.check_costs(pool)
        budgets = [int(budget * NANO_PER_USD) for budget in self.budget or []]
        return join(pool, newcomer, budgets_nano=budgets, seed=self.seed)

    def report(self, measured: "Joined") -> StudyReport:
        newcomer, (low, high) = measured.newcomer, measured.interval
        n, right = len(newcomer.history.right), int(newcomer.history.right.sum())
        others = [
            {"model": name, "cost_usd": usd_from_nano(cost), "accuracy": share}
            for name, cost, share in measured.others
        ]
        own = {
            "model": newcomer.name,
            "cost_usd": usd_from_nano(newcomer.cost_nano),
            "accuracy": measured.accuracy,
        }
        models = sorted([*others, own], key=lambda model: (model["cost_usd"], model["model"]))
        beside = Table(
            (
                ("Model", lambda r: r["model"] + (" (joins)" if r is own else "")),
                ("USD a question", lambda r: significant(r["cost_usd"], 4)),
                ("right", lambda r: f"{r['accuracy']:.1%}"),
            ),
            models,
            bold=(models.index(own),),
        )
        budgets = Table(
            (
                ("Budget, USD a question", lambda r: significant(r["budget_usd"], 4)),
                ("right without it", lambda r: _share(r["right_without"])),
                ("with it", lambda r: _share(r["right_with"])),
                ("asked it", lambda r: f"{r['share_asked']:.0%}"),
            ),
            [row.record for row in measured.rows],
            layout=(),
        )
        return StudyReport(
            f"{self.new.name}: {newcomer.name} costs {dollars(newcomer.cost_nano)} a question and "
            f"is expected right on {measured.accuracy:.1%} (95 %: {low:.1%} to {high:.1%})",
            (
                (
                    f"From {counted(n, 'outcome')}, {right:,} of them right, and "
                    f"{counted(measured.questions, 'question')} to "
                    f"{counted(len(measured.models), 'other model')}; it was asked nothing more."
                ),
                beside,
                budgets,
            ),
            {
                "model": newcomer.name,
                "outcomes": n,
                "right": right,
                "cost_usd": own["cost_usd"],
                "accuracy": measured.accuracy,
                "accuracy_interval": list(measured.interval),
                "questions": measured.questions,
                "routed": measured.routed,
                "others": others,
                "budgets": budgets.records,
            },
            KEY.format(counted(measured.routed, "question")),
        )


def _share(value: float | None) -> str:
    return "too dear" if value is None else f"{value:.1%}"


@dataclass(frozen=True)
class Newcomer:
    """The model that joins, and what it did."""

    name: str
    history: OutcomeHistory
    cost_nano: int
    """Mean price of a question, rounded up."""

    @classmethod
    def of(cls, traces: TraceArrays, name: str | None = None) -> "Newcomer":
        refuse_rounds(traces)
        if name is None and traces.n_roles > 1:
            raise InputError(f"say which of these joins: {', '.join(traces.roles)}")
        if name is not None and name not in traces.roles:
            raise InputError(f"{name} is none of these: {', '.join(traces.roles)}")
        model = 0 if name is None else traces.roles.index(name)
        history = OutcomeHistory.of(traces, model)
        if not len(history.right):
            raise InputError(f"no answer of {traces.roles[model]} is graded; record `gold`")
        made = traces.made[:, 0][:, model]
        cost = traces.cost_nano[made, 0, model]
        return cls(traces.roles[model], history, -(-int(cost.sum()) // len(cost)))


@dataclass(frozen=True)
class RoutedBudget:
    """What routing by estimated success comes to at one budget."""

    budget_nano: int
    """For a question, on average."""
    without: float | None
    """Share of right answers without the newcomer; None: nothing is so cheap."""
    joined: float | None
    """The same with it."""
    share: float
    """Of the questions that go to it."""

    @property
    def record(self) -> dict[str, Any]:
        return {
            "budget_usd": usd_from_nano(self.budget_nano),
            "right_without": self.without,
            "right_with": self.joined,
            "share_asked": self.share,
        }


@dataclass(frozen=True)
class Joined:
    """What is known of the newcomer, and what it brings."""

    newcomer: Newcomer
    models: tuple[str, ...]
    """The others."""
    questions: int
    """Of the pool."""
    accuracy: float
    """Its expected share of right answers on the pool's questions."""
    interval: tuple[float, float]
    """95 % of it."""
    others: tuple[tuple[str, int, float], ...]
    """The others, from the cheapest: name, mean price in nano-dollars, share of right answers."""
    routed: int
    """Questions that were held out to be routed."""
    rows: tuple[RoutedBudget, ...]


def join(
    pool: TraceArrays, newcomer: Newcomer, *, budgets_nano: Sequence[int] = (), seed: int = 0
) -> Joined:
    """Say what a model would be worth to a pool."""
    if newcomer.name in pool.roles:
        raise InputError(f"{newcomer.name} is in the pool already; give its outcomes another role")
    rng = np.random.default_rng(seed)
    together = CopyGroups.of(pool.content, np.arange(len(pool)))
    order = rng.permutation(together.distinct)
    cut = int(LEARNED * len(order))
    if cut < 1:
        raise InputError("one question is too few: some are to learn from, others to route")
    learned, asked = (
        V0.fit(pool.take(together.all_of(order[:cut])), seed),
        QuestionFeatures.of(pool),
    )
    ability = learned.ability(newcomer.history)
    draws = rng.normal(size=(DRAWS, len(ability.mode)))
    shares = learned.accuracy(ability, asked, draws)
    low, high = np.quantile(shares, [LEVEL / 2, 1 - LEVEL / 2]).tolist()
    made = pool.made[:, 0]
    mean = -(-pool.cost_nano[:, 0].sum(axis=0) // np.maximum(made.sum(axis=0), 1))
    prices = np.append(mean, newcomer.cost_nano)
    first = router(learned, mean.astype(np.float64))
    both = with_one_more(first, ability, prices.astype(np.float64))
    right = (pool.correct[:, 0] & made).sum(axis=0) / np.maximum(made.sum(axis=0), 1)
    rank = np.lexsort((np.array(pool.roles), mean)).tolist()
    between = np.ceil(np.geomspace(max(1, prices.min()), max(1, prices.max()), BUDGETS))
    budgets = list(budgets_nano) or [int(budget) for budget in between]
    held = pool.take(np.sort(order[cut:]))
    held = held.take(np.flatnonzero(_graded(held).any(axis=1)))
    if not len(held):
        raise InputError(f"{len(pool)} questions are too few: none is left to route")
    before, after = _Curve.of(held, first), _Curve.of(held, both, newcomer.cost_nano)
    rows = tuple(_routed(budget, before, after) for budget in budgets)
    return Joined(
        newcomer,
        pool.roles,
        len(pool),
        float(learned.success(newcomer.history, asked).mean()),
        (low, high),
        tuple((pool.roles[m], int(mean[m]), float(right[m])) for m in rank),
        len(held),
        rows,
    )


def _graded(pool: TraceArrays) -> BoolArray:
    """Return who was asked and graded, [n, L]."""
    graded: BoolArray = pool.made[:, 0] & ~pool.ungraded[:, 0]
    return graded


@dataclass(frozen=True)
class _Curve:
    """What each operating point costs and brings."""

    total_nano: IntArray
    """[G] for all questions."""
    right: FloatArray
    """[G] as recorded, and of the newcomer as estimated."""
    expected: FloatArray
    """[G] as estimated of all, which is what a point is chosen by."""
    last: FloatArray
    """[G] share of the questions that go to the last model."""
    questions: int

    @classmethod
    def of(cls, held: TraceArrays, policy: V0Policy, newcomer_nano: int | None = None) -> "_Curve":
        """Route held-out questions; whoever the pool has not is the last model."""
        success = policy.success(held)
        offered, cost, right = _graded(held), held.cost_nano[:, 0], held.correct[:, 0].astype(float)
        if newcomer_nano is not None:
            every = np.ones((len(held), 1))
            offered = np.concatenate([offered, every > 0], axis=1)
            cost = np.concatenate([cost, np.full((len(held), 1), newcomer_nano)], axis=1)
            right = np.concatenate([right, success[:, -1:]], axis=1)
        who = chosen(success, policy.cost, policy.values, offered)
        rows = np.arange(len(held))[:, None]
        return cls(
            cost[rows, who].sum(axis=0),
            right[rows, who].mean(axis=0),
            success[rows, who].mean(axis=0),
            (who == success.shape[1] - 1).mean(axis=0),
            len(held),
        )

    def within(self, budget_nano: int) -> int | None:
        fits = self.total_nano <= budget_nano * self.questions
        return int(np.where(fits, self.expected, -1.0).argmax()) if fits.any() else None


def _routed(budget: int, before: _Curve, after: _Curve) -> RoutedBudget:
    without, joined = before.within(budget), after.within(budget)
    return RoutedBudget(
        budget,
        None if without is None else float(before.right[without]),
        None if joined is None else float(after.right[joined]),
        0.0 if joined is None else float(after.last[joined]),
    )
