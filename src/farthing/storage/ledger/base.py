"""What accounts are: a call is made only if the dearest outcome still fits every limit on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from farthing.errors import BudgetError
from farthing.money import dollars
from farthing.storage.ledger.periods import Period

Unit = Literal["usd", "tokens", "calls"]


@dataclass(frozen=True)
class Limit:
    """The most that an account may spend of a unit within a period."""

    account: str
    """Whose it is: `all`, `key:ID`, `team:NAME`, `model:NAME`, `policy:NAME` or any other name."""
    unit: Unit
    period: Period
    """A calendar period in UTC; `total` is all time."""
    most: int
    """In nano-dollars, tokens or calls."""


@dataclass(frozen=True)
class Amount:
    """What a call costs, or can cost at most."""

    nano: int = 0
    """In nano-dollars."""
    tokens: int = 0
    calls: int = 1

    def of(self, unit: Unit) -> int:
        """Return how much it is of one unit.

        >>> Amount(nano=48_900, tokens=12).of("tokens")
        12
        """
        return {"usd": self.nano, "tokens": self.tokens, "calls": self.calls}[unit]


NOTHING = Amount(calls=0)


@dataclass(frozen=True)
class Hold:
    """An amount set aside for one call."""

    id: str
    amount: Amount
    accounts: tuple[str, ...]
    """All accounts that it counts in."""
    made_at: datetime
    """Names the periods that it counts in, whenever it is settled."""


@dataclass(frozen=True)
class Balance:
    """Where an account stands in the present window of a period."""

    account: str
    period: Period
    settled: Amount
    """What finished calls cost, and those of unknown outcome could cost."""
    held: Amount
    """The most that calls under way can cost."""
    overcharged_nano: int
    """What calls cost beyond their reservations; part of what is settled."""
    starts_at: datetime | None
    """None of the total."""
    resets_at: datetime | None
    """None of the total."""


@dataclass(frozen=True)
class Unknown:
    """A call that was sent and whose outcome nobody knows; it is charged in full."""

    id: str
    amount: Amount
    """What it could cost at most, and is charged."""
    accounts: tuple[str, ...]
    note: str
    """What its reservation said about it."""
    made_at: datetime
    marked_at: datetime


@dataclass(frozen=True)
class Swept:
    """What became of holds whose lease had ended."""

    returned: int
    """Holds that were never sent: their amounts came back."""
    charged: int
    """Holds that were sent: charged in full, and marked."""


@dataclass(frozen=True)
class New:
    """The key was free, or its owner's lease had ended: the request is the caller's to run."""


@dataclass(frozen=True)
class UnderWay:
    """The same request is being run."""

    until: datetime
    """End of its lease."""


@dataclass(frozen=True)
class Done:
    """The same request was answered before."""

    status: int
    body: bytes


@dataclass(frozen=True)
class Different:
    """The key belongs to another request."""


Claimed = New | UnderWay | Done | Different


class LimitError(BudgetError):
    """A limit leaves no room for a call.

    >>> print(LimitError(Limit("team:a", "usd", "total", 5_000_000_000), 20_000_000, 10_000_000))
    the call can cost $0.02, and of the limit of $5 in total on team:a only $0.01 is left; the \
limit does not reset: raise it to go on
    """

    def __init__(
        self, limit: Limit, needed: int, left: int, resets_at: datetime | None = None
    ) -> None:
        period = "in total" if limit.period == "total" else f"a {limit.period}"
        again = f"it resets at {resets_at:%Y-%m-%d %H:%M} UTC" if resets_at else ""
        super().__init__(
            f"the call can cost {said(limit.unit, needed)}, and of the limit of "
            f"{said(limit.unit, limit.most)} {period} on {limit.account} only "
            f"{said(limit.unit, left)} {'is' if limit.unit == 'usd' or left == 1 else 'are'} left; "
            f"{again or 'the limit does not reset: raise it to go on'}"
        )
        self.limit = limit
        self.left = left
        """In the limit's unit."""
        self.resets_at = resets_at
        """When its next window begins; None of the total."""


