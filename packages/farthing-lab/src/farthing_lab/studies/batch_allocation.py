"""One budget for a batch of questions over a pool of models, beside what is done without looking.

Whoever is asked is chosen before anything is paid. What each row expects comes from the training
questions; where the batch is of recorded questions, what really came of it stands beside.
"""

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from farthing.errors import InputError
from farthing.methods.cards import system
from farthing.money import NANO_PER_USD, dollars, significant, usd_from_nano
from farthing.recommendation.splits import Split, split_bundle_questions
from farthing.reports.table import Heading, Table, counted, share_interval
from farthing.tasks.questions import load_questions
from farthing.traces.arrays import IntArray, TraceArrays
from farthing.traces.eligibility import common
from farthing.traces.grades.overlay import ungraded_questions
from farthing_lab.features.question import QuestionFeatures
from farthing_lab.methods.allocators.base import (
    Allocation,
    Allocator,
    Estimates,
    ItemBatch,
    chosen,
    fit_estimates,
    room_nano,
)
from farthing_lab.studies.study import (
    Seed,
    StudyContext,
    StudyOption,
    StudyReport,
    TracesFiles,
    asked_of_each,
    file_names,
    right_interval,
)

KEY = (
    "By price alone: the same, but without reading the questions. Drawn at random: each model that "
    "leaves enough for the other questions is as likely."
)


@dataclass(frozen=True)
class BatchAllocation:
    """Share one budget among the questions of a batch: who answers which, before any is asked.

    From recorded runs of several models it learns how likely each is right on a question, by the
    question's words and group, and what it costs. Then each question gets one model, so that most
    right answers are expected for the money.

    Example: farthing study allocate pool.jsonl.gz --questions new.jsonl --budget 5.00
    --out assignment.jsonl
    """

    traces: TracesFiles
    budget: Annotated[Fraction, StudyOption("For the whole batch.")]
    questions: Annotated[
        Path | None,
        StudyOption(
            "The batch: JSON Lines with `id`, `question` and perhaps `group`. Without it, "
            "recorded questions that nothing is learned from."
        ),
    ] = None
    out: Annotated[Path | None, StudyOption("Who answers what, as JSON Lines.")] = None
    allocator: Annotated[str, StudyOption("Who shares the budget.", complete="allocators")] = (
        "lagrangian"
    )
    at_most: Annotated[
        bool,
        StudyOption("Hold the largest costs to the budget, not the expected.", flag="--at-most"),
    ] = False
    seed: Seed = 0

    def measure(self, context: StudyContext) -> "AllocatedBatch":
        if self.out is not None:
            context.check_file(self.out)
        allocator: Allocator = system("allocator", self.allocator)
        learned, asked_of = common(context.read_traces(*self.traces))
        if asked_of is not None:
            context.remark(f"note: {asked_of.note()}")
        context.check_costs(learned)
        recorded = None
        if self.questions is None:
            learned, recorded = _held_out(learned, self.seed)
            ids, asked = recorded.ids.tolist(), QuestionFeatures.of(recorded)
        else:
            batch_questions = load_questions("text", self.questions, graded=False)
            ids = [question.id for question in batch_questions]
            asked = QuestionFeatures(
                tuple(question.text for question in batch_questions),
                tuple(question.group or "" for question in batch_questions),
            )
        estimates = fit_estimates(learned)
        batch = estimates.batch(asked, None if recorded is None else recorded.made[:, 0])
        if recorded is not None and (lacking := int(ungraded_questions(recorded).sum())):
            context.remark(
                f"note: {lacking:,} of the batch's {counted(len(recorded), 'question')} have "
                "answers that nobody graded, so what really came of it is not shown"
            )
            recorded = None
        budget = BatchBudget(int(self.budget * NANO_PER_USD), self.at_most)
        allocated = allocate(estimates, batch, budget, allocator, recorded=recorded, seed=self.seed)
        context.remark(f"learned from {counted(len(learned), 'recorded question')}")
        if self.out is not None:
            lines = [json.dumps(line, ensure_ascii=False) for line in allocated.assignments(ids)]
            self.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
            context.remark(f"assignment: {self.out}")
        return allocated

    def report(self, measured: "AllocatedBatch") -> StudyReport:
        n, allocation, rows = len(measured.batch), measured.allocation, measured.rows
        source = self.questions.name if self.questions else file_names(self.traces)
        calls = np.bincount(allocation.choice, minlength=len(measured.models)).tolist()
        table = Table(_columns(measured), [row.record for row in rows], bold=(0,))
        starred = [] if all(row.within for row in rows) else ["* costs more than the budget"]
        return StudyReport(
            f"{source}: {counted(n, 'question')}, a budget of {dollars(measured.budget.nano)}",
            (
                table,
                asked_of_each(measured.models, calls),
                (
                    f"{allocation.value:,.1f} right answers expected, at most "
                    f"{allocation.bound:,.1f} by any choice within the budget; the batch can "
                    f"cost up to {dollars(allocation.largest_nano)}."
                ),
            ),
            {
                "questions": n,
                "budget_usd": usd_from_nano(measured.budget.nano),
                "bound": allocation.bound,
                "largest_cost_usd": usd_from_nano(allocation.largest_nano),
                "asked": dict(zip(measured.models, calls, strict=True)),
                "rows": table.records,
            },
            "\n".join([KEY, *starred]),
        )


