"""What an allocator is: many items, an option for each, and one budget for all of them.

An item is a question of a batch. Its options are who could answer it, or how many samples it could
get; each has an expected value, an expected cost and a largest cost. An allocator gives every item
one option so that the expected costs together stay within the budget, whatever it takes. It says
what that is worth, and what no assignment within the budget can be worth more than.

The budget is on *expected* costs: they add up to no more than the budget, exactly, in
nano-dollars. What is then really charged may be more or less. `ItemBatch.at_most` holds the largest
costs to the budget instead.

Where the items are questions and the options a pool's models, `Estimates` say what each model is
likely to make of a question that nobody asked yet. The chance of being right is one logistic
regression a model on the question's words and, where questions have one, its group: RouteLLM's
linear score of the text with a constant, for each model by itself. The expected cost is a line in
the length of the text, a model each, within what was recorded. Both read nothing but the question.
The features and the strength of the penalty are those that `route-llm` and the scorers of cascades
have; that models are fitted one by one, and the line, are ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np

from farthing.budgets.pacing.base import Option
from farthing.errors import InputError
from farthing.money import dollars
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.pool import is_pool
from farthing_lab.features.question import QuestionFeatures, groups_of, seen_of


@dataclass(frozen=True)
class ItemBatch:
    """Items and their options: n items, K options each; some may lack some.

    >>> cheap, dear = Option(0.5, 100, 200), Option(0.9, 1_000, 1_000)
    >>> ItemBatch.of([[cheap, dear], [cheap]]).offered
    array([[ True,  True],
           [ True, False]])
    """

    value: FloatArray
    """[n, K] what an option is expected to be worth, 0 to 1."""
    expected_nano: IntArray
    """[n, K] what it costs on average, in nano-dollars."""
    largest_nano: IntArray
    """[n, K] the most that it can cost, in nano-dollars."""
    offered: BoolArray = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))
    """[n, K] whether an item has the option; all of them where nothing is said."""

    def __post_init__(self) -> None:
        if not len(self):
            raise InputError("the batch has no items; give at least one")
        if not self.offered.size:
            object.__setattr__(self, "offered", np.ones(self.value.shape, dtype=bool))
        shapes = {a.shape for a in (self.value, self.expected_nano, self.largest_nano)}
        if self.value.ndim != 2 or shapes != {self.offered.shape}:
            raise InputError("a batch has values and costs of one shape, items by options")
        lacking = np.flatnonzero(~self.offered.any(axis=1))
        if lacking.size:
            raise InputError(f"item {lacking[0]} has no option; give each item at least one")
        if not (self.offered <= ((self.value >= 0.0) & (self.value <= 1.0))).all():
            raise InputError("an option's value has to be 0 to 1")
        ordered = (self.expected_nano >= 0) & (self.expected_nano <= self.largest_nano)
        if not (self.offered <= ordered).all():
            raise InputError(
                "an option's expected cost has to be $0 or more, its largest cost no less"
            )

    @classmethod
    def of(cls, items: Sequence[Sequence[Option]]) -> Self:
        """Return the batch of items that may have different numbers of options."""
        width = max(map(len, items), default=0)
        offered = np.array([[k < len(row) for k in range(width)] for row in items], dtype=bool)
        rows = [[*row, *[Option(0.0, 0, 0)] * (width - len(row))] for row in items]
        value = np.array([[one.value for one in row] for row in rows])
        expected = np.array([[one.expected_nano for one in row] for row in rows], dtype=np.int64)
        largest = np.array([[one.largest_nano for one in row] for row in rows], dtype=np.int64)
        return cls(value, expected, largest, offered)

    def __len__(self) -> int:
        return len(self.value)

    @property
    def cheapest(self) -> IntArray:
        """[n] each item's cheapest option; the better one of two that cost the same."""
        cost = np.where(self.offered, self.expected_nano, np.iinfo(np.int64).max)
        least = cost == cost.min(axis=1, keepdims=True)
        at: IntArray = np.where(least & self.offered, self.value, -1.0).argmax(axis=1)
        return at

    @property
    def best(self) -> IntArray:
        """[n] each item's most valuable option; the cheaper one of two that are worth the same."""
        worth = np.where(self.offered, self.value, -1.0)
        most = worth == worth.max(axis=1, keepdims=True)
        cost = np.where(most & self.offered, self.expected_nano, np.iinfo(np.int64).max)
        at: IntArray = cost.argmin(axis=1)
        return at

    @property
    def least_nano(self) -> int:
        """What all cheapest options cost together: below this nothing can be allocated."""
        return self.cost_of(self.cheapest)

    def cost_of(self, choice: IntArray) -> int:
        """Return the expected cost of one option for each item, in nano-dollars."""
        return int(self.expected_nano[np.arange(len(self)), choice].sum())

    def at_most(self) -> Self:
        """Return the batch whose largest costs have to fit the budget, and not the expected."""
        return replace(self, expected_nano=self.largest_nano)


