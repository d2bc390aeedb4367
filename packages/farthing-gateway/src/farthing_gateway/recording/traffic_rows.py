"""What passed as rows of a table, and back.

A question's later calls are lines of JSON at the end of its row: adding some is one atomic
statement, whoever else writes.
"""

from collections.abc import Iterator, Sequence

import msgspec

from farthing.money import nano_from_usd
from farthing.traces.base import Call, Trace
from farthing.traces.system import System
from farthing_gateway.recording.record import PolicyDecision, RequestRecord, answered_directly
from farthing_gateway.storage.database import Row, microseconds, moment

INSERT = """
INSERT INTO traffic_requests (
    id, at_us, key_id, conversation, policy, model, messages, trace, promise, cost_nano,
    saved_nano, latency_s, system, certificate, mode, answered_by, "group", audit, audited, decided
) VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20
) ON CONFLICT DO NOTHING"""

ATTACH = """
UPDATE traffic_requests SET later = later || $2, later_nano = later_nano + $3 WHERE id = $1"""

LOSE = """
INSERT INTO traffic_losses (what, number) VALUES ($1, $2)
ON CONFLICT (what) DO UPDATE SET number = traffic_losses.number + excluded.number"""

OUTSIDE = """
INSERT INTO traffic_outside (policy, reason, number) VALUES ($1, $2, $3)
ON CONFLICT (policy, reason) DO UPDATE SET number = traffic_outside.number + excluded.number"""

COLUMNS = """
SELECT id, at_us, key_id, conversation, policy, model, messages, trace, later, promise, saved_nano,
    latency_s, system, certificate, mode, answered_by, "group", audit, audited, decided
FROM traffic_requests AS request
"""

FIND = f"{COLUMNS} WHERE id = $1"

SELECT = f"""{COLUMNS}
WHERE (CAST($1 AS TEXT) IS NULL OR policy = $1)
    AND at_us >= $2
    AND NOT EXISTS (
        SELECT 1 FROM traffic_requests AS before
        WHERE before.conversation = request.conversation AND before.at_us < $2
    )
    AND (at_us, id) > ($3, $4)
ORDER BY at_us, id LIMIT 200"""  # noqa: S608 - of constants
"""A page after the given place, of conversations that began at or after $2."""

DELETE = """
DELETE FROM traffic_requests WHERE id IN (
    SELECT id FROM traffic_requests WHERE at_us < $1 ORDER BY at_us LIMIT 500
)"""

_NAMES = str.maketrans("\0", "\N{REPLACEMENT CHARACTER}")
"""PostgreSQL takes no NUL in a text; JSON writes it otherwise."""


def row(passed: RequestRecord) -> Row:
    """Return what `INSERT` takes."""
    trace = msgspec.json.encode(passed.trace)
    msgspec.json.decode(trace, type=Trace)
    messages, system = passed.messages, passed.system
    return (
        passed.id,
        microseconds(passed.at),
        plain(passed.key),
        plain(passed.conversation),
        plain(passed.policy),
        plain(passed.model),
        None if messages is None else msgspec.json.encode(messages).decode(),
        trace.decode(),
        plain(passed.promise),
        cost_of(passed.trace.calls),
        passed.saved_nano,
        float(passed.latency_s),
        None if system is None else msgspec.json.encode(system, order="sorted").decode(),
        plain(passed.certificate),
        plain(passed.mode),
        plain(passed.answered_by),
        plain(passed.group),
        passed.audit,
        int(passed.audited),
        None if passed.decided is None else msgspec.json.encode(passed.decided).decode(),
    )


def later_row(trace: str, calls: Sequence[Call]) -> Row:
    """Return what `ATTACH` takes; raises as `row`."""
    lines = [msgspec.json.encode(call) for call in calls]
    for line in lines:
        msgspec.json.decode(line, type=Call)
    return trace, "".join(f"{line.decode()}\n" for line in lines), cost_of(calls)


def passed_from(values: Row) -> RequestRecord:
    """Rebuild what passed from a row of `SELECT`.

    Of two calls in a role the first counts, also beside one that is not the role's own
    (`answered_directly`).
    """
    name, at, key, conversation, policy, model, messages, trace, later, *rest = values
    promise, saved, latency, system, certificate, mode, by, group, audit, audited, decided = rest
    live = msgspec.json.decode(trace, type=Trace)
    calls = {(call.round, call.role, answered_directly(call)): call for call in live.calls}
    for call in _lines(later):
        calls.setdefault((call.round, call.role, answered_directly(call)), call)
    return RequestRecord(
        id=name,
        at=moment(at),
        key=key,
        conversation=conversation,
        policy=policy,
        model=model,
        messages=None if messages is None else msgspec.json.decode(messages),
        trace=msgspec.structs.replace(live, calls=list(calls.values())),
        promise=promise,
        saved_nano=saved,
        latency_s=latency,
        system=None if system is None else msgspec.json.decode(system, type=System),
        certificate=certificate,
        mode=mode,
        answered_by=by,
        group=group,
        audit=audit,
        audited=bool(audited),
        decided=None if decided is None else msgspec.json.decode(decided, type=PolicyDecision),
    )


def live_and_later(values: Row) -> tuple[Trace, list[Call]]:
    """Return the trace of a row of `SELECT` as it was at the reply, and all calls made later."""
    return msgspec.json.decode(values[7], type=Trace), list(_lines(values[8]))


def cost_of(calls: Sequence[Call]) -> int:
    """Return what calls cost together, in nano-dollars; of a cost that is not known nothing.

    >>> cost_of([Call(round=1, role="m", cost_usd=0.001), Call(round=1, role="n")])
    1000000
    """
    return sum(nano_from_usd(call.cost_usd) for call in calls if call.cost_usd is not None)


def _lines(later: str) -> Iterator[Call]:
    for line in filter(None, later.split("\n")):  # not splitlines: JSON may hold U+2028
        yield msgspec.json.decode(line, type=Call)


def plain(text: str | None) -> str | None:
    """Return a text as both databases take it."""
    return None if text is None else text.translate(_NAMES)
