"""What to pay for memory: learn on graded questions, then put contexts together under a budget."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import Progress
from farthing.money import NANO_PER_USD, dollars, significant, usd_from_nano
from farthing.reports.table import Record, Table, counted
from farthing.tasks.base import Question
from farthing.tasks.questions import load_questions
from farthing_lab.methods.agents.budget_mem.policy import (
    BUDGET_MEM,
    MODULES,
    Choose,
    Fixed,
    ParagraphSearch,
    Reader,
    Remembered,
    Router,
    TierTable,
    least_nano,
    tabulate,
    tiers_of,
)
from farthing_lab.studies.study import Seed, StudyContext, StudyOption, StudyReport
from farthing_lab.tasks.linked_facts import extract, linked_facts
from farthing_lab.tasks.local_search import LocalSearch, read_corpus

if TYPE_CHECKING:
    from farthing_lab.methods.agents.budget_mem.learner import Family, RouterLearner

MADE_UP = 240
"""Questions about made-up documents."""
KEY = (
    "* kept within the budget. Fixed: the tiers of search, link, filter, rank and read that were "
    "best within it on {} to learn from. ± half a 95 % interval."
)


@dataclass(frozen=True)
class MemoryTiers:
    """Put a context together for each question from documents, and pay only for what it takes.

    Five modules (search, link, filter, rank, read) have three tiers each. On graded questions it
    learns which tiers a question takes (BudgetMem); then all contexts together stay within the
    budget. An answer counts as right where an accepted one stands in the context.

    Example: farthing study memory --documents docs.jsonl --graded graded.jsonl
    --questions new.jsonl --budget 0.02 --out contexts.jsonl
    """

    budget: Annotated[Fraction, StudyOption("For all questions together; hard.")]
    documents: Annotated[
        Path | None,
        StudyOption(
            "What is searched: JSON Lines with `title` and `text`. Without it, made-up "
            "documents of linked facts."
        ),
    ] = None
    graded: Annotated[
        Path | None,
        StudyOption("Questions with accepted answers (`question`, `gold`) to learn by."),
    ] = None
    questions: Annotated[
        Path | None,
        StudyOption(
            "The questions of the budget: JSON Lines with `question`. Without it, half of the "
            "graded ones, which nothing is learned from."
        ),
    ] = None
    out: Annotated[Path | None, StudyOption("A context for each, as JSON Lines.")] = None
    updates: Annotated[int, StudyOption("Of each of the twelve trainings.", least=1)] = 300
    seed: Seed = 0

    def measure(self, context: StudyContext) -> "MemoryComparison":
        from farthing_lab.methods.agents.budget_mem.learner import RouterLearner  # noqa: PLC0415 - torch

        if self.out is not None:
            context.check_file(self.out)
        world, learned, asked = self._questions(context)
        nano = int(self.budget * NANO_PER_USD)
        progress = context.progress("trying all tiers"), context.progress("training")
        learner = RouterLearner(updates=self.updates, seed=self.seed)
        compared = compare_memories(world, learned, asked, nano, learner, progress)
        context.remark(f"learned from {counted(compared.learned, 'graded question')}")
        if self.out is not None:
            lines = [
                {
                    "id": question.id,
                    "question": question.text,
                    "tiers": memory.said,
                    "cost_usd": usd_from_nano(memory.cost_nano),
                    "context": memory.context,
                }
                for question, memory in zip(asked, compared.rows[0].remembered, strict=True)
            ]
            text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
            self.out.write_text(text + "\n", encoding="utf-8")
            context.remark(f"contexts: {self.out}")
        return compared

    def _questions(self, context: StudyContext) -> tuple["World", list[Question], list[Question]]:
        """Return what is searched and who reads, what is learned from, and what is asked."""
        rng = np.random.default_rng(self.seed)
        if self.documents is None:
            if self.graded is not None or self.questions is not None:
                raise InputError("these questions are about no documents; give --documents as well")
            made = linked_facts(MADE_UP, rng)
            context.remark("note: documents and questions are made up, as no --documents are given")
            world, known = World(LocalSearch(made.documents).find, follows), list(made.questions)
        else:
            if self.graded is None:
                raise InputError(
                    "there is nothing to learn from; give --graded, questions with `gold`"
                )
            world = World(LocalSearch(read_corpus(self.documents)).find, stands)
            known = load_questions("text", self.graded)
            bare = [question.id for question in known if not question.gold]
            if bare:
                raise InputError(
                    f"{self.graded}: question {bare[0]} has no accepted answer; give it `gold`"
                )
        if self.questions is not None:
            return world, known, load_questions("text", self.questions, graded=False)
        if len(known) < 2:
            raise InputError("one graded question cannot be halved; give more, or --questions")
        order = rng.permutation(len(known))
        half = len(known) // 2
        return world, [known[i] for i in order[:half]], [known[i] for i in order[half:]]

    def report(self, measured: "MemoryComparison") -> StudyReport:
        n = len(measured.rows[0].remembered)

        def right(record: Record) -> str:
            mean = record["right"]
            if mean is None:
                return "not graded"
            return f"{100 * mean:.1f} ± {196 * sqrt(mean * (1 - mean) / n):.1f}"

        table = Table(
            (
                ("Memory", lambda r: r["name"] + (" *" if r["held"] else "")),
                ("USD in all", lambda r: significant(r["total_cost_usd"])),
                ("a question", lambda r: significant(r["cost_usd"])),
                ("right, %", right),
            ),
            [row.record for row in measured.rows],
        )
        source = (self.documents or Path("made-up documents")).name
        return StudyReport(
            f"{source}: {counted(n, 'question')}, a budget of {dollars(measured.budget_nano)}",
            (table,),
            {
                "questions": n,
                "learned_from": measured.learned,
                "budget_usd": usd_from_nano(measured.budget_nano),
                "weight": measured.weight,
                "rows": table.records,
            },
            KEY.format(counted(measured.learned, "question")),
        )


@dataclass(frozen=True)
class MemoryRow:
    """What one way of paying for memory comes to on the questions that are asked."""

    name: str
    remembered: tuple[Remembered, ...]
    """One a question."""
    right: tuple[bool, ...] | None
    """Whether each is answered rightly; None where nobody knows."""
    held: bool = False
    """Whether it was held to the budget."""

    @property
    def cost_nano(self) -> int:
        """What all questions cost together, in nano-dollars."""
        return sum(memory.cost_nano for memory in self.remembered)

    @property
    def record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "held": self.held,
            "total_cost_usd": usd_from_nano(self.cost_nano),
            "cost_usd": usd_from_nano(self.cost_nano) / len(self.remembered),
            "right": None if self.right is None else float(np.mean(self.right)),
        }


@dataclass(frozen=True)
class MemoryComparison:
    """Every way of paying, the one within the budget first."""

    rows: tuple[MemoryRow, ...]
    budget_nano: int
    learned: int
    """Questions that were learned from."""
    weight: float
    """What cost weighs in the first row."""


@dataclass(frozen=True)
class World:
    """What is searched, and who reads."""

    search: ParagraphSearch
    reader: Reader


def follows(question: Question, context: str) -> bool:
    """Return whether a made-up question's whole chain of facts stands in the context."""
    return extract(question.text, context) in question.gold


