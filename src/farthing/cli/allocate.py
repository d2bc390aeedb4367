"""`farthing allocate`: one budget for a batch of questions; who answers which."""

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farthing.cli import completion, files
from farthing.cli.console import interruptible, remark, show, show_json
from farthing.cli.options import Json, Seed, TracesFiles, read_usd
from farthing.reports.counted import counted

if TYPE_CHECKING:
    from farthing.features.question import QuestionFeatures
    from farthing.traces.arrays import TraceArrays


def allocate(
    traces: TracesFiles,
    budget: Annotated[
        Fraction,
        typer.Option(parser=read_usd, metavar="USD", help="For the whole batch."),
    ],
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The batch: JSON Lines with `id`, `question` and perhaps `group`. Without it, "
            "recorded questions that nothing is learned from.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who answers what, as JSON Lines.")
    ] = None,
    allocator: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Who shares the budget.", autocompletion=completion.allocators
        ),
    ] = "lagrangian",
    at_most: Annotated[
        bool,
        typer.Option("--at-most", help="Hold the largest costs to the budget, not the expected."),
    ] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Share one budget among the questions of a batch: who answers which, before any is asked.

    From recorded runs of several models it learns how likely each is right on a question, by the
    question's words and group, and what it costs. Then each question gets one model, so that most
    right answers are expected for the money.

    Example: farthing allocate --traces pool.jsonl.gz --questions new.jsonl --budget 5.00
    --out assignment.jsonl
    """
    from farthing.features.question import QuestionFeatures
    from farthing.methods.allocators.estimates import fit_estimates
    from farthing.methods.cards import system
    from farthing.money import NANO_PER_USD
    from farthing.reports import allocating as reports
    from farthing.studies import batch_allocation
    from farthing.traces.eligibility import common

    if out is not None:
        files.check_file(out)
    chosen = system("allocator", allocator)
    arrays, asked_of = common(files.read_traces(*traces))
    if asked_of is not None:
        remark(f"note: {asked_of.note()}")
    files.doubt_costs(arrays)
    learned, recorded = arrays, None
    if questions is None:
        learned, recorded = _held_out(arrays, seed)
        ids, asked = recorded.ids.tolist(), QuestionFeatures.of(recorded)
    else:
        ids, asked = _read(questions)
    with interruptible("nothing was written"):
        estimates = fit_estimates(learned)
        batch = estimates.batch(asked, None if recorded is None else recorded.made[:, 0])
        found = batch_allocation.allocate(
            estimates,
            batch,
            batch_allocation.Budget(int(budget * NANO_PER_USD), at_most),
            chosen,
            recorded=None if recorded is None else _if_graded(recorded),
            seed=seed,
        )
    remark(f"learned from {counted(len(learned), 'recorded question')}")
    if out is not None:
        lines = [json.dumps(one, ensure_ascii=False) for one in reports.assignments(found, ids)]
        out.write_text("\n".join(lines) + "\n", encoding="utf-8")
        remark(f"assignment: {out}")
    if as_json:
        show_json(reports.to_json(found))
    else:
        show(reports.screen(found, questions.name if questions else files.named(traces)))


def _held_out(arrays: "TraceArrays", seed: int) -> "tuple[TraceArrays, TraceArrays]":
    """Return what is learned from, and the batch."""
    import numpy as np

    from farthing.errors import InputError
    from farthing.recommendation.bundle_splits import Split, split_bundle_questions

    if len(arrays) < 3:
        raise InputError(
            f"{counted(len(arrays), 'recorded question')} cannot be divided into some to learn "
            "from and a batch; record more, or give --questions"
        )
    parts = split_bundle_questions(arrays, Split(seed))
    learned = np.sort(np.concatenate([parts.train, parts.calibrate]))
    return arrays.take(learned), arrays.take(parts.test)


def _if_graded(recorded: "TraceArrays") -> "TraceArrays | None":
    """Return the batch where what really came of it is known; else say that it is not."""
    from farthing.traces.grades.named import ungraded_questions

    lacking = int(ungraded_questions(recorded).sum())
    if not lacking:
        return recorded
    remark(
        f"note: {lacking:,} of the batch's {counted(len(recorded), 'question')} have answers that "
        "nobody graded, so what really came of it is not shown"
    )
    return None


def _read(questions: Path) -> "tuple[list[str], QuestionFeatures]":
    from farthing.features.question import QuestionFeatures
    from farthing.tasks.questions import load_questions

    read = load_questions("text", questions, graded=False)
    texts = tuple(question.text for question in read)
    groups = tuple(question.group or "" for question in read)
    return [question.id for question in read], QuestionFeatures(texts, groups)
