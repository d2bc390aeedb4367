"""Operations that are written together come to what they come to one by one."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing_gateway.storage.ledger import sqlite_operations
from farthing_gateway.storage.ledger.operations import (
    Broken,
    Check,
    Gone,
    HoldRow,
    Mark,
    Ok,
    Operation,
    Outcome,
    Reserve,
    Settle,
)
from farthing_gateway.storage.ledger.sqlite_operations import EXACT, carry_out, carry_out_all
from farthing_gateway.storage.migrations import migrate

WINDOWS = ["2026-11-26", "total"]
ACCOUNTS = (["all"], ["all", "key:a"], ["all", "key:b", "model:m"])


def reserve(name: str, nano: int, accounts: Sequence[str], most: int | None = None) -> Reserve:
    row = HoldRow(name, [*accounts], WINDOWS, nano, nano // 2, 1, "now", "later", "sent", "")
    checks = (
        [
            Check("all", "total", unit, most, need)
            for unit, need in (("usd", nano), ("tokens", nano // 2))
        ]
        if most is not None
        else []
    )
    return Reserve(row, checks)


@pytest.fixture(scope="module")
def empty() -> Any:
    """Return the bytes of a database with its tables."""
    with TemporaryDirectory() as folder:
        asyncio.run(migrate(f"{folder}/a.db"))
        with closing(sqlite3.connect(f"{folder}/a.db")) as made:
            return made.serialize()


def opened(empty: bytes) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.deserialize(empty)
    return connection


def tables(connection: sqlite3.Connection) -> list[Any]:
    windows = connection.execute("SELECT * FROM ledger_windows ORDER BY 1, 2").fetchall()
    return [windows, connection.execute("SELECT * FROM ledger_holds ORDER BY 1").fetchall()]


NANO = st.integers(0, 300)
AMOUNT = st.tuples(NANO, NANO, st.integers(0, 2))


@st.composite
def batches(draw: st.DrawFn) -> list[list[Operation]]:
    """Draw batches of holds that are made, closed and marked, some twice, some never made."""
    made = 0
    found: list[list[Operation]] = []
    for _ in range(draw(st.integers(1, 4))):
        batch: list[Operation] = []
        for _ in range(draw(st.integers(1, 8))):
            kind = draw(st.sampled_from(["reserve", "reserve", "settle", "settle", "mark"]))
            if kind == "reserve":
                made += 1
                most = draw(st.sampled_from([None, 300, 900]))
                accounts = draw(st.sampled_from(ACCOUNTS))
                batch.append(reserve(f"h{made}", draw(NANO), accounts, most))
                continue
            name = f"h{draw(st.integers(1, made + 1))}"
            if kind == "mark":
                batch.append(Mark(name, "now"))
            else:
                nano, tokens, calls = draw(AMOUNT)
                batch.append(
                    Settle(
                        name,
                        nano,
                        tokens,
                        calls,
                        marked=draw(st.sampled_from([False, False, False, True])),
                    )
                )
        found.append(batch)
    return found


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(made=batches())
def test_what_is_written_at_once_is_what_is_written_one_by_one(
    empty: bytes, made: list[list[Operation]]
) -> None:
    with closing(opened(empty)) as together, closing(opened(empty)) as alone:
        for batch in made:
            found = carry_out_all(together, batch)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sqlite_operations, "_AT_ONCE", {})
                assert carry_out_all(alone, batch) == found
            assert tables(together) == tables(alone)


def test_settlements_go_first_and_those_of_holds_made_here_after_them(empty: bytes) -> None:
    with closing(opened(empty)) as connection:
        assert carry_out(connection, reserve("old", 100, ["all"], 100)) == Ok()
        new = reserve("new", 100, ["all"], 100)
        batch: list[Operation] = [new, Settle("new", 7, 1, 1), Settle("old", 0, 0, 0)]
        assert carry_out_all(connection, batch) == [Ok(), Ok(), Ok()]
        ((settled,),) = connection.execute(
            "SELECT settled_nano FROM ledger_windows WHERE account = 'all' AND \"window\" = 'total'"
        )
        assert settled == 7


def test_a_marked_hold_is_corrected_beside_others(empty: bytes) -> None:
    with closing(opened(empty)) as connection:
        carry_out_all(connection, [reserve("a", 100, ["all"]), reserve("b", 100, ["all"])])
        assert carry_out(connection, Mark("a", "now")) == Ok()
        assert (
            carry_out_all(connection, [Settle("a", 30, 1, 1), Settle("b", 5, 1, 1)]) == [Ok()] * 2
        )
        ((settled, held),) = connection.execute(
            "SELECT settled_nano, held_nano FROM ledger_windows"
            " WHERE account = 'all' AND \"window\" = 'total'"
        )
        assert (settled, held) == (35, 0)


def test_of_reservations_that_do_not_all_fit_the_first_ones_do(empty: bytes) -> None:
    with closing(opened(empty)) as connection:
        some = [reserve(f"h{at}", 40, ["all"], 100) for at in range(4)]
        found: list[Outcome] = carry_out_all(connection, some)
        assert found[:2] == [Ok(), Ok()]
        assert all(isinstance(one, Broken) for one in found[2:])


def test_sums_beyond_what_is_exact_are_not_made(empty: bytes) -> None:
    with closing(opened(empty)) as connection:
        large = EXACT // 2 + 1
        some = [reserve(f"h{at}", large, ["all"]) for at in range(2)]
        assert carry_out_all(connection, some) == [Ok(), Ok()]
        closing_ = [Settle(f"h{at}", large - at, 0, 1) for at in range(2)]
        assert carry_out_all(connection, [*closing_, Settle("none", 0, 0, 0)]) == [
            Ok(),
            Ok(),
            Gone(),
        ]
        ((settled, held),) = connection.execute(
            "SELECT settled_nano, held_nano FROM ledger_windows"
            " WHERE account = 'all' AND \"window\" = 'total'"
        )
        assert (settled, held) == (2 * large - 1, 0)
