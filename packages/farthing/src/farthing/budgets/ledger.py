"""A ledger: it says yes to a call only if the dearest outcome still fits the cap.

One is in memory and ends with the process, one is in the file of a trace store.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Protocol

from farthing.errors import BudgetError
from farthing.money import dollars


@dataclass(frozen=True)
class Reservation:
    """Money set aside for one call."""

    number: int
    nano: int
    """The most that the call can cost, in nano-dollars."""


@dataclass(frozen=True)
class Balance:
    """Where a ledger stands; all in nano-dollars."""

    cap_nano: int
    settled_nano: int
    """What finished calls cost."""
    reserved_nano: int
    """The most that calls under way can cost."""
    overcharged_nano: int = 0
    """What this ledger's calls cost beyond their reservations."""
    name: str = "the cap"
    """What messages call it."""
    option: str = "--max-cost (in Python cap_nano)"
    """What sets it."""

    @property
    def left_nano(self) -> int:
        """What may still be reserved: at least 0."""
        return max(0, self.cap_nano - self.settled_nano - self.reserved_nano)

    def refusal(self, largest_nano: int) -> BudgetError | None:
        """Return why a call of this cost is not allowed; None where it is."""
        if self.overcharged_nano:
            return BudgetError(
                f"a call cost {dollars(self.overcharged_nano)} more than it could by its "
                "price; nothing more is sent: correct the model's line under [prices]"
            )
        if self.settled_nano + self.reserved_nano + largest_nano <= self.cap_nano:
            return None
        return BudgetError(
            f"the next call can cost {dollars(largest_nano)}, and of {self.name} of "
            f"{dollars(self.cap_nano)} only {dollars(self.left_nano)} is left; raise {self.name} "
            f"to go on, with a larger {self.option}"
        )


class Ledger(Protocol):
    """Keeps settled + reserved at or below the cap, whoever calls it and from where.

    Only a provider that charges more than the largest cost of a call can break the cap; the
    ledger then records what was charged and refuses every later reservation.
    """

    def balance(self) -> Balance:
        """Return where it stands."""
        ...

    def reserve(self, largest_nano: int) -> Reservation:
        """Set aside the most that a call can cost, in nano-dollars.

        Raises:
            BudgetError: it does not fit, or a call was overcharged; nothing was set aside.
        """
        ...

    def settle(self, reservation: Reservation, actual_nano: int) -> None:
        """Put what a call really cost in place of its reservation.

        Raises:
            ValueError: the reservation is not open, or the cost is negative.
        """
        ...

    def release(self, reservation: Reservation) -> None:
        """Give a reservation back: nothing was sent. Raises like `settle`."""
        ...


def checked(nano: int) -> int:
    """Return an amount of money that is none below 0.

    Raises:
        ValueError: it is.
    """
    if nano < 0:
        raise ValueError(f"an amount of money is {dollars(nano)}; it must be at least $0")
    return nano


class MemoryLedger:
    """A ledger in memory, safe to use from several threads.

    >>> ledger = MemoryLedger(10)
    >>> first = ledger.reserve(6)
    >>> ledger.settle(first, 2)
    >>> ledger.reserve(8).nano, ledger.balance().left_nano
    (8, 0)
    """

    def __init__(
        self, cap_nano: int, name: str = Balance.name, option: str = Balance.option
    ) -> None:
        """Begin with nothing spent; `name` is what messages call the cap, `option` what sets it."""
        self._name, self._option = name, option
        self._cap_nano = checked(cap_nano)
        self._settled_nano = 0
        self._overcharged_nano = 0
        self._open: dict[int, int] = {}
        self._reserved_nano = 0
        self._numbers = count(1)
        self._lock = Lock()

    def balance(self) -> Balance:
        """Return where it stands."""
        with self._lock:
            return self._balance()

    def reserve(self, largest_nano: int) -> Reservation:
        """Set aside the most that a call can cost; see `Ledger`."""
        with self._lock:
            refusal = self._balance().refusal(checked(largest_nano))
            if refusal is not None:
                raise refusal
            number = next(self._numbers)
            self._open[number] = largest_nano
            self._reserved_nano += largest_nano
            return Reservation(number, largest_nano)

    def settle(self, reservation: Reservation, actual_nano: int) -> None:
        """Put what a call really cost in place of its reservation; see `Ledger`."""
        with self._lock:
            checked(actual_nano)
            self._close(reservation)
            self._settled_nano += actual_nano
            self._overcharged_nano += max(0, actual_nano - reservation.nano)

    def release(self, reservation: Reservation) -> None:
        """Give a reservation back; see `Ledger`."""
        with self._lock:
            self._close(reservation)

    def _balance(self) -> Balance:
        return Balance(
            self._cap_nano,
            self._settled_nano,
            self._reserved_nano,
            self._overcharged_nano,
            self._name,
            self._option,
        )

    def _close(self, reservation: Reservation) -> None:
        if self._open.pop(reservation.number, None) is None:
            raise ValueError(f"reservation {reservation.number} is not open")
        self._reserved_nano -= reservation.nano


