"""What a ledger counts: amounts, limits and calendar periods in UTC, holds and idempotency keys."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from farthing.errors import BudgetError
from farthing.money import dollars

Period = Literal["minute", "hour", "day", "month", "total"]
PERIODS: tuple[Period, ...] = get_args(Period)

Now = Callable[[], datetime]
"""A clock: the present moment, in any time zone."""

_LENGTHS: dict[Period, int] = {"minute": 16, "hour": 13, "day": 10, "month": 7}
"""How much of a moment, written as `2026-11-22T14:05:09.123456Z`, names its window."""


def utc_now() -> datetime:
    """Return the present moment."""
    return datetime.now(UTC)


def written(moment: datetime) -> str:
    """Write a moment in UTC; the order of what is written is the order of time.

    >>> written(datetime(2026, 11, 22, 14, 5, tzinfo=UTC))
    '2026-11-22T14:05:00.000000Z'
    """
    naive = moment.astimezone(UTC).replace(tzinfo=None)
    return f"{naive.isoformat(timespec='microseconds')}Z"


def read(text: str) -> datetime:
    """Return the moment that `written` wrote."""
    return datetime.fromisoformat(text)


def windows(moment: datetime) -> list[str]:
    """Name the windows of all periods that a moment lies in, in the order of `PERIODS`.

    >>> windows(datetime(2026, 11, 22, 14, 5, tzinfo=UTC))
    ['2026-11-22T14:05', '2026-11-22T14', '2026-11-22', '2026-11', 'total']
    """
    whole = written(moment)
    return ["total" if one == "total" else whole[: _LENGTHS[one]] for one in PERIODS]


def window(period: Period, moment: datetime) -> str:
    """Name the window of a period that a moment lies in; no two periods share a name.

    >>> [window(period, datetime(2026, 11, 22, 14, 5, tzinfo=UTC)) for period in PERIODS]
    ['2026-11-22T14:05', '2026-11-22T14', '2026-11-22', '2026-11', 'total']
    """
    return "total" if period == "total" else written(moment)[: _LENGTHS[period]]


def starts(period: Period, moment: datetime) -> datetime | None:
    """Return when the window began that a moment lies in; None of the total."""
    if period == "total":
        return None
    rest = "0001-01-01T00:00:00.000000Z"[_LENGTHS[period] :]
    return read(window(period, moment) + rest)


def resets(period: Period, moment: datetime) -> datetime | None:
    """Return when the next window begins; None of the total, which has no other.

    >>> str(resets("month", datetime(2026, 12, 31, 23, 59, tzinfo=UTC)))
    '2027-01-01 00:00:00+00:00'
    """
    start = starts(period, moment)
    if start is None:
        return None
    if period == "month":
        return (start + timedelta(days=31)).replace(day=1)
    return start + timedelta(**{f"{period}s": 1})


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
class AccountBalance:
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
class UnknownCall:
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
        self,
        limit: Limit,
        needed: int,
        left: int,
        resets_at: datetime | None = None,
        advice: str = "",
        held: int = 0,
    ) -> None:
        under_way = ""
        if needed <= min(limit.most, left + held):
            back = said(limit.unit, held)
            under_way = f"; {back} more set aside for calls under way: it may fit once they end"
        period = "in total" if limit.period == "total" else f"a {limit.period}"
        again = f"it resets at {resets_at:%Y-%m-%d %H:%M} UTC" if resets_at else ""
        super().__init__(
            f"the call can cost {said(limit.unit, needed)}, and of the limit of "
            f"{said(limit.unit, limit.most)} {period} on {limit.account} only "
            f"{said(limit.unit, left)} {'is' if limit.unit == 'usd' or left == 1 else 'are'} left; "
            f"{again or 'the limit does not reset: raise it to go on'}"
            f"{under_way}{advice and '; '}{advice}"
        )
        self.limit = limit
        self.needed = needed
        """What the call can cost, in the limit's unit."""
        self.left = left
        """In the limit's unit."""
        self.resets_at = resets_at
        """When its next window begins; None of the total."""
        self.held = held
        """What calls under way may give back, in the limit's unit."""

    @property
    def may_fit_soon(self) -> bool:
        """Whether it may fit once calls under way have ended."""
        return self.needed <= min(self.limit.most, self.left + self.held)


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


LARGEST = 10**16
"""The most of a unit that one call may cost; sums of such amounts fit 64 bits."""


def checked_amount(amount: Amount) -> Amount:
    """Return an amount that is neither negative nor too large."""
    if not all(0 <= part <= LARGEST for part in (amount.nano, amount.tokens, amount.calls)):
        raise ValueError(f"{amount}: each part must lie between 0 and {LARGEST:,}")
    return amount


def checked_name(name: str) -> str:
    """Return a name that is not empty and can be printed."""
    if not name or not name.isprintable():
        raise ValueError(f"{name!r}: a name must have characters, and only printable ones")
    return name


def checked_names(accounts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of accounts, each once; raises like `checked_name`, and for none."""
    if not accounts:
        raise ValueError("name at least one account")
    return tuple(dict.fromkeys(checked_name(account) for account in accounts))
