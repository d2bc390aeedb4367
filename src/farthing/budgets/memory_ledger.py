"""A ledger that ends with the process."""

from itertools import count
from threading import Lock

from farthing.budgets.base import Balance, Reservation, checked


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
