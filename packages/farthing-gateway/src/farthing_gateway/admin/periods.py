"""The time that the overview is about: whole days in UTC, chosen by a name or by two dates."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from farthing.errors import InputError
from farthing_gateway.admin.figures import EVER, Figures, midnight

DAYS = {"today": 1, "7-days": 7, "30-days": 30}
"""Presets to how many days they have, today among them."""
ALL = "all"
DEFAULT = "7-days"
NAMES = {"today": "Today", "7-days": "7 days", "30-days": "30 days", ALL: "In all"}
_SLOTS = 48
"""Most bars of a chart."""
_HOURS = (1, 24, 7 * 24, 28 * 24)
"""Of one bar."""
_YEARS = range(1970, 9_999)


@dataclass(frozen=True)
class Days:
    """Days in UTC, one after the other."""

    name: str
    """That of the preset; empty: chosen by dates."""
    since: datetime
    until: datetime
    """The midnight after the last of them."""

    @property
    def first(self) -> date:
        """The first of them."""
        return self.since.date()

    @property
    def last(self) -> date:
        """The last of them."""
        return (self.until - timedelta(days=1)).date()

    @property
    def query(self) -> str:
        """What addresses of this time end with."""
        return f"since={self.first}&until={self.last + timedelta(days=1)}"

    @property
    def slot_hours(self) -> int:
        """How many hours a bar of its chart has."""
        hours = (self.until - self.since) // timedelta(hours=1)
        return next(
            (one for one in _HOURS if hours <= one * _SLOTS), -(-hours // _SLOTS // 24) * 24
        )


async def chosen(query: Mapping[str, str], figures: Figures, now: datetime) -> Days:
    """Return the days that an address names.

    Args:
        query: of the address: `range`, or `from` and `to`, of which one may be left out.
        figures: say when everything began.
        now: the present moment.
    """
    tomorrow = midnight(now) + timedelta(days=1)
    written = {name: query[name] for name in ("from", "to") if query.get(name)}
    name = query.get("range") or DEFAULT
    if written:
        last = _day(written["to"]) if "to" in written else midnight(now)
        first = _day(written["from"]) if "from" in written else await _beginning(figures, last)
        if last < first:
            raise InputError(f"the last day {last:%Y-%m-%d} is before the first {first:%Y-%m-%d}")
        return Days("", first, last + timedelta(days=1))
    if name == ALL:
        return Days(ALL, await _beginning(figures, now), tomorrow)
    if name not in DAYS:
        raise InputError(f"there is no range '{name[:20]}', but: {', '.join(NAMES)}")
    return Days(name, tomorrow - timedelta(days=DAYS[name]), tomorrow)


async def _beginning(figures: Figures, last: datetime) -> datetime:
    first = await figures.first()
    return midnight(last if first is None else min(first, last))


def _day(written: str) -> datetime:
    try:
        found = date.fromisoformat(written)
    except ValueError:
        found = EVER.date()
    if found.year not in _YEARS or found == EVER.date():
        raise InputError(f"'{written[:20]}' is no day; write it as 2026-11-22")
    return datetime.combine(found, time.min, UTC)
