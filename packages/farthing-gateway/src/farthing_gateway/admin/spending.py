"""What some days cost, by account: as the ledger was charged, which counts every call."""

from collections.abc import Sequence
from dataclasses import dataclass

from farthing_gateway.admin import periods
from farthing_gateway.admin.periods import Days
from farthing_gateway.config import ServeConfig
from farthing_gateway.config_sections import ALL
from farthing_gateway.spending_report import all_accounts
from farthing_gateway.storage.database import Database
from farthing_gateway.storage.keys import KeyRecord
from farthing_gateway.storage.ledger.base import NOTHING, Amount

KINDS = ("team", "key", "model", "policy")
_AT_ONCE = 500
"""Accounts that one statement names."""
_SUM = """
SELECT account, CAST(sum(settled_nano) AS BIGINT), CAST(sum(settled_tokens) AS BIGINT),
    CAST(sum(settled_calls) AS BIGINT)
FROM ledger_windows WHERE account IN ({}) AND {} GROUP BY account"""
_EVER = """
SELECT 1 FROM ledger_windows WHERE account = $1 AND "window" = 'total' AND settled_calls > 0"""
_OF_DAYS = 'length("window") = 10 AND "window" >= ${} AND "window" <= ${}'
"""Days are named as 2026-11-22."""


@dataclass(frozen=True)
class Spent:
    """What an account was charged."""

    account: str
    amount: Amount

    @property
    def name(self) -> str:
        """Whose account it is, without what kind it is of."""
        return self.account.partition(":")[2]


@dataclass(frozen=True)
class Spending:
    """What some days cost."""

    all: Amount
    by: dict[str, list[Spent]]
    """Kinds of accounts to those that were charged, the dearest first."""


async def has_spent(database: Database) -> bool:
    """Return whether anything was charged ever."""
    return bool(await database.read(_EVER, ALL))


async def spending(
    database: Database, config: ServeConfig, keys: Sequence[KeyRecord], days: Days
) -> Spending:
    """Return what days cost.

    Args:
        database: with the ledger.
        config: names models and policies.
        keys: whose accounts, and whose teams' accounts, are among them.
        days: which; all there are with what was charged before anything was recorded.
    """
    accounts = all_accounts(config, keys)
    found: dict[str, Amount] = {}
    for at in range(0, len(accounts), _AT_ONCE):
        some = accounts[at : at + _AT_ONCE]
        places = ", ".join(f"${number}" for number in range(1, len(some) + 1))
        if days.name == periods.ALL:
            when, values = "\"window\" = 'total'", list[str]()
        else:
            when = _OF_DAYS.format(len(some) + 1, len(some) + 2)
            values = [days.first.isoformat(), days.last.isoformat()]
        rows = await database.read(_SUM.format(places, when), *some, *values)
        found |= {account: Amount(*sums) for account, *sums in rows}
    spent = [Spent(account, amount) for account, amount in found.items() if amount.calls]
    spent.sort(key=lambda one: (-one.amount.nano, one.account))
    by = {kind: [one for one in spent if one.account.startswith(f"{kind}:")] for kind in KINDS}
    return Spending(found.get(ALL, NOTHING), by)
