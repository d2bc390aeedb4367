"""Calendar periods in UTC, and the window of each that a moment lies in."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

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
