"""What fails half-way leaves ledger and store as they were, in the file as well."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from farthing.budgets.ledger import SqliteLedger, atomic
from farthing.errors import BudgetError, StoreError
from farthing.runtime.journal import StoreJournal
from farthing.traces.base import Call, Trace
from farthing.traces.store import Store

CAP = 1_000
Spending = tuple[int, int]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store.open(path) as opened:
        yield opened


def in_the_file(path: Path) -> Spending:
    """Return what is settled and set aside, as another process reads it."""
    connection = sqlite3.connect(path)
    try:
        settled, reserved = connection.execute(
            "SELECT settled_nano, reserved_nano FROM spending"
        ).fetchone()
    finally:
        connection.close()
    return settled, reserved


def settled_and_reserved(ledger: SqliteLedger) -> Spending:
    balance = ledger.balance()
    return balance.settled_nano, balance.reserved_nano


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, BudgetError])
def test_a_block_that_fails_changes_nothing(
    store: Store, path: Path, failure: type[BaseException]
) -> None:
    ledger = SqliteLedger(store.connection, CAP)
    ledger.settle(ledger.reserve(100), 70)
    ledger.reserve(200)

    def half() -> None:
        with atomic(store.connection):
            ledger.settle(ledger.reserve(50), 40)
            ledger.reserve(300)
            assert settled_and_reserved(ledger) == (110, 500)
            raise failure

    with pytest.raises(failure):
        half()
    assert settled_and_reserved(ledger) == (70, 200)
    assert in_the_file(path) == (70, 200)
    assert not store.connection.in_transaction
    ledger.reserve(730)  # what is left, to the last nano-dollar
    assert in_the_file(path) == (70, 930)


def test_a_block_that_ends_well_is_in_the_file(store: Store, path: Path) -> None:
    ledger = SqliteLedger(store.connection, CAP)
    with atomic(store.connection):
        ledger.settle(ledger.reserve(50), 40)
        assert in_the_file(path) == (0, 0)
    assert in_the_file(path) == (40, 0)


def test_an_inner_block_that_fails_takes_nothing_from_the_outer_one(
    store: Store, path: Path
) -> None:
    ledger = SqliteLedger(store.connection, CAP)

    def inner() -> None:
        with atomic(store.connection):
            ledger.reserve(300)
            raise ValueError("inner")

    with atomic(store.connection):
        ledger.settle(ledger.reserve(50), 40)
        with pytest.raises(ValueError, match="inner"):
            inner()
        with atomic(store.connection):
            ledger.reserve(7)
        assert in_the_file(path) == (0, 0)
    assert in_the_file(path) == (40, 7)


def test_a_reservation_that_cannot_be_closed_stays_open(store: Store, path: Path) -> None:
    ledger = SqliteLedger(store.connection, CAP)
    held = ledger.reserve(100)
    store.connection.execute("PRAGMA busy_timeout = 0")
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            ledger.settle(held, 130)
        other.execute("ROLLBACK")
    finally:
        other.close()
    assert (in_the_file(path), ledger.balance().overcharged_nano) == ((0, 100), 0)
    ledger.settle(held, 60)
    assert in_the_file(path) == (60, 0)


def _leave_a_call(path: Path) -> None:
    """A run dies with a call of 300 under way."""
    with Store.open(path) as store:
        SqliteLedger(store.connection, CAP).reserve(300)
        store.connection.execute(
            "INSERT INTO call_log (key, question, round, role, asked, state, reserved_nano)"
            " VALUES ('k', 'q', 1, 'base', 'm', 'started', 300)"
        )


def test_taking_over_the_journal_is_all_or_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Log and ledger never disagree on what a dead run's calls cost."""
    _leave_a_call(path)

    def full(_: SqliteLedger) -> int:
        raise sqlite3.OperationalError("disk is full")

    query = "SELECT state, cost_nano FROM call_log"
    with Store.open(path) as store:
        with monkeypatch.context() as patched:
            patched.setattr(SqliteLedger, "charge_abandoned", full)
            with pytest.raises(sqlite3.OperationalError, match="disk is full"):
                StoreJournal(store, CAP, "test")
        assert store.connection.execute(query).fetchall() == [("started", None)]
        assert in_the_file(path) == (0, 300)
        StoreJournal(store, CAP, "test")
        assert store.connection.execute(query).fetchall() == [("unknown", 300)]
    assert in_the_file(path) == (300, 0)


def test_a_trace_that_cannot_be_stored_leaves_no_half_of_itself(store: Store, path: Path) -> None:
    """The calls come after the trace, and the second of them is no call."""
    ledger = SqliteLedger(store.connection, CAP)
    calls = [Call(round=1, role="base", answer="4"), Call(round=0, role="base", answer="4")]
    with atomic(store.connection):
        ledger.reserve(5)
        with pytest.raises(StoreError):
            store.append(Trace(id="q", gold=["4"], calls=calls), "test")
    assert in_the_file(path) == (0, 5)
    for table in ("traces", "calls", "imports"):
        [(count,)] = store.connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        assert (table, count) == (table, 0)
    store.append(Trace(id="q", gold=["4"], calls=calls[:1]), "test")
    assert store.count() == 1
