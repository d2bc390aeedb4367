"""How many samples each question gets before a vote: what that brings at equal samples.

Recorded samples are drawn in many orders. Whatever has to be learned is learned from the other half
of the questions. Intervals are over questions: orders of the same question are averaged first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isnan
from typing import Annotated, Any

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import Progress
from farthing.money import usd_from_nano
from farthing.promises.statistics.binomial import binomial_cdf
from farthing.reports.table import Heading, Record, Table, counted
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.grades.overlay import ungraded_questions
from farthing.traces.pool import leaders, sampled
from farthing_lab.methods.allocators.pets import FIRST, Pets, SamplingPlan
from farthing_lab.studies.study import (
    Seed,
    StudyContext,
    StudyOption,
    StudyReport,
    TracesFiles,
    file_names,
    mean_and_half,
    usd,
)

UNIFORM, ADAPTIVE = "the same for each", "adaptive consistency"
BATCH, STREAM = "PETS, as one batch", "PETS, one by one"
THRESHOLDS = 1.0 - np.geomspace(0.5, 1e-6, 80)
"""Of adaptive consistency: how sure it has to be that the leader stays."""


@dataclass(frozen=True)
class SelfConsistency:
    """Say how to share samples among questions before a vote, and what that brings.

    From recorded samples of one model: the same number for each, stopping once the leader is
    likely to stay, and PETS, which takes samples where they are likeliest to settle the vote; as
    one batch or one question after another. All take the same number on average.

    Example: farthing study samples samples.jsonl.gz --per-question 8
    """

    traces: TracesFiles
    per_question: Annotated[int, StudyOption("Samples on average.", least=1)] = 8
    orders: Annotated[int, StudyOption("Orders to draw samples in.", least=1)] = 20
    seed: Seed = 0

    def measure(self, context: StudyContext) -> Record:
        traces = context.read_samples(self.traces)
        ways, plan = compare(
            traces,
            self.per_question,
            orders=self.orders,
            seed=self.seed,
            progress=context.progress("drawing samples"),
        )
        return {
            "questions": len(traces),
            "per_question": self.per_question,
            "orders": self.orders,
            "rows": [way.record for way in ways],
            "plan": [
                {
                    "agree": bucket.agree,
                    "share": bucket.share,
                    "samples": sum(bucket.samples) / len(bucket.samples),
                    "slope": bucket.slope,
                    "offset": bucket.offset,
                }
                for bucket in (plan.buckets if plan else ())
            ],
        }

    def report(self, measured: Record) -> StudyReport:
        columns: list[Heading] = [
            ("Samples", lambda row: row["name"]),
            usd("USD a question", "cost_usd"),
            ("samples", lambda row: f"{row['samples']:.1f}"),
            (
                "right, %",
                lambda row: "not graded" if isnan(row["right"]) else _in_percent(row, "right"),
            ),
            ("vote of all, %", lambda row: _in_percent(row, "same_as_all")),
        ]
        stream = [f"  {_bucket(bucket)}" for bucket in reversed(measured["plan"])]
        if self.per_question >= FIRST:
            stream = [f"One by one: take {FIRST} samples; where of these", *stream]
        return StudyReport(
            f"{file_names(self.traces)}: {counted(measured['questions'], 'question')}, "
            f"{counted(self.per_question, 'sample')} each",
            (Table(columns, measured["rows"]), *stream),
            measured,
            f"Means over {counted(self.orders, 'order')}; ± half a 95 % interval over questions.",
        )


def _in_percent(row: Record, name: str) -> str:
    return f"{100 * row[name]:.1f} ± {100 * row[name + '_half_interval']:.1f}"


def _bucket(bucket: Record) -> str:
    mean, agreed = bucket["samples"], bucket["agree"]
    more = f"take {mean:.0f} in all" if round(mean) > FIRST else "stop"
    agree = {0: "none is an answer", 1: "no two agree"}.get(agreed, f"{agreed} agree")
    return f"{agree} ({bucket['share']:.1%} of questions): {more}"


@dataclass(frozen=True)
class Sampled:
    """What one way of sampling came to, each a value a question, [n], averaged over orders."""

    name: str
    samples: FloatArray
    cost_nano: FloatArray
    right: FloatArray
    """NaN where a sample of the question was not graded."""
    same: FloatArray
    """Whether the vote is that of all recorded samples."""

    @property
    def record(self) -> dict[str, Any]:
        (right, right_half), (same, same_half) = mean_and_half(self.right), mean_and_half(self.same)
        return {
            "name": self.name,
            "samples": float(self.samples.mean()),
            "cost_usd": usd_from_nano(float(self.cost_nano.mean())),
            "right": right,
            "right_half_interval": right_half,
            "same_as_all": same,
            "same_as_all_half_interval": same_half,
        }


Taken = Callable[[IntArray, IntArray], IntArray]
"""From other questions' samples, [m, K], and these, [n, K], to how many each of these gets, [n]."""


