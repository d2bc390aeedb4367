"""`farthing check`: does a certificate still apply to new questions?"""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from farthing.cli import files
from farthing.cli.console import show, show_json
from farthing.cli.options import (
    Bundle,
    CalibrateSize,
    Json,
    Seed,
    TestSize,
    TracesFiles,
    TrainSize,
    sizes_of,
)


def check(
    bundle: Bundle,
    traces: TracesFiles,
    new: Annotated[Path, typer.Option(metavar="FILE", help="New traces, graded or not.")],
    seed: Seed = 0,
    train: TrainSize = None,
    calibrate: CalibrateSize = None,
    test: TestSize = None,
    as_json: Json = False,
) -> None:
    """Say whether a bundle's certificate still applies to new questions, from their scores.

    Give the traces, seed and sizes that it was calibrated with. Exit code 1: it does not.

    Example: farthing check --bundle bundle --traces runs.jsonl.gz --new new.jsonl.gz
    """
    from farthing.recommendation import bundle_splits, drift
    from farthing.reports import records

    split = bundle_splits.Split(seed, sizes_of(train, calibrate, test))
    old, fresh = files.read_traces(*traces), files.read_traces(new)
    found = drift.check(bundle, old, fresh, split=split)
    if as_json:
        show_json(records.checked(found))
    else:
        show(Text(found.sentence()))
    if not found.applies:
        raise typer.Exit(1)