class SqliteLedger:
    """A ledger in the table `spending`.

    Each step is one statement, in a transaction of its own or in the caller's: of several
    connections and processes one goes first, so that the cap holds between them as well. Which
    reservations are open is known to the ledger that made them; what a dead one leaves is a sum.
    """

    def __init__(self, connection: sqlite3.Connection, cap_nano: int) -> None:
        """Keep the ledger of an open store.

        Args:
            connection: to the store, in autocommit mode.
            cap_nano: the cap on everything that was ever spent in this file.
        """
        self._connection = connection
        self._cap_nano = checked(cap_nano)
        self._overcharged_nano = 0
        self._numbers = count(1)
        self._open: set[int] = set()

    def balance(self) -> Balance:
        """Return where it stands."""
        settled, reserved = self._connection.execute(
            "SELECT settled_nano, reserved_nano FROM spending"
        ).fetchone()
        return Balance(self._cap_nano, settled, reserved, self._overcharged_nano)

    def reserve(self, largest_nano: int) -> Reservation:
        """Set aside the most that a call can cost; see `Ledger`."""
        cap = -1 if self._overcharged_nano else self._cap_nano
        fits = self._connection.execute(
            "UPDATE spending SET reserved_nano = reserved_nano + ?1"
            " WHERE settled_nano + reserved_nano + ?1 <= ?2",
            (checked(largest_nano), cap),
        ).rowcount
        if not fits:
            raise self.balance().refusal(largest_nano) or AssertionError("it does fit")
        number = next(self._numbers)
        self._open.add(number)
        return Reservation(number, largest_nano)

    def settle(self, reservation: Reservation, actual_nano: int) -> None:
        """Put what a call really cost in place of its reservation; see `Ledger`."""
        self._close(reservation, checked(actual_nano))
        self._overcharged_nano += max(0, actual_nano - reservation.nano)

    def release(self, reservation: Reservation) -> None:
        """Give a reservation back; see `Ledger`."""
        self._close(reservation, 0)

    def charge_abandoned(self) -> int:
        """Settle in full what a dead process had reserved; return it, in nano-dollars.

        Nobody knows what became of those calls. Only for the one process that writes the store.
        """
        abandoned = self.balance().reserved_nano
        self._connection.execute(
            "UPDATE spending SET settled_nano = settled_nano + reserved_nano, reserved_nano = 0"
        )
        return abandoned

    def _close(self, reservation: Reservation, actual_nano: int) -> None:
        if reservation.number not in self._open:
            raise ValueError(f"reservation {reservation.number} is not open")
        self._connection.execute(
            "UPDATE spending SET reserved_nano = reserved_nano - ?,"
            " settled_nano = settled_nano + ?",
            (reservation.nano, actual_nano),
        )
        self._open.remove(reservation.number)


@contextmanager
def atomic(connection: sqlite3.Connection) -> Iterator[None]:
    """Make a block all or nothing; blocks nest, and the outermost one commits."""
    connection.execute("SAVEPOINT atomic")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK TO atomic")
        connection.execute("RELEASE atomic")
        raise
    connection.execute("RELEASE atomic")
