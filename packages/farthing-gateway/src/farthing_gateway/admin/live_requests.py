"""Requests as they come, and one of them step by step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode
from zlib import crc32

import msgspec
from starlette.responses import RedirectResponse, Response

from farthing.errors import InputError
from farthing_gateway.admin.audits_read import OUTCOMES
from farthing_gateway.admin.explanation import feedback_on, why_nothing
from farthing_gateway.admin.figures import EVER, Failures, Kind
from farthing_gateway.admin.request_search import NOBODY, RequestFilter, search
from farthing_gateway.admin.requests_read import PageCursor, RequestLine, Whole, whole
from farthing_gateway.admin.view import NotShownError, View
from farthing_gateway.completions import NONE
from farthing_gateway.monitoring.audits import find_audit
from farthing_gateway.recording.failures import FailureFilter
from farthing_gateway.recording.failures import find as find_failures
from farthing_gateway.recording.record import FALLBACK, STOPPED, RequestRecord
from farthing_gateway.recording.traffic_rows import cost_of, plain

KIND = ("policy", "model", "promise")
FIELDS = (*KIND, "audits", "key", "status", "since", "until", "text")
LONGEST = 1_000
"""Characters of what is looked for."""
_ENDED = {
    "budget": "The money that it could spend allowed no other call.",
    "failure": "No other call could be made: a model's key does not work.",
}
"""Why a reply ended that its policy did not end."""
_ALL_ASKED = "Everybody in the pool had been asked."


@dataclass(frozen=True)
class Listed:
    """A page of requests."""

    lines: tuple[RequestLine, ...]
    chosen: Mapping[str, str]
    """What is filtered by."""
    mark: str
    """Another one wherever something else is shown."""
    is_first: bool
    """Whether nothing newer is left out."""
    older: str | None
    """Where the next page is; None: there is none."""
    looked_to: datetime | None
    names: Mapping[str, str]
    """Public ids of keys to their names, for who may see them."""

    @property
    def query(self) -> str:
        """The filter, as addresses have it."""
        return urlencode(self.chosen)

    @property
    def is_live(self) -> bool:
        """Whether it goes on by itself; what is looked for in texts would be so every time."""
        return self.is_first and not self.chosen.keys() & {"text", "until"}


async def requests(view: View) -> Response:
    """Show a page of requests, and what they can be filtered by."""
    kinds, failures = await _kinds(view), await _failures(view)
    chosen = _chosen(view)
    if (name := chosen.get("text")) and await _is_there(view, name):
        return RedirectResponse(f"/admin/requests/{quote(name, safe='')}", 303)
    models = ({one.model for one in kinds} | {one.model for one in failures}) - {""}
    choices = {name: sorted({getattr(kind, name) or NOBODY for kind in kinds}) for name in KIND}
    return view.show(
        "requests.html",
        listed=await _listed(view, kinds, failures),
        choices=choices | {"model": sorted(models)},
        statuses=sorted({one.status for one in failures}),
        keys=await view.pages.keys.list() if view.by.is_admin else [],
        records=view.pages.gateway.config.record is not None,
        outcomes=OUTCOMES,
        nobody=NOBODY,
    )


async def rows(view: View) -> Response:
    """Show the list alone, or say that nothing is new."""
    is_all = not _chosen(view)
    kinds, failures = ([], []) if is_all else (await _kinds(view), await _failures(view))
    listed = await _listed(view, kinds, failures)
    if listed.mark == view.http.query_params.get("mark", ""):
        return Response(status_code=204)
    return view.show("rows.html", listed=listed)


async def request(view: View) -> Response:
    """Show one request."""
    found = await whole(view.pages.database, view.http.path_params["id"])
    if found is None:
        return await _failed_request(view)
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
        names=await _names(view),
        strongest=view.pages.gateway.config.serve.strongest,
    )


async def _failed_request(view: View) -> Response:
    of = FailureFilter(id=view.http.path_params["id"], most=1)
    found = await find_failures(view.pages.database, of)
    if not found:
        raise NotShownError(404, "There is no such request; it may have been deleted by its age.")
    return view.show("failed.html", one=found[0], names=await _names(view))


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
    if left:
        return f"The policy needed no more; {', '.join(left)} was not asked."
    controlled = policy.section.controller is not None
    return "The controller asked nobody else." if controlled else _ALL_ASKED


def _failed(one: RequestRecord) -> str:
    calls = one.trace.calls
    if any(call.error is not None and call.error.type == STOPPED for call in calls):
        return "The client stopped the stream, or its time ran out."
    if any(FALLBACK in call.extra and call.error is None for call in calls):
        return f"{one.answered_by} answered in the place of a model that had failed."
    return "Every call failed." if all(call.error is not None for call in calls) else ""


def _kept_since(view: View) -> datetime:
    record = view.pages.gateway.config.record
    return EVER if record is None else view.now - timedelta(days=record.days + 1)


async def _kinds(view: View) -> list[Kind]:
    return await view.pages.figures.kinds(_kept_since(view))


async def _failures(view: View) -> list[Failures]:
    return await view.pages.figures.failures(_kept_since(view))


async def _names(view: View) -> Mapping[str, str]:
    keys = await view.pages.keys.list() if view.by.is_admin else []
    return {key.id: key.name for key in keys}


async def _is_there(view: View, name: str) -> bool:
    of = FailureFilter(id=name, most=1)
    database = view.pages.database
    return bool(await whole(database, name) or await find_failures(database, of))


async def _listed(view: View, kinds: Sequence[Kind], failures: Sequence[Failures]) -> Listed:
    chosen = _chosen(view)
    after = PageCursor.read(view.http.query_params.get("before", ""))
    statuses = sorted({one.status for one in failures})
    found = await search(view.pages.database, _filter(view, chosen), kinds, statuses, after)
    return Listed(
        found.lines,
        chosen,
        f"{crc32(repr([(one.id, one.came) for one in found.lines]).encode()):08x}",
        after == PageCursor(),
        None if found.older is None else str(found.older),
        found.looked_to,
        await _names(view),
    )


def _chosen(view: View) -> dict[str, str]:
    query = view.http.query_params
    written = {name: plain(query.get(name, "").strip()) for name in FIELDS}
    if wrong := next((name for name, one in written.items() if len(one or "") > LONGEST), None):
        raise InputError(f"what '{wrong}' looks for is longer than {LONGEST:,} characters")
    return {name: one for name, one in written.items() if one}


def _filter(view: View, chosen: Mapping[str, str]) -> RequestFilter:
    """Read what is asked for; texts and keys are for those who may see them."""
    if not view.by.is_admin and chosen.keys() & {"text", "key"}:
        said = "There is no request with this id, and looking for texts or keys needs an admin key."
        raise NotShownError(403, said)
    times = {name: _time(chosen[name]) for name in ("since", "until") if name in chosen}
    try:
        return msgspec.convert({**chosen, **times}, RequestFilter)
    except msgspec.ValidationError:
        said = f"audits come to {', '.join(OUTCOMES)}, and not to '{chosen['audits'][:20]}'"
        raise InputError(said) from None


def _time(written: str) -> datetime:
    try:
        found = datetime.fromisoformat(written)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(f"'{written[:20]}' is no time; write it as 2026-11-22T14:05") from None
