"""Accounts as a plain list of what happened, and a clock that is moved by hand."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from farthing_gateway.storage.ledger.base import Amount, Hold, Limit

Sums = dict[str, tuple[int, int, int]]


@dataclass
class MovedClock:
    """Stands still until it is moved."""

    time: datetime = datetime(2026, 11, 30, 23, 58, 40, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def move(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@dataclass
class Entry:
    """A hold and what became of it."""

    hold: Hold
    ends: datetime
    state: str
    charged: Amount = field(default_factory=lambda: Amount(0, 0, 0))


def same_window(period: str, one: datetime, other: datetime) -> bool:
    fields = {"minute": 5, "hour": 4, "day": 3, "month": 2, "total": 0}[period]
    return one.timetuple()[:fields] == other.timetuple()[:fields]


class Reference:
    """Adds up every entry ever made whenever it is asked."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def sums(self, account: str, period: str, now: datetime) -> Sums:
        """Return settled, held and, as its first number, overcharged."""
        mine = [
            entry
            for entry in self.entries
            if account in entry.hold.accounts and same_window(period, entry.hold.made_at, now)
        ]
        held = [entry.hold.amount for entry in mine if entry.state in {"reserved", "sent"}]
        settled = [entry.charged for entry in mine]
        over = sum(max(0, entry.charged.nano - entry.hold.amount.nano) for entry in mine)
        return {"settled": added(settled), "held": added(held), "overcharged": (over, 0, 0)}

    def broken(
        self, hold_accounts: list[str], amount: Amount, limits: list[Limit], now: datetime
    ) -> list[tuple[Limit, int]]:
        """Return the limits that a reservation would break, with what is left of each."""
        found = []
        for limit in limits:
            if limit.account not in hold_accounts:
                continue
            sums = self.sums(limit.account, limit.period, now)
            unit = ["usd", "tokens", "calls"].index(limit.unit)
            used = sums["settled"][unit] + sums["held"][unit]
            if used + (amount.nano, amount.tokens, amount.calls)[unit] > limit.most:
                found.append((limit, max(0, limit.most - used)))
        return found

    def sweep(self, now: datetime) -> tuple[int, int]:
        ended = [e for e in self.entries if e.state in {"reserved", "sent"} and e.ends <= now]
        sent = [entry for entry in ended if entry.state == "sent"]
        for entry in ended:
            if entry.state == "sent":
                entry.state, entry.charged = "unknown", entry.hold.amount
            else:
                entry.state = "closed"
        return len(ended) - len(sent), len(sent)


def added(amounts: list[Amount]) -> tuple[int, int, int]:
    return (
        sum(amount.nano for amount in amounts),
        sum(amount.tokens for amount in amounts),
        sum(amount.calls for amount in amounts),
    )
