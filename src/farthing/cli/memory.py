"""`farthing memory`: what to pay for putting contexts together from documents, under a budget."""

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farthing.cli import files
from farthing.cli.console import Learning, interruptible, remark, show, show_json, trainings
from farthing.cli.options import Json, Seed, read_usd
from farthing.reports.counted import counted

if TYPE_CHECKING:
    from farthing.studies.memory import World
    from farthing.tasks.base import Question

MADE_UP = 240
"""Questions about made-up documents."""


def memory(
    budget: Annotated[
        Fraction,
        typer.Option(parser=read_usd, metavar="USD", help="For all questions together; hard."),
    ],
    documents: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What is searched: JSON Lines with `title` and `text`. Without it, made-up "
            "documents of linked facts.",
        ),
    ] = None,
    graded: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Questions with accepted answers (`question`, `gold`) to learn by."
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The questions of the budget: JSON Lines with `question`. Without it, half of the "
            "graded ones, which nothing is learned from.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A context for each, as JSON Lines.")
    ] = None,
    updates: Annotated[
        int, typer.Option(min=1, metavar="N", help="Of each of the twelve trainings.")
    ] = 300,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Put a context together for each question from documents, and pay only for what it takes.

    Five modules (search, link, filter, rank, read) have three tiers each. On graded questions it
    learns which tiers a question takes (BudgetMem); then all contexts together stay within the
    budget. An answer counts as right where an accepted one stands in the context.

    Example: farthing memory --documents docs.jsonl --graded graded.jsonl
    --questions new.jsonl --budget 0.02 --out contexts.jsonl
    """
    from farthing.methods.agents.budget_mem.learner import Learner
    from farthing.money import NANO_PER_USD
    from farthing.reports import remembering as reports
    from farthing.studies import memory as remembering

    if out is not None:
        files.check_file(out)
    world, learned, asked = _given(documents, graded, questions, seed)
    nano = int(budget * NANO_PER_USD)
    remembering.check_budget(nano, len(asked))
    with interruptible("nothing was written"), trainings() as shown:
        found = remembering.study(
            world,
            learned,
            asked,
            nano,
            Learner(updates=updates, seed=seed),
            (Learning(shown, "trying all tiers"), Learning(shown, "training")),
        )
    remark(f"learned from {counted(found.learned, 'graded question')}")
    if out is not None:
        lines = [json.dumps(one, ensure_ascii=False) for one in reports.contexts(found, asked)]
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")
        remark(f"contexts: {out}")
    if as_json:
        show_json(reports.to_json(found))
    else:
        show(reports.screen(found, (documents or Path("made-up documents")).name))


def _given(
    documents: Path | None, graded: Path | None, questions: Path | None, seed: int
) -> "tuple[World, list[Question], list[Question]]":
    """Return what is searched and who reads, what is learned from, and what is asked."""
    import numpy as np

    from farthing.errors import InputError
    from farthing.studies.memory import World, follows, stands
    from farthing.tasks.linked_facts import linked_facts
    from farthing.tasks.local_search import LocalSearch, read_corpus
    from farthing.tasks.questions import load_questions

    rng = np.random.default_rng(seed)
    if documents is None:
        if graded is not None or questions is not None:
            raise InputError("these questions are about no documents; give --documents as well")
        made = linked_facts(MADE_UP, rng)
        remark("note: documents and questions are made up, as no --documents are given")
        world, known = World(LocalSearch(made.documents).find, follows), list(made.questions)
    else:
        if graded is None:
            raise InputError("there is nothing to learn from; give --graded, questions with `gold`")
        world = World(LocalSearch(read_corpus(documents)).find, stands)
        known = load_questions("text", graded)
        bare = [question.id for question in known if not question.gold]
        if bare:
            raise InputError(f"{graded}: question {bare[0]} has no accepted answer; give it `gold`")
    if questions is not None:
        return world, known, load_questions("text", questions, graded=False)
    if len(known) < 2:
        raise InputError("one graded question cannot be halved; give more, or --questions")
    order = rng.permutation(len(known))
    half = len(known) // 2
    return world, [known[i] for i in order[:half]], [known[i] for i in order[half:]]
