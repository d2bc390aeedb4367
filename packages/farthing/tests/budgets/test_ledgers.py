"""Every ledger keeps the cap, held to a plain list of what happened."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from farthing.budgets.ledger import Ledger, MemoryLedger, Reservation, SqliteLedger
from farthing.errors import BudgetError
from farthing.traces.store import Store

CAP = 100
amounts = st.integers(0, 60)


class AnyLedger(RuleBasedStateMachine):
    """Reserve, settle and release at random; the model is two lists of numbers."""

    reservations: Bundle[Reservation] = Bundle("reservations")

    def __init__(self) -> None:
        super().__init__()
        self.closing = ExitStack()
        self.ledger = self.open()
        self.open_nano: list[int] = []
        self.settled_nano: list[int] = []
        self.over_nano = 0
        self.past_over_nano = 0
        self.made: list[Reservation] = []

    def open(self) -> Ledger:
        return MemoryLedger(CAP)

    def teardown(self) -> None:
        self.closing.close()

    @rule(target=reservations, nano=amounts)
    def reserve(self, nano: int) -> Reservation:
        fits = sum(self.open_nano) + sum(self.settled_nano) + nano <= CAP and not self.over_nano
        try:
            reservation = self.ledger.reserve(nano)
        except BudgetError:
            assert not fits
            return Reservation(-1, nano)
        assert fits
        self.open_nano.append(nano)
        self.made.append(reservation)
        return reservation

    def is_open(self, reservation: Reservation) -> bool:
        """Return whether the present run made it: not one that died, and none was refused."""
        return any(reservation is one for one in self.made)

    @rule(reservation=consumes(reservations), actual=amounts)
    def settle(self, reservation: Reservation, actual: int) -> None:
        if not self.is_open(reservation):
            return
        self.ledger.settle(reservation, actual)
        self.open_nano.remove(reservation.nano)
        self.settled_nano.append(actual)
        self.over_nano += max(0, actual - reservation.nano)
        with pytest.raises(ValueError, match="not open"):
            self.ledger.settle(reservation, 0)

    @rule(reservation=consumes(reservations))
    def release(self, reservation: Reservation) -> None:
        if not self.is_open(reservation):
            return
        self.ledger.release(reservation)
        self.open_nano.remove(reservation.nano)
        with pytest.raises(ValueError, match="not open"):
            self.ledger.release(reservation)

    @invariant()
    def agrees(self) -> None:
        balance = self.ledger.balance()
        assert balance.settled_nano == sum(self.settled_nano)
        assert balance.reserved_nano == sum(self.open_nano)
        assert balance.overcharged_nano == self.over_nano
        assert (
            balance.settled_nano + balance.reserved_nano
            <= CAP + self.over_nano + self.past_over_nano
        )


class DurableLedger(AnyLedger):
    """The same in a file that is closed and opened again at random."""

    def open(self) -> Ledger:
        folder = self.closing.enter_context(TemporaryDirectory())
        self.connection = self.closing.enter_context(
            Store.open(Path(folder) / "ledger.db")
        ).connection
        return SqliteLedger(self.connection, CAP)

    @rule()
    def open_again(self) -> None:
        """The run dies, and the next one charges in full what it left, without a grudge."""
        self.ledger = ledger = SqliteLedger(self.connection, CAP)
        assert ledger.charge_abandoned() == sum(self.open_nano)
        self.settled_nano += self.open_nano
        self.open_nano, self.made = [], []
        self.past_over_nano += self.over_nano
        self.over_nano = 0

    @invariant()
    def is_in_the_file(self) -> None:
        rows = self.connection.execute("SELECT settled_nano, reserved_nano FROM spending")
        assert rows.fetchall() == [(sum(self.settled_nano), sum(self.open_nano))]


quick = settings(deadline=None, max_examples=40, stateful_step_count=30)
TestMemoryLedger = AnyLedger.TestCase
TestMemoryLedger.settings = quick
TestSqliteLedger = DurableLedger.TestCase
TestSqliteLedger.settings = quick


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger(5_000)
    else:
        with Store.open(tmp_path / "ledger.db") as store:
            yield SqliteLedger(store.connection, 5_000)


def test_an_overcharge_is_recorded_and_ends_it(ledger: Ledger) -> None:
    ledger.settle(ledger.reserve(10), 25)
    assert (ledger.balance().settled_nano, ledger.balance().overcharged_nano) == (25, 15)
    with pytest.raises(BudgetError, match=r"more than it could by its price.*\[prices\]"):
        ledger.reserve(1)


def test_a_refusal_names_the_amounts(ledger: Ledger) -> None:
    ledger.reserve(4_500)
    with pytest.raises(BudgetError, match=r"cost \$0.0000006, and of the cap of \$0.000005 only"):
        ledger.reserve(600)
    with pytest.raises(BudgetError, match=r"only \$0.0000005 is left; .* a larger --max-cost \(in"):
        ledger.reserve(600)


def test_negative_money_is_refused(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match=r"is −\$0.000000001; it must be at least \$0"):
        ledger.reserve(-1)
    with pytest.raises(ValueError, match=r"is −\$0.000000001; it must be at least \$0"):
        ledger.settle(ledger.reserve(1), -1)


def test_threads_share_a_ledger_in_memory() -> None:
    memory = MemoryLedger(5_000)
    assert sum(_race([lambda: memory] * 8, 25)) == 5


def test_connections_share_a_ledger_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Store.open(path):
        pass

    def opened() -> SqliteLedger:
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        return SqliteLedger(connection, 5_000)

    assert sum(_race([opened] * 8, 25)) == 5
    with Store.open(path) as store:
        assert SqliteLedger(store.connection, 5_000).balance().reserved_nano == 5_000


def _race(opens: list, tries: int) -> list[int]:  # type: ignore[type-arg]
    """Reserve 1,000 from many threads at once; return how often each was admitted."""
    admitted = [0] * len(opens)
    barrier = threading.Barrier(len(opens))

    def run(k: int) -> None:
        ledger = opens[k]()
        barrier.wait()
        for _ in range(tries):
            try:
                ledger.reserve(1_000)
            except BudgetError:
                continue
            admitted[k] += 1

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(opens))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return admitted


def test_what_a_dead_run_reserved_is_charged_in_full(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Store.open(path) as store:
        dead = SqliteLedger(store.connection, 100)
        dead.settle(dead.reserve(30), 20)
        dead.reserve(50)
    with Store.open(path) as store:
        ledger = SqliteLedger(store.connection, 100)
        assert ledger.charge_abandoned() == 50
        assert ledger.balance().settled_nano == 70
        with pytest.raises(BudgetError):
            ledger.reserve(31)
        ledger.reserve(30)
