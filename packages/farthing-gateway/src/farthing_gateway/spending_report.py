"""What accounts were charged, and what is left of each limit: read from the ledger itself.

The ledger counts every call: those that failed, that timed out or that a client gave up as well. So
this is what budgets go by, where recorded traffic has the answered requests alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from farthing.money import nano_from_usd, usd_from_nano
from farthing_gateway.charging import DISPUTED
from farthing_gateway.config import ServeConfig
from farthing_gateway.config_sections import ALL, AUDIT, SHADOW
from farthing_gateway.storage.keys import KeyRecord
from farthing_gateway.storage.ledger.base import (
    NOTHING,
    AccountBalance,
    Amount,
    Limit,
    Period,
    Unit,
    UnknownCall,
)
from farthing_gateway.storage.ledger.ledger import AccountLedger


@dataclass(frozen=True)
class LimitStatus:
    """Where a limit stands; amounts in its unit, of `usd` in nano-dollars."""

    limit: Limit
    spent: int
    """Of finished calls, and of those of unknown outcome the most that they can have cost."""
    held: int
    """Set aside for calls under way."""
    resets_at: datetime | None
    """None of the total."""

    @property
    def left(self) -> int:
        """What a call may still cost."""
        return max(0, self.limit.most - self.spent - self.held)


@dataclass(frozen=True)
class Account:
    """What an account was charged."""

    name: str
    today: Amount
    """Since midnight, UTC."""
    total: Amount
    held: Amount
    """Set aside for calls under way."""
    disputed: Amount
    """What replies claimed beyond what their calls can have taken, over all time; not charged."""


@dataclass(frozen=True)
class SpendingReport:
    """What accounts were charged."""

    accounts: tuple[Account, ...]
    limits: tuple[LimitStatus, ...]
    unknown: tuple[UnknownCall, ...]
    """Calls of unknown outcome, which are charged in full; the oldest first."""

    @property
    def unknown_nano(self) -> int:
        """What those are charged, in nano-dollars."""
        return sum(one.amount.nano for one in self.unknown)

    @property
    def disputed(self) -> Amount:
        """What is disputed: of a call in each of its accounts, so that none has more than all."""
        each = (one.disputed for one in self.accounts)
        return max(each, key=lambda one: (one.nano, one.tokens), default=NOTHING)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values; money in US dollars."""
        return {
            "accounts": [
                {
                    "account": one.name,
                    "today": _amounts(one.today),
                    "total": _amounts(one.total),
                    "held": _amounts(one.held),
                    "disputed": _amounts(one.disputed),
                }
                for one in self.accounts
            ],
            "limits": [_standing(one) for one in self.limits],
            "unknown": {"calls": len(self.unknown), "usd": usd_from_nano(self.unknown_nano)},
            "disputed": _amounts(self.disputed),
        }


async def charged(
    ledger: AccountLedger, accounts: Iterable[str], limits: Iterable[Limit]
) -> SpendingReport:
    """Return what accounts were charged, and where limits stand.

    Args:
        ledger: the gateway's.
        accounts: which; those of limits are always among them.
        limits: of which to say what is left.
    """
    distinct = tuple(dict.fromkeys(limits))
    names = tuple(dict.fromkeys([*accounts, *(one.account for one in distinct)]))
    if not names:
        return SpendingReport((), (), ())
    asked = [*names, *(DISPUTED + name for name in names)]
    found = {(one.account, one.period): one for one in await ledger.balances(asked)}
    unknown = [one for one in await ledger.unknowns() if not {*names}.isdisjoint(one.accounts)]
    return SpendingReport(
        tuple(_account(name, found) for name in names),
        tuple(standing(one, found) for one in distinct),
        tuple(unknown),
    )


def standing(limit: Limit, found: Mapping[tuple[str, Period], AccountBalance]) -> LimitStatus:
    """Return where a limit stands, of balances by account and period."""
    one = found[limit.account, limit.period]
    spent, held = one.settled.of(limit.unit), one.held.of(limit.unit)
    return LimitStatus(limit, spent, held, one.resets_at)


def all_limits(config: ServeConfig, keys: Iterable[KeyRecord], now: datetime) -> list[Limit]:
    """Return every limit that holds: of the configuration, of trials and audits, of valid keys."""
    found = list(config.limits)
    if config.record is not None:
        usd = {SHADOW: config.record.usd_per_day, AUDIT: config.record.audit_usd_per_day}
        found += [
            Limit(f"policy:{name}", "usd", "day", nano_from_usd(most)) for name, most in usd.items()
        ]
    valid = [key for key in keys if key.is_valid(now)]
    return list(dict.fromkeys([*found, *(one for key in valid for one in key.on_account)]))


def all_accounts(config: ServeConfig, keys: Sequence[KeyRecord]) -> list[str]:
    """Return the accounts that there are: everything, then by key, team, policy and model."""
    background = [SHADOW, AUDIT] if config.record is not None else []
    teams = [key.team for key in keys if key.team is not None]
    return list(
        dict.fromkeys(
            [
                ALL,
                *(key.account for key in keys),
                *(f"team:{name}" for name in teams),
                *(f"policy:{name}" for name in [*config.policies, *background]),
                *(f"model:{name}" for name in config.models.sections),
            ]
        )
    )


def _account(name: str, found: Mapping[tuple[str, Period], AccountBalance]) -> Account:
    total, beyond = found[name, "total"], found[DISPUTED + name, "total"]
    return Account(name, found[name, "day"].settled, total.settled, total.held, beyond.settled)


def _amounts(amount: Amount) -> dict[str, float]:
    return {
        "usd": usd_from_nano(amount.nano),
        "tokens": amount.tokens,
        "calls": amount.calls,
    }


def _standing(one: LimitStatus) -> dict[str, Any]:
    limit = one.limit
    return {
        "account": limit.account,
        "unit": limit.unit,
        "period": limit.period,
        "limit": _in_unit(limit.unit, limit.most),
        "spent": _in_unit(limit.unit, one.spent),
        "held": _in_unit(limit.unit, one.held),
        "left": _in_unit(limit.unit, one.left),
        "resets_at": None if one.resets_at is None else one.resets_at.isoformat(),
    }


def _in_unit(unit: Unit, amount: int) -> float:
    return usd_from_nano(amount) if unit == "usd" else amount
