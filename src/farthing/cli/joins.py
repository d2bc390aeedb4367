"""`farthing joins`: what a model is worth to a pool, by a handful of its outcomes."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli.console import interruptible, show, show_json
from farthing.cli.files import doubt_costs, read_traces
from farthing.cli.options import Json, Seed, TracesFiles, read_usd


def joins(
    traces: TracesFiles,
    new: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Graded calls of the model that joins."),
    ],
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which one joins, where FILE has several.")
    ] = None,
    budget: Annotated[
        list[Fraction] | None,
        typer.Option(
            parser=read_usd, metavar="USD", help="For a question, on average; may be repeated."
        ),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say what a model would be worth to a pool that it joins, from a handful of its outcomes.

    What makes questions hard is learned from the pool; how able the newcomer is, from its few
    outcomes, without training anything on it. Then questions are routed by estimated success and
    price, with it and without it.

    Example: farthing joins --traces pool.jsonl.gz --new few.jsonl --budget 0.0002
    """
    from farthing.money import NANO_PER_USD
    from farthing.reports import joining as reports
    from farthing.studies import cold_start

    pool, few = read_traces(*traces), cold_start.Few.of(read_traces(new), model)
    doubt_costs(pool)
    with interruptible("nothing was written"):
        budgets = [int(one * NANO_PER_USD) for one in budget or []]
        found = cold_start.join(pool, few, budgets_nano=budgets, seed=seed)
    if as_json:
        show_json(reports.to_json(found))
    else:
        show(reports.screen(found, new.name))
