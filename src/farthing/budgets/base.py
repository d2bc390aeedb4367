"""What a ledger is: it says yes to a call only if the dearest outcome still fits the cap."""

from dataclasses import dataclass
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
