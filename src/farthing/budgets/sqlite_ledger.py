"""A ledger in the file of a trace store: what earlier runs spent counts too."""

import sqlite3
from itertools import count

from farthing.budgets.base import Balance, Reservation, checked


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