@dataclass(frozen=True)
class BatchBudget:
    """What a batch may cost, and which of its costs are held to it."""

    nano: int
    at_most: bool = False
    """Whether the largest costs are held to it, and not the expected ones."""

    def held(self, batch: ItemBatch) -> ItemBatch:
        """Return the batch with the costs that are held to it as the expected ones."""
        return batch.at_most() if self.at_most else batch


@dataclass(frozen=True)
class AllocationRow:
    """One way to spend, on the whole batch."""

    name: str
    allocation: Allocation | None
    """None: it costs more than the budget, or some question lacks its model."""
    within: bool
    """Whether what is held to the budget is within it."""
    cost_nano: int | None = None
    """What the recorded answers really cost; None where nobody knows."""
    right: int = 0
    """How many of them are right."""
    questions: int = 0

    @property
    def record(self) -> dict[str, Any]:
        """The row for JSON; the interval is the exact 95 % one of the share of right answers."""
        record: dict[str, Any] = {"name": self.name, "within_budget": self.within}
        if self.allocation is not None:
            record["expected_cost_usd"] = usd_from_nano(self.allocation.expected_nano)
            record["largest_cost_usd"] = usd_from_nano(self.allocation.largest_nano)
            record["expected_right"] = self.allocation.value
        if self.cost_nano is not None:
            record["cost_usd"] = usd_from_nano(self.cost_nano)
            record["right"] = self.right
            record["right_interval"] = right_interval(self.right, self.questions)
        return record


@dataclass(frozen=True)
class AllocatedBatch:
    """An allocation and what it is beside."""

    models: tuple[str, ...]
    batch: ItemBatch
    budget: BatchBudget
    allocation: Allocation
    rows: tuple[AllocationRow, ...]
    """The allocation first."""

    def assignments(self, ids: list[str]) -> list[dict[str, Any]]:
        """Return a record for each question: who answers it."""
        batch = self.batch
        return [
            {
                "id": ids[i],
                "model": self.models[k],
                "chance": round(float(batch.value[i, k]), 6),
                "expected_cost_usd": usd_from_nano(int(batch.expected_nano[i, k])),
                "largest_cost_usd": usd_from_nano(int(batch.largest_nano[i, k])),
            }
            for i, k in enumerate(self.allocation.choice.tolist())
        ]


