"""What a model is worth to a pool that it would join, by a handful of its outcomes.

Nothing is asked and nothing trained on it: its ability is read from the outcomes (V_0). What makes
questions hard is learned on 60 % of the pool's. The others stand for those to come: they are routed
as if nobody had answered them, and then a model of the pool is as right as it was recorded, the
newcomer as right as is estimated.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.errors import InputError
from farthing.features.question import QuestionFeatures
from farthing.methods.estimators.base import History, refuse_rounds
from farthing.methods.estimators.v0 import V0
from farthing.methods.routers.v0 import V0Policy, chosen, router, with_one_more
from farthing.studies.batch_allocation import SURE
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.copies import Together

DRAWS = 1_000
"""Of the newcomer's ability, for the interval of its accuracy."""
LEARNED = 0.6
"""Share of the pool's questions that is learned from; the others are routed."""
BUDGETS = 5
"""Between the cheapest and the dearest model's price, where nobody names one."""


@dataclass(frozen=True)
class Few:
    """The model that joins, and what it did."""

    name: str
    history: History
    cost_nano: int
    """Mean price of a question, rounded up."""

    @classmethod
    def of(cls, traces: TraceArrays, name: str | None = None) -> "Few":
        """Return one model of recorded questions.

        Raises:
            InputError: the file has rounds, several models and no name, or no graded call of it.
        """
        refuse_rounds(traces)
        if name is None and traces.n_roles > 1:
            raise InputError(f"say which of these joins: {', '.join(traces.roles)}")
        if name is not None and name not in traces.roles:
            raise InputError(f"{name} is none of these: {', '.join(traces.roles)}")
        model = 0 if name is None else traces.roles.index(name)
        history = History.of(traces, model)
        if not len(history.right):
            raise InputError(f"no answer of {traces.roles[model]} is graded; record `gold`")
        made = traces.made[:, 0][:, model]
        cost = traces.cost_nano[made, 0, model]
        return cls(traces.roles[model], history, -(-int(cost.sum()) // len(cost)))


@dataclass(frozen=True)
class Routed:
    """What routing by estimated success comes to at one budget."""

    budget_nano: int
    """For a question, on average."""
    without: float | None
    """Share of right answers without the newcomer; None: nothing is so cheap."""
    joined: float | None
    """The same with it."""
    share: float
    """Of the questions that go to it."""


@dataclass(frozen=True)
class Joined:
    """What is known of the newcomer, and what it brings."""

    few: Few
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
    rows: tuple[Routed, ...]


def join(pool: TraceArrays, few: Few, *, budgets_nano: Sequence[int] = (), seed: int = 0) -> Joined:
    """Say what a model would be worth to a pool.

    Args:
        pool: graded questions of the models that are there.
        few: the model that would join them.
        budgets_nano: for a question on average; none: `BUDGETS` between the prices of all models.
        seed: of training and of the interval.

    Raises:
        InputError: the pool is none, it has no texts, or the model is in it already.
        MissingExtraError: what learning needs is not installed.
    """
    if few.name in pool.roles:
        raise InputError(f"{few.name} is in the pool already; give its outcomes another role")
    rng = np.random.default_rng(seed)
    together = Together.of(pool.content, np.arange(len(pool)))
    order = rng.permutation(together.distinct)
    cut = int(LEARNED * len(order))
    if cut < 1:
        raise InputError("one question is too few: some are to learn from, others to route")
    learned, asked = (
        V0.fit(pool.take(together.all_of(order[:cut])), seed),
        QuestionFeatures.of(pool),
    )
    ability = learned.ability(few.history)
    draws = rng.normal(size=(DRAWS, len(ability.mode)))
    shares = learned.accuracy(ability, asked, draws)
    low, high = np.quantile(shares, [SURE / 2, 1 - SURE / 2]).tolist()
    made = pool.made[:, 0]
    mean = -(-pool.cost_nano[:, 0].sum(axis=0) // np.maximum(made.sum(axis=0), 1))
    prices = np.append(mean, few.cost_nano)
    first = router(learned, mean.astype(np.float64))
    both = with_one_more(first, ability, prices.astype(np.float64))
    right = (pool.correct[:, 0] & made).sum(axis=0) / np.maximum(made.sum(axis=0), 1)
    rank = np.lexsort((np.array(pool.roles), mean)).tolist()
    budgets = list(budgets_nano) or _between(int(prices.min()), int(prices.max()))
    held = pool.take(np.sort(order[cut:]))
    held = held.take(np.flatnonzero(_graded(held).any(axis=1)))
    if not len(held):
        raise InputError(f"{len(pool)} questions are too few: none is left to route")
    before, after = _Curve.of(held, first), _Curve.of(held, both, few.cost_nano)
    rows = tuple(_routed(budget, before, after) for budget in budgets)
    return Joined(
        few,
        pool.roles,
        len(pool),
        float(learned.success(few.history, asked).mean()),
        (low, high),
        tuple((pool.roles[m], int(mean[m]), float(right[m])) for m in rank),
        len(held),
        rows,
    )


def _between(low: int, high: int) -> list[int]:
    """Return budgets from one price to another, each as many times the one before."""
    sums = np.geomspace(max(1, low), max(1, high), BUDGETS)
    return [int(one) for one in np.ceil(sums)]


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
        """Return the point that is expected to bring most within a budget a question."""
        fits = self.total_nano <= budget_nano * self.questions
        return int(np.where(fits, self.expected, -1.0).argmax()) if fits.any() else None


def _routed(budget: int, before: _Curve, after: _Curve) -> Routed:
    one, two = before.within(budget), after.within(budget)
    return Routed(
        budget,
        None if one is None else float(before.right[one]),
        None if two is None else float(after.right[two]),
        0.0 if two is None else float(after.last[two]),
    )
