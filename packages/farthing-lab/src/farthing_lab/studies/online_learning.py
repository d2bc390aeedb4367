"""Cold start on recorded questions: a bandit asks one model each, as if nothing were known yet.

The questions come in random order. Beside the bandit stand ways to spend the same money that learn
nothing, and two that know everything beforehand: the best mixture of models, and a policy that was
trained on these very questions with every model's grade.
"""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import Progress, Silent, load
from farthing.methods.cards import card, system
from farthing.money import NANO_PER_USD, dollars, usd_from_nano
from farthing.reports.table import Heading, Record, Table, counted
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing.traces.files import check_suffix, read_all_records, write_traces
from farthing.traces.pool import is_pool
from farthing_lab.methods.allocators.lagrangian import optimum
from farthing_lab.methods.bandits.base import (
    DIMENSIONS,
    FLOOR,
    Arm,
    ArmChoice,
    Bandit,
    BanditSession,
    begin,
    choose,
    features_of,
    settle,
)
from farthing_lab.methods.bandits.off_policy import PropensityLog, recorded, value_of
from farthing_lab.studies.study import (
    LEVEL,
    Seed,
    StudyContext,
    StudyOption,
    StudyReport,
    TracesFiles,
    asked_of_each,
    file_names,
    interval,
    right_interval,
    usd,
)

REPORT_EVERY = 50
"""Questions between two reports of progress."""
KEY = (
    "In hindsight: models mixed as a linear program would, knowing all grades. Of all: what is not "
    "answered counts as not right."
)


@dataclass(frozen=True)
class OnlineLearning:
    """Start with no traces: learn which model to ask from grades as they come, under a budget.

    Recorded questions come one by one, in random order. Each goes to one model, drawn with a
    known probability, whose grade is all that is learned. Beside it: what the same money brings
    without learning, and what those bring who knew all grades beforehand.

    Example: farthing study explore pool.jsonl.gz --budget 0.50 --value-of gpt-4o
    """

    traces: TracesFiles
    budget: Annotated[Fraction, StudyOption("For all questions together.")]
    bandit: Annotated[str, StudyOption("Who learns.", complete="bandits")] = "squarecb"
    floor: Annotated[
        float, StudyOption("Least probability of a model that can be paid for.", metavar="P")
    ] = FLOOR
    value_of: Annotated[
        str | None, StudyOption("Say what this model would have come to alone.", metavar="MODEL")
    ] = None
    log: Annotated[
        Path | None, StudyOption("Write what was asked as traces, with propensities.")
    ] = None
    seed: Seed = 0

    def measure(self, context: StudyContext) -> Record:
        if self.log is not None:
            context.check_file(self.log)
            check_suffix(self.log)
        bandit: Bandit = system("bandit", self.bandit)
        arrays = context.read_traces(*self.traces)
        context.check_costs(arrays)
        stream, nano = stream_of(arrays, self.seed), int(self.budget * NANO_PER_USD)
        names = [arm.name for arm in stream.arms]
        if self.value_of is not None and self.value_of not in names:
            raise InputError(f"there is no model {self.value_of}; there are {', '.join(names)}")
        least = min(stream.arms, key=lambda arm: arm.largest_nano)
        if nano < least.largest_nano:
            raise InputError(
                f"a budget of {dollars(nano)} pays for no question; a call of {least.name} can "
                f"cost {dollars(least.largest_nano)}"
            )
        if lacking := len(arrays) - len(stream):
            context.remark(
                f"note: {lacking:,} questions lack a graded answer of some model and are left out"
            )
        session, choices, rows = explore(
            stream,
            bandit,
            nano,
            name=self.bandit,
            floor=self.floor,
            progress=context.progress("asking"),
        )
        if self.log is not None:
            traces, ids = read_all_records(self.traces)[0], stream.traces.ids[: len(choices)]
            write_traces(self.log, recorded(traces, ids.tolist(), choices))
            context.remark(f"record: {self.log}")
        found: dict[str, Any] = {
            "questions": len(stream),
            "budget_usd": usd_from_nano(nano),
            "asked": dict(zip(names, session.calls.tolist(), strict=True)),
            "rows": rows,
        }
        if self.value_of is not None:
            arm = names.index(self.value_of)
            grades = stream.right[range(len(choices)), [choice.arm for choice in choices]]
            value = value_of(PropensityLog.of(choices, grades.tolist()), arm, LEVEL)
            found["value_of"] = {
                "model": self.value_of,
                "estimate": value.estimate,
                "interval": [value.low, value.high],
                "agreed": value.agreed,
                "questions": value.questions,
                "really": float(stream.right[:, arm].mean()),
            }
        return found

    def report(self, measured: Record) -> StudyReport:
        n = measured["questions"]
        columns: list[Heading] = [
            ("Who answers", lambda row: row["name"]),
            usd("spent, USD", "spent_usd", 4),
            ("answered", lambda row: f"{row['answered']:,}"),
            (
                "right",
                lambda row: f"{row['right'] / row['answered']:.1%}" if row["answered"] else "",
            ),
            ("of all", lambda row: f"{row['right'] / n:.1%}" if row["answered"] else ""),
            interval("95 % of right", "right_interval"),
        ]
        said = [_in_words(measured["value_of"])] if "value_of" in measured else []
        budget = f"a budget of {dollars(int(self.budget * NANO_PER_USD))}"
        return StudyReport(
            f"{file_names(self.traces)}: {counted(n, 'question')}, {budget}",
            (
                Table(columns, measured["rows"], bold=(0,)),
                asked_of_each(measured["asked"]),
                *said,
            ),
            measured,
            KEY,
        )


