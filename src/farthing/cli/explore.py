"""`farthing explore`: a cold start on recorded questions, one model asked each, under a budget."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import completion, files
from farthing.cli.console import Learning, interruptible, remark, show, show_json, trainings
from farthing.cli.options import Json, Seed, TracesFiles, read_usd


def explore(
    traces: TracesFiles,
    budget: Annotated[
        Fraction,
        typer.Option(parser=read_usd, metavar="USD", help="For all questions together."),
    ],
    bandit: Annotated[
        str,
        typer.Option(metavar="NAME", help="Who learns.", autocompletion=completion.bandits),
    ] = "squarecb",
    floor: Annotated[
        float,
        typer.Option(metavar="P", help="Least probability of a model that can be paid for."),
    ] = 0.01,
    value_of: Annotated[
        str | None,
        typer.Option(
            "--value-of", metavar="MODEL", help="Say what this model would have come to alone."
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what was asked as traces, with propensities."),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Start with no traces: learn which model to ask from grades as they come, under a budget.

    Recorded questions come one by one, in random order. Each goes to one model, drawn with a
    known probability, whose grade is all that is learned. Beside it: what the same money brings
    without learning, and what those bring who knew all grades beforehand.

    Example: farthing explore --traces pool.jsonl.gz --budget 0.50 --value-of gpt-4o
    """
    from farthing.methods.cards import system
    from farthing.money import NANO_PER_USD
    from farthing.reports import exploring as reports
    from farthing.studies import online_learning
    from farthing.studies.online_learning_traces import recorded
    from farthing.traces.files import check_suffix, write_traces
    from farthing.traces.importers.any_file import read_all_records

    if log is not None:
        files.check_file(log)
        check_suffix(log)
    chosen = system("bandit", bandit)
    arrays = files.read_traces(*traces)
    files.doubt_costs(arrays)
    stream, nano = online_learning.stream_of(arrays, seed), int(budget * NANO_PER_USD)
    online_learning.refuse(stream, nano, value_of)
    if len(stream) < len(arrays):
        lacking = len(arrays) - len(stream)
        remark(f"note: {lacking:,} questions lack a graded answer of some model and are left out")
    with interruptible("nothing was written"), trainings() as shown:
        found = online_learning.explore(
            stream,
            chosen,
            nano,
            name=bandit,
            floor=floor,
            progress=Learning(shown, "asking"),
        )
        judged = None if value_of is None else found.value_of(value_of)
    if log is not None:
        write_traces(log, recorded(read_all_records(traces)[0], found.ids, found.choices))
        remark(f"record: {log}")
    if as_json:
        show_json(reports.to_json(found, judged))
    else:
        show(reports.screen(found, judged, files.named(traces)))
