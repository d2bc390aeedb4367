"""Learn what to buy next: gain and cost of every purchase, with what would follow it.

Approximate policy iteration on recorded questions. What a purchase gains is known for every state
of every question, since all of its calls were recorded: first taken alone, then together with what
the policy of the iteration before would buy after it. Every forest that decides about a question
was grown without it, so that training does not believe its own luck; the few numbers of a model of
the conversation, and of how that is mixed with the forest, are fitted to all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from farthing.errors import TooFewTracesError
from farthing.features.calls import CallFeatures
from farthing.methods.base import Dataset, Fitted, Learner, Method, Progress, Variant
from farthing.methods.lookahead.estimates import (
    best_share,
    grown,
    linear_weights,
    mean_where,
    together,
)
from farthing.methods.lookahead.fit_latent_difficulty import AGENTS, fit_latent_difficulty
from farthing.methods.lookahead.policy import (
    GainEstimate,
    Judge,
    LookaheadPolicy,
    Order,
    best_line,
    offered,
    ordered,
    outlooks,
)
from farthing.money import usd_from_nano
from farthing.process import latency
from farthing.process.action_space import (
    Items,
    SpaceName,
    items_of,
    lines_of_sets,
    recorded_space,
    sets_of_next,
)
from farthing.process.base import NOTHING
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

FOLDS = 3
MOST_STATES = 25
"""States of a question that are all looked at; where there are more, some are drawn."""
MOST_CASES = 6_000
"""Cases that are drawn then, of all questions together."""
LEAST_WORTH = 1e-15
"""Gain per nano-dollar below which nothing is told apart."""
STRENGTH = 0.03
"""Inverse strength of the L2 penalty on the weights of many features."""
OUTLOOK_STRENGTH = 0.3
"""The same on those of a conversation's outlook, which is log-odds of a gain already."""


@dataclass(frozen=True)
class LookaheadConfig:
    """How to learn."""

    space: SpaceName = "rounds"
    """The action space to buy in."""
    iterations: int = 2
    """The first values the next purchase alone, each later one what the one before would add."""
    trees: int = 48
    """In all; each is grown without the questions of one fold."""
    leaf: int = 20
    """Fewest cases in a leaf."""
    together: int = 1
    """The most items that one decision buys, without a look at the replies in between."""
    wait_price: float = 0.0
    """What it is worth not to wait for as long as a call takes on average, in mean costs of one."""


LAZY = LookaheadConfig(space="calls", iterations=1, trees=24)
"""One call at a time; looking further ahead gained nothing there (`docs/research/log.md`)."""


@dataclass(frozen=True)
class Cases:
    """States of recorded questions: what was bought so far."""

    row: IntArray
    """[R]"""
    bought: IntArray
    """[R, F]"""


@dataclass(frozen=True)
class LookaheadLearner:
    """Fits forests of gain and cost; which coverage to aim at is part of the training."""

    config: LookaheadConfig = LookaheadConfig()

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        """Train on recorded questions for miscoverage `alpha`."""
        if len(train) < 2:
            raise TooFewTracesError(
                f"{len(train)} question to train on; look-ahead needs 2 or more"
            )
        training = _LookaheadTraining(self.config, train, alpha, seed)
        for done in range(self.config.iterations):
            progress.update(done + 1, self.config.iterations, training.improve())
        return Fitted(training.policy)


