"""`farthing plan`: models and samples for the parts of a workflow, within a budget and in time."""

from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import completion
from farthing.cli.console import interruptible, show, show_json, trainings
from farthing.cli.options import Json, Seed, read_usd


def plan(
    workflow: Annotated[
        Path,
        typer.Argument(metavar="WORKFLOW.toml", help="Models with prices and speeds; the parts."),
    ],
    budget: Annotated[
        Fraction,
        typer.Option(parser=read_usd, metavar="USD", help="For one execution."),
    ],
    deadline: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="For one execution; none: it may take forever."),
    ] = None,
    planner: Annotated[
        str,
        typer.Option(metavar="NAME", help="Who plans.", autocompletion=completion.planners),
    ] = "mcpp",
    executions: Annotated[
        int, typer.Option(metavar="N", min=1, help="Simulated executions of each plan.")
    ] = 100,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Plan a workflow under a budget and a deadline: who does which part, with how many samples.

    Executes the workflow in simulation, planning anew after every event, and says how often it is
    done in time, beside plans that do not simulate. Nobody is asked and nothing is paid.

    Example: farthing plan workflow.toml --budget 0.01 --deadline 30
    """
    from farthing.errors import InputError
    from farthing.methods.cards import system
    from farthing.methods.planners.base import Left
    from farthing.methods.simulators.workflow import read_workflow
    from farthing.money import NANO_PER_USD
    from farthing.reports import planning as reports
    from farthing.studies.workflow_plan import compare_plans

    if deadline is not None and not deadline > 0.0:
        raise InputError(f"the deadline is {deadline:g} s; give more than 0")
    chosen, flow = system("planner", planner), read_workflow(workflow)
    left = Left(int(budget * NANO_PER_USD), inf if deadline is None else deadline)
    with interruptible("nothing was planned"), trainings() as shown:
        found = compare_plans(
            flow,
            left,
            (planner, chosen),
            executions,
            seed,
            lambda name, done, total: shown.update(name, done, total, {}),
        )
    if as_json:
        show_json(reports.to_json(found))
    else:
        show(reports.screen(found, workflow.name))
