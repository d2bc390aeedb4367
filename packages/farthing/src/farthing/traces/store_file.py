"""The SQLite file of a trace store: how it is told, opened and brought up to date, and its rows.

A file that is written is in WAL mode: what was committed may still lie beside it, in `FILE-wal`.
Opening such a file creates files in its folder, even to read it, so that reading takes other ways.
"""

import json
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from importlib import resources
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from farthing.errors import StoreError
from farthing.money import nano_from_usd
from farthing.traces.base import Call, CallError, Trace

APPLICATION_ID = 0x46746867
"""`Fthg` in the file's header: how a trace store is told from any other SQLite file."""
COPIES = 5
"""Times that a store which another process is writing is copied before that is given up."""
PARTS = ("-wal", "-journal")
"""Ends of the names of files that hold a part of a store."""
Stamp = tuple[int, int, bytes]


def check_exists(path: str | Path) -> None:
    """Refuse a store that is not there."""
    if not Path(path).is_file():
        raise StoreError(f"{path}: there is no such store; import traces into it first")


@contextmanager
def to_write(path: str | Path) -> Iterator[sqlite3.Connection]:
    """Open a store to write, or `:memory:`, and bring it up to date."""
    with explained(path):
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            _check(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA foreign_keys = ON")
            _migrate(connection)
        except BaseException:
            connection.close()
            raise
    with closing(connection):
        yield connection


@contextmanager
def to_read(path: str | Path) -> Iterator[sqlite3.Connection]:
    """Open a store to read, and leave no trace of that.

    Where all of it is in the one file, that is read as it is, without locks. Where some of it is
    in the WAL, or an older version wrote it, a copy is read, which may be brought up to date.
    """
    path = Path(path)
    before = _stamp(path)
    if not _beside(path) and _is_current(path):
        with closing(_unchanging(path)) as connection:
            yield connection
        if _stamp(path) != before:
            raise StoreError(f"{path}: was written while it was read; run this again")
        return
    with TemporaryDirectory(prefix="farthing-") as folder:
        with explained(path):
            connection = sqlite3.connect(_copied(path, Path(folder)), isolation_level=None)
        with closing(connection):
            with explained(path):
                _check(connection, path)
                _migrate(connection)
            yield connection


def _beside(path: Path) -> list[Path]:
    """Return the files beside a store that hold a part of it: a WAL, or an unfinished change."""
    files = [path.with_name(f"{path.name}{suffix}") for suffix in PARTS]
    return [file for file in files if file.exists() and file.stat().st_size]


def _unchanging(path: Path) -> sqlite3.Connection:
    """Open a file as one that nobody changes: SQLite takes no lock and creates nothing."""
    with explained(path):
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        return sqlite3.connect(uri, uri=True, isolation_level=None)


def _is_current(path: Path) -> bool:
    """Return whether this version wrote a store; raises like `to_read`."""
    with closing(_unchanging(path)) as connection, explained(path):
        _check(connection, path)
        return _version(connection) == len(_migrations())


def _stamp(path: Path) -> Stamp:
    """Return what changes when a file is written: time, size, and a WAL's salts."""
    try:
        with path.open("rb") as file:
            return path.stat().st_mtime_ns, path.stat().st_size, file.read(32)
    except FileNotFoundError:
        return 0, 0, b""


def _copied(path: Path, folder: Path) -> Path:
    """Copy a store with its WAL, as they were at one moment.

    Frames that are appended to the WAL meanwhile do no harm: SQLite leaves out what is not whole.
    A checkpoint does, which writes the file itself, and so does a WAL that begins anew.
    """
    copy = folder / path.name
    for _ in range(COPIES):
        before, parts = _stamp(path), {part: _stamp(part)[2] for part in _beside(path)}
        for left in folder.iterdir():
            left.unlink()
        for file in (path, *parts):
            shutil.copyfile(file, folder / file.name)
        if before == _stamp(path) and parts == {part: _stamp(part)[2] for part in _beside(path)}:
            return copy
    raise StoreError(f"{path}: is being written; run this again when that has ended")


@contextmanager
def explained(path: str | Path) -> Iterator[None]:
    """Turn what SQLite says of a store into a StoreError with a remedy."""
    try:
        yield
    except sqlite3.Error as problem:
        raise StoreError(
            f"{path}: {problem}; check that it is a trace store, that its folder can be written, "
            "and that no other program is writing it"
        ) from problem


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block writes, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk makes SQLite roll back by itself
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _check(connection: sqlite3.Connection, path: str | Path) -> None:
    if sqlite3.sqlite_version_info < (3, 37):
        raise StoreError(
            f"a trace store needs SQLite 3.37 or newer; this Python has {sqlite3.sqlite_version}: "
            "use a newer build of Python"
        )
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = _version(connection)
    empty = not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application != APPLICATION_ID and not (empty and application == version == 0):
        raise StoreError(f"{path}: an SQLite file, but no trace store; choose another file")
    newest = len(_migrations())
    if version > newest:
        raise StoreError(
            f"{path}: written by a newer Farthing (store version {version}; this one reads up to "
            f"{newest}); upgrade Farthing, or export the traces with the one that wrote them"
        )


def _migrations() -> list[str]:
    """The scripts in the order of their numbers, which begin at 1 and leave no gap."""
    folder = resources.files("farthing.traces") / "migrations"
    scripts = {f.name: f for f in folder.iterdir() if f.name.endswith(".sql")}
    return [scripts[name].read_text(encoding="utf-8") for name in sorted(scripts)]


def _migrate(connection: sqlite3.Connection) -> None:
    scripts = _migrations()
    if _version(connection) == len(scripts):
        return
    with transaction(connection):
        # Asked again under the lock: another process may have migrated in the meantime.
        version = _version(connection)
        for statement in (s for script in scripts[version:] for s in _statements(script)):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(scripts)}")


