"""`farthing traffic`: what passed through a gateway, and traces of it to learn from."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.text import Text

from farthing.cli.command import PlainGroup, takes_options
from farthing.cli.console import interruptible, remark, show, show_json
from farthing.cli.files import check_file
from farthing.cli.options import Json, date_of
from farthing.errors import InputError
from farthing.reports.table import Table, counted
from farthing_gateway.cli.gateway_database import GatewayDatabase

if TYPE_CHECKING:
    from datetime import datetime

    from farthing_gateway.recording.export import Pool
    from farthing_gateway.recording.failures import FailedRequest
    from farthing_gateway.recording.record import RequestRecord
    from farthing_gateway.recording.traffic_summary import TrafficSummary

app = typer.Typer(
    cls=PlainGroup, help="Show and export a gateway's recorded requests.", no_args_is_help=True
)


@app.command("show")
@takes_options
def show_(where: GatewayDatabase, as_json: Json = False) -> None:
    """Say how many requests passed, what they cost and saved, and what was lost.

    Example: farthing traffic show --database farthing.db
    """
    from msgspec import to_builtins

    from farthing_gateway.recording.traffic_summary import summarise

    found = asyncio.run(summarise(where.path))
    if as_json:
        show_json(to_builtins(found))
    else:
        show(Group(_table(found), *map(Text, [_sentence(found), *_notes(found)])))


@app.command()
@takes_options
def export(
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            help="A store (.db), which records the models, or a .jsonl or .jsonl.gz file.",
        ),
    ],
    where: GatewayDatabase,
    *,
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only requests that this policy decided.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Only conversations that began since then (UTC)."),
    ] = None,
    model: Annotated[
        list[str],
        typer.Option(
            metavar="NAME", help="A pool's model; repeatable.", show_default="all that answered"
        ),
    ] = [],  # noqa: B006 - typer copies it
) -> None:
    """Export questions with what every model said to them, as traces of a pool.

    A store that is there already gets what is new, so that the same command does the next day.

    Example: farthing traffic export --config serve.toml --policy support --out day.db
    """
    from farthing.traces.files import check_suffix
    from farthing.traces.store import STORES
    from farthing_gateway.recording.export import as_pool, write_pool
    from farthing_gateway.recording.traffic_summary import summarise

    check_suffix(out, *STORES)
    check_file(out)
    database, begun = where.path, date_of(since)
    passed = asyncio.run(summarise(database))
    if policy is not None:
        _check_policy(policy, passed, where.config)
    with interruptible("nothing was written"):
        pool = as_pool(asyncio.run(_read(database, policy, begun)), model)
        nearly = [line for line in _outside(passed) if policy in (None, line[0])]
        _check(pool, [said for _, said in nearly])
        there = write_pool(out, pool)
    already = f", {there:,} of which it had already" if there else ""
    remark(
        f"wrote {counted(len(pool.traces), 'question')} to {out}{already}; {pool.complete:,} have "
        f"an answer of each of {', '.join(pool.models)}, and the others prove nothing"
    )
    if pool.left_out:
        remark(f"note: {counted(pool.left_out, 'request')} left out, which no pool answered")
    for _, said in nearly:
        remark(f"note: {said}")


@app.command()
@takes_options
def failures(
    where: GatewayDatabase,
    *,
    id: Annotated[  # noqa: A002
        str | None, typer.Option(metavar="ID", help="The reply's X-Farthing-Trace.")
    ] = None,
    status: Annotated[int | None, typer.Option(metavar="N", help="Only this status.")] = None,
    key: Annotated[str | None, typer.Option(metavar="ID", help="Only this key.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only requests for this model.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only requests from this time on (UTC).")
    ] = None,
    text: Annotated[str | None, typer.Option(metavar="WORDS", help="Only with this text.")] = None,
    most: Annotated[int, typer.Option(min=1, metavar="N", help="Most rows.")] = 50,
    as_json: Json = False,
) -> None:
    """List requests that were refused or failed: why, who was tried, and what that cost.

    Example: farthing traffic failures --database farthing.db --status 402
    """
    from msgspec import to_builtins

    from farthing_gateway.recording.failures import FailureFilter, find_in

    of = FailureFilter(id, status, key, model, date_of(since), text, most)
    found = asyncio.run(find_in(where.path, of))
    if as_json:
        show_json(to_builtins(found))
    elif not found:
        remark("no such request failed")
    else:
        show(_failures(found))


_OTHER = {
    "effort": "an effort or a budget of thought of its own",
    "not text": "tools, images, several choices or a format",
    "parameters": "parameters that the task does not have",
    "limit": "another max_tokens than in its section",
    "temperature": "another temperature than in its section",
    "history": "a history",
    "prompt": "another system prompt",
}
"""What requests are outside a task by."""


async def _read(
    database: str, policy: str | None, since: "datetime | None"
) -> "list[RequestRecord]":
    from dataclasses import replace

    from farthing_gateway.recording.traffic import open_traffic

    traffic = await open_traffic(database, None, keep_prompts=True)
    try:
        return [replace(one, messages=None) async for one in traffic.read(policy, since)]
    finally:
        await traffic.aclose()


def _check_policy(policy: str, found: "TrafficSummary", config: Path | None) -> None:
    from farthing.errors import UnknownNameError
    from farthing.models.toml import read_toml

    known = {line.policy for line in found.lines} | {one.policy for one in found.outside}
    if config is not None:
        sections = read_toml(config).get("policies")
        known |= set(sections) if isinstance(sections, dict) else set()
    if policy not in known:
        raise UnknownNameError("policy", policy, filter(None, known))


def _check(pool: "Pool", nearly: Sequence[str]) -> None:
    """Refuse what nothing can be learned from.

    `nearly` says which requests are outside the task, and by what.
    """
    if not pool.traces and nearly:
        raise InputError(f"no question passed that fits: {'; '.join(nearly)}")
    if not pool.traces:
        raise InputError("no question passed that fits; leave out --policy, --since or --model")
    if all(call.answer is None for trace in pool.traces for call in trace.calls):
        raise InputError("no answer was kept, so that nothing can be learned; keep the prompts")


def _table(found: "TrafficSummary") -> Table:
    from farthing.money import dollars

    lines = []
    for line in found.lines:
        name = line.model if line.policy in (None, line.model) else f"{line.model} ({line.policy})"
        money = (line.spent_nano, line.later_nano, line.saved_nano)
        lines.append([name, f"{line.requests:,}", *map(dollars, money)])
    headings = ("Asked for", "Requests", "Spent", "In background", "Saved")
    return Table.of(headings, lines, layout=("prose",))


def _failures(found: "Sequence[FailedRequest]") -> Table:
    from farthing.money import dollars

    headings = ["Came (UTC)", "Id", "Asked for", "Why", "Tries", "Cost"]
    lines = [
        (
            f"{one.at:%Y-%m-%d %H:%M:%S}",
            one.id,
            one.model or "",
            f"{one.status} {one.code}: {one.said}",
            ", ".join(f"{of['model']} ({of['error'] or 'answered'})" for of in one.tries),
            dollars(one.cost_nano),
        )
        for one in found
    ]
    return Table.of(headings, lines, layout=("text", "text", "text", "prose", "text"))


def _sentence(found: "TrafficSummary") -> str:
    requests = sum(line.requests for line in found.lines)
    since = "" if found.oldest is None else f" since {found.oldest:%Y-%m-%d %H:%M} UTC"
    lost = f"{found.dropped:,} lost, {found.unredacted:,} without texts as their redaction failed"
    passed = f"{counted(requests, 'request')} in {counted(found.conversations, 'conversation')}"
    return f"{passed}{since}; {lost}."


def _outside(found: "TrafficSummary") -> Iterator[tuple[str, str]]:
    for one in found.outside:
        why = _OTHER.get(one.reason, one.reason)
        number, share = counted(one.requests, "request"), found.share_outside(one)
        yield one.policy, f"{number} ({share:.0%}) outside the task of {one.policy}: {why}"


def _notes(found: "TrafficSummary") -> Iterator[str]:
    from farthing.money import dollars

    if found.trials_left_out:
        yield (
            f"{counted(found.trials_left_out, 'trial')} left out under load; a larger at_once "
            "under [record] leaves out fewer."
        )
    yield from (f"{said[0].upper()}{said[1:]}." for _, said in _outside(found))
    compared = found.compared
    if compared is not None and compared.charged_nano != compared.recorded_nano:
        charged, recorded = compared.charged_nano, compared.recorded_nano
        less = dollars(abs(charged - recorded))
        why = (
            "what failed, timed out, was given up or is not recorded" if charged > recorded else ""
        )
        yield (
            f"Since {compared.since} the ledger was charged {dollars(charged)}, {less} "
            f"{'more' if why else 'less'} than is recorded{f': for {why}' if why else ''}; "
            "farthing spending says on whom."
        )
