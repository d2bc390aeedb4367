"""`farthing parts`: one budget for a task in parts; which model and how many samples each gets."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import completion
from farthing.cli.console import interruptible, show, show_json
from farthing.cli.options import Json, Seed, read_usd


def parts(
    parts: Annotated[
        Path,
        typer.Option(
            "--parts",
            metavar="FILE",
            help="TOML: a section [parts.NAME] for each, with the sample traces of each model.",
        ),
    ],
    budget: Annotated[
        Fraction | None,
        typer.Option(parser=read_usd, metavar="USD", help="For one task, all its parts."),
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="In place of --budget: what a task may write in all its parts.",
        ),
    ] = None,
    allocator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who shares the budget; others stand beside it.  [default: lagrangian]",
            show_default=False,
            autocompletion=completion.allocators,
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="That AgentTTS makes, on recorded tasks.  [default: 60]",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Share a task's budget among its parts: which model does each, and with how many samples.

    From recorded samples of every part. Half of the tasks choose, the other half says what that
    costs and how often all parts are right, beside even shares at the same budget. With --tokens
    it is a cap on what the best model of each part may write.

    Example: farthing parts --parts parts.toml --budget 0.002
    """
    from farthing.errors import InputError
    from farthing.methods.cards import system
    from farthing.money import NANO_PER_USD
    from farthing.reports import parts as reports
    from farthing.studies.part_samples import measure, read_parts
    from farthing.studies.part_tokens import cap
    from farthing.studies.pipeline_parts import share

    if (budget is None) == (tokens is None):
        raise InputError("say what a task may cost: --budget USD, or --tokens N; one of both")
    if tokens is not None and (allocator is not None or trials is not None):
        raise InputError(
            "--tokens lays every way to share them side by side; leave --allocator and --trials out"
        )
    allocator, trials = allocator or "lagrangian", trials or 60
    system("allocator", allocator)
    with interruptible("nothing was written"):
        recorded = read_parts(parts)
        if budget is None:
            caps = cap(recorded, tokens or 0, seed=seed)
            made = reports.caps_to_json(caps), reports.caps_screen(caps, parts.name)
        else:
            nano = int(budget * NANO_PER_USD)
            found = share(measure(recorded, seed=seed), nano, allocator, trials=trials, seed=seed)
            made = reports.to_json(found), reports.screen(found, parts.name)
    if as_json:
        show_json(made[0])
    else:
        show(made[1])
