"""`farthing samples`: how many samples of one model each question is to get before a vote."""

from typing import Annotated

import typer

from farthing.cli.console import Learning, interruptible, remark, show, show_json, trainings
from farthing.cli.files import named, noted
from farthing.cli.options import Json, Seed, TracesFiles


def samples(
    traces: TracesFiles,
    per_question: Annotated[
        int, typer.Option("--per-question", min=1, metavar="N", help="Samples on average.")
    ] = 8,
    orders: Annotated[
        int, typer.Option("--orders", min=1, metavar="N", help="Orders to draw samples in.")
    ] = 20,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say how to share samples among questions before a vote, and what that brings.

    From recorded samples of one model: the same number for each, stopping once the leader is
    likely to stay, and PETS, which takes samples where they are likeliest to settle the vote; as
    one batch or one question after another. All are held to the same number on average.

    Example: farthing samples --traces samples.jsonl.gz --per-question 8
    """
    from farthing.reports import sampling as reports
    from farthing.studies import self_consistency

    arrays, notes = noted(traces)
    for note in notes:
        remark(f"note: {note}")
    with interruptible("nothing was written"), trainings() as shown:
        found = self_consistency.compare(
            arrays,
            per_question,
            orders=orders,
            seed=seed,
            progress=Learning(shown, "drawing samples"),
        )
    if as_json:
        show_json(reports.to_json(found))
    else:
        show(reports.screen(found, named(traces)))
