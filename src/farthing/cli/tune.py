"""`farthing sweep`: try settings of a policy, and judge what won on questions it never saw."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import completion, files
from farthing.cli.compare import Engine, Files, Preset, Questions, Splits, Workers, read_dataset
from farthing.cli.console import interrupted, interruptible, remark, show, trainings
from farthing.cli.options import (
    Alpha,
    CalibrateSize,
    Features,
    Population,
    Seed,
    TestSize,
    TrainSize,
    sizes_of,
)

KEPT = "the trainings that were finished are kept, and the same command goes on with the others"


def sweep(
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Such as lookahead or ccpo.", autocompletion=completion.methods
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the results go.")],
    choices: Annotated[
        list[str],
        typer.Option(
            "--try",
            metavar="NAME=VALUES",
            help="A setting with its values, as in leaf=10,20, or with a range, as in "
            "epsilon=0.001..0.1; give it again for several.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    draw: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Settings drawn at random; all unless said."),
    ] = None,
    alpha: Alpha = Fraction(1, 10),
    traces: Files = [],  # noqa: B006 - typer copies it
    preset: Preset = None,
    n: Questions = None,
    feature: Features = [],  # noqa: B006 - typer copies it
    folds: Annotated[
        int, typer.Option(min=2, metavar="N", help="Parts that the training questions make.")
    ] = 3,
    splits: Splits = 100,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Trainings on each fold.")] = 1,
    seed: Seed = 0,
    train: TrainSize = None,
    calibrate: CalibrateSize = None,
    test: TestSize = None,
    population: Population = "all",
    workers: Workers = 0,
    engine: Engine = "processes",
) -> None:
    """Try settings of one policy; the cheapest at the asked coverage wins.

    The choice is made by cross-validation within the training part; test questions only judge
    what won, beside the unchanged policy. Interrupted, the same command goes on where it stopped.

    Example: farthing sweep --traces runs.jsonl.gz --policy lookahead --try leaf=10,20,40 --out
    sweep
    """
    from farthing.comparison.plan import Plan
    from farthing.reports.tune import render_sweep, write_sweep
    from farthing.studies import tuning as room

    files.check_folder(out)
    dataset, sizes = read_dataset(traces, preset, n, seed, sizes_of(train, calibrate, test))
    files.doubt_costs(dataset.traces)
    dataset = replace(dataset, features=tuple(feature))
    search = room.Search(policy, tuple(choices), draw, folds)
    plan = Plan((alpha,), None, splits, seeds, seed, sizes, workers, population, engine=engine)
    with interruptible(KEPT), trainings() as shown:
        done = room.sweep(dataset, search, plan, out, shown.watch)
    if done.resumed:
        remark(f"{done.resumed} trainings were there already")
    show(render_sweep(done))
    *_, table = write_sweep(done, out)
    remark(f"results: {table}")
    if done.interrupted:
        raise interrupted(KEPT)