@dataclass(frozen=True)
class Allocation:
    """Which option each item gets."""

    choice: IntArray
    """[n]"""
    value: float
    """What all chosen options are expected to be worth together."""
    expected_nano: int
    """What they cost on average, in nano-dollars; never above the budget."""
    largest_nano: int
    """The most that they can cost, in nano-dollars."""
    bound: float
    """No assignment within the budget is worth more than this."""

    @property
    def gap(self) -> float:
        """How far from the optimum it is at most, as a share of the bound."""
        return 1.0 - self.value / self.bound if self.bound > 0.0 else 0.0


class Allocator(Protocol):
    """What a card of kind `allocator` makes: a pure function of a batch and a budget."""

    def allocate(self, batch: ItemBatch, budget_nano: int) -> Allocation:
        """Give each item one option.

        Raises:
            InputError: not even the cheapest options fit the budget.
        """
        ...


def chosen(batch: ItemBatch, choice: IntArray, bound: float) -> Allocation:
    """Return the allocation that a choice is."""
    at = np.arange(len(batch)), choice
    value = float(batch.value[at].sum())
    largest = int(batch.largest_nano[at].sum())
    return Allocation(choice, value, batch.cost_of(choice), largest, max(bound, value))


def room_nano(batch: ItemBatch, budget_nano: int) -> int:
    """Return what the budget leaves beyond the cheapest options, in nano-dollars.

    Raises:
        InputError: they cost more than the budget.
    """
    room = budget_nano - batch.least_nano
    if room < 0:
        raise InputError(
            f"the budget is {dollars(budget_nano)}, and the cheapest options of {len(batch):,} "
            f"items cost {dollars(batch.least_nano)}; give at least that, or fewer items"
        )
    return room


@dataclass(frozen=True)
class Estimates:
    """What was learned of each of L models."""

    models: tuple[str, ...]
    groups: tuple[str, ...]
    weight: FloatArray
    """[L, F + 1] of words and groups in log-odds, the constant last."""
    line: FloatArray
    """[L, 2] nano-dollars of a question, and of a letter of it."""
    range_nano: IntArray
    """[L, 2] the least and the most that a question cost in training."""
    mean: FloatArray
    """[L] the share of right answers in training."""

    def chance(self, asked: QuestionFeatures) -> FloatArray:
        """Return the chance that each model is right, [n, L]."""
        seen = seen_of(asked, self.groups)
        odds: FloatArray = seen @ self.weight[:, :-1].T + self.weight[:, -1]
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))

    def cost_nano(self, asked: QuestionFeatures) -> IntArray:
        """Return what each model is expected to cost, [n, L]."""
        letters = np.array([len(text) for text in asked.text], dtype=np.float64)
        raw = self.line[:, 0] + letters[:, None] * self.line[:, 1]
        return np.ceil(np.clip(raw, *self.range_nano.T)).astype(np.int64)

    def batch(self, asked: QuestionFeatures, offered: BoolArray | None = None) -> ItemBatch:
        """Return the questions as items, and the models as their options.

        The most that an answer can cost is the most that one of this model cost in training.
        """
        expected = self.cost_nano(asked)
        largest = np.maximum(expected, self.range_nano[:, 1])
        every = np.ones(expected.shape, dtype=bool)
        return ItemBatch(
            self.chance(asked), expected, largest, every if offered is None else offered
        )


def fit_estimates(train: TraceArrays) -> Estimates:
    """Learn from recorded questions of a pool."""
    if not is_pool(train):
        raise InputError(
            "these traces are no pool of models, one call of each model a question; collect one "
            "with `farthing collect`, or import one with `farthing traces import`"
        )
    from farthing.methods.scorer import STRENGTH, logistic  # noqa: PLC0415 - only where it learns

    asked, made = QuestionFeatures.of(train), train.made[:, 0]
    graded, right = made & ~train.ungraded[:, 0], train.correct[:, 0]
    lacking = [name for name, n in zip(train.roles, graded.sum(axis=0), strict=True) if n < 1]
    if lacking:
        raise InputError(f"no answer of {lacking[0]} is graded; record `gold` or `correct`")
    groups = groups_of(asked.group)
    seen, cost = seen_of(asked, groups), train.cost_nano[:, 0]
    letters = np.array([len(text) for text in asked.text], dtype=np.float64)
    models = range(train.n_roles)
    return Estimates(
        train.roles,
        groups,
        np.array([logistic(seen[graded[:, m]], right[graded[:, m], m], STRENGTH) for m in models]),
        np.array([rising_line(letters[made[:, m]], cost[made[:, m], m]) for m in models]),
        np.array([[cost[made[:, m], m].min(), cost[made[:, m], m].max()] for m in models]),
        np.array([right[graded[:, m], m].mean() for m in models]),
    )


def rising_line(x: FloatArray, y: FloatArray | IntArray) -> FloatArray:
    """Return offset and slope of the line of least squares that does not fall, [2]."""
    spread = x - x.mean()
    total = float((spread**2).sum())
    slope = max(0.0, float((spread * y).sum()) / total) if total > 0.0 else 0.0
    return np.array([float(y.mean()) - slope * float(x.mean()), slope])
