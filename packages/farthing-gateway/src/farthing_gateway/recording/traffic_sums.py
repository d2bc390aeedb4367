"""What traffic comes to, hour by hour: kept as it is written, so that a page adds up few rows.

A batch's sums are written in the transaction that writes its requests. A request that was there
before is counted no second time, and retention deletes requests, never sums.

Latencies are counted in buckets, each `RATIO` times as long as the one before, so that a quantile
of any period is known to within a few percent.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from farthing.traces.base import Call
from farthing_gateway.recording.failures import FailedRequest
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic_rows import cost_of, plain
from farthing_gateway.storage.database import Row, Step, microseconds

HOUR_US = 3_600_000_000
RATIO = 1.15
"""How many times as long the latencies of a bucket are as those of the one before."""
SHORTEST_S = 0.001
"""The longest latency of bucket 0."""
REPLY, CALL = "reply", "call"
"""Whose latency it is: of a whole request by the model asked for, of one call by the model."""

_TURN = "INSERT INTO traffic_turn (one) VALUES (1) ON CONFLICT (one) DO UPDATE SET one = 1"
"""Writers take turns: two that add to the same sums in another order would wait for each other."""

_NEW = "WHERE NOT EXISTS (SELECT 1 FROM traffic_requests WHERE id = $1)"
_REQUESTS = f"""
INSERT INTO traffic_hours (
    hour, policy, model, promise, requests, cost_nano, later_nano, saved_nano, compared,
    compared_nano
) SELECT CAST($2 AS BIGINT), $3, $4, $5, 1, CAST($6 AS BIGINT), 0, CAST($7 AS BIGINT),
    CAST($8 AS BIGINT), CAST($9 AS BIGINT) {_NEW}
