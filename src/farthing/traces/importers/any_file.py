"""Traces of any file: in our own form, or as another tool recorded them."""

from pathlib import Path

from farthing.errors import InputError
from farthing.traces import repeats
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Trace
from farthing.traces.files import PARQUET, read_arrays, read_records
from farthing.traces.importers.read import check, foreign, read_foreign
from farthing.traces.importers.source import Source
from farthing.traces.shapes import Checker


def form_of(path: Path) -> str | None:
    """Return the format of another tool's file; None for traces.

    What cannot be read is taken for traces, whose reader says what is wrong with it.

    Raises:
        InputError: it looks like none of the formats, or like several.
    """
    if path.is_dir() or (path.suffix == PARQUET and not _is_parquet(path)):
        return None
    return foreign(path)


def read_any(path: Path) -> tuple[TraceArrays, list[str]]:
    """Read a file into arrays, with a line for each thing that it lacks or that is in doubt.

    Raises:
        TraceFormatError: the file breaks its form; the message names line and field.
        InputError: its format is not known.
    """
    form = form_of(path)
    records, notes = ([], []) if form is None else _imported(path, form)
    arrays = read_arrays(path) if form is None else assemble(records)
    return arrays, [*notes, *filter(None, [repeats.doubt(arrays)])]


def read_any_records(path: Path) -> tuple[list[Trace], list[str]]:
    """Read a file into records, with a line for each thing that it lacks; raises as `read_any`."""
    form = form_of(path)
    return (read_records(path), []) if form is None else _imported(path, form)


def _is_parquet(path: Path) -> bool:
    try:
        return Source(path).kind == "parquet"
    except InputError:
        return False


def _imported(path: Path, form: str) -> tuple[list[Trace], list[str]]:
    imported = read_foreign([path], form)
    check(imported, Checker())
    return imported.traces, imported.notes