def _statements(script: str) -> Iterator[str]:
    """Cut a script into statements; `executescript` would commit the open transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


_COPIED = (
    "round", "role", "model", "answer", "correct", "text", "verdict", "confidence", "uncertainty",
    "input_tokens", "output_tokens", "tool_calls", "latency_s", "cost_usd", "largest_cost_usd",
    "asked_probability", "f1", "score", "ended",
)  # fmt: skip
"""Fields of a call that have a column of the same name."""
_CONTEXT = (
    "system_prompt", "history", "options", "parameters", "missing_because", "requests", "cluster",
)  # fmt: skip
"""Fields of a trace that have a column of the same name."""
_TRACE = ("id", "task", "stratum", "split", "question", "gold", "independent", "truncated")
_NOT_COPIED = ("error_type", "error_message", "extra")
_call_values, _context_values = attrgetter(*_COPIED), attrgetter(*_CONTEXT)


def _insert(table: str, *columns: str) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608


INSERT_TRACE = _insert("traces", "position", *_TRACE, "import", "system", *_CONTEXT)
INSERT_CALL = _insert(
    "calls", *_COPIED, "cost_nano", "largest_cost_nano", *_NOT_COPIED, "trace", "position"
)
SELECT_TRACES = f"""
SELECT position, {", ".join(_TRACE + _CONTEXT)} FROM traces
WHERE (:task IS NULL OR task = :task) AND (:stratum IS NULL OR stratum = :stratum)
    AND (:split IS NULL OR split = :split)
ORDER BY position"""  # noqa: S608
SELECT_CALLS = f"""
SELECT {", ".join(_COPIED + _NOT_COPIED)} FROM calls WHERE trace = ? ORDER BY position"""  # noqa: S608


def trace_row(position: int, trace: Trace, log: int | None, system: int | None) -> tuple[Any, ...]:
    """Return what `INSERT_TRACE` takes: of which import the trace is, and what it was made with."""
    gold = json.dumps(trace.gold, ensure_ascii=False)
    about = (position, trace.id, trace.task, trace.group, trace.split, trace.question, gold)
    return (*about, trace.independent, trace.truncated, log, system, *_context_values(trace))


def call_row(trace: int, place: int, call: Call) -> tuple[Any, ...]:
    """Return what `INSERT_CALL` takes; `trace` and `place` are the two halves of the key."""
    nano = [
        None if usd is None else nano_from_usd(usd)
        for usd in (call.cost_usd, call.largest_cost_usd)
    ]
    kind, message = (call.error.type, call.error.message) if call.error else (None, None)
    extra = json.dumps(call.extra, ensure_ascii=False, allow_nan=False) if call.extra else None
    return (*_call_values(call), *nano, kind, message, extra, trace, place)


def trace_from(row: list[Any], calls: Iterable[tuple[Any, ...]]) -> Trace:
    """Rebuild a trace from its row of `SELECT_TRACES`, less the position, and its calls."""
    name, task, group, split, question, gold, independent, truncated, *context = row
    return Trace(
        id=name,
        question=question,
        gold=json.loads(gold),
        calls=[_call_from(call) for call in calls],
        task=task,
        group=group,
        split=split,
        independent=bool(independent),
        truncated=bool(truncated),
        **dict(zip(_CONTEXT, context, strict=True)),
    )


def _call_from(row: tuple[Any, ...]) -> Call:
    *values, kind, message, extra = row
    fields = dict(zip(_COPIED, values, strict=True))
    for flag in ("correct", "verdict", "ended"):
        fields[flag] = None if fields[flag] is None else bool(fields[flag])
    return Call(
        **fields,
        error=None if kind is None else CallError(kind, message),
        extra=json.loads(extra) if extra else {},
    )
