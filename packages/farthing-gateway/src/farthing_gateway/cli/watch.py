"""`farthing watch`: whether a gateway keeps what it promises, and which alarms rang."""

import asyncio
import getpass
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from farthing.cli.console import remark, show, show_json
from farthing.cli.options import Json
from farthing.errors import InputError
from farthing.reports.table import Table, counted
from farthing_gateway.cli.gateway_database import GatewayDatabase

if TYPE_CHECKING:
    from farthing_gateway.monitoring.base import Alarm, Deployed, PromiseStatus
    from farthing_gateway.monitoring.status import StoredWatch, Ungraded

    Found = tuple[list[PromiseStatus], list[Alarm], list[Deployed], list[Ungraded]]

SHOWN = 10
"""Alarms, deployments and audits without a grade that are shown at most."""


def watch(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="The gateway's configuration, in TOML.")
    ],
    close: Annotated[
        str | None, typer.Option(metavar="ALARM", help="Close the alarm with this id.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say whether promises are kept in live traffic, which alarms rang, and what decided since.

    Example: farthing watch serve.toml
    """
    where = GatewayDatabase(config=config).path
    if close is not None:
        asyncio.run(_close(where, close))
        remark(f"alarm {close} is closed; its signal is watched anew")
        return
    if as_json:
        show_json(asyncio.run(_document(where)))
    else:
        show(Group(*_shown(asyncio.run(_read(where)))))


async def _document(where: str) -> dict[str, Any]:
    from farthing_gateway.monitoring.status import described

    watch = await _opened(where)
    try:
        return await described(watch)
    finally:
        await watch.aclose()


async def _read(where: str) -> "Found":
    watch = await _opened(where)
    try:
        return (
            await watch.kept(),
            await watch.alarms(),
            await watch.deployed(),
            await watch.ungraded(),
        )
    finally:
        await watch.aclose()


async def _close(where: str, alarm: str) -> None:
    watch = await _opened(where)
    try:
        if not await watch.close_alarm(alarm, getpass.getuser()):
            known = ", ".join(one.id for one in await watch.alarms(only_open=True)) or "none"
            raise InputError(f"there is no open alarm '{alarm:.40}'; open are: {known}")
    finally:
        await watch.aclose()


async def _opened(where: str) -> "StoredWatch":
    from farthing_gateway.monitoring.status import open_watch

    return await open_watch(where)


def _shown(found: "Found") -> Iterable[RenderableType]:
    kept, alarms, deployed, ungraded = found
    if not kept:
        yield Text("No reply was given under a promise yet.")
    else:
        yield _kept(kept)
        yield from _said(kept)
    opened = [one for one in alarms if one.closed_at is None]
    yield Text(f"\n{counted(len(opened), 'open alarm')}, {len(alarms) - len(opened):,} closed.")
    if opened:
        yield _alarms(opened[:SHOWN])
    if deployed:
        yield Text("\nWhat decided since when:")
        yield _deployments(deployed[:SHOWN])
    if ungraded:
        some = ", ".join(one.trace_id for one in ungraded[:SHOWN])
        yield Text(f"\nAudits that wait for a grade, the oldest first: {some}")


def _said(kept: "Sequence[PromiseStatus]") -> Iterable[RenderableType]:
    from farthing.money import dollars
    from farthing_gateway.monitoring.status import meaning

    for one in kept:
        if one.group is None:
            yield Text(f"\n{_name(one)}: {meaning(one)}")
            spent = f"Audits cost {dollars(one.audits_nano)}"
            explored = f"{one.explored:,} requests were explored for {dollars(one.explored_nano)}"
            lost = f"{one.failed:,} audits could not be graded"
            yield Text(f"{spent}; {explored if one.explored else 'nothing was explored'}; {lost}.")


def _kept(kept: "Sequence[PromiseStatus]") -> Table:
    lines = []
    for one in kept:
        sent = "" if one.volunteered_share is None else f": {one.volunteered_share:.2f}"
        ends = (None, None) if one.changed else (one.low, one.high)
        lines.append(
            (
                _name(one),
                *(f"{number:,}" for number in (one.replies, one.drawn, one.graded)),
                _share(one.share, *ends),
                "" if one.promised is None else f"{one.promised:g}",
                f"{one.volunteered:,}{sent}",
            )
        )
        if (recent := one.recent) is not None:
            since = f"{'  ' if one.group else ''}  since {'closing' if recent.closed else 'alarm'}"
            share = _share(recent.share, recent.low, recent.high)
            lines.append((since, "", "", f"{recent.graded:,}", share, "", ""))
    headings = ("Promise", "Replies", "Drawn", "Graded", "Kept", "Promised", "Sent")
    return Table.of(headings, lines, layout=["text"] * len(headings))


def _share(share: float | None, low: float | None, high: float | None) -> str:
    between = "" if low is None or high is None else f" ({low:.3f}-{high:.3f})"
    return "?" if share is None else f"{share:.3f}{between}"


def _name(one: "PromiseStatus") -> str:
    if one.group is not None:
        return f"  {one.group}"
    mode = "" if one.mode == "default" else f"/{one.mode}"
    return f"{one.policy}{mode} {one.kind} {one.certificate[:8]}"


def _alarms(alarms: "Sequence[Alarm]") -> Table:
    lines = [
        (alarm.id, alarm.policy, alarm.signal, f"{alarm.at:%Y-%m-%d %H:%M}", alarm.says)
        for alarm in alarms
    ]
    headings = ("Alarm", "Policy", "Signal", "Since", "Says")
    return Table.of(headings, lines, layout=[*["text"] * 4, "prose"])


def _deployments(deployed: "Sequence[Deployed]") -> Table:
    lines = []
    for one in deployed:
        mode = "" if one.mode == "default" else f"/{one.mode}"
        mark = (one.certificate or "promises nothing")[:16]
        policy, at = f"{one.policy}{mode}", f"{one.at:%Y-%m-%d %H:%M}"
        lines.append((at, policy, mark, one.how, one.by or "gateway"))
    headings = ("Since", "Policy", "Certificate", "How", "By")
    return Table.of(headings, lines, layout=["text"] * len(headings))
