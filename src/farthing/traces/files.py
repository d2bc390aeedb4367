"""Read and write traces, whatever the form: its name's suffix says which."""

from collections.abc import Iterable
from pathlib import Path

from farthing.errors import InputError
from farthing.traces import assemble, jsonl, parquet
from farthing.traces.arrays import TraceArrays
from farthing.traces.base import Trace
from farthing.traces.store import Store

STORES = (".db", ".sqlite")
LINES = (".jsonl", ".jsonl.gz")
PARQUET = ".parquet"


def read_arrays(path: Path) -> TraceArrays:
    """Read a trace file or a store into arrays.

    Raises:
        TraceFormatError: the file breaks the form.
        InputError: the suffix says nothing, or there is no such store.
    """
    if path.suffix in STORES:
        return assemble.assemble(read_records(path))
    return assemble.load(path)


def read_records(path: Path) -> list[Trace]:
    """Read a trace file or a store into records; Parquet holds arrays and has none."""
    if path.suffix in STORES:
        with Store.read(path) as store:
            return list(store.traces())
    return jsonl.read_traces(path)


def write_traces(path: Path, traces: Iterable[Trace]) -> None:
    """Write records in the form that the suffix names."""
    check_suffix(path)
    if path.suffix == PARQUET:
        parquet.write_parquet(path, assemble.assemble(list(traces)))
    else:
        jsonl.write_traces(path, traces)


def check_suffix(path: Path, *others: str) -> None:
    """Refuse a name that says nothing about the form; `others` may be written here as well.

    Raises:
        InputError: the suffix is none of the known ones.
    """
    known = (*others, *LINES, PARQUET)
    if not path.name.endswith(known):
        names = f"{', '.join(known[:-1])} or {known[-1]}"
        raise InputError(f"{path}: cannot tell its form; name it {names}")
