"""What the sums of traffic say: money, requests, calls and latencies of a period."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from farthing_gateway.recording.traffic_sums import HOUR_US, REPLY, quantile
from farthing_gateway.storage.database import Database, microseconds, moment

EVER = moment(0)
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
HOURS = 24
_TOTALS = """
SELECT CAST(coalesce(sum(requests), 0) AS BIGINT), CAST(coalesce(sum(cost_nano), 0) AS BIGINT),
    CAST(coalesce(sum(later_nano), 0) AS BIGINT), CAST(coalesce(sum(saved_nano), 0) AS BIGINT),
    CAST(coalesce(sum(compared), 0) AS BIGINT), CAST(coalesce(sum(compared_nano), 0) AS BIGINT)
FROM traffic_hours WHERE hour >= $1 AND hour < $2"""
_SLOTS = """
SELECT (hour - $1) / $3, CAST(sum(compared_nano) AS BIGINT), CAST(sum(saved_nano) AS BIGINT),
    CAST(sum(cost_nano) AS BIGINT), CAST(sum(requests) AS BIGINT)
FROM traffic_hours WHERE hour >= $1 AND hour < $2 GROUP BY 1"""
_FAILED_SLOTS = """
SELECT (hour - $1) / $3, CAST(sum(CASE WHEN status < 500 THEN number ELSE 0 END) AS BIGINT),
    CAST(sum(CASE WHEN status < 500 THEN 0 ELSE number END) AS BIGINT)
FROM traffic_hours_failures WHERE hour >= $1 AND hour < $2 GROUP BY 1"""
_FIRST = """
SELECT min(first) FROM (
    SELECT min(hour) AS first FROM traffic_hours
    UNION ALL SELECT min(hour) AS first FROM traffic_hours_failures
) AS each"""
_LATENCIES = """
SELECT policy, kind, model, bucket, CAST(sum(number) AS BIGINT)
FROM traffic_hours_latency WHERE hour >= $1 AND hour < $2 GROUP BY policy, kind, model, bucket"""
_KINDS = """
SELECT policy, model, promise, CAST(sum(requests) AS BIGINT), CAST(sum(cost_nano) AS BIGINT)
FROM traffic_hours WHERE hour >= $1 AND hour < $2 GROUP BY policy, model, promise
HAVING sum(requests) > 0 ORDER BY policy, model, promise"""
_FAILURES = """
SELECT model, status, code, CAST(sum(number) AS BIGINT), CAST(sum(cost_nano) AS BIGINT)
FROM traffic_hours_failures WHERE hour >= $1 AND hour < $2 GROUP BY model, status, code
ORDER BY status, code, model"""
_CALLS = """
SELECT policy, model, CAST(sum(calls - failed) AS BIGINT), CAST(sum(cost_nano) AS BIGINT)
FROM traffic_hours_calls WHERE hour >= $1 GROUP BY policy, model
HAVING sum(calls - failed) > 0 ORDER BY policy, model"""


@dataclass(frozen=True)
class Totals:
    """What requests of a period came to, in nano-dollars."""

    requests: int
    cost_nano: int
    """What all of them cost."""
    later_nano: int
    """What was asked in the background beside them: trials and audits."""
    saved_nano: int
    """What the strongest model would have cost, less what was paid, where that is known."""
    compared: int
    """Requests of which it is known."""
    compared_nano: int
    """What those cost."""

    @property
    def strongest_nano(self) -> int:
        """What the strongest model alone would have cost for the requests of which it is known."""
        return self.compared_nano + self.saved_nano

    @property
    def saved_share(self) -> float | None:
        """The share of that which was saved; None of nothing."""
        return self.saved_nano / self.strongest_nano if self.strongest_nano > 0 else None


@dataclass(frozen=True)
class Slot:
    """Some hours, such as a day; money in nano-dollars."""

    at: datetime
    """When they begin."""
    compared_nano: int = 0
    """What those requests cost of which it is known what the strongest would have cost."""
    saved_nano: int = 0
    """On those."""
    cost_nano: int = 0
    """What all requests cost that were answered."""
    requests: int = 0
    """Those that were answered."""
    refused: int = 0
    failed: int = 0


@dataclass(frozen=True)
class Latency:
    """How long a model took, or requests of a policy that asked for it."""

    policy: str
    """Empty: of no policy."""
    kind: str
    """`reply`: whole requests; `call`: single calls to the model."""
    model: str
    number: int
    median_s: float
    slow_s: float
    """The 95th percentile."""


@dataclass(frozen=True)
class Kind:
    """Requests that are alike: the policy that took them, the model asked for, the promise kept."""

    policy: str
    """Empty: nobody's."""
    model: str
    promise: str
    requests: int
    cost_nano: int