def _in_words(value: Record) -> str:
    model, (low, high) = value["model"], value["interval"]
    if value["estimate"] is None:
        return f"{model} was never drawn while the budget allowed it; nothing is known."
    return (
        f"By this record alone {model}, asked for everything, is right on "
        f"{value['estimate']:.1%} (95 %: {low:.1%} to {high:.1%}); it was drawn on "
        f"{value['agreed']:,} of {counted(value['questions'], 'question')}. "
        f"Really it is {value['really']:.1%}."
    )


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
    taken = traces.take(rows)
    cost = taken.cost_nano[:, 0]
    largest = np.maximum(cost, taken.largest_cost_nano[:, 0]).max(axis=0)
    arms = tuple(
        Arm(name, int(mean), int(most))
        for name, mean, most in zip(taken.roles, cost.mean(axis=0), largest, strict=True)
    )
    texts = [""] * len(taken) if taken.question is None else taken.question.tolist()
    groups = [(*taken.group_names, "")[at] for at in taken.group.tolist()]
    features = [features_of(*pair) for pair in zip(texts, groups, strict=True)]
    right = taken.correct[:, 0].astype(np.float64)
    return Stream(taken, arms, np.array(features).reshape(-1, DIMENSIONS), cost, right, seed)


def explore(
    stream: Stream,
    bandit: Bandit,
    budget_nano: int,
    *,
    name: str = "bandit",
    floor: float = FLOOR,
    progress: Progress | None = None,
) -> tuple[BanditSession, list[ArmChoice], list[Record]]:
    """Let a bandit spend a budget on a stream, and lay other ways beside it.

    Returns:
        Where its stream ended, what it chose, and a row for each way to spend, its own first.
    """
    progress = progress or Silent()
    rng = np.random.default_rng([stream.seed, 2])
    session = begin(bandit, stream.arms, budget_nano, len(stream), DIMENSIONS, floor)
    choices, right = list[ArmChoice](), 0.0
    for at in range(len(stream)):
        choice = choose(bandit, session, stream.features[at], rng)
        if choice is None:
            break
        choices.append(choice)
        grade = float(stream.right[at, choice.arm])
        right += grade
        cost = int(stream.cost_nano[at, choice.arm])
        session = settle(bandit, choice.session, choice, grade, cost)
        if at % REPORT_EVERY == 0:
            progress.update(at, len(stream), {"cost": session.day.spent_nano / budget_nano})
    progress.update(len(stream), len(stream), {})
    mine = _row(name, session.day.spent_nano, len(choices), right)
    return session, choices, [mine, *_others(stream, budget_nano)]


def _row(name: str, spent_nano: int, answered: int, right: float) -> Record:
    """Return one way to spend: what it came to before the money was gone.

    The exact 95 % interval is of the right answers among those given.
    """
    return {
        "name": name,
        "spent_usd": usd_from_nano(spent_nano),
        "answered": answered,
        "right": right,
        "right_interval": right_interval(right, answered) if answered else None,
    }


def _others(stream: Stream, budget_nano: int) -> list[Record]:
    n, mean = len(stream), stream.cost_nano.mean(axis=0)
    cheapest, strongest = int(mean.argmin()), int(stream.right.mean(axis=0).argmax())
    rate = stream.right.mean(axis=0)[None], mean[None].astype(np.float64)
    best = optimum(*rate, budget_nano / n) * n
    drawn = np.random.default_rng([stream.seed, 3]).integers(len(mean), size=n)
    ways = {
        "drawn at random": drawn,
        f"cheapest: {stream.arms[cheapest].name}": np.full(n, cheapest),
        f"strongest: {stream.arms[strongest].name}": np.full(n, strongest),
    }
    return [
        *(_until_gone(name, stream, arms, budget_nano) for name, arms in ways.items()),
        _row("best mixture, in hindsight", min(budget_nano, int(mean[strongest] * n)), n, best),
        *fitted_on_everything(stream.traces, budget_nano, stream.seed),
    ]


def fitted_on_everything(traces: TraceArrays, budget_nano: int, seed: int) -> list[Record]:
    """Return a policy trained on these questions, with every grade, within a budget for them all.

    It is FrugalGPT, which reads the replies that it has paid for; of its settings the one that is
    right most often here. Nothing where none fits.
    """
    method = card("frugal-gpt")
    fitted = load(method.learner).fit(traces, Fraction(1, 10), seed, Silent())
    points = fitted.policy.points(traces)
    cost, right = points.cost_nano.sum(axis=0), points.correct.sum(axis=0)
    if cost.min() > budget_nano:
        return []
    at = int(np.where(cost <= budget_nano, right, -1).argmax())
    name = f"{method.label}, trained on all of it"
    return [_row(name, int(cost[at]), len(traces), float(right[at]))]


def _until_gone(name: str, stream: Stream, arms: IntArray, budget_nano: int) -> Record:
    rows = np.arange(len(stream))
    cost = stream.cost_nano[rows, arms]
    before = np.concatenate([[0], np.cumsum(cost)[:-1]])
    largest = np.array([arm.largest_nano for arm in stream.arms])[arms]
    stopped = before + largest > budget_nano
    n = int(stopped.argmax()) if stopped.any() else len(stream)
    return _row(name, int(cost[:n].sum()), n, float(stream.right[rows, arms][:n].sum()))
