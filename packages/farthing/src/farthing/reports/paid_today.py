"""What a log of one model shows: what is paid today, and the command that finds out what could be.

A log that has one model's answer to each question says nothing of other models.
"""

from typing import Any

from rich.console import Group
from rich.text import Text

from farthing.money import significant
from farthing.reports.table import Table, counted
from farthing.runtime.trying import NextTry
from farthing.traces.files import RequestLog, Spent

SHOWN = 5
"""Kinds of requests that are listed."""


def screen(log: RequestLog, source: str, following: NextTry) -> Group:
    """Say what is paid today, by model and kind of request, and what to do next."""
    models, kinds = log.models, log.kinds
    who = next(iter(models)) if len(models) == 1 else f"one of {len(models)} models"
    title = f"{source}: every question was answered by {who}, so there is nothing to compare yet"
    parts: list[Any] = [Text(title, style="bold", overflow="fold"), Text(""), Text(_today(log))]
    parts += [Text(""), _table("model", models, log)]
    if len(kinds) > 1:
        parts += [Text(""), _table("kind of request", kinds, log)]
    return Group(*parts, Text(""), *map(Text, following.lines()))


def to_json(log: RequestLog, following: NextTry) -> dict[str, Any]:
    """Return the same as JSON values."""
    return {
        "paid_today": {name: _spent(one) for name, one in log.models.items()},
        "kinds": {name: _spent(one) for name, one in log.kinds.items()},
        "days": log.days,
        "next": following.command,
        "missing_keys": list(following.keys),
        "likely_usd": following.likely_usd,
        "questions_that_prove": {f"{loss:g}": n for loss, n in following.provable},
    }


def _spent(one: Spent) -> dict[str, Any]:
    return {"requests": one.requests, "usd": one.usd, "unpriced": one.unpriced}


def _today(log: RequestLog) -> str:
    usd = sum(one.usd for one in log.models.values())
    n = sum(one.requests for one in log.models.values())
    unpriced = sum(one.unpriced for one in log.models.values())
    days = log.days
    said = f"You paid ${usd:,.2f} for {counted(n, 'request')}"
    if unpriced:
        said += f", without {counted(unpriced, 'request')} whose cost is not known"
    if days is None:
        return f"{said}. The log says no times, so nothing is known of a day."
    return f"{said} in {days:.3g} days: ${significant(usd / days)} a day, {n / days:,.0f} requests."


def _table(what: str, spent: dict[str, Spent], log: RequestLog) -> Table:
    days = log.days
    rows = []
    for name, one in list(spent.items())[:SHOWN]:
        priced = one.requests - one.unpriced
        each = significant(one.usd / priced) if priced else "not known"
        a_day = "–" if days is None or not priced else significant(one.usd / days)
        rows.append((name, f"{one.requests:,}", each, a_day))
    if len(spent) > SHOWN:
        rest = sum(one.requests for one in list(spent.values())[SHOWN:])
        rows.append((f"{len(spent) - SHOWN} others", f"{rest:,}", "", ""))
    return Table.of((what, "requests", "USD a request", "USD a day"), rows)
