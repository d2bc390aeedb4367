"""Templates, and how they write money, shares and moments; every text in them is escaped."""

from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from farthing.money import significant, usd_from_nano
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
_WHY = {
    "budget_exceeded": "a budget is used up",
    "content_filter": "the provider will not answer this",
    "context_length_exceeded": "too long for the model",
    "database_unavailable": "the gateway's database did not answer",
    "deadline_exceeded": "no answer within the deadline",
    "forbidden": "the key may not do this",
    "idempotency_in_progress": "the same request was under way",
    "idempotency_key_reused": "its idempotency key was another request's",
    "internal_error": "an error of the gateway; its log says more",
    "invalid_request_error": "the request could not be understood",
    "model_not_found": "no such model",
    "outside_task": "outside the task of the policy that was asked",
    "rate_limit_exceeded": "too many in a minute",
    "request_budget_exceeded": "dearer than its own budget",
    "request_timeout": "the request came too slowly",
    "shutting_down": "the gateway was restarting",
    "too_large": "the request was too long",
    "upstream_authentication": "the gateway's key for the model does not work",
    "upstream_connection": "the model's provider could not be reached",
    "upstream_cooling": "the model is left alone after failures",
    "upstream_incomplete": "the model's reply was not whole",
    "upstream_malformed": "the model's reply could not be read",
    "upstream_rate_limit": "the model's provider takes no more",
    "upstream_redirected": "the model's provider is elsewhere",
    "upstream_timeout": "the model did not reply in time",
}
"""Why requests were refused or failed, by the code that their clients got."""


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
    files = (path for path in STATIC.iterdir() if path.suffix in TYPES)
    digests = {path.name: sha256(path.read_bytes()).hexdigest()[:12] for path in files}
    # Another address for each version, so that browsers keep it.
    found.globals["static"] = lambda name: f"/admin/static/{name}?v={digests[name]}"
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


def why(code: str) -> str:
    """Say why a request was not answered; a code that is not known stands for itself.

    >>> why("budget_exceeded"), why("upstream_melted")
    ('a budget is used up', 'upstream melted')
    """
    return _WHY.get(code) or code.replace("_", " ")
