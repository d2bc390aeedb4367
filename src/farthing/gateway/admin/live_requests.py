"""Requests as they come, and one of them step by step."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode
from zlib import crc32

import msgspec
from starlette.responses import Response

from farthing.gateway.admin.audits_read import OUTCOMES
from farthing.gateway.admin.explanation import feedback_on, why_nothing
from farthing.gateway.admin.figures import EVER, Kind
from farthing.gateway.admin.requests_read import (
    PAGE,
    PageCursor,
    RequestLine,
    Whole,
    audited_lines,
    lines,
    whole,
)
from farthing.gateway.admin.view import NotShownError, View
from farthing.gateway.completions import NONE
from farthing.gateway.monitoring.audits import find_audit
from farthing.gateway.recording.record import FALLBACK, STOPPED, RequestRecord
from farthing.gateway.recording.traffic_rows import cost_of

FIELDS = ("policy", "model", "promise")
_ENDED = {
    "budget": "The money that it could spend allowed no other call.",
    "failure": "No other call could be made: a model's key does not work.",
}
"""Why a reply ended that its policy did not end."""
NOBODY = "-"
"""Stands for requests that are no policy's."""


@dataclass(frozen=True)
class Listed:
    """A page of requests."""

    lines: tuple[RequestLine, ...]
    chosen: Mapping[str, str]
    """What is filtered by."""
    mark: str
    """Another one wherever something else is shown."""
    is_first: bool
    """Whether nothing newer is left out: then it goes on by itself."""
    older: str | None
    """Where the next page is; None: there is none."""

    @property
    def query(self) -> str:
        """The filter, as addresses have it."""
        return urlencode(self.chosen)


async def requests(view: View) -> Response:
    """Show a page of requests, and what they can be filtered by."""
    kinds = await _kinds(view)
    return view.show(
        "requests.html",
        listed=await _listed(view, kinds),
        choices={name: _choices(kinds, name) for name in FIELDS},
        records=view.pages.gateway.config.record is not None,
        address=f"{view.http.url.scheme}://{view.http.url.netloc}",
        outcomes=OUTCOMES,
        nobody=NOBODY,
    )


async def rows(view: View) -> Response:
    """Show the list alone, or say that nothing is new."""
    listed = await _listed(view, await _kinds(view) if _chosen(view) else [])
    if listed.mark == view.http.query_params.get("mark", ""):
        return Response(status_code=204)
    return view.show("rows.html", listed=listed)


async def request(view: View) -> Response:
    """Show one request."""
    found = await whole(view.pages.database, view.http.path_params["id"])
    if found is None:
        raise NotShownError(404, "There is no such request; it may have been deleted by its age.")
    keys = await view.pages.keys.list() if view.by.is_admin else []
    names: dict[str | None, str] = {key.id: key.name for key in keys}
    alarms = await view.pages.watch.alarms() if found.passed.promise == NONE else []
    return view.show(
        "request.html",
        found=found,
        one=found.passed,
        steps=found.passed.trace.calls,
        cost=cost_of(found.passed.trace.calls),
        messages=[said(message) for message in found.passed.messages or ()],
        stopped=stopped(view, found),
        audit=await find_audit(view.pages.database, found.passed.id),
        why_nothing=why_nothing(found.passed, alarms),
        feedback=await feedback_on(view.pages.database, found.passed.id),
        names=names,
        strongest=view.pages.gateway.config.serve.strongest,
    )


def said(message: object) -> Mapping[str, str]:
    """Return who says what in a message; what is no text as JSON.

    >>> said({"role": "user", "content": "Hi"})
    {'role': 'user', 'text': 'Hi'}
    """
    if not isinstance(message, dict):
        return {"role": "?", "text": str(message)}
    rest = {k: v for k, v in message.items() if k not in {"role", "content"}}
    content = message.get("content")
    if isinstance(content, str) and not rest:
        return {"role": str(message.get("role")), "text": content}
    written = msgspec.json.format(msgspec.json.encode(rest | {"content": content})).decode()
    return {"role": str(message.get("role")), "text": written}


def stopped(view: View, found: Whole) -> str:
    """Say why nobody else was asked before the reply."""
    one = found.passed
    calls = one.trace.calls
    if why := _failed(one):
        return why
    policy = view.pages.gateway.chat.policies.get(one.policy or "")
    if policy is None:
        return "A model was asked by its name, or the request was outside every task."
    if one.mode is None:
        return "No bundle decided yet, so one model answered by itself."
    if one.decided is not None and one.decided.ended_by in _ENDED:
        return _ENDED[one.decided.ended_by]
    asked = {call.role for call in calls}
    left = [name for name in policy.section.pool if name not in asked]
    if not left:
        return "Everybody in the pool had been asked."
    return f"The policy needed no more; {', '.join(left)} was not asked."


def _failed(one: RequestRecord) -> str:
    """Say which failure ended a request; empty where none did."""
    calls = one.trace.calls
    if any(call.error is not None and call.error.type == STOPPED for call in calls):
        return "The client stopped the stream, or its time ran out."
    if any(FALLBACK in call.extra and call.error is None for call in calls):
        return f"{one.answered_by} answered in the place of a model that had failed."
    return "Every call failed." if all(call.error is not None for call in calls) else ""


async def _kinds(view: View) -> list[Kind]:
    """Return which kinds of requests there may be: those of the days that are kept."""
    record = view.pages.gateway.config.record
    since = EVER if record is None else view.now - timedelta(days=record.days + 1)
    return await view.pages.figures.kinds(since)


async def _listed(view: View, kinds: list[Kind]) -> Listed:
    chosen = _chosen(view)
    after = PageCursor.read(view.http.query_params.get("before", ""))
    found = await _found(view, chosen, kinds, after)
    shown = tuple(found[:PAGE])
    return Listed(
        shown,
        chosen,
        f"{crc32(repr([(one.id, one.came) for one in shown]).encode()):08x}",
        after == PageCursor(),
        str(shown[-1].place) if len(found) > PAGE else None,
    )


async def _found(
    view: View, chosen: Mapping[str, str], kinds: list[Kind], after: PageCursor
) -> list[RequestLine]:
    database = view.pages.database
    if "audits" in chosen:
        outcome = next((one for one in OUTCOMES if one == chosen["audits"]), None)
        return [] if outcome is None else await audited_lines(database, outcome, chosen, after)
    some = [kind for kind in kinds if _fits(kind, chosen)] if chosen else None
    return await lines(database, some, after)


def _chosen(view: View) -> dict[str, str]:
    query = view.http.query_params
    return {name: query[name] for name in (*FIELDS, "audits") if query.get(name)}


def _choices(kinds: list[Kind], name: str) -> list[str]:
    return sorted({getattr(kind, name) or NOBODY for kind in kinds})


def _fits(kind: Kind, chosen: Mapping[str, str]) -> bool:
    return all((getattr(kind, name) or NOBODY) == value for name, value in chosen.items())