def compare(
    traces: TraceArrays, per_question: int, *, orders: int, seed: int, progress: Progress
) -> tuple[list[Sampled], SamplingPlan | None]:
    """Take samples in each way, in many orders, with so many a question at most on average.

    Returns:
        What each way came to, all recorded samples last, and the plan that was learned from all
        questions; None where a question gets too few samples to plan by.
    """
    answer, right, cost = sampled(traces)
    most = answer.shape[1]
    if not traces.complete.all():
        raise InputError("some questions lack samples; record as many for each question")
    if not 1 <= per_question < most or len(answer) < 4:
        raise InputError(
            f"{per_question} samples a question cannot be compared on {len(answer)} questions with "
            f"{most} each; give fewer than {most}, and at least 4 questions"
        )
    ways = _ways(per_question)
    rng = np.random.default_rng(seed)
    graded = np.where(ungraded_questions(traces)[:, None], np.nan, grades_by_answer(answer, right))
    vote = leaders(answer)[:, -1]
    sums = {name: np.zeros((4, len(answer))) for name in ways}
    for order in range(orders):
        drawn = permuted(rng, answer.shape)
        mixed, paid = np.take_along_axis(answer, drawn, 1), np.take_along_axis(cost, drawn, 1)
        lead, spent = leaders(mixed), np.cumsum(paid, axis=1)
        first, second = np.array_split(rng.permutation(len(answer)), 2)
        for name, taken in ways.items():
            k = np.zeros(len(answer), dtype=np.int64)
            for ours, others in ((first, second), (second, first)):
                k[ours] = taken(mixed[others], mixed[ours])
            rows = np.arange(len(answer)), k - 1
            sums[name] += k, spent[rows], graded[rows[0], lead[rows]], lead[rows] == vote
        progress.update(order + 1, orders, {})
    every = Sampled(
        "all that were recorded",
        *np.array(
            [
                np.full(len(answer), most),
                cost.sum(axis=1),
                graded[np.arange(len(answer)), vote],
                np.ones(len(answer)),
            ],
            dtype=np.float64,
        ),
    )
    plan = Pets().plan(answer, per_question) if per_question >= FIRST else None
    return [*(Sampled(name, *(sums[name] / orders)) for name in ways), every], plan


def adaptive(answer: IntArray, sure: float) -> IntArray:
    """Return when adaptive consistency stops, [n]: once the leader is likely enough to stay.

    With v1 votes of the leader and v2 of the next, P(p1 > p2) under a uniform prior is that of a
    Beta(v1 + 1, v2 + 1) variable above a half.

    Source: Aggarwal and others 2023, "Let's Sample Step by Step" (arXiv 2305.11860), its Beta rule.
    """
    return _first(surety(answer) >= sure)


def surety(answer: IntArray) -> FloatArray:
    """Return P(p1 > p2) after k samples, k = 1 to K, [n, K]."""
    n, most = answer.shape
    table = np.array(
        [[binomial_cdf(a, a + b + 1, 0.5) for b in range(most + 1)] for a in range(most + 1)]
    )
    counts = np.zeros((n, int(answer.max(initial=0)) + 3), dtype=np.int64)
    likely = np.zeros((n, most))
    for k in range(most):
        counts[np.arange(n), answer[:, k]] += answer[:, k] != NO_ANSWER
        top = np.partition(counts, -2, axis=1)[:, -2:]
        likely[:, k] = table[top[:, 1], top[:, 0]]
    return likely


def _ways(per_question: int) -> dict[str, Taken]:
    pets = Pets()

    def one_batch(_: IntArray, ours: IntArray) -> IntArray:
        streams: list[Iterator[int]] = [iter(row) for row in ours.tolist()]
        got = pets.buy(
            lambda i: next(streams[i]), len(ours), per_question * len(ours), ours.shape[1]
        )
        return np.array([len(answers) for answers in got])

    def stream(others: IntArray, ours: IntArray) -> IntArray:
        return pets.plan(others, per_question).stream(ours, per_question * len(ours))

    def adapted(others: IntArray, ours: IntArray) -> IntArray:
        sure = surety(others)
        means = np.array([_first(sure >= level).mean() for level in THRESHOLDS])
        within = np.flatnonzero(means <= per_question)
        return adaptive(ours, float(THRESHOLDS[within[-1] if within.size else 0]))

    ways: dict[str, Taken] = {
        UNIFORM: lambda _, ours: np.full(len(ours), per_question),
        ADAPTIVE: adapted,
        BATCH: one_batch,
    }
    return ways | ({STREAM: stream} if per_question >= FIRST else {})


def _first(stops: BoolArray) -> IntArray:
    """Return the number of the first sample after which it stops; of the last where never."""
    first: IntArray = np.where(stops.any(axis=1), stops.argmax(axis=1) + 1, stops.shape[1])
    return first


def grades_by_answer(answer: IntArray, right: BoolArray) -> BoolArray:
    """Return whether each answer of a question is right, [n, A + 1]; the last is no answer."""
    right_at = np.zeros((len(answer), int(answer.max(initial=0)) + 2), dtype=bool)
    right_at[np.arange(len(answer))[:, None], answer] = right
    right_at[:, NO_ANSWER] = False
    return right_at


def permuted(rng: np.random.Generator, shape: tuple[int, ...]) -> IntArray:
    """Return the places of samples in an order of its own for each question, [n, K]."""
    drawn: IntArray = rng.permuted(np.broadcast_to(np.arange(shape[1]), shape), axis=1)
    return drawn
