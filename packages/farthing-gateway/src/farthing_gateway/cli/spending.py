"""`farthing spending`: what budgets were charged, what is left, what calls nobody knows of."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from farthing.cli.console import remark, show, show_json
from farthing.cli.options import Json
from farthing.errors import InputError
from farthing.reports.table import Table, counted

SHOWN = 12
"""Characters of an id that a list has; they name it as well as the whole."""

if TYPE_CHECKING:
    from farthing_gateway.config import ServeConfig
    from farthing_gateway.spending_report import Account, LimitStatus, SpendingReport
    from farthing_gateway.storage.keys import KeyRecord
    from farthing_gateway.storage.ledger.base import UnknownCall


def spending(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The TOML file.")],
    unknown: Annotated[
        bool,
        typer.Option("--unknown", help="List the calls whose cost is unknown."),
    ] = False,
    settle: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Settle this call at its real cost, --usd."),
    ] = None,
    usd: Annotated[
        str | None, typer.Option(metavar="USD", help="The cost on the provider's bill.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Allow a cost above the largest possible one.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what every key, team, policy and model was charged, and what is left of each limit.

    This is what budgets go by: failed, timed-out and aborted calls count as well. A call whose
    outcome nobody knows is charged the most that it can have cost, until it is settled.

    Example: farthing spending serve.toml
    """
    from farthing_gateway.config import read_config

    if (settle is None) != (usd is None):
        raise InputError("--settle ID needs --usd, what the call cost; and --usd the id of a call")
    read = read_config(config)
    if settle is not None and usd is not None:
        _show_unknown(asyncio.run(_settled(read, settle, _nano(usd), beyond=yes)), as_json)
        remark(f"settled {settle} at ${usd}")
        return
    found = asyncio.run(_charged(read))
    if unknown:
        _show_unknown(found.unknown, as_json)
    elif as_json:
        show_json(found.to_json())
    else:
        show(Group(_accounts(found.accounts), Text(""), *_limits(found.limits)))
        if found.unknown:
            remark(_of_unknown(found))
        if found.disputed.calls:
            remark(_of_disputed(found))


async def _charged(config: "ServeConfig") -> "SpendingReport":
    from datetime import UTC, datetime

    from farthing_gateway.spending_report import all_accounts, all_limits, charged
    from farthing_gateway.storage.keys import open_keys
    from farthing_gateway.storage.ledger.ledger import open_ledger

    records: list[KeyRecord] = []
    if config.serve.keys:
        keys = await open_keys(config.serve.database)
        try:
            records = await keys.list()
        finally:
            await keys.aclose()
    ledger = await open_ledger(config.serve.database)
    try:
        limits = all_limits(config, records, datetime.now(UTC))
        return await charged(ledger, all_accounts(config, records), limits)
    finally:
        await ledger.aclose()


async def _settled(
    config: "ServeConfig", name: str, nano: int, *, beyond: bool
) -> "tuple[UnknownCall, ...]":
    from farthing.money import dollars
    from farthing_gateway.storage.ledger.base import Amount
    from farthing_gateway.storage.ledger.ledger import open_ledger

    ledger = await open_ledger(config.serve.database)
    try:
        there = {one.id: one for one in await ledger.unknowns()}
        known = [one for one in there if one.startswith(name)]  # as it is listed, or whole
        if len(known) != 1:
            said = "several calls" if known else "no call"
            raise InputError(f"{said} of unknown outcome begin with '{name}'; --unknown lists them")
        one = there.pop(known[0])
        if nano > one.amount.nano and not beyond:
            most = dollars(one.amount.nano)
            raise InputError(
                f"--usd: the call can have cost {most} at most; add --yes if the bill says more"
            )
        await ledger.reconcile(one.id, Amount(nano, one.amount.tokens, one.amount.calls))
        return tuple(there.values())
    finally:
        await ledger.aclose()


def _nano(usd: str) -> int:
    from farthing.money import nano_from_usd
    from farthing_gateway.storage.ledger.base import LARGEST

    try:
        nano = nano_from_usd(usd.removeprefix("$"))
    except (ValueError, ArithmeticError):
        nano = -1
    if not 0 <= nano <= LARGEST:
        raise InputError(f"--usd {usd}: is no amount; try --usd 0.0042, or --usd 0")
    return nano


def _accounts(accounts: "tuple[Account, ...]") -> Table:
    from farthing.money import dollars
    from farthing_gateway.config_sections import ALL

    lines = []
    for one in accounts:
        if one.name == ALL or one.total.calls or one.held.calls:
            money = (one.today.nano, one.total.nano, one.held.nano)
            lines.append((one.name, *map(dollars, money), f"{one.total.calls:,}"))
    headings = ("Charged to", "Today", "In all", "Under way", "Calls")
    return Table.of(headings, lines, layout=("prose",))


def _limits(limits: "tuple[LimitStatus, ...]") -> list[Table | Text]:
    from farthing_gateway.storage.ledger.base import said

    if not limits:
        return [
            Text("No limit is set: [[budgets]] sets one, and farthing keys limit one of a key.")
        ]
    lines = []
    for one in limits:
        limit = one.limit
        period = "in all" if limit.period == "total" else f"a {limit.period}"
        lines.append(
            (
                f"{limit.account} {said(limit.unit, limit.most)} {period}",
                *(_amount(limit.unit, part) for part in (one.spent, one.held, one.left)),
                "never" if one.resets_at is None else f"{one.resets_at:%m-%d %H:%M}",
            )
        )
    headings = ("Limit", "Spent", "Held", "Left", "Resets (UTC)")
    return [Table.of(headings, lines, layout=("prose",))]


def _amount(unit: str, amount: int) -> str:
    from farthing.money import dollars

    return dollars(amount) if unit == "usd" else f"{amount:,}"


def _of_unknown(found: "SpendingReport") -> str:
    from farthing.money import dollars

    calls, much = counted(len(found.unknown), "call"), dollars(found.unknown_nano)
    return (
        f"note: {much} of it is for {calls} of unknown outcome, charged at the most that they can "
        "have cost; --unknown lists them, and --settle ID --usd X says what one did cost"
    )


def _of_disputed(found: "SpendingReport") -> str:
    from farthing.money import dollars
    from farthing_gateway.config_sections import ALL

    most = found.disputed
    calls, much = counted(most.calls, "call"), dollars(most.nano)
    models = [one.name for one in found.accounts if one.disputed.calls and one.name != ALL]
    return (
        f"warning: {much} was claimed by the replies of {calls} beyond what they can have cost: it "
        f"is disputed and not charged ({', '.join(models)}); compare the provider's bill"
    )


def _show_unknown(unknown: "tuple[UnknownCall, ...]", as_json: bool) -> None:
    from farthing.money import dollars

    if as_json:
        show_json([_plain(one) for one in unknown])
        return
    if not unknown:
        remark("no call is of unknown outcome")
        return
    columns = (
        ("Id", lambda call: call.id[:SHOWN]),
        ("Charged to", lambda call: ", ".join(call.accounts[1:])),
        ("When (UTC)", lambda call: f"{call.made_at:%m-%d %H:%M}"),
        ("Most", lambda call: dollars(call.amount.nano)),
    )
    show(Table(columns, unknown, layout=("word", "prose")))


def _plain(one: "UnknownCall") -> dict[str, Any]:
    from msgspec import to_builtins

    from farthing.money import usd_from_nano

    plain: dict[str, Any] = to_builtins(one)
    return {**plain, "usd": usd_from_nano(one.amount.nano)}
