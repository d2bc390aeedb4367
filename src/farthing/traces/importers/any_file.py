"""Traces of any file: in our own form, or as another tool recorded them."""

from collections.abc import Sequence
from pathlib import Path

from farthing.errors import InputError
from farthing.traces import duplicates
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Trace
from farthing.traces.files import LINES, PARQUET, STORES, read_arrays, read_records
from farthing.traces.importers.gaps import ALONE
from farthing.traces.importers.read import check, foreign, read_foreign
from farthing.traces.importers.source import Source
from farthing.traces.joined import join
from farthing.traces.trace_kind import Checker


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
    if not path.name.endswith((*LINES, *STORES)) and form_of(path) is None:
        arrays = read_arrays(path)
        return arrays, list(filter(None, [duplicates.doubt(arrays)]))
    records, notes = read_any_records(path)
    arrays = assemble(records)
    return arrays, [*notes, *filter(None, [duplicates.doubt(arrays, records)])]


def read_all(paths: Sequence[Path]) -> tuple[TraceArrays, list[str]]:
    """Read one file or several, joined by question, with a line for each thing that they lack.

    Raises:
        TraceFormatError: a file breaks its form; the message names line and field.
        InputError: a format is not known, a file is given twice or holds arrays alone, or two
            contradict each other.
    """
    if len(paths) == 1:
        return read_any(paths[0])
    records, notes = read_all_records(paths)
    arrays = assemble(records)
    return arrays, [*notes, *filter(None, [duplicates.doubt(arrays, records)])]


def read_all_records(paths: Sequence[Path]) -> tuple[list[Trace], list[str]]:
    """Read one file or several into records, joined by question; raises as `read_all`."""
    if len(paths) == 1:
        return read_any_records(paths[0])
    files: dict[str, list[Trace]] = {}
    notes: dict[str, None] = {}
    for path in paths:
        if path.suffix == PARQUET and form_of(path) is None:
            raise InputError(
                f"{path}: holds arrays, whose calls cannot be joined with those of another file; "
                "give the traces that it was made from, or it alone"
            )
        if str(path) in files:
            raise InputError(f"{path}: is given twice; give each file once")
        files[str(path)], said = read_any_records(path)
        if not files[str(path)]:
            raise InputError(f"{path}: holds no traces; leave it out")
        notes |= dict.fromkeys(note for note in said if note != ALONE)
    return join(files), list(notes)


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
