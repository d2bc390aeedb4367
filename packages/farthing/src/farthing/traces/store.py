"""Traces in one SQLite file, with numbered migrations.

Every import is one transaction, so a store holds all of a file or nothing of it, whenever the
process dies. Money is kept as integer nano-dollars beside the figure that was recorded.
"""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

import msgspec

from farthing.budgets.ledger import atomic
from farthing.errors import StoreError
from farthing.traces.base import Trace
from farthing.traces.store_file import (
    INSERT_CALL,
    INSERT_TRACE,
    SELECT_CALLS,
    SELECT_TRACES,
    call_row,
    check_exists,
    explained,
    to_read,
    to_write,
    trace_from,
    trace_row,
    transaction,
)
from farthing.traces.system import System

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


@dataclass(frozen=True)
class StoreInfo:
    """What a store holds."""

    version: int
    """Number of the last migration that was applied."""
    traces: int
    calls: int
    rounds: int
    """The deepest round of any question."""
    cost_nano: int
    """Recorded cost of all calls, in nano-dollars."""
    tasks: dict[str, int]
    """Name to questions, as in `groups` and `splits`."""
    groups: dict[str, int]
    splits: dict[str, int]
    models: dict[str, int]
    """Name to calls, as in `roles`."""
    roles: dict[str, int]
    graded: int
    """Questions whose recorded grades say whether any answer is right."""
    solvable: float | None
    """Share of the graded questions that have a right answer; None where none is graded."""
    missing: dict[str, int]
    """Optional field to the calls that lack it; fields that no call lacks are absent."""
    extra: dict[str, int]
    """Any other recorded number to the calls that have it."""
    imports: list[Import]


class Store:
    """A file of traces; `with Store.open("traces.db") as store:`.

    >>> from farthing.traces.base import Call
    >>> with Store.open(":memory:") as store:
    ...     call = Call(round=1, role="base", answer="4", cost_usd=4.89e-05)
    ...     added = store.add([Trace(id="q1", question="2 + 2?", gold=["4"], calls=[call])], "demo")
    ...     added, next(store.traces()).calls[0].answer, store.info().cost_nano
    (1, '4', 48900)
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
            log = self._connection.execute(
                "INSERT INTO imports (source, sha256) VALUES (?, ?)", (source, _sha256(source))
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

    def traces(
        self, task: str | None = None, group: str | None = None, split: str | None = None
    ) -> Iterator[Trace]:
        """Yield the traces in the order of their import, one at a time, as they were added.

        Args:
            task: only this task's, as with `group` and `split`; None for all.
            group: only this stratum's.
            split: only this part's.
        """
        wanted = {"task": task, "stratum": group, "split": split}
        with explained(self._path):
            for position, *row in self._connection.execute(SELECT_TRACES, wanted):
                yield trace_from(row, self._connection.execute(SELECT_CALLS, (position,)))

    def count(self) -> int:
        """Return the number of questions."""
        with explained(self._path):
            return int(self._one("SELECT count(*) FROM traces"))

    def info(self) -> StoreInfo:
        """Count what the store holds."""
        with explained(self._path):
            graded, solvable = self._connection.execute(
                "SELECT count(*), avg(solved) FROM (SELECT max(correct) AS solved FROM calls"
                " GROUP BY trace HAVING solved = 1"
                " OR (solved = 0 AND NOT sum(answer IS NOT NULL AND correct IS NULL)))"
            ).fetchone()
            calls = self._one("SELECT count(*) FROM calls")
            return StoreInfo(
                version=self._one("PRAGMA user_version"),
                traces=self._one("SELECT count(*) FROM traces"),
                calls=calls,
                rounds=self._one("SELECT coalesce(max(round), 0) FROM calls"),
                cost_nano=self._one("SELECT coalesce(sum(cost_nano), 0) FROM calls"),
                tasks=self._counts("SELECT task, count(*) FROM traces GROUP BY 1"),
                groups=self._counts("SELECT stratum, count(*) FROM traces GROUP BY 1"),
                splits=self._counts("SELECT split, count(*) FROM traces GROUP BY 1"),
                models=self._counts("SELECT model, count(*) FROM calls GROUP BY 1"),
                roles=self._counts("SELECT role, count(*) FROM calls GROUP BY 1"),
                graded=graded,
                solvable=solvable,
                missing=self._missing(calls),
                extra=self._counts(
                    "SELECT key, count(*) FROM calls, json_each(calls.extra) GROUP BY 1"
                ),
                imports=[
                    Import(*row)
                    for row in self._connection.execute(
                        "SELECT source, sha256, count(traces.id), imported_at FROM imports"
                        " LEFT JOIN traces ON traces.import = imports.id"
                        " GROUP BY imports.id ORDER BY imports.id"
                    )
                ],
            )

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
        """Write a batch; its first trace goes one past `position`."""
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

    def _missing(self, calls: int) -> dict[str, int]:
        row = self._connection.execute(
            "SELECT count(model) AS model, count(answer) AS answer, count(correct) AS correct,"
            " count(text) AS text, count(verdict) AS verdict, count(confidence) AS confidence,"
            " count(uncertainty) AS uncertainty, count(input_tokens) AS input_tokens,"
            " count(output_tokens) AS output_tokens, count(tool_calls) AS tool_calls,"
            " count(latency_s) AS latency_s, count(cost_nano) AS cost_usd FROM calls"
        )
        fields = [column[0] for column in row.description]
        return {f: calls - k for f, k in zip(fields, row.fetchone(), strict=True) if k < calls}

    def _one(self, query: str) -> Any:
        return self._connection.execute(query).fetchone()[0]

    def _counts(self, query: str) -> dict[str, int]:
        return {name: k for name, k in self._connection.execute(query) if name is not None}


def _sha256(source: str) -> str | None:
    if not Path(source).is_file():
        return None
    with Path(source).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