ON CONFLICT (hour, policy, model, promise) DO UPDATE SET
    requests = traffic_hours.requests + 1,
    cost_nano = traffic_hours.cost_nano + excluded.cost_nano,
    saved_nano = traffic_hours.saved_nano + excluded.saved_nano,
    compared = traffic_hours.compared + excluded.compared,
    compared_nano = traffic_hours.compared_nano + excluded.compared_nano"""
_ADD_CALL = """
ON CONFLICT (hour, policy, model, later) DO UPDATE SET
    calls = traffic_hours_calls.calls + 1,
    failed = traffic_hours_calls.failed + excluded.failed,
    cost_nano = traffic_hours_calls.cost_nano + excluded.cost_nano"""
_CALLS = f"""
INSERT INTO traffic_hours_calls (hour, policy, model, later, calls, failed, cost_nano)
SELECT CAST($2 AS BIGINT), $3, $4, 0, 1, CAST($5 AS BIGINT), CAST($6 AS BIGINT) {_NEW}
{_ADD_CALL}"""
_LATENCY = f"""
INSERT INTO traffic_hours_latency (hour, policy, kind, model, bucket, number)
SELECT CAST($2 AS BIGINT), $3, $4, $5, CAST($6 AS INTEGER), 1 {_NEW}
ON CONFLICT (hour, policy, kind, model, bucket) DO UPDATE SET
    number = traffic_hours_latency.number + 1"""
_FAILURES = """
INSERT INTO traffic_hours_failures (hour, model, status, code, number, cost_nano)
SELECT CAST($2 AS BIGINT), $3, CAST($4 AS BIGINT), $5, 1, CAST($6 AS BIGINT)
WHERE NOT EXISTS (SELECT 1 FROM traffic_failures WHERE id = $1)
ON CONFLICT (hour, model, status, code) DO UPDATE SET
    number = traffic_hours_failures.number + 1,
    cost_nano = traffic_hours_failures.cost_nano + excluded.cost_nano"""

_OF = "FROM traffic_requests WHERE id = $1"
_LATER = f"""
INSERT INTO traffic_hours (
    hour, policy, model, promise, requests, cost_nano, later_nano, saved_nano, compared,
    compared_nano
) SELECT at_us / {HOUR_US}, coalesce(policy, ''), model, promise, 0, 0, CAST($2 AS BIGINT), 0, 0, 0
{_OF}
ON CONFLICT (hour, policy, model, promise) DO UPDATE SET
    later_nano = traffic_hours.later_nano + excluded.later_nano"""
_LATER_CALLS = f"""
INSERT INTO traffic_hours_calls (hour, policy, model, later, calls, failed, cost_nano)
SELECT at_us / {HOUR_US}, coalesce(policy, ''), $2, 1, 1, CAST($3 AS BIGINT), CAST($4 AS BIGINT)
{_OF} {_ADD_CALL}"""


def before(
    requests: Iterable[RequestRecord], failures: Iterable[FailedRequest] = ()
) -> Iterator[Step]:
    """Yield the steps that count requests, to be run before the steps that insert them.

    Args:
        requests: those that were answered.
        failures: those that were not, each once.
    """
    new: dict[str, RequestRecord] = {}
    for one in requests:
        new.setdefault(one.id, one)
    calls = [(one, call) for one in new.values() for call in one.trace.calls]
    timed = [(one, call) for one, call in calls if call.latency_s is not None]
    latency = [_latency(one, REPLY, one.model, one.latency_s) for one in new.values()]
    latency += [_latency(one, CALL, call.role, call.latency_s or 0.0) for one, call in timed]
    yield Step(_TURN)
    yield from _steps(
        {
            _REQUESTS: [_request(one) for one in new.values()],
            _CALLS: [(*_place(one), *_call(call)) for one, call in calls],
            _LATENCY: latency,
            _FAILURES: [_failure(one) for one in failures],
        }
    )


def after(later: Sequence[tuple[str, Sequence[Call]]]) -> Iterator[Step]:
    """Yield the steps that count later calls, to be run after their requests were inserted."""
    yield from _steps(
        {
            _LATER: [(request, cost_of(calls)) for request, calls in later],
            _LATER_CALLS: [(request, *_call(call)) for request, calls in later for call in calls],
        }
    )


def bucket_of(latency_s: float) -> int:
    """Return the bucket of a latency.

    >>> [bucket_of(seconds) for seconds in (0.0, 0.001, 0.0011, 1.0, 1.1)]
    [0, 0, 1, 50, 51]
    """
    if latency_s <= SHORTEST_S:
        return 0
    return math.ceil(math.log(latency_s / SHORTEST_S, RATIO))


def quantile(numbers: Mapping[int, int], share: float) -> float | None:
    """Return the latency in seconds below which a share of those counted in buckets lies.

    It is the middle of a bucket, off by `sqrt(RATIO) - 1` = 7 % at most; None of nothing.

    Args:
        numbers: how many each bucket has.
        share: of the quantile, such as 0.95.

    >>> round(quantile({bucket_of(0.5): 9, bucket_of(8.0): 1}, 0.5), 2)
    0.5
    """
    left = math.ceil(share * sum(numbers.values()))
    for bucket in sorted(numbers):
        left -= numbers[bucket]
        if left <= 0:
            return float(SHORTEST_S * RATIO ** (bucket - 0.5))
    return None


def _steps(rows: Mapping[str, Sequence[Row]]) -> Iterator[Step]:
    return (Step(sql, some) for sql, some in rows.items() if some)


def _place(passed: RequestRecord) -> Row:
    return passed.id, microseconds(passed.at) // HOUR_US, plain(passed.policy) or ""


def _request(passed: RequestRecord) -> Row:
    cost, saved = cost_of(passed.trace.calls), passed.saved_nano
    compared = (0, 0, 0) if saved is None else (saved, 1, cost)
    return *_place(passed), plain(passed.model), plain(passed.promise), cost, *compared


def _failure(one: FailedRequest) -> Row:
    place = one.id, microseconds(one.at) // HOUR_US, plain(one.model) or ""
    return *place, one.status, plain(one.code), one.cost_nano


def _call(call: Call) -> Row:
    return plain(call.role), int(call.error is not None), cost_of([call])


def _latency(passed: RequestRecord, kind: str, model: str, seconds: float) -> Row:
    return *_place(passed), kind, plain(model), bucket_of(seconds)
