"""Traces in one SQLite file, with numbered migrations.

A file that is written is in WAL mode: what was committed may still lie beside it, in `FILE-wal`.
Opening such a file creates files in its folder, even to read it, so that reading takes other ways.

Every import is one transaction, so a store holds all of a file or nothing of it, whenever the
process dies. Money is kept as integer nano-dollars beside the figure that was recorded.
"""

import hashlib
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import msgspec

from farthing.budgets.ledger import atomic
from farthing.errors import StoreError
from farthing.money import nano_from_usd
from farthing.traces.base import Call, CallError, Trace
from farthing.traces.system import System

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
    current = False
    if not _beside(path):
        with closing(_unchanging(path)) as connection, explained(path):
            _check(connection, path)
            current = _version(connection) == len(_migrations())
    if current:
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
    files = [path.with_name(f"{path.name}{suffix}") for suffix in PARTS]
    return [file for file in files if file.exists() and file.stat().st_size]


def _unchanging(path: Path) -> sqlite3.Connection:
    """Open a file as one that nobody changes: SQLite takes no lock and creates nothing."""
    with explained(path):
        uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        return sqlite3.connect(uri, uri=True, isolation_level=None)


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
        statement = ""  # `executescript` would commit the open transaction
        for line in "".join(scripts[version:]).splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                connection.execute(statement)
                statement = ""
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(scripts)}")


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
SELECT_TRACES = f"SELECT position, {', '.join(_TRACE + _CONTEXT)} FROM traces ORDER BY position"  # noqa: S608
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
    made = []
    for *values, kind, message, extra in calls:
        fields = dict(zip(_COPIED, values, strict=True))
        for flag in ("correct", "verdict", "ended"):
            fields[flag] = None if fields[flag] is None else bool(fields[flag])
        error = None if kind is None else CallError(kind, message)
        made.append(Call(**fields, error=error, extra=json.loads(extra) if extra else {}))
    return Trace(
        id=name,
        question=question,
        gold=json.loads(gold),
        calls=made,
        task=task,
        group=group,
        split=split,
        independent=bool(independent),
        truncated=bool(truncated),
        **dict(zip(_CONTEXT, context, strict=True)),
    )


STORES = (".db", ".sqlite")
"""How names of such files end."""
TRAFFIC = "traffic"
"""The origin of traces that passed through a gateway."""
BATCH = 500
"""Traces that are written, and held in memory, at a time."""


@dataclass(frozen=True)
class Import:
    """One import into a store."""

    source: str
    """File or generator that the traces came from."""
    sha256: str | None
    """SHA-256 of that file, in hexadecimal; None where there was none."""
    traces: int
    imported_at: str
    """UTC, such as `2025-01-31T12:00:00Z`."""