def stands(question: Question, context: str) -> bool:
    """Return whether an accepted answer stands in the context, as words of its own.

    This is what a reader needs, and no proof that it would answer rightly.
    """
    text = context.casefold()
    return any(re.search(rf"\b{re.escape(g.casefold())}\b", text) for g in question.gold)


def compare_memories(
    world: World,
    graded: Sequence[Question],
    asked: Sequence[Question],
    budget_nano: int,
    learner: "RouterLearner",
    progress: tuple[Progress, Progress],
) -> MemoryComparison:
    """Learn what to pay for on graded questions, and put contexts together for others."""
    from farthing_lab.methods.agents.budget_mem.learner import fit_family  # noqa: PLC0415 - torch

    check_budget(budget_nano, len(asked))
    table = tabulate(graded, world.search, world.reader, progress[0])
    family = fit_family(table, learner=learner, progress=progress[1])
    return put_together(world, table, family, asked, budget_nano)


def check_budget(budget_nano: int, n: int) -> None:
    """Refuse a budget that does not pay for the low tiers of all questions."""
    least = least_nano(BUDGET_MEM.prices) * n
    if budget_nano < least:
        raise InputError(
            f"the budget is {dollars(budget_nano)}, and the low tiers of {n:,} questions can cost "
            f"{dollars(least)}; give at least that, or fewer questions"
        )