class _LookaheadTraining:
    def __init__(
        self, config: LookaheadConfig, train: TraceArrays, alpha: Fraction, seed: int
    ) -> None:
        self.config, self.train, self.alpha = config, train, alpha
        self.rng = np.random.default_rng(seed)
        self.space = recorded_space(config.space, train)
        self.items = items_of(train, self.space)
        self.sets = sets_of_next(self.space.lines, self.space.items, config.together)
        mean = train.cost_nano.sum() / max(train.made.sum(), 1)
        each = latency.relative(train)[:, self.space.cells].max(axis=3)
        self.wait_nano = config.wait_price * mean * each
        self.fold = self.rng.permutation(len(train)) % FOLDS
        self.cases = cases = some_states(self.items.offered, self.rng)
        self.features = CallFeatures.fit(train, cases.row, self.space.known(cases.bought))
        talk = self.space.lines == 1 and train.roles == AGENTS
        self.latent = fit_latent_difficulty(train) if talk else None
        self.outlook = outlooks(self.latent, train)
        self.lesson = self._taught(cases, None, 0.0)

    def improve(self) -> dict[str, float]:
        """Fit estimates to the lesson, and take the next lesson from where they lead."""
        parts = [self._fitted(self.fold[self.lesson.row] != k) for k in range(FOLDS)]
        if self.space.lines == 1:
            parts = self._mixed(parts)

        def judge(row: IntArray, bought: IntArray) -> tuple[FloatArray, FloatArray]:
            gain = np.zeros((len(row), self.space.lines))
            cost = np.ones_like(gain)
            for k, held_out in enumerate(parts):
                mine = np.flatnonzero(self.fold[row] == k)
                seen, step = self._look(row[mine], bought[mine]), bought[mine].sum(axis=1)
                linear = self._linear_features(row[mine], step, seen)
                told = held_out.predict(seen, linear, step)
                gain[mine], cost[mine] = (each[:, : self.space.lines] for each in told)
            return gain, cost

        visits = visited(self.items, ordered(self.items.offered, judge))
        price, figures = price_of_coverage(visits, self.train.solvable, self.alpha)
        self.policy = LookaheadPolicy(
            self.config.space,
            self.features,
            together(parts),
            price,
            self.latent,
            self.config.together,
        )
        self.lesson = self._taught(self.cases, judge, price)
        return figures

    def _look(self, row: IntArray, bought: IntArray) -> FloatArray:
        return self.features.look(self.train, row, self.space.known(bought))

    def _linear_features(self, row: IntArray, step: IntArray, seen: FloatArray) -> FloatArray:
        """Return what the linear model looks at: what the conversation's model expects, if any."""
        return seen if self.outlook is None else self.outlook[row, step]

    def _fitted(self, use: BoolArray) -> GainEstimate:
        from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 - training alone

        lesson = self.lesson
        unit = np.maximum(mean_where(lesson.cost, lesson.possible), 1.0)
        gain, cost, possible = lesson.gain[use], lesson.cost[use] / unit, lesson.possible[use]
        seen, steps = lesson.seen[use], self.space.steps
        forest = grown(
            seen,
            np.concatenate([gain, cost], axis=1),
            np.concatenate([possible, possible], axis=1),
            ExtraTreesRegressor(
                max(self.config.trees // FOLDS, 1),
                min_samples_leaf=self.config.leaf,
                max_features=0.5,
                random_state=int(self.rng.integers(2**31)),
            ),
        )
        weights = np.zeros((2, 0, 1))
        if self.space.lines == 1:
            row, step = lesson.row[use][possible[:, 0]], lesson.step[use][possible[:, 0]]
            linear = self._linear_features(row, step, seen[possible[:, 0]])
            strength = STRENGTH if self.outlook is None else OUTLOOK_STRENGTH
            target = np.stack([gain[possible], cost[possible]])
            weights = linear_weights(linear, step, steps, target, strength)
        return GainEstimate(forest, weights[0], weights[1], unit, share=1.0)

    def _mixed(self, parts: Sequence[GainEstimate]) -> list[GainEstimate]:
        """Mix forest and linear model so that gains of questions new to both are likeliest."""
        lesson = self.lesson
        likely = []
        for k, part in enumerate(parts):
            new = (self.fold[lesson.row] == k) & lesson.possible[:, 0]
            row, step, seen = lesson.row[new], lesson.step[new], lesson.seen[new]
            gains = part.gains(seen, self._linear_features(row, step, seen), step)
            likely.append(np.abs(gains - (lesson.gain[new, :1] == 0)))
        share = best_share(*np.concatenate(likely).T)
        return [replace(part, share=share) for part in parts]

    def _taught(self, cases: Cases, judge: Judge | None, price: float) -> "_PurchaseTargets":
        """Try every set of purchases in every case, and what the judge would buy after it."""
        shape = (len(cases.row), len(self.sets))
        gain, cost = np.zeros(shape), np.zeros(shape)
        left = self.items.offered.sum(axis=2)[cases.row] - cases.bought
        possible = ((self.sets <= left[:, None]) | (self.sets == 0)).all(axis=2)
        covered = self._covered(cases)
        for place, lines in enumerate(lines_of_sets(self.sets)[:-1]):
            can = possible[:, place]
            after = Cases(cases.row[can], cases.bought[can].copy())
            cost[can, place] = self._buy(after, np.tile(lines, (len(after.row), 1)))
            if judge is not None:
                cost[can, place] += self._follow(after, judge, price)
            gain[can, place] = self._covered(after) & ~covered[can]
        seen = self._look(cases.row, cases.bought)
        return _PurchaseTargets(cases.row, cases.bought.sum(axis=1), seen, gain, cost, possible)

    def _follow(self, cases: Cases, judge: Judge, price: float) -> FloatArray:
        """Buy on, in place, while it is worth its money; return what that costs, [R]."""
        spent = np.zeros(len(cases.row))
        live = np.arange(len(cases.row))
        while live.size:
            can = offered(self.items.offered, cases.row[live], cases.bought[live])
            live, can = live[can.any(axis=1)], can[can.any(axis=1)]
            line, worth = best_line(*judge(cases.row[live], cases.bought[live]), can)
            going = worth * price >= 1
            live, line = live[going], line[going]
            after = Cases(cases.row[live], cases.bought[live])
            spent[live] += self._buy(after, line[:, None])
            cases.bought[live] = after.bought
        return spent

    def _buy(self, cases: Cases, lines: IntArray) -> FloatArray:
        """Buy from lines, [R, J], in place and at once; return what that and the wait cost, [R]."""
        spent, wait = np.zeros(len(cases.row)), np.zeros(len(cases.row))
        for column in lines.T:
            made = np.flatnonzero(column != NOTHING)
            line = column[made]
            item = cases.row[made], line, cases.bought[made, line]
            spent[made] += self.items.cost_nano[item]
            wait[made] = np.maximum(wait[made], self.wait_nano[item])
            cases.bought[made, line] += 1
        return spent + wait

    def _covered(self, cases: Cases) -> BoolArray:
        right = self.train.correct.reshape(len(self.train), -1)[cases.row]
        covered: BoolArray = np.any(self.space.known(cases.bought) & right, axis=1)
        return covered


@dataclass(frozen=True)
class _PurchaseTargets:
    """What each set of purchases would have gained and cost in some cases."""

    row: IntArray
    """[R] the question of each case."""
    step: IntArray
    """[R] number of purchases made."""
    seen: FloatArray
    """[R, F] what is known."""
    gain: FloatArray
    """[R, A] 1 where a right answer comes that was not there."""
    cost: FloatArray
    """[R, A] in nano-dollars, with what waiting for it is worth."""
    possible: BoolArray
    """[R, A] whether it could be made."""


@dataclass(frozen=True)
class Visits:
    """What happens along an order of purchases."""

    cases: Cases
    """The states before each purchase, n * S of them."""
    reach: FloatArray
    """[n, S] the largest threshold on worth at which the purchase is made."""
    cost_nano: FloatArray
    """[n, S]"""
    right: BoolArray
    """[n, S] whether it brings a right answer."""


def visited(items: Items, order: Order) -> Visits:
    """Follow an order through every question, to the end."""
    n, steps = order.line.shape
    every = np.arange(n)
    bought = np.zeros((n, steps + 1, items.offered.shape[1]), dtype=np.int64)
    cost, right = np.zeros((n, steps)), np.zeros((n, steps), dtype=bool)
    for step, line in enumerate(order.line.T):
        bought[:, step + 1] = bought[:, step]
        row = every[line >= 0]
        item = row, line[row], bought[row, step, line[row]]
        cost[row, step], right[row, step] = items.cost_nano[item], items.correct[item]
        bought[row, step + 1, line[row]] += 1
    before = Cases(np.repeat(every, steps), bought[:, :-1].reshape(n * steps, -1))
    return Visits(before, np.minimum.accumulate(order.worth, axis=1), cost, right)


def price_of_coverage(
    visits: Visits, solvable: BoolArray, alpha: Fraction
) -> tuple[float, dict[str, float]]:
    """Return what a covered question costs at the margin, in nano-dollars, and how that goes.

    It is the inverse of the worth that must still be bought for the coverage aimed at.
    """
    critical = np.where(visits.right, visits.reach, -np.inf).max(axis=1)
    critical[~solvable] = np.inf
    threshold = float(np.sort(critical)[int(alpha * len(critical))])
    made = visits.reach >= threshold
    figures = {
        "cost": usd_from_nano((visits.cost_nano * made).sum(axis=1).mean()),
        "coverage": float((critical >= threshold).mean()),
    }
    most = visits.reach[:, 1:].max(initial=LEAST_WORTH)
    return 1.0 / max(min(threshold, most), LEAST_WORTH), figures


def some_states(on_offer: BoolArray, rng: np.random.Generator) -> Cases:
    """Return every state of every question where they are few, else some drawn at random."""
    n, lines, items = on_offer.shape
    if (items + 1) ** lines <= MOST_STATES:
        states = np.array(list(product(range(items + 1), repeat=lines)))[:-1]
        return Cases(np.repeat(np.arange(n), len(states)), np.tile(states, (n, 1)))
    row = np.repeat(np.arange(n), max(MOST_CASES // n, 4))
    size = rng.integers(0, lines * items, len(row))
    rank = rng.random((len(row), lines * items)).argsort(axis=1).argsort(axis=1)
    bought = (rank < size[:, None]).reshape(len(row), lines, items).sum(axis=2)
    return Cases(row, np.minimum(bought, on_offer.sum(axis=2)[row]))


LAZY_LEARNER = LookaheadLearner(LAZY)
LOOKAHEAD = Method(
    name="lookahead",
    label="Look-ahead",
    meaning="Goes on while the rounds to come gain most for their money",
    policy=LookaheadPolicy,
    learner=LookaheadLearner(),
    action_spaces=("rounds", "cascade"),
    imports=("sklearn.ensemble", "sklearn.linear_model"),
    tried_for=frozenset({"one", "set"}),
    place=70,
)


def where_independent(
    name: str, label: str, learner: Learner
) -> Callable[[Dataset], Sequence[Variant]]:
    """Return where a learner of single calls takes part: not where calls saw each other."""

    def variants(dataset: Dataset) -> Sequence[Variant]:
        if not dataset.traces.independent.all():
            note = "calls saw earlier ones, so none can be skipped"
            return [Variant(name, label, None, note)]
        return [Variant(name, label, learner)]

    return variants


CALL_BY_CALL = Method(
    name="lazy",
    label="Lazy (call by call)",
    meaning="Buys one call at a time: the one that gains most for its money, in any order",
    policy=LookaheadPolicy,
    learner=LAZY_LEARNER,
    action_spaces=("calls",),
    needs=("independent calls",),
    imports=("sklearn.ensemble", "sklearn.linear_model"),
    variants=where_independent("lazy", "Lazy (call by call)", LAZY_LEARNER),
    tried_for=frozenset({"one", "set"}),
    place=72,
)
