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
from typing import Annotated

import numpy as np

from farthing.errors import InputError
from farthing.money import NANO_PER_USD, dollars, usd_from_nano
from farthing.reports.table import Record, Table, counted
from farthing.traces.arrays import BoolArray, IntArray, TraceArrays
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
    percent,
    usd,
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

    def measure(self, context: StudyContext) -> Record:
        pool, few = context.read_traces(*self.traces), context.read_traces(self.new)
        name = self._joining(few)
        history = OutcomeHistory.of(few, few.roles.index(name))
        if not len(history.right):
            raise InputError(f"no answer of {name} is graded; record `gold`")
        context.check_costs(pool)
        if name in pool.roles:
            raise InputError(f"{name} is in the pool already; give its outcomes another role")
        order = CopyGroups.of(pool.content, np.arange(len(pool)))
        rng = np.random.default_rng(self.seed)
        drawn = rng.permutation(order.distinct)
        cut = int(LEARNED * len(drawn))
        if cut < 1:
            raise InputError("one question is too few: some are to learn from, others to route")
        learned = V0.fit(pool.take(order.all_of(drawn[:cut])), self.seed)
        asked, ability = QuestionFeatures.of(pool), learned.ability(history)
        accuracy = float(learned.success(history, asked).mean())
        draws = rng.normal(size=(DRAWS, len(ability.mode)))
        shares = learned.accuracy(ability, asked, draws)
        held = pool.take(np.sort(drawn[cut:]))
        held = held.take(np.flatnonzero(_graded(held).any(axis=1)))
        if not len(held):
            raise InputError(f"{len(pool)} questions are too few: none is left to route")
        mean, (own,) = _prices(pool), _prices(few)[[few.roles.index(name)]]
        first = router(learned, mean.astype(np.float64))
        prices = np.append(mean, own)
        both = with_one_more(first, ability, prices.astype(np.float64))
        made = pool.made[:, 0]
        right = (pool.correct[:, 0] & made).sum(axis=0) / np.maximum(made.sum(axis=0), 1)
        between = np.ceil(np.geomspace(max(1, prices.min()), max(1, prices.max()), BUDGETS))
        budgets = [int(budget * NANO_PER_USD) for budget in self.budget or []]
        budgets = budgets or between.astype(int).tolist()
        routed = _routed(held, first, budgets), _routed(held, both, budgets, int(own))
        return {
            "model": name,
            "outcomes": len(history.right),
            "right": int(history.right.sum()),
            "cost_usd": usd_from_nano(own),
            "accuracy": accuracy,
            "accuracy_interval": np.quantile(shares, [LEVEL / 2, 1 - LEVEL / 2]).tolist(),
            "questions": len(pool),
            "routed": len(held),
            "others": [
                {
                    "model": pool.roles[m],
                    "cost_usd": usd_from_nano(mean[m]),
                    "accuracy": float(right[m]),
                }
                for m in np.lexsort((np.array(pool.roles), mean))
            ],
            "budgets": [
                {
                    "budget_usd": usd_from_nano(budget),
                    "right_without": without,
                    "right_with": joined,
                    "share_asked": share,
                }
                for budget, (without, _), (joined, share) in zip(budgets, *routed, strict=True)
            ],
        }

    def _joining(self, few: TraceArrays) -> str:
        refuse_rounds(few)
        if self.model is None and few.n_roles > 1:
            raise InputError(f"say which of these joins: {', '.join(few.roles)}")
        if self.model is not None and self.model not in few.roles:
            raise InputError(f"{self.model} is none of these: {', '.join(few.roles)}")
        return self.model or few.roles[0]

    def report(self, measured: Record) -> StudyReport:
        n, (low, high) = measured["outcomes"], measured["accuracy_interval"]
        own = {name: measured[name] for name in ("model", "cost_usd", "accuracy")}
        models = sorted(
            [*measured["others"], own], key=lambda model: (model["cost_usd"], model["model"])
        )
        beside = Table(
            (
                ("Model", lambda row: row["model"] + (" (joins)" if row is own else "")),
                usd("USD a question", "cost_usd", 4),
                percent("right", "accuracy"),
            ),
            models,
            bold=(models.index(own),),
        )
        budgets = Table(
            (
                usd("Budget, USD a question", "budget_usd", 4),
                percent("right without it", "right_without", none="too dear"),
                percent("with it", "right_with", none="too dear"),
                percent("asked it", "share_asked", 0),
            ),
            measured["budgets"],
            layout=(),
        )
        others = counted(len(measured["others"]), "other model")
        return StudyReport(
            f"{self.new.name}: {own['model']} costs {dollars(own['cost_usd'] * NANO_PER_USD)} a "
            f"question and is expected right on {own['accuracy']:.1%} "
            f"(95 %: {low:.1%} to {high:.1%})",
            (
                (
                    f"From {counted(n, 'outcome')}, {measured['right']:,} of them right, and "
                    f"{counted(measured['questions'], 'question')} to {others}; it was asked "
                    "nothing more."
                ),
                beside,
                budgets,
            ),
            measured,
            KEY.format(counted(measured["routed"], "question")),
        )


def _prices(traces: TraceArrays) -> IntArray:
    """Return what a question costs each model on average, rounded up, [L]."""
    made = traces.made[:, 0].sum(axis=0)
    mean: IntArray = -(-traces.cost_nano[:, 0].sum(axis=0) // np.maximum(made, 1))
    return mean


def _graded(pool: TraceArrays) -> BoolArray:
    """Return who was asked and graded, [n, L]."""
    graded: BoolArray = pool.made[:, 0] & ~pool.ungraded[:, 0]
    return graded


def _routed(
    held: TraceArrays, policy: V0Policy, budgets: Sequence[int], newcomer_nano: int | None = None
) -> list[tuple[float | None, float]]:
    """Route held-out questions within each budget, in nano-dollars a question on average.

    Of the points that fit, the one is taken at which most right answers are expected. Whoever the
    pool has not is the last model, and as right as it is expected to be.

    Returns:
        The share right and the last model's share of the questions; None where no point fits.
    """
    success = policy.success(held)
    offered, cost, right = _graded(held), held.cost_nano[:, 0], held.correct[:, 0].astype(float)
    if newcomer_nano is not None:
        every = np.ones((len(held), 1))
        offered = np.concatenate([offered, every > 0], axis=1)
        cost = np.concatenate([cost, np.full((len(held), 1), newcomer_nano)], axis=1)
        right = np.concatenate([right, success[:, -1:]], axis=1)
    who = chosen(success, policy.cost, policy.values, offered)
    rows = np.arange(len(held))[:, None]
    total, expected = cost[rows, who].sum(axis=0), success[rows, who].mean(axis=0)
    share, last = right[rows, who].mean(axis=0), (who == success.shape[1] - 1).mean(axis=0)
    found: list[tuple[float | None, float]] = []
    for budget in budgets:
        fits = total <= budget * len(held)
        at = int(np.where(fits, expected, -1.0).argmax())
        found.append((float(share[at]), float(last[at])) if fits.any() else (None, 0.0))
    return found
