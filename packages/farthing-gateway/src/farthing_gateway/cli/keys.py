"""`farthing keys`: who may ask a gateway, for what, and how much they may spend."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast, get_args

import typer

from farthing.cli.command import PlainGroup, takes_options
from farthing.cli.console import remark, show, show_json
from farthing.cli.options import Json
from farthing.errors import InputError
from farthing.reports.table import Table
from farthing_gateway.cli.gateway_database import GatewayDatabase

if TYPE_CHECKING:
    from farthing_gateway.storage.keys import KeyLimit, KeyRecord, Keys, Scope
    from farthing_gateway.storage.ledger.base import Period, Unit

T = TypeVar("T")
app = typer.Typer(
    cls=PlainGroup, help="Make, list and revoke keys to a gateway.", no_args_is_help=True
)
UNITS = ("usd", "tokens", "calls")
Per = Literal["minute", "hour", "day", "month", "total"]


@dataclass(frozen=True)
class LimitOptions:
    """How much may be spent with a key."""

    usd: Annotated[
        list[str],
        typer.Option(metavar="USD[/PERIOD]", help="Limit in USD: 5, or 5/day; may be repeated."),
    ] = field(default_factory=list)
    tokens: Annotated[
        list[str], typer.Option(metavar="N[/PERIOD]", help="Limit on input and output tokens.")
    ] = field(default_factory=list)
    calls: Annotated[list[str], typer.Option(metavar="N[/PERIOD]", help="Limit on calls.")] = field(
        default_factory=list
    )
    per: Annotated[Per, typer.Option(help="Period of limits that do not name one.")] = "total"

    @property
    def limits(self) -> "list[KeyLimit]":
        """The limits that were given."""
        from farthing_gateway.storage.keys import KeyLimit

        return [
            KeyLimit(cast("Unit", unit), *_amount(text, unit, self.per))
            for unit in UNITS
            for text in getattr(self, unit)
        ]


@app.command()
@takes_options
def make(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A unique name for the key.")],
    where: GatewayDatabase,
    *,
    team: Annotated[
        str | None, typer.Option(metavar="NAME", help="The team whose limits also apply.")
    ] = None,
    scope: Annotated[
        list[str],
        typer.Option(
            metavar="SCOPE",
            help="call: ask models; read: see spending; admin: everything. May be repeated.",
            show_default="call",
        ),
    ] = [],  # noqa: B006 - typer copies it
    spending: LimitOptions,
    model: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="A model or policy it may use.", show_default="all"),
    ] = [],  # noqa: B006 - typer copies it
    days: Annotated[
        float | None, typer.Option(min=0, metavar="N", help="Days until the key expires.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a key, and print it: nobody can show it again.

    Example: farthing keys make ci --database farthing.db --usd 5 --per day
    """
    limits = spending.limits
    ends = None if days is None else datetime.now(UTC) + timedelta(days=days)
    scopes = [cast("Scope", one) for one in scope or ["call"]]
    database = where.path
    if where.config is not None:
        _doubt(model, where.config)
    record, secret = _with(
        database, lambda keys: keys.make(name, team, scopes, limits, model, ends), make=True
    )
    if as_json:
        show_json({"key": secret, **_plain(record)})
        return
    typer.echo(secret)
    show(_table([record]))
    remark("keep it: it is not shown again")


@app.command("list")
@takes_options
def list_(where: GatewayDatabase, as_json: Json = False) -> None:
    """List all keys, revoked ones among them, and what each may do.

    Example: farthing keys list --database farthing.db
    """
    found = _with(where.path, lambda keys: keys.list())
    if as_json:
        show_json([_plain(record) for record in found])
    elif found:
        show(_table(found))
    else:
        remark("there are no keys; make one: farthing keys make NAME")


@app.command()
@takes_options
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID|NAME", help="The key.")],
    where: GatewayDatabase,
    as_json: Json = False,
) -> None:
    """End a key; running gateways know within seconds.

    Example: farthing keys revoke ci --database farthing.db
    """
    ended = _with(where.path, lambda keys: keys.revoke(key))
    if as_json:
        show_json(_plain(ended))
    else:
        show(_table([ended]))