def put_together(
    world: World, table: TierTable, family: "Family", asked: Sequence[Question], budget_nano: int
) -> MemoryComparison:
    """Put contexts together for some questions: within the budget, and in other ways beside it."""
    mean = budget_nano / len(asked)
    own = family.within(mean)
    right, cost = table.right.mean(axis=0), table.cost_nano.mean(axis=0)
    fixed = int(np.where(cost <= max(mean, cost.min()), right - 1e-15 * cost, -1.0).argmax())
    ways: list[tuple[str, Choose, int | None]] = [
        ("BudgetMem", family.routers[own].choose, budget_nano),
        (f"fixed: {tier_names(tiers_of(fixed))}", Fixed(tiers_of(fixed)).choose, budget_nano),
    ]
    ways += [
        (f"BudgetMem, cost weighs {weights}", router.choose, None)
        for weights, router in _apart(family)
    ]
    ways += [(f"all {name}", Fixed((k,) * len(MODULES)).choose, None) for k, name in _ALIKE]
    rows = [_row(world, name, choose, asked, budget) for name, choose, budget in ways]
    return MemoryComparison(tuple(rows), budget_nano, len(table), family.weights[own])


def _apart(family: "Family") -> list[tuple[str, Router]]:
    """Return each router once, with the weights that it is the best for."""
    apart: list[tuple[float, float, Router]] = []
    for weight, router in zip(family.weights, family.routers, strict=True):
        if apart and apart[-1][2] is router:
            apart[-1] = (apart[-1][0], weight, router)
        else:
            apart.append((weight, weight, router))
    return [(f"{a:g}" if a == b else f"{a:g} to {b:g}", router) for a, b, router in apart]


_ALIKE = ((0, "low"), (1, "mid"), (2, "high"))


def tier_names(tiers: Sequence[int]) -> str:
    """Write tiers in a few letters, in the order of the modules.

    >>> tier_names((0, 1, 2, 1, 0))
    'low mid high mid low'
    """
    return " ".join(("low", "mid", "high")[tier] for tier in tiers)


def under(
    world: World, choose: Choose, asked: Sequence[Question], budget_nano: int | None
) -> list[Remembered]:
    """Put contexts together one after another; each leaves the low tiers of all that follow."""
    done: list[Remembered] = []
    left = budget_nano
    for following in range(len(asked) - 1, -1, -1):
        question = asked[len(done)]
        room = None if left is None else left - following * least_nano(BUDGET_MEM.prices)
        done.append(BUDGET_MEM.remember(question.text, world.search, choose, room))
        left = None if left is None else left - done[-1].cost_nano
    return done


def _row(
    world: World,
    name: str,
    choose: Choose,
    asked: Sequence[Question],
    budget_nano: int | None,
) -> MemoryRow:
    done = under(world, choose, asked, budget_nano)
    right = None
    if all(question.gold for question in asked):
        pairs = zip(asked, done, strict=True)
        right = tuple(world.reader(question, memory.context) for question, memory in pairs)
    return MemoryRow(name, tuple(done), right, budget_nano is not None)
