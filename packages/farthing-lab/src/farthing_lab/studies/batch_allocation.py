"""One budget for a batch of questions over a pool of models, beside what is done without looking.

Whoever is asked is chosen before anything is paid. What each row expects comes from the training
questions; where the batch is of recorded questions, what really came of it stands beside.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from farthing.errors import InputError
from farthing.methods.cards import system
from farthing.money import NANO_PER_USD, dollars, usd_from_nano
from farthing.recommendation.splits import Split, split_bundle_questions
from farthing.reports.table import Heading, Record, Table, counted
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
    interval,
    percent,
    right_interval,
    usd,
    write_lines,
)

KEY = (
    "By price alone: the same, but without reading the questions. Drawn at random: each model that "
    "leaves enough for the other questions is as likely."
)
STARRED = "* costs more than the budget"


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

    def measure(self, context: StudyContext) -> Record:
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
        nano = int(self.budget * NANO_PER_USD)
        ours, rows = allocate(
            estimates,
            batch,
            nano,
            allocator,
            at_most=self.at_most,
            recorded=recorded,
            seed=self.seed,
        )
        context.remark(f"learned from {counted(len(learned), 'recorded question')}")
        who = ours.choice.tolist()
        if self.out is not None:
            write_lines(
                self.out,
                (
                    {
                        "id": ids[i],
                        "model": estimates.models[k],
                        "chance": round(float(batch.value[i, k]), 6),
                        "expected_cost_usd": usd_from_nano(int(batch.expected_nano[i, k])),
                        "largest_cost_usd": usd_from_nano(int(batch.largest_nano[i, k])),
                    }
                    for i, k in enumerate(who)
                ),
            )
            context.remark(f"assignment: {self.out}")
        return {
            "questions": len(batch),
            "budget_usd": usd_from_nano(nano),
            "bound": ours.bound,
            "largest_cost_usd": rows[0]["largest_cost_usd"],
            "asked": {name: who.count(k) for k, name in enumerate(estimates.models)},
            "rows": rows,
        }

    def report(self, measured: Record) -> StudyReport:
        n, rows = measured["questions"], measured["rows"]
        source = self.questions.name if self.questions else file_names(self.traces)
        most = "at most, USD", "largest_cost_usd"
        cost = most if self.at_most else ("costs, USD", "expected_cost_usd")
        columns: list[Heading] = [
            ("Who answers", lambda row: row["name"] + (" *" if _exceeds(row) else "")),
            usd(*cost, 4, none="none fits"),
            percent("right", "expected_right", of=n),
        ]
        if "cost_usd" in rows[0]:
            columns += [
                usd("really, USD", "cost_usd", 4),
                percent("right", "right", of=n),
                interval("95 %", "right_interval"),
            ]
        starred = [] if all(row["within_budget"] for row in rows) else [STARRED]
        return StudyReport(
            f"{source}: {counted(n, 'question')}, a budget of "
            f"{dollars(int(self.budget * NANO_PER_USD))}",
            (
                Table(columns, rows, bold=(0,)),
                asked_of_each(measured["asked"]),
                (
                    f"{rows[0]['expected_right']:,.1f} right answers expected, at most "
                    f"{measured['bound']:,.1f} by any choice within the budget; the batch can "
                    f"cost up to {dollars(measured['largest_cost_usd'] * NANO_PER_USD)}."
                ),
            ),
            measured,
            "\n".join([KEY, *starred]),
        )


def _exceeds(row: Record) -> bool:
    return "expected_right" in row and not row["within_budget"]


def allocate(
    estimates: Estimates,
    batch: ItemBatch,
    budget_nano: int,
    allocator: Allocator,
    *,
    at_most: bool = False,
    recorded: TraceArrays | None = None,
    seed: int = 0,
) -> tuple[Allocation, list[Record]]:
    """Share a budget among questions, and lay what is done without looking beside it.

    Args:
        estimates: what each model is expected to cost and get right.
        batch: the same of each question.
        budget_nano: for all questions.
        allocator: who shares it.
        at_most: whether the largest costs are held to it, and not the expected ones.
        recorded: what really came of these questions; None where nobody knows.
        seed: of what is drawn.

    Returns:
        The allocation, and a row for each way to spend, the allocation's first. The interval is the
        exact 95 % one of the share of right answers.
    """
    held = batch.at_most() if at_most else batch
    ours = allocator.allocate(held, budget_nano)
    unread = replace(held, value=np.broadcast_to(estimates.mean, batch.value.shape))

    def row(name: str, choice: IntArray | None) -> Record:
        if choice is None:
            return {"name": name, "within_budget": False}
        spent = chosen(batch, choice, 0.0)
        said: dict[str, Any] = {
            "name": name,
            "within_budget": held.cost_of(choice) <= budget_nano,
            "expected_cost_usd": usd_from_nano(spent.expected_nano),
            "largest_cost_usd": usd_from_nano(spent.largest_nano),
            "expected_right": spent.value,
        }
        if recorded is not None:
            at = np.arange(len(recorded)), 0, choice
            right = int(recorded.correct[at].sum())
            said["cost_usd"] = usd_from_nano(int(recorded.cost_nano[at].sum()))
            said |= {"right": right, "right_interval": right_interval(right, len(recorded))}
        return said

    return ours, [
        row("allocated", ours.choice),
        row("by price alone", allocator.allocate(unread, budget_nano).choice),
        *(row(*one) for one in _one_model_for_all(held, estimates, budget_nano)),
        row("drawn at random", draw(held, budget_nano, seed)),
    ]


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
