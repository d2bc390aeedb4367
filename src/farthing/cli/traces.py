"""`farthing traces`: recorded runs in and out, and what is in them."""

import json
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import files
from farthing.cli.console import interruptible, remark, show

app = typer.Typer(help="Import, export and describe recorded traces.")

StoreFile = Annotated[Path, typer.Option("--store", metavar="DB", help="The SQLite store.")]


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .jsonl or .jsonl.gz file.")],
    store: StoreFile,
) -> None:
    """Import a trace file into a store, all of it or nothing.

    Example: farthing traces import runs.jsonl.gz --store traces.db
    """
    from farthing.traces.jsonl import iter_traces
    from farthing.traces.store import Store

    with interruptible("nothing was imported"), Store.open(store) as opened:
        added = opened.add(iter_traces(file), str(file))
    remark(f"imported {added:,} questions into {store}")


@app.command()
def export(
    store: StoreFile,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="A .jsonl, .jsonl.gz or .parquet file.")
    ],
) -> None:
    """Export a store as a file.

    Example: farthing traces export --store traces.db --out traces.parquet
    """
    from farthing.traces.store import Store

    files.check_suffix(out)
    with interruptible("nothing was written"), Store.open(store, create=False) as opened:
        files.write_traces(out, opened.traces())
        count = opened.count()
    remark(f"wrote {count:,} questions to {out}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of one line of a trace file.

    Example: farthing traces schema > trace.schema.json
    """
    from farthing.traces.schema import trace_schema

    typer.echo(json.dumps(trace_schema(), indent=2))


@app.command()
def info(
    file: Annotated[Path, typer.Argument(metavar="FILE|DB", help="A trace file or a store.")],
) -> None:
    """Say what traces hold: roles, accuracy, cost, splits and features.

    Example: farthing traces info runs.jsonl.gz
    """
    from farthing.reports.traces import describe

    show(describe(str(file), files.read_arrays(file)))
