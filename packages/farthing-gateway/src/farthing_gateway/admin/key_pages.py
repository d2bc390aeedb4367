"""Keys: who may ask, for what, and how much they may spend; made, limited and revoked here."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast, get_args

from starlette.responses import RedirectResponse, Response

from farthing.errors import InputError, UnknownNameError
from farthing.money import nano_from_usd
from farthing_gateway.admin.view import Form, NotShownError, View
from farthing_gateway.storage.keys import KeyLimit, KeyRecord, Scope
from farthing_gateway.storage.ledger.base import Period, Unit

UNITS: tuple[Unit, ...] = ("usd", "tokens", "calls")
MOST_DAYS = 3_650


async def keys(view: View) -> Response:
    """List the keys, and show the form for another."""
    return await _listed(view)


async def make(view: View) -> Response:
    """Make a key, and show it this once."""
    form = view.form
    try:
        record, secret = await view.pages.keys.make(
            form.get("name", "").strip(),
            form.get("team", "").strip() or None,
            [cast("Scope", scope) for scope in form.get("scope", "").split()],
            limits_of(form),
            form.get("models", "").replace(",", " ").split(),
            _ends(form.get("days", "").strip(), view.now),
        )
    except InputError as error:
        return await _listed(view, 422, said=f"{error}.", filled=form)
    return await _listed(view, made=record, secret=secret)


async def revoke(view: View) -> Response:
    """End a key, and whatever it opened."""
    key_id = view.form.get("id", "")
    try:
        ended = await view.pages.keys.revoke(key_id)
    except InputError:
        raise NotShownError(404, "There is no such key.") from None
    await view.pages.sessions.end_all(ended.id)
    return RedirectResponse("/admin/keys", 303)


async def limit(view: View) -> Response:
    """Change what may be spent with a key."""
    form = view.form
    try:
        changed, without = changes_of(form)
        await view.pages.keys.limit(form.get("id", ""), changed, without)
    except UnknownNameError:
        raise NotShownError(404, "There is no such key.") from None
    except InputError as error:
        return await _listed(view, 422, unchanged=f"{error}.")
    return RedirectResponse("/admin/keys", 303)


def changes_of(form: Form) -> tuple[list[KeyLimit], list[tuple[Unit, Period]]]:
    """Read which limits a form changes or adds, and which end: those that it leaves empty.

    What it leaves as it was is not written again: somebody else may have changed it meanwhile.

    >>> changes_of({"most:usd:day": "7", "was:usd:day": "5", "most:calls:hour": ""})
    ([KeyLimit(unit='usd', period='day', most=7000000000)], [('calls', 'hour')])
    """
    changed, without = limits_of(form), list[tuple[Unit, Period]]()
    for name, written in form.items():
        field, _, of = name.partition(":")
        unit, _, period = of.partition(":")
        if field != "most" or not of or written == form.get(f"was:{of}"):
            continue
        if found := _limit(written, unit, period):
            changed.append(found)
        else:
            without.append((cast("Unit", unit), cast("Period", period)))
    return changed, without


def limits_of(form: Form) -> list[KeyLimit]:
    """Read the limit that a form sets, if it sets one.

    >>> limits_of({"most": "5", "unit": "usd", "period": "day"})
    [KeyLimit(unit='usd', period='day', most=5000000000)]
    """
    unit, period = form.get("unit", "usd"), form.get("period", "total")
    found = _limit(form.get("most", ""), unit, period)
    return [] if found is None else [found]


def _limit(written: str, unit: str, period: str) -> KeyLimit | None:
    written = written.strip().removeprefix("$")
    if not written:
        return None
    if unit not in UNITS or period not in get_args(Period):
        raise InputError("the limit is of no unit or period that there is")
    try:
        most = nano_from_usd(written) if unit == "usd" else int(written)
    except (ValueError, ArithmeticError):
        most = -1
    if not 0 <= most < 2**63:
        raise InputError(f"the limit '{written[:20]}' is no amount; give a number, such as 5")
    return KeyLimit(unit, cast("Period", period), most)


def _ends(days: str, now: datetime) -> datetime | None:
    if not days:
        return None
    whole = days.isascii() and days.isdecimal() and len(days) < 10
    if not (whole and 0 < int(days) <= MOST_DAYS):
        raise InputError(f"the days '{days[:20]}' are no whole number from 1 to {MOST_DAYS:,}")
    return now + timedelta(days=int(days))


async def _listed(view: View, status: int = 200, **shown: Any) -> Response:
    records = await view.pages.keys.list()
    valid = [record for record in records if record.is_valid(view.now)]
    values = {"said": "", "filled": {}, "made": None, "secret": "", "unchanged": ""} | shown
    return view.show(
        "keys.html",
        status,
        keys=valid,
        ended=[record for record in reversed(records) if record not in valid],
        spent=await _spent(view, records),
        own=view.by.key.id,
        models=view.pages.gateway.chat.models,
        periods=get_args(Period),
        **values,
    )


async def _spent(view: View, records: Sequence[KeyRecord]) -> dict[str, dict[str, int]]:
    """Return what each account spent by period, in nano-dollars, in tokens and in calls.

    A key's account is its name's: one that was made anew goes on where the one before it ended.
    """
    accounts = sorted({record.account for record in records})
    found = await view.pages.gateway.ledger.balances(accounts) if accounts else []
    spent: dict[str, dict[str, int]] = {account: {} for account in accounts}
    for one in found:
        for unit in UNITS:
            amount = one.settled.of(unit) + one.held.of(unit)
            spent[one.account][f"{unit} {one.period}"] = amount
    return spent