class LeaseError(BudgetError):
    """A hold is open no more: nothing may be sent on it, and nothing is left to settle."""

    def __init__(self, hold_id: str) -> None:
        super().__init__(
            f"reservation {hold_id} is not open: it was settled or given back, or its lease ended "
            "before it was sent; reserve again before sending"
        )


def said(unit: Unit, amount: int) -> str:
    """Say an amount of a unit.

    >>> said("usd", 5_000_000), said("calls", 1), said("tokens", 12_000)
    ('$0.005', '1 call', '12,000 tokens')
    """
    if unit == "usd":
        return dollars(amount)
    return f"{amount:,} {unit.removesuffix('s') if amount == 1 else unit}"


class Accounts(Protocol):
    """Keeps settled + held at or below every limit, for many tasks, processes and machines.

    A hold counts in each of its accounts, and there in the minute, hour, day and month in which
    it was reserved and in the total. Whatever it is settled for is charged to those windows, also
    after midnight. Only a provider that charges more than a call's largest cost breaks a limit.

    Every method raises StoreError where the database cannot be read or written.
    """

    async def reserve(
        self,
        accounts: Sequence[str],
        amount: Amount,
        limits: Sequence[Limit],
        *,
        lease_s: float,
        sent: bool = False,
        note: str = "",
    ) -> Hold:
        """Set aside the most that a call can cost, in all of its accounts or in none.

        Args:
            accounts: the accounts that it counts in, at least one.
            amount: the most that it can cost.
            limits: what is checked; limits on other accounts mean nothing here.
            lease_s: seconds after which the hold is swept, unless it is closed before.
            sent: whether the call is sent at once, so that `sent` need not be called.
            note: what to say of the call should its outcome be unknown; no secrets.

        Raises:
            LimitError: it breaks a limit, of several the one that resets last; nothing was written.
        """
        ...

    async def sent(self, hold: Hold) -> None:
        """Say that the call is about to be sent: an ended lease now charges it in full.

        Raises:
            LeaseError: the hold was swept; do not send.
        """
        ...

    async def extend(self, hold: Hold, lease_s: float) -> None:
        """Let the lease end so many seconds from now; raises like `sent`."""
        ...

    async def settle(self, hold: Hold, amount: Amount) -> None:
        """Put what a call really cost in place of its reservation, in the windows of that.

        What goes beyond the reservation is recorded and counted as overcharged. A hold that was
        marked unknown meanwhile is corrected.

        Raises:
            LeaseError: it was closed before, or swept without ever being sent.
        """
        ...

    async def release(self, hold: Hold) -> None:
        """Give a hold back: nothing was sent. Raises like `settle`."""
        ...

    async def unknown(self, hold: Hold) -> None:
        """Charge a hold in full and mark it: nobody knows its outcome. Raises like `settle`."""
        ...

    async def sweep(self) -> Swept:
        """Close holds whose lease has ended: never sent comes back, sent is charged and marked."""
        ...

    async def unknowns(self) -> list[Unknown]:
        """Return the calls of unknown outcome that nobody has reconciled, oldest first."""
        ...

    async def reconcile(self, hold_id: str, amount: Amount) -> None:
        """Put the real cost of a call of unknown outcome in place of the full charge.

        Raises:
            InputError: no marked call has this id.
        """
        ...

    async def balances(self, accounts: Sequence[str]) -> list[Balance]:
        """Return where accounts stand now, in each period: `len(accounts) * 5` balances."""
        ...

    async def claim(self, key: str, fingerprint: str, *, lease_s: float) -> Claimed:
        """Ask to run a request under an idempotency key; of many askers one gets `New`.

        Args:
            key: the key; one that is unique to its user.
            fingerprint: hash of the request.
            lease_s: seconds after which another asker gets `New`, unless `finish` came first.
        """
        ...

    async def finish(self, key: str, status: int, body: bytes) -> None:
        """Keep the answer to a request for all later askers; the first answer stays."""
        ...

    async def abandon(self, key: str) -> None:
        """Free a key whose request was not answered."""
        ...

    async def forget(self, before: datetime) -> int:
        """Drop what nobody asks for any more; return how many keys that were.

        These are keys claimed before a moment, but none whose lease lasts, and minutes and hours
        that ended before it.
        """
        ...

    async def aclose(self) -> None:
        """Finish what waits, and close the database."""
        ...
