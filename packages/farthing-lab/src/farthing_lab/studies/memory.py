"""What to pay for memory: learn on graded questions, then put contexts together under a budget."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from farthing.errors import InputError
from farthing.money import NANO_PER_USD, dollars, usd_from_nano
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
from farthing_lab.studies.study import (
    Seed,
    StudyContext,
    StudyOption,
    StudyReport,
    usd,
    write_lines,
)
from farthing_lab.tasks.linked_facts import extract, linked_facts
from farthing_lab.tasks.local_search import LocalSearch, read_corpus

if TYPE_CHECKING:
    from farthing_lab.methods.agents.budget_mem.learner import Family

TIERS = ("low", "mid", "high")
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

    def measure(self, context: StudyContext) -> Record:
        from farthing_lab.methods.agents.budget_mem.learner import (  # noqa: PLC0415 - torch
            RouterLearner,
            fit_family,
        )

        if self.out is not None:
            context.check_file(self.out)
        world, learned, asked = self._questions(context)
        nano = int(self.budget * NANO_PER_USD)
        check_budget(nano, len(asked))
        tiers = context.progress("trying all tiers")
        table = tabulate(learned, world.search, world.reader, tiers)
        learner = RouterLearner(updates=self.updates, seed=self.seed)
        family = fit_family(table, learner=learner, progress=context.progress("training"))
        contexts, rows = put_together(world, table, family, asked, nano)
        context.remark(f"learned from {counted(len(learned), 'graded question')}")
        if self.out is not None:
            write_lines(
                self.out,
                (
                    {
                        "id": question.id,
                        "question": question.text,
                        "tiers": memory.said,
                        "cost_usd": usd_from_nano(memory.cost_nano),
                        "context": memory.context,
                    }
                    for question, memory in zip(asked, contexts, strict=True)
                ),
            )
            context.remark(f"contexts: {self.out}")
        return {
            "questions": len(asked),
            "learned_from": len(learned),
            "budget_usd": usd_from_nano(nano),
            "weight": family.weights[family.within(nano / len(asked))],
            "rows": rows,
        }

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

    def report(self, measured: Record) -> StudyReport:
        n = measured["questions"]

        def right(row: Record) -> str:
            mean = row["right"]
            if mean is None:
                return "not graded"
            return f"{100 * mean:.1f} ± {196 * sqrt(mean * (1 - mean) / n):.1f}"

        columns = (
            ("Memory", lambda row: row["name"] + (" *" if row["held"] else "")),
            usd("USD in all", "total_cost_usd"),
            usd("a question", "cost_usd"),
            ("right, %", right),
        )
        source = (self.documents or Path("made-up documents")).name
        budget = f"a budget of {dollars(int(self.budget * NANO_PER_USD))}"
        return StudyReport(
            f"{source}: {counted(n, 'question')}, {budget}",
            (Table(columns, measured["rows"]),),
            measured,
            KEY.format(counted(measured["learned_from"], "question")),
        )


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
) -> tuple[list[Remembered], list[Record]]:
    """Put contexts together for some questions: within the budget, and in other ways beside it.

    Returns:
        A context for each within the budget, and a row for each way, that one first. Where a
        question has no accepted answer, nobody knows how many contexts are right.
    """
    mean = budget_nano / len(asked)
    right, cost = table.right.mean(axis=0), table.cost_nano.mean(axis=0)
    fixed = int(np.where(cost <= max(mean, cost.min()), right - 1e-15 * cost, -1.0).argmax())
    ways: list[tuple[str, Choose, int | None]] = [
        ("BudgetMem", family.routers[family.within(mean)].choose, budget_nano),
        (f"fixed: {tier_names(tiers_of(fixed))}", Fixed(tiers_of(fixed)).choose, budget_nano),
    ]
    ways += [
        (f"BudgetMem, cost weighs {weights}", router.choose, None)
        for weights, router in _apart(family)
    ]
    ways += [
        (f"all {name}", Fixed((tier,) * len(MODULES)).choose, None)
        for tier, name in enumerate(TIERS)
    ]
    graded, contexts, rows = all(question.gold for question in asked), [], list[Record]()
    for name, choose, budget in ways:
        contexts.append(under(world, choose, asked, budget))
        known = [
            world.reader(question, memory.context)
            for question, memory in zip(asked, contexts[-1], strict=True)
            if graded
        ]
        total = usd_from_nano(sum(memory.cost_nano for memory in contexts[-1]))
        rows.append(
            {
                "name": name,
                "held": budget is not None,
                "total_cost_usd": total,
                "cost_usd": total / len(asked),
                "right": float(np.mean(known)) if graded else None,
            }
        )
    return contexts[0], rows


def _apart(family: "Family") -> list[tuple[str, Router]]:
    """Return each router once, with the weights that it is the best for."""
    apart: list[tuple[float, float, Router]] = []
    for weight, router in zip(family.weights, family.routers, strict=True):
        if apart and apart[-1][2] is router:
            apart[-1] = (apart[-1][0], weight, router)
        else:
            apart.append((weight, weight, router))
    return [(f"{a:g}" if a == b else f"{a:g} to {b:g}", router) for a, b, router in apart]


def tier_names(tiers: Sequence[int]) -> str:
    """Write tiers in a few letters, in the order of the modules.

    >>> tier_names((0, 1, 2, 1, 0))
    'low mid high mid low'
    """
    return " ".join(TIERS[tier] for tier in tiers)


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