@dataclass(frozen=True)
class Failures:
    """Requests that were refused or failed alike."""

    model: str
    """What was asked for; empty: no model that there is, or it was not read so far."""
    status: int
    code: str
    number: int
    cost_nano: int
    """What they cost all the same, or can have cost."""

    @property
    def are_refused(self) -> bool:
        """Whether the request was at fault, or a limit; else the gateway or a model failed."""
        return self.status < 500


@dataclass(frozen=True)
class Asked:
    """What a model's calls came to under a policy, those in the background among them."""

    policy: str
    model: str
    calls: int
    """Those that did not fail."""
    cost_nano: int


@dataclass(frozen=True)
class Figures:
    """Reads the sums of a gateway's database."""

    database: Database

    async def totals(self, since: datetime = EVER, until: datetime = NEVER) -> Totals:
        """Return what the hours of a time come to."""
        (row,) = await self.database.read(_TOTALS, _hour(since), _hour(until))
        return Totals(*row)

    async def first(self) -> datetime | None:
        """Return the first hour of which something is known; None: nothing is."""
        ((hour,),) = await self.database.read(_FIRST)
        return None if hour is None else moment(hour * HOUR_US)

    async def slots(self, since: datetime, until: datetime, hours: int) -> list[Slot]:
        """Return a time in slots of so many hours, each of them, the oldest first."""
        place = (_hour(since), _hour(until), hours)
        passed = {row[0]: row[1:] for row in await self.database.read(_SLOTS, *place)}
        failed = {row[0]: row[1:] for row in await self.database.read(_FAILED_SLOTS, *place)}
        step = timedelta(hours=hours)
        return [
            Slot(since + at * step, *passed.get(at, (0,) * 4), *failed.get(at, (0, 0)))
            for at in range(-((since - until) // step))
        ]

    async def latencies(self, since: datetime, until: datetime = NEVER) -> list[Latency]:
        """Return latencies of whole requests by policy and model, and of calls by model."""
        counted: dict[tuple[str, str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for policy, kind, model, bucket, number in await self.database.read(
            _LATENCIES, _hour(since), _hour(until)
        ):
            counted[kind, policy if kind == REPLY else "", model][bucket] += number
        return [
            Latency(
                policy,
                kind,
                model,
                sum(numbers.values()),
                quantile(numbers, 0.5) or 0.0,
                quantile(numbers, 0.95) or 0.0,
            )
            for (kind, policy, model), numbers in sorted(counted.items())
        ]

    async def kinds(self, since: datetime = EVER, until: datetime = NEVER) -> list[Kind]:
        """Return which kinds of requests there were."""
        rows = await self.database.read(_KINDS, _hour(since), _hour(until))
        return [Kind(*row) for row in rows]

    async def failures(self, since: datetime = EVER, until: datetime = NEVER) -> list[Failures]:
        """Return which requests were refused or failed in the hours of a time."""
        rows = await self.database.read(_FAILURES, _hour(since), _hour(until))
        return [Failures(*row) for row in rows]

    async def asked(self, since: datetime = EVER) -> list[Asked]:
        """Return which models were asked, by policy."""
        return [Asked(*row) for row in await self.database.read(_CALLS, _hour(since))]


def midnight(now: datetime) -> datetime:
    """Return when the day of a moment began, in UTC.

    >>> midnight(moment(HOUR_US * 30)).isoformat()
    '1970-01-02T00:00:00+00:00'
    """
    return moment(microseconds(now) // (HOURS * HOUR_US) * HOURS * HOUR_US)


def week(now: datetime) -> datetime:
    """Return when the last seven days began, today among them."""
    return midnight(now) - timedelta(days=6)


def _hour(since: datetime) -> int:
    return microseconds(since) // HOUR_US
