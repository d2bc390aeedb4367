"""What is written beside a request that a promise decided: its audit, and that it replied."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from farthing.money import usd_from_nano
from farthing_gateway.monitoring.events import INSERT, NEW_REQUEST, Replied, Under, event_row, under
from farthing_gateway.monitoring.latency import HALF_HOUR_US
from farthing_gateway.monitoring.promises import tested
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic_rows import cost_of
from farthing_gateway.storage.database import Row, Step, microseconds

LEASE = timedelta(seconds=60)
"""How long an audit is that of the worker that drew it, or that took it up."""

_AUDIT = """
INSERT INTO audits (
    id, at_us, policy, mode, certificate, purpose, probability, graded_by, whole, state, owner,
    until_us, due_us, tries, value, writer
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'waiting', $10, $11, $2, 0, NULL, '')
ON CONFLICT DO NOTHING"""


def before(requests: Iterable[tuple[RequestRecord, RequestRecord]], worker: str) -> Iterator[Step]:
    """Yield the steps that note requests, to be run before the step that inserts them.

    Args:
        requests: each as it passed, and as it is written.
        worker: who writes, and has what passed in its memory.
    """
    audits, replies = [], []
    for passed, written in requests:
        found = under(written)
        if found is None or written.decided is None:
            continue
        replies.append(_reply(written, found))
        if written.audited or written.decided.explored:
            whole = (passed.trace, passed.decided) == (written.trace, written.decided)
            audits.append(_audit(written, found, worker, whole=whole))
    if replies:
        yield Step(f"{INSERT}{NEW_REQUEST} ON CONFLICT DO NOTHING", replies)
    if audits:
        yield Step(_AUDIT, audits)


def _reply(passed: RequestRecord, under: Under) -> Row:
    decided, cost = passed.decided, cost_of(passed.trace.calls)
    assert decided is not None  # noqa: S101 - the caller looked
    known = all(call.cost_usd is not None for call in passed.trace.calls)
    event = Replied(
        group=passed.group,
        kind=decided.kind,
        promised=decided.promised,
        tested=tested(decided),
        audited=passed.audited,
        explored=decided.explored,
        agreement=decided.agreement,
        confidence=decided.confidence,
        cost_usd=usd_from_nano(cost) if known else None,
        latency_s=float(passed.latency_s),
        half_hour=microseconds(passed.at) // HALF_HOUR_US,
    )
    return event_row(passed.id, under, event, passed.at)


def _audit(passed: RequestRecord, under: Under, worker: str, *, whole: bool) -> Row:
    decided = passed.decided
    assert decided is not None  # noqa: S101 - the caller looked
    purpose, probability = "explore", decided.explore
    if passed.audited:
        purpose, probability = "audit", passed.audit or 1.0
    at = microseconds(passed.at)
    return (
        passed.id,
        at,
        *under.row,
        purpose,
        probability,
        decided.graded_by,
        int(whole),
        worker,
        at + microseconds_of(LEASE),
    )


def microseconds_of(span: timedelta) -> int:
    """Return a span in microseconds."""
    return span // timedelta(microseconds=1)