@app.command()
@takes_options
def limit(
    key: Annotated[str, typer.Argument(metavar="ID|NAME", help="The key.")],
    where: GatewayDatabase,
    spending: LimitOptions,
    *,
    end: Annotated[
        list[str],
        typer.Option(metavar="UNIT/PERIOD", help="A limit to remove: usd/day; repeatable."),
    ] = [],  # noqa: B006 - typer copies it
    as_json: Json = False,
) -> None:
    """Raise or lower what may be spent with a key; running gateways know within seconds.

    A limit takes the place of the one of the same unit and period; others stay. What was spent
    counts on.

    Example: farthing keys limit ci --database farthing.db --usd 10 --per day
    """
    limits, without = spending.limits, [_ended(text) for text in end]
    if not limits and not without:
        raise InputError("nothing would change; give --usd, --tokens or --calls, or --end usd/day")
    changed = _with(where.path, lambda keys: keys.limit(key, limits, without))
    if as_json:
        show_json(_plain(changed))
    else:
        show(_table([changed]))


def _doubt(models: Sequence[str], config: Path) -> None:
    from farthing.models.thinking import split_name
    from farthing.models.toml import read_toml
    from farthing_gateway.config_sections import PREFIX

    tables = read_toml(config)
    sections = [tables.get(name) for name in ("models", "policies")]
    known, policies = ([*one] if isinstance(one, dict) else [] for one in sections)
    known += [PREFIX + name for name in policies]
    for name in models:
        if name not in known and split_name(name)[0] not in known:
            remark(f"note: {config} has no model '{name}'; there are {', '.join(known)}")


def _ended(text: str) -> "tuple[Unit, Period]":
    """Read which limit ends.

    >>> _ended("usd/day")
    ('usd', 'day')
    """
    unit, _, period = text.partition("/")
    if unit not in UNITS or period not in get_args(Per):
        raise InputError(f"--end {text}: names no limit; write it as usd/day, or calls/minute")
    return cast("Unit", unit), cast("Period", period)


def _with(where: str, ask: "Callable[[Keys], Awaitable[T]]", *, make: bool = False) -> T:
    from farthing_gateway.storage.keys import open_keys
    from farthing_gateway.storage.migrations import migrate

    async def asked() -> T:
        if make:
            await migrate(where)
        keys = await open_keys(where)
        try:
            return await ask(keys)
        finally:
            await keys.aclose()

    return asyncio.run(asked())


def _amount(text: str, unit: str, per: Per) -> "tuple[Period, int]":
    """Read a limit, of money in nano-dollars.

    >>> _amount("5", "usd", "day"), _amount("1000/minute", "calls", "day")
    (('day', 5000000000), ('minute', 1000))
    """
    from farthing.money import nano_from_usd

    written, slash, period = text.partition("/")
    if slash and period not in get_args(Per):
        names = ", ".join(get_args(Per))
        raise InputError(f"--{unit} {text}: '{period}' is no period; there are {names}")
    try:
        most = nano_from_usd(written) if unit == "usd" else int(written)
    except (ValueError, ArithmeticError):
        most = -1
    if not 0 <= most < 2**63:
        raise InputError(f"--{unit} {text}: is no amount; try --{unit} 5, or --{unit} 5/day")
    return cast("Period", period or per), most


def _plain(record: "KeyRecord") -> dict[str, Any]:
    from msgspec import to_builtins

    plain: dict[str, Any] = to_builtins(record)
    return {**plain, "scopes": sorted(record.scopes)}


def _table(records: "Sequence[KeyRecord]") -> Table:
    lines = []
    for record in records:
        name = record.name if record.team is None else f"{record.name} ({record.team})"
        lines.append((record.id, name, _allowed(record), _state(record)))
    layout = ("word", "text", "prose", "text")
    return Table.of(("Id", "Name", "May", "State"), lines, layout=layout)


def _allowed(record: "KeyRecord") -> str:
    parts = [", ".join(sorted(record.scopes)), ", ".join(record.models) or "all models"]
    return "; ".join([*parts, *map(_limit, record.limits)])


def _limit(limit: "KeyLimit") -> str:
    """Say a limit in words.

    >>> from farthing_gateway.storage.keys import KeyLimit
    >>> _limit(KeyLimit("usd", "day", 5_000_000_000)), _limit(KeyLimit("calls", "total", 1_000))
    ('$5 a day', '1,000 calls in all')
    """
    from farthing.money import dollars

    much = dollars(limit.most) if limit.unit == "usd" else f"{limit.most:,} {limit.unit}"
    article = "an" if limit.period == "hour" else "a"
    return f"{much} in all" if limit.period == "total" else f"{much} {article} {limit.period}"


def _state(record: "KeyRecord") -> str:
    if record.revoked_at is not None:
        return f"revoked {record.revoked_at:%Y-%m-%d}"
    if record.expires_at is None:
        return "valid"
    word = "until" if record.is_valid(datetime.now(UTC)) else "expired"
    return f"{word} {record.expires_at:%Y-%m-%d}"
