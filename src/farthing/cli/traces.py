"""`farthing traces`: recorded runs in and out, and what is in them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import files
from farthing.cli.console import counted, interruptible, remark, show
from farthing.cli.flags import PlainGroup
from farthing.errors import InputError

app = typer.Typer(
    cls=PlainGroup, help="Import, export and describe recorded traces.", no_args_is_help=True
)

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
    from farthing.traces.shapes import Checker
    from farthing.traces.store import Store

    _check_import(file, store)
    with interruptible("nothing was imported"), _no_store_left(store), Store.open(store) as opened:
        checker = Checker.after(opened.traces(), str(store))
        added = opened.add(iter_traces(file, checker), str(file))
    remark(f"imported {counted(added, 'question')} into {store}")


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
    from farthing.traces.files import check_suffix, write_traces
    from farthing.traces.store import Store

    check_suffix(out)
    with interruptible("nothing was written"), Store.open(store, create=False) as opened:
        write_traces(out, opened.traces())
        count = opened.count()
    remark(f"wrote {counted(count, 'question')} to {out}")


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
    from farthing.traces.files import STORES, read_arrays

    arrays = read_arrays(file)
    files.doubt_costs(arrays)
    show(describe(str(file), arrays))
    if file.suffix in STORES:
        _say_systems(file)


def _say_systems(store: Path) -> None:
    """Say so where traces of several systems are in one store."""
    from farthing.traces.store import Store
    from farthing.traces.system import changes

    with Store.open(store, create=False) as opened:
        first, *others = [system for system in opened.systems() if system is not None] or [{}]
    for other in others:
        remark(f"note: not all was made alike; changed: {', '.join(changes(first, other))}")


@contextmanager
def _no_store_left(store: Path) -> Iterator[None]:
    """Remove a store that is new and stays empty because its import is refused."""
    new = not store.exists()
    try:
        yield
    except BaseException:
        if new:
            for suffix in ("", "-wal", "-shm"):
                store.with_name(store.name + suffix).unlink(missing_ok=True)
        raise


def _check_import(file: Path, store: Path) -> None:
    """Refuse what the suffixes already say cannot be done."""
    from farthing.traces.files import LINES, PARQUET, STORES

    if store.suffix not in STORES:
        raise InputError(f"{store}: a store is named {' or '.join(STORES)}; name it so")
    if file.suffix == PARQUET:
        raise InputError(
            f"{file}: Parquet holds arrays and no records, so it cannot be imported; use it as it "
            "is (--traces), or import the .jsonl it was made from"
        )
    if not file.name.endswith(LINES):
        raise InputError(
            f"{file}: cannot be imported; traces are one line of JSON a question, in a file named "
            f"{' or '.join(LINES)} (farthing traces schema prints the form)"
        )
