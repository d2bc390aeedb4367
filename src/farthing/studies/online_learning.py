"""Cold start on recorded questions: a bandit asks one model each, as if nothing were known yet.

The questions come in random order. Beside the bandit stand ways to spend the same money that learn
nothing, and two that know everything beforehand: the best mixture of models, and a policy that was
trained on these very questions with every model's grade.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.budgets.pacing.hindsight import optimum
from farthing.errors import InputError, MissingExtraError
from farthing.methods.bandits.base import FLOOR, Arm, Bandit, Choice, Session, begin, choose, settle
from farthing.methods.bandits.features import DIMENSIONS, features_of
from farthing.methods.bandits.off_policy import Log, Value, value_of
from farthing.methods.base import Progress, Silent, load
from farthing.methods.cards import card
from farthing.money import dollars
from farthing.promises.statistics.binomial import binomial_interval
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing.traces.pool import is_pool

SURE = 0.05
"""How often an interval may miss."""
TOLD = 50
"""Questions between two reports."""


@dataclass(frozen=True)
class Row:
    """One way to spend the budget."""

    name: str
    spent_nano: int
    answered: int
    """Questions that were answered before the money was gone."""
    right: float

    @property
    def interval(self) -> tuple[float, float] | None:
        """The exact 95 % interval of the share of right answers among those given."""
        return binomial_interval(round(self.right), self.answered, SURE) if self.answered else None


@dataclass(frozen=True)
class Judged:
    """What always asking one model would have come to, by the bandit's record alone."""

    model: str
    value: Value
    really: float
    """Share of the recorded answers that are right."""


@dataclass(frozen=True)
class Explored:
    """What came of a stream."""

    models: tuple[str, ...]
    questions: int
    budget_nano: int
    rows: tuple[Row, ...]
    """The bandit first."""
    session: Session
    """Where the bandit's stream ended."""
    ids: tuple[str, ...]
    """Of the questions that were asked, in their order."""
    choices: tuple[Choice, ...]
    """Of those questions."""
    log: Log | None
    """None where nothing could be asked."""
    really: tuple[float, ...]
    """Share of each model's recorded answers that are right."""

    def value_of(self, model: str) -> Judged:
        """Return what a model would have come to if asked for everything.

        Raises:
            InputError: there is no such model, or nothing was asked.
        """
        if model not in self.models:
            raise InputError(f"there is no model {model}; there are {', '.join(self.models)}")
        if self.log is None:
            raise InputError("the budget pays for no question; there is no record to judge by")
        at = self.models.index(model)
        return Judged(model, value_of(self.log, at, SURE), self.really[at])


@dataclass(frozen=True)
class Stream:
    """Questions in the order in which they come, with every model's grade and cost."""

    traces: TraceArrays
    arms: tuple[Arm, ...]
    features: FloatArray
    """[n, d]"""
    cost_nano: IntArray
    """[n, K]"""
    right: FloatArray
    """[n, K]"""
    seed: int
    """Of the order, and of what is drawn later."""

    def __len__(self) -> int:
        return len(self.traces)


def stream_of(traces: TraceArrays, seed: int) -> Stream:
    """Return the questions of a pool that every model answered, in random order.

    What a call should cost by its price list is taken to be its recorded mean.

    Raises:
        InputError: the questions are no pool, or none is whole and graded.
    """
    if not is_pool(traces):
        raise InputError(
            "these traces are no pool of models, one call of each model a question; collect one "
            "with `farthing collect`, or import one with `farthing traces import`"
        )
    whole = traces.made[:, 0].all(axis=1) & ~traces.ungraded[:, 0].any(axis=1)
    if not whole.any():
        raise InputError("no question has a graded answer of every model; record `gold`")
    rows = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(whole))
    found = traces.take(rows)
    cost = found.cost_nano[:, 0]
    largest = np.maximum(cost, found.largest_cost_nano[:, 0]).max(axis=0)
    arms = tuple(
        Arm(name, int(mean), int(most))
        for name, mean, most in zip(found.roles, cost.mean(axis=0), largest, strict=True)
    )
    texts = [""] * len(found) if found.question is None else found.question.tolist()
    groups = [(*found.group_names, "")[at] for at in found.group.tolist()]
    features = [features_of(*pair) for pair in zip(texts, groups, strict=True)]
    right = found.correct[:, 0].astype(np.float64)
    return Stream(found, arms, np.array(features).reshape(-1, DIMENSIONS), cost, right, seed)