class Store:
    """A file of traces; `with Store.open("traces.db") as store:`.

    >>> from farthing.traces.base import Call
    >>> with Store.open(":memory:") as store:
    ...     call = Call(round=1, role="base", answer="4", cost_usd=4.89e-05)
    ...     added = store.add([Trace(id="q1", question="2 + 2?", gold=["4"], calls=[call])], "demo")
    ...     added, next(store.traces()).calls[0].answer
    (1, '4')
    """

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._system: int | None = None

    @classmethod
    @contextmanager
    def open(cls, path: str | Path, *, create: bool = True) -> Iterator[Self]:
        """Open a store, and bring one that an older version wrote up to date.

        Args:
            path: the file, or `:memory:` for a store that ends with the block.
            create: whether a file that does not exist is a new store.
        """
        if not create:
            check_exists(path)
        with to_write(path) as connection:
            yield cls(connection, str(path))

    @classmethod
    @contextmanager
    def read(cls, path: str | Path) -> Iterator[Self]:
        """Open a store to read it alone: neither the file nor its folder changes."""
        check_exists(path)
        with to_read(path) as connection:
            yield cls(connection, str(path))

    def add(self, traces: Iterable[Trace], source: str) -> int:
        """Add traces, all or none, in their order; return how many.

        Args:
            traces: read one after another; if reading fails, nothing is added.
            source: the file that they come from, or another name for their origin.
        """
        with explained(self._path), transaction(self._connection):
            digest = None
            if Path(source).is_file():
                with Path(source).open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            log = self._connection.execute(
                "INSERT INTO imports (source, sha256) VALUES (?, ?)", (source, digest)
            ).lastrowid
            before = position = self._one("SELECT coalesce(max(position), 0) FROM traces")
            remaining = iter(traces)
            while batch := list(islice(remaining, BATCH)):
                self._refuse_duplicates(batch, source)
                self._insert(batch, position, log)
                position += len(batch)
        return int(position - before)

    def append(self, trace: Trace, source: str) -> None:
        """Add one trace, whole, also in a transaction; what one source appends is one import."""
        with explained(self._path):
            try:
                with atomic(self._connection):
                    self._append(trace, source)
            except StoreError:
                self._refuse_duplicates([trace], source)
                raise

    def replace(self, trace: Trace, source: str) -> None:
        """Write one trace in the place of the one that has its id; raises as `append`."""
        with explained(self._path), atomic(self._connection):
            found = self._connection.execute(
                "SELECT position FROM traces WHERE id = ?", (trace.id,)
            ).fetchall()
            self._connection.executemany("DELETE FROM calls WHERE trace = ?", found)
            self._connection.executemany("DELETE FROM traces WHERE position = ?", found)
            self._append(trace, source)

    def made_with(self, system: System) -> None:
        """Note what the traces that are appended from now on are made with."""
        text = msgspec.json.encode(system, order="sorted").decode()
        with explained(self._path):
            self._connection.execute("INSERT OR IGNORE INTO systems (system) VALUES (?)", (text,))
            (self._system,) = self._connection.execute(
                "SELECT id FROM systems WHERE system = ?", (text,)
            ).fetchone()

    def systems(self) -> list[System | None]:
        """Return what the traces were made with, each once; None for those that do not say."""
        with explained(self._path):
            rows = self._connection.execute(
                "SELECT systems.system FROM traces LEFT JOIN systems ON systems.id = traces.system"
                " GROUP BY systems.id ORDER BY systems.id"
            )
            return [text and msgspec.json.decode(text, type=System) for (text,) in rows]

    @property
    def connection(self) -> sqlite3.Connection:
        """The open file, in autocommit mode, for those who keep tables of their own in it."""
        return self._connection

    def traces(self) -> Iterator[Trace]:
        """Yield the traces in the order of their import, one at a time, as they were added."""
        with explained(self._path):
            for position, *row in self._connection.execute(SELECT_TRACES):
                yield trace_from(row, self._connection.execute(SELECT_CALLS, (position,)))

    def count(self) -> int:
        """Return the number of questions."""
        with explained(self._path):
            return int(self._one("SELECT count(*) FROM traces"))

    def graded(self) -> int:
        """Return the number of questions whose recorded grades say whether any answer is right."""
        with explained(self._path):
            return int(
                self._one(
                    "SELECT count(*) FROM (SELECT max(correct) AS solved FROM calls"
                    " GROUP BY trace HAVING solved = 1"
                    " OR (solved = 0 AND NOT sum(answer IS NOT NULL AND correct IS NULL)))"
                )
            )

    def imports(self) -> list[Import]:
        """Return the imports in their order."""
        with explained(self._path):
            rows = self._connection.execute(
                "SELECT source, sha256, count(traces.id), imported_at FROM imports"
                " LEFT JOIN traces ON traces.import = imports.id"
                " GROUP BY imports.id ORDER BY imports.id"
            )
            return [Import(*row) for row in rows]

    def _append(self, trace: Trace, source: str) -> None:
        log, position = self._connection.execute(
            "SELECT (SELECT max(id) FROM imports WHERE source = ? AND sha256 IS NULL),"
            " (SELECT coalesce(max(position), 0) FROM traces)",
            (source,),
        ).fetchone()
        if log is None:
            log = self._connection.execute(
                "INSERT INTO imports (source) VALUES (?)", (source,)
            ).lastrowid
        self._insert([trace], position, log, self._system)

    def _insert(
        self, batch: list[Trace], position: int, log: int | None, system: int | None = None
    ) -> None:
        numbered = list(enumerate(batch, position + 1))
        try:
            self._connection.executemany(
                INSERT_TRACE,
                (trace_row(number, trace, log, system) for number, trace in numbered),
            )
            self._connection.executemany(
                INSERT_CALL,
                (
                    call_row(number, place, call)
                    for number, trace in numbered
                    for place, call in enumerate(trace.calls)
                ),
            )
        except (sqlite3.IntegrityError, ValueError, OverflowError) as problem:
            raise StoreError(
                f"{self._path}: a question from '{batch[0].id}' to '{batch[-1].id}' cannot be "
                f"stored ({problem}); nothing was imported: mend its record"
            ) from problem

    def _refuse_duplicates(self, batch: list[Trace], source: str) -> None:
        counts = Counter(trace.id for trace in batch)
        stored = self._connection.execute(
            "SELECT id FROM traces WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(list(counts)),),
        )
        again = {name for (name,) in stored} | {name for name, k in counts.items() if k > 1}
        if again:
            names = ", ".join(f"'{name}'" for name in sorted(again)[:3])
            raise StoreError(
                f"{self._path}: {source} has questions that are stored already or come twice: "
                f"{names}{' and more' if len(again) > 3 else ''}; nothing was imported: remove or "
                "rename them, or import into another store"
            )

    def _one(self, query: str) -> Any:
        return self._connection.execute(query).fetchone()[0]