def allocate(
    estimates: Estimates,
    batch: ItemBatch,
    budget: BatchBudget,
    allocator: Allocator,
    *,
    recorded: TraceArrays | None = None,
    seed: int = 0,
) -> AllocatedBatch:
    """Share a budget among questions, and lay what is done without looking beside it."""
    held = budget.held(batch)
    ours = allocator.allocate(held, budget.nano)
    unread = replace(held, value=np.broadcast_to(estimates.mean, batch.value.shape))
    choices: list[tuple[str, IntArray | None]] = [
        ("allocated", ours.choice),
        ("by price alone", allocator.allocate(unread, budget.nano).choice),
        *_one_model_for_all(held, estimates, budget.nano),
        ("drawn at random", draw(held, budget.nano, seed)),
    ]
    rows = []
    for name, choice in choices:
        if choice is None:
            rows.append(AllocationRow(name, None, within=False))
            continue
        within, spent = held.cost_of(choice) <= budget.nano, chosen(batch, choice, 0.0)
        if recorded is None:
            rows.append(AllocationRow(name, spent, within))
        else:
            at, n = (np.arange(len(recorded)), 0, choice), len(recorded)
            cost, right = int(recorded.cost_nano[at].sum()), int(recorded.correct[at].sum())
            rows.append(AllocationRow(name, spent, within, cost, right, n))
    allocation = chosen(batch, ours.choice, ours.bound)
    return AllocatedBatch(estimates.models, batch, budget, allocation, tuple(rows))


def draw(batch: ItemBatch, budget_nano: int, seed: int) -> IntArray:
    """Draw each question's option among those that leave enough for the rest, in random order."""
    room = room_nano(batch, budget_nano)
    rng = np.random.default_rng(seed)
    choice = batch.cheapest
    extra = batch.expected_nano - batch.expected_nano[np.arange(len(batch)), choice][:, None]
    for item in rng.permutation(len(batch)).tolist():
        fitting = np.flatnonzero(batch.offered[item] & (extra[item] <= room))
        choice[item] = rng.choice(fitting)
        room -= int(extra[item, choice[item]])
    return choice


def _one_model_for_all(
    batch: ItemBatch, estimates: Estimates, budget_nano: int
) -> list[tuple[str, IntArray | None]]:
    full = [m for m in range(len(estimates.models)) if batch.offered[:, m].all()]
    cost = batch.expected_nano.sum(axis=0)
    within = [m for m in full if cost[m] <= budget_nano]
    models = {
        "best affordable model": max(
            within, key=lambda m: (estimates.mean[m], -cost[m]), default=None
        ),
        "cheapest model": min(full, key=lambda m: cost[m], default=None),
        "strongest model": max(full, key=lambda m: estimates.mean[m], default=None),
    }
    return [
        (what, None) if m is None else (f"{what}: {estimates.models[m]}", np.full(len(batch), m))
        for what, m in models.items()
    ]


def _held_out(arrays: TraceArrays, seed: int) -> tuple[TraceArrays, TraceArrays]:
    if len(arrays) < 3:
        raise InputError(
            f"{counted(len(arrays), 'recorded question')} cannot be divided into some to learn "
            "from and a batch; record more, or give --questions"
        )
    parts = split_bundle_questions(arrays, Split(seed))
    learned = np.sort(np.concatenate([parts.train, parts.calibrate]))
    return arrays.take(learned), arrays.take(parts.test)


def _columns(measured: AllocatedBatch) -> list[Heading]:
    n = len(measured.batch)
    heading, cost = ("costs, USD", "expected_cost_usd")
    if measured.budget.at_most:
        heading, cost = ("at most, USD", "largest_cost_usd")
    none_fits = "expected_right"
    columns: list[Heading] = [
        (
            "Who answers",
            lambda r: r["name"] + (" *" if none_fits in r and not r["within_budget"] else ""),
        ),
        (heading, lambda r: significant(r[cost], 4) if none_fits in r else "none fits"),
        ("right", lambda r: f"{r['expected_right'] / n:.1%}" if none_fits in r else ""),
    ]
    if measured.rows[0].cost_nano is not None:
        columns += [
            ("really, USD", lambda r: significant(r["cost_usd"], 4) if "cost_usd" in r else ""),
            ("right", lambda r: f"{r['right'] / n:.1%}" if "right" in r else ""),
            ("95 %", lambda r: share_interval(r.get("right_interval"))),
        ]
    return columns