def refuse(stream: Stream, budget_nano: int, model: str | None) -> None:
    """Refuse, before anything is asked, a budget that pays for no call, and an unknown model.

    Raises:
        InputError: it is so.
    """
    names = [arm.name for arm in stream.arms]
    if model is not None and model not in names:
        raise InputError(f"there is no model {model}; there are {', '.join(names)}")
    least = min(stream.arms, key=lambda arm: arm.largest_nano)
    if budget_nano < least.largest_nano:
        raise InputError(
            f"a budget of {dollars(budget_nano)} pays for no question; a call of {least.name} can "
            f"cost {dollars(least.largest_nano)}"
        )


def explore(
    stream: Stream,
    bandit: Bandit,
    budget_nano: int,
    *,
    name: str = "bandit",
    floor: float = FLOOR,
    progress: Progress | None = None,
) -> Explored:
    """Let a bandit spend a budget on a stream, and lay other ways beside it.

    Args:
        stream: the questions.
        bandit: who chooses, one question after another.
        budget_nano: for all of them.
        name: of the bandit, in the table.
        floor: least probability of a model that can be paid for.
        progress: is told how many questions were asked.

    Raises:
        InputError: the floor is too high, or the budget is nothing.
    """
    progress = progress or Silent()
    rng = np.random.default_rng([stream.seed, 2])
    session = begin(bandit, stream.arms, budget_nano, len(stream), DIMENSIONS, floor)
    choices, grades = list[Choice](), list[float]()
    for at in range(len(stream)):
        choice = choose(bandit, session, stream.features[at], rng)
        if choice is None:
            break
        choices.append(choice)
        grades.append(float(stream.right[at, choice.arm]))
        cost = int(stream.cost_nano[at, choice.arm])
        session = settle(bandit, choice.session, choice, grades[-1], cost)
        if at % TOLD == 0:
            progress.update(at, len(stream), {"cost": session.day.spent_nano / budget_nano})
    progress.update(len(stream), len(stream), {})
    mine = Row(name, session.day.spent_nano, len(choices), sum(grades))
    return Explored(
        models=stream.traces.roles,
        questions=len(stream),
        budget_nano=budget_nano,
        rows=(mine, *_others(stream, budget_nano)),
        session=session,
        ids=tuple(stream.traces.ids[: len(choices)].tolist()),
        choices=tuple(choices),
        log=Log.of(choices, grades) if choices else None,
        really=tuple(stream.right.mean(axis=0).tolist()),
    )


def _others(stream: Stream, budget_nano: int) -> list[Row]:
    n, mean = len(stream), stream.cost_nano.mean(axis=0)
    cheapest, strongest = int(mean.argmin()), int(stream.right.mean(axis=0).argmax())
    drawn = np.random.default_rng([stream.seed, 3]).integers(len(mean), size=n)
    rate = stream.right.mean(axis=0)[None], mean[None].astype(np.float64)
    best = optimum(*rate, budget_nano / n) * n
    spent = min(budget_nano, int(mean[strongest] * n))
    rows = [
        _until_gone("drawn at random", stream, drawn, budget_nano),
        _until_gone(
            f"cheapest: {stream.arms[cheapest].name}", stream, np.full(n, cheapest), budget_nano
        ),
        _until_gone(
            f"strongest: {stream.arms[strongest].name}", stream, np.full(n, strongest), budget_nano
        ),
        Row("best mixture, in hindsight", spent, n, best),
    ]
    after = fitted_on_everything(stream.traces, budget_nano, stream.seed)
    return rows if after is None else [*rows, after]


def fitted_on_everything(traces: TraceArrays, budget_nano: int, seed: int) -> Row | None:
    """Return a policy trained on these questions, with every grade, within a budget for them all.

    It is FrugalGPT, which reads the replies that it has paid for; of its settings the one that is
    right most often here. None where none fits, or what trains it is not installed.
    """
    method = card("frugal-gpt")
    try:
        fitted = load(method.learner).fit(traces, Fraction(1, 10), seed, Silent())
    except (ModuleNotFoundError, MissingExtraError):
        return None
    points = fitted.policy.points(traces)
    cost, right = points.cost_nano.sum(axis=0), points.correct.sum(axis=0)
    if cost.min() > budget_nano:
        return None
    at = int(np.where(cost <= budget_nano, right, -1).argmax())
    name = f"{method.label}, trained on all of it"
    return Row(name, int(cost[at]), len(traces), float(right[at]))


def _until_gone(name: str, stream: Stream, arms: IntArray, budget_nano: int) -> Row:
    """Ask these models one after another until one does not fit what is left."""
    rows = np.arange(len(stream))
    cost = stream.cost_nano[rows, arms]
    before = np.concatenate([[0], np.cumsum(cost)[:-1]])
    largest = np.array([arm.largest_nano for arm in stream.arms])[arms]
    stopped = before + largest > budget_nano
    n = int(stopped.argmax()) if stopped.any() else len(stream)
    return Row(name, int(cost[:n].sum()), n, float(stream.right[rows, arms][:n].sum()))
