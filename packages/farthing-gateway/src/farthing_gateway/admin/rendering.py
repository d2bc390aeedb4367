"""Templates, and how they write money, shares and moments; every text in them is escaped."""

from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from farthing.money import significant, usd_from_nano
from farthing_gateway.admin.failure_words import why
from farthing_gateway.config_sections import ALL, AUDIT, SHADOW
from farthing_gateway.monitoring.promises import is_difference
from farthing_gateway.storage.ledger.base import Period, Unit, said

STATIC = Path(__file__).parent / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
NONE = "–"
"""What stands where nothing is known."""
SPACE = "\N{NO-BREAK SPACE}"
_ACCOUNTS = {
    ALL: "Everything together",
    f"policy:{SHADOW}": "Trials in the background",
    f"policy:{AUDIT}": "Audits in the background",
}
"""What accounts are that nobody named."""


def environment() -> Environment:
    """Return the templates, ready to be filled."""
    found = Environment(
        loader=PackageLoader("farthing_gateway.admin"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "money": money,
        "percent": percent,
        "promised": promised,
        "seconds": seconds,
        "moment": moment,
        "slot": lambda at, hours: f"{at:%Y-%m-%d %H:%M}" if hours == 1 else f"{at:%Y-%m-%d}",
        "amount": lambda number, unit: said(unit, number),
        "written": written,
        "account": account,
        "each": each,
        "why": why,
        "kind": lambda promise: promise.__struct_config__.tag,
    }
    found.tests["group_of"] = lambda one, whole: one.is_group_of(whole)
    found.tests["difference"] = is_difference
    found.globals["static"] = partial(_address, _digests())
    return found


def money(nano: float | None) -> str:
    """Write nano-dollars: cents from a dollar on, three digits below.

    >>> money(12_345_678_900), money(-1_234_567), money(0), money(None)
    ('$12.35', '−$0.00123', '$0', '–')
    """
    if nano is None:
        return NONE
    usd = abs(usd_from_nano(nano))
    written = f"{usd:,.2f}" if usd >= 1 else significant(usd)
    return f"{'−' if nano < 0 else ''}${written}"


def written(most: int, unit: Unit) -> str:
    """Write a limit as its field takes it.

    >>> written(2_500_000_000, "usd"), written(1_000, "calls")
    ('2.5', '1000')
    """
    return f"{Decimal(most).scaleb(-9).normalize():f}" if unit == "usd" else str(most)


def each(period: Period) -> str:
    """Say how often a limit begins anew.

    >>> each("day"), each("hour"), each("total")
    ('a day', 'an hour', 'in total')
    """
    return {"total": "in total", "hour": "an hour"}.get(period, f"a {period}")


def account(name: str) -> str:
    """Say what an account is.

    >>> account("policy:shadow"), account("all"), account("key:shop")
    ('Trials in the background', 'Everything together', 'Key shop')
    """
    kind, _, of = name.partition(":")
    return _ACCOUNTS.get(name) or f"{kind.capitalize()} {of}"


def percent(share: float | None, places: int = 1) -> str:
    r"""Write a share in percent.

    >>> percent(0.953), percent(-0.25, 0), percent(None)
    ('95.3\xa0%', '−25\xa0%', '–')
    """
    if share is None:
        return NONE
    return f"{'−' if share < 0 else ''}{100 * abs(share):.{places}f}{SPACE}%"


def promised(share: float) -> str:
    r"""Write a share that was promised, with no more digits than it has.

    >>> promised(0.95), promised(0.975)
    ('95\xa0%', '97.5\xa0%')
    """
    return f"{100 * share:.6g}{SPACE}%"


def seconds(time: float | None) -> str:
    r"""Write a duration.

    >>> seconds(0.0213), seconds(1.25), seconds(75.0), seconds(None)
    ('21\xa0ms', '1.25\xa0s', '75.0\xa0s', '–')
    """
    if time is None:
        return NONE
    return f"{1_000 * time:.0f}{SPACE}ms" if time < 1 else f"{significant(time)}{SPACE}s"


def moment(at: datetime) -> str:
    """Write a moment, in UTC.

    >>> moment(datetime(2026, 11, 22, 14, 5, 9, tzinfo=UTC))
    '2026-11-22 14:05:09'
    """
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def static_file(name: str) -> tuple[bytes, str] | None:
    """Return a file beside the templates and its type; None where there is none."""
    found = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}
    path = found.get(name)
    return None if path is None else (path.read_bytes(), TYPES[path.suffix])


def _digests() -> dict[str, str]:
    files = (path for path in STATIC.iterdir() if path.suffix in TYPES)
    return {path.name: sha256(path.read_bytes()).hexdigest()[:12] for path in files}


def _address(digests: dict[str, str], name: str) -> str:
    """Return where a file is: another address for each version, so that browsers keep it."""
    return f"/admin/static/{name}?v={digests[name]}"
