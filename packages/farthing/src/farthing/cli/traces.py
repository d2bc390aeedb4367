"""`farthing traces`: recorded runs in and out, and what is in them."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farthing.cli import completion, imports
from farthing.cli.command import PlainGroup, takes_options
from farthing.cli.console import interruptible, remark, show, show_json
from farthing.cli.files import check_file, noted
from farthing.cli.options import Json
from farthing.errors import InputError, UnknownNameError
from farthing.money import dollars
from farthing.reports.table import counted

if TYPE_CHECKING:
    from farthing.traces.store import Store

app = typer.Typer(
    cls=PlainGroup, help="Import, export and describe recorded traces.", no_args_is_help=True
)

StoreFile = Annotated[Path, typer.Option("--store", metavar="DB", help="The SQLite store.")]


@app.command("import")
@takes_options
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Traces (.jsonl, .jsonl.gz), or other tools' logs and tables."
        ),
    ],
    store: StoreFile,
    *,
    form: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="Format of the files.",
            show_default="looked at",
            autocompletion=completion.formats,
        ),
    ] = None,
    told: imports.ImportOptions,
) -> None:
    """Import traces, or other tools' files, into a store, all of it or nothing.

    Example: farthing traces import spend.csv --from litellm --gold answers.csv --store traces.db
    """
    from farthing.traces.importers.read import OWN, Supplied
    from farthing.traces.store import Store

    _check_import(form, store, told.threshold)
    supplied = told.supplied
    form = imports.format_of(files, form, supplied.options)
    if form == OWN and supplied != Supplied():
        raise InputError(
            f"{files[0]}: is in the form of traces already, which say all of it themselves, "
            "samples too; leave options for other tools' files out"
        )
    with interruptible("nothing was imported"), _no_store_left(store), Store.open(store) as opened:
        if form == OWN:
            added = _import_traces(files[0], store, opened)
        else:
            added = imports.import_foreign(files, form, supplied, opened, str(store))
    remark(f"imported {counted(added, 'question')} into {store}")


@app.command()
def export(
    store: StoreFile,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="A .jsonl or .jsonl.gz file.")],
) -> None:
    """Export a store as a file.

    Example: farthing traces export --store traces.db --out traces.jsonl.gz
    """
    from farthing.traces.files import check_suffix, write_traces
    from farthing.traces.store import Store

    check_suffix(out)
    check_file(out)
    with interruptible("nothing was written"), Store.read(store) as opened:
        write_traces(out, opened.traces())
        count = opened.count()
    remark(f"wrote {counted(count, 'question')} to {out}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of one line of a trace file.

    Example: farthing traces schema > trace.schema.json
    """
    from farthing.traces.jsonl import trace_schema

    typer.echo(json.dumps(trace_schema(), indent=2))


@app.command()
def info(
    file: Annotated[Path, typer.Argument(metavar="FILE|DB", help="Traces, a store, or a log.")],
    as_json: Json = False,
) -> None:
    """Say what traces hold: roles, accuracy, cost, splits and features.

    Example: farthing traces info runs.jsonl.gz
    """
    from farthing.reports.traces import describe, record
    from farthing.traces.copies import near_note
    from farthing.traces.costs import doubt
    from farthing.traces.store import STORES

    arrays, lacks = noted([file])
    found = _changes(file) if file.suffix in STORES else []
    notes = [*lacks, *filter(None, [doubt(arrays), near_note(arrays)]), *found]
    for note in notes:
        remark(f"note: {note}")
    if as_json:
        show_json(record(str(file), arrays, notes))
    else:
        show(describe(str(file), arrays))


@app.command()
def reprice(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The SQLite store.")],
    price: imports.Prices = [],  # noqa: B006 - never changed
    as_json: Json = False,
) -> None:
    """Say what a store's calls would cost at the prices of today; it stays as it is.

    Example: farthing traces reprice traces.db --price my-model=0.2,0.6,0.02
    """
    from farthing.reports.table import Table
    from farthing.traces.costs import reprice
    from farthing.traces.importers.read import published
    from farthing.traces.store import Store

    own = dict(map(imports.read_price, price))
    with Store.read(store) as opened:
        found = reprice(opened.traces(), own, lambda name: published(name, None))
    if as_json:
        return show_json(
            {
                name: {
                    figure.replace("_nano", "_usd"): some / 1e9 if "_nano" in figure else some
                    for figure, some in one.items()
                }
                for name, one in found.items()
            }
        )
    for name, one in found.items():
        if lacking := one["calls"] - one["priced"]:
            remark(
                f"note: {name}: {counted(lacking, 'call')} without a cost before "
                "or now; --price MODEL=IN,OUT prices those with tokens"
            )
    headings = ("Model", "Calls", "Recorded", "Today", "Change")
    lines = [
        (
            name,
            f"{one['priced']:,}",
            dollars(one["recorded_nano"]),
            dollars(one["today_nano"]),
            change,
        )
        for name, one in found.items()
        for change in [_change(one["recorded_nano"], one["today_nano"])]
    ]
    return show(Table.of(headings, lines))


def _change(before: int, now: int) -> str:
    return "none" if before == now else f"{now / before - 1:+.1%}" if before else "new"


def _changes(store: Path) -> list[str]:
    from farthing.traces.store import Store
    from farthing.traces.system import changes

    with Store.read(store) as opened:
        first, *others = [system for system in opened.systems() if system is not None] or [{}]
    found = (", ".join(changes(first, other)) for other in others)
    return [f"not all was made alike; changed: {changed}" for changed in found if changed]


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


def _import_traces(file: Path, store: Path, opened: "Store") -> int:
    from farthing.traces.copies import DuplicateCounter
    from farthing.traces.jsonl import iter_traces
    from farthing.traces.trace_kind import Checker

    checker, repeats = (
        Checker.after(opened.traces(), str(store)),
        DuplicateCounter.beside(opened.traces()),
    )
    return imports.add(opened, iter_traces(file, checker), repeats, str(file), str(store))


def _check_import(form: str | None, store: Path, threshold: float) -> None:
    from farthing.traces.importers.read import names
    from farthing.traces.store import STORES

    if store.suffix not in STORES:
        raise InputError(f"{store}: a store is named {' or '.join(STORES)}; name it so")
    if form is not None and form not in names():
        raise UnknownNameError("format", form, names())
    if not math.isfinite(threshold):
        raise InputError(f"--threshold is {threshold}; give a number, such as 0.5")
