"""Figures for Prometheus, of all workers together; no metric says a key or a text."""

import os
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from farthing.money import usd_from_nano
from farthing_gateway.monitoring.base import PromiseStatus
from farthing_gateway.spending_report import SpendingReport

CONTENT_TYPE = CONTENT_TYPE_LATEST
SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the folder in which workers add up."""
KEPT = 1_000
"""Latencies of each model that quantiles are taken of."""
M = TypeVar("M", Counter, Histogram)
_OF_PEOPLE = ("key:", "team:")
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Metrics:
    """What a worker counts."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        own = self._registry
        self._requests = Counter(
            "farthing_requests", "Requests answered or refused", ["model", "status"], registry=own
        )
        self._cost = Counter(
            "farthing_cost_usd", "US dollars that answered requests cost", ["model"], registry=own
        )
        self._saved = Counter(
            "farthing_saved_usd",
            "US dollars saved against the strongest model",
            ["model"],
            registry=own,
        )
        self._promises = Counter(
            "farthing_promises", "Replies by the promise they keep", ["model", "kind"], registry=own
        )
        self._latency = Histogram(
            "farthing_latency_seconds",
            "Seconds from request to last byte",
            ["model"],
            buckets=_BUCKETS,
            registry=own,
        )
        self._quantiles = Gauge(
            "farthing_latency_quantile_seconds",
            "Median and 95th percentile of a worker's last requests",
            ["model", "quantile"],
            registry=own,
            multiprocess_mode="mostrecent",
        )
        self._under_way = Gauge(
            "farthing_requests_under_way",
            "Requests under way",
            registry=own,
            multiprocess_mode="livesum",
        )
        self._dropped = Counter(
            "farthing_dropped",
            "Traffic or trials that were left out under load",
            ["what"],
            registry=own,
        )
        self._alarms = Gauge(
            "farthing_alarms_open",
            "Alarms that nobody has seen to",
            ["policy"],
            registry=own,
            multiprocess_mode="mostrecent",
        )
        kept = ["policy", "mode", "certificate"]
        self._low, self._high = (
            Gauge(
                f"farthing_promise_kept_{end}",
                f"The {end} end of the interval in which the share of kept promises lies",
                kept,
                registry=own,
                multiprocess_mode="mostrecent",
            )
            for end in ("low", "high")
        )
        self._graded = Gauge(
            "farthing_promise_graded",
            "Graded audits of which that interval is made",
            kept,
            registry=own,
            multiprocess_mode="mostrecent",
        )
        self._outside = Counter(
            "farthing_outside_task",
            "Requests that were asked of a policy, or nearly are its task, and are outside it",
            ["policy", "reason"],
            registry=own,
        )
        self._labelled: dict[tuple[Any, ...], Counter | Histogram] = {}
        self._recent: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=KEPT))

    def _of(self, metric: M, *labels: str) -> M:
        """Return a metric with labels, which takes longer to find than to count with."""
        key = (metric, *labels)
        found = self._labelled.get(key)
        if found is None:
            found = self._labelled[key] = metric.labels(*labels)
        return cast("M", found)

    def begin(self) -> None:
        """Count a request that begins."""
        self._under_way.inc()

    def end(self, model: str, status: int, seconds: float) -> None:
        """Count a request that ended."""
        self._under_way.dec()
        self._of(self._requests, model, str(status)).inc()
        if status < 400:
            self._of(self._latency, model).observe(seconds)
            self._recent[model].append(seconds)

    def paid(self, model: str, cost_nano: int | None, saved_nano: int | None, promise: str) -> None:
        """Count what a reply cost, saved and promises; savings below 0 count as none."""
        self._of(self._cost, model).inc(usd_from_nano(cost_nano or 0))
        self._of(self._saved, model).inc(usd_from_nano(max(0, saved_nano or 0)))
        self._of(self._promises, model, promise).inc()

    def dropped(self, what: str) -> None:
        """Count something that was left out under load."""
        self._dropped.labels(what).inc()

    def alarms(self, open_by_policy: Mapping[str, int]) -> None:
        """Say how many alarms are open."""
        for policy, number in open_by_policy.items():
            self._alarms.labels(policy).set(number)

    def kept(self, found: Sequence[PromiseStatus]) -> None:
        """Say how promises are kept, of all groups together."""
        for one in found:
            if one.group is None and one.low is not None and one.high is not None:
                labels = one.policy, one.mode, one.certificate
                self._low.labels(*labels).set(one.low)
                self._high.labels(*labels).set(one.high)
                self._graded.labels(*labels).set(one.graded)

    def outside(self, policy: str, reason: str) -> None:
        """Count a request that is outside a policy's task."""
        self._outside.labels(policy, reason).inc()

    def quantiles(self) -> dict[str, tuple[float, float]]:
        """Return the median and the 95th percentile of each model's last requests, in seconds."""
        return {model: _quantiles(recent) for model, recent in self._recent.items() if recent}

    def text(self, charged: SpendingReport | None = None) -> bytes:
        """Return all figures in Prometheus's form, of all workers where several share a folder.

        Args:
            charged: what the ledger says, which counts what failed and was given up as well.
        """
        ledger = CollectorRegistry()
        if charged is not None:
            ledger.register(_Ledger(charged))
        return self._counted() + generate_latest(ledger)

    def _counted(self) -> bytes:
        for model, (median, slow) in self.quantiles().items():
            self._quantiles.labels(model, "0.5").set(median)
            self._quantiles.labels(model, "0.95").set(slow)
        if SHARED not in os.environ:
            return generate_latest(self._registry)
        _forget_dead(Path(os.environ[SHARED]))
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        try:
            return generate_latest(together)
        except FileNotFoundError:  # another worker forgets the dead as well
            return generate_latest(together)


@dataclass(frozen=True)
class _Ledger:
    """The ledger's own figures; no metric names a key, or a team."""

    charged: SpendingReport

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield what everything, each policy and each model was charged, and what is left."""
        spent = GaugeMetricFamily(
            "farthing_charged_usd",
            "US dollars that the ledger was charged, failed and given up calls among them",
            labels=["account"],
        )
        for one in self.charged.accounts:
            if not one.name.startswith(_OF_PEOPLE):
                spent.add_metric([one.name], usd_from_nano(one.total.nano))
        yield spent
        left = GaugeMetricFamily(
            "farthing_limit_left_usd",
            "US dollars left of a limit of the configuration",
            labels=["account", "period"],
        )
        for each in self.charged.limits:
            limit = each.limit
            if limit.unit == "usd" and not limit.account.startswith(_OF_PEOPLE):
                left.add_metric([limit.account, limit.period], usd_from_nano(each.left))
        yield left
        unknown = usd_from_nano(self.charged.unknown_nano)
        said = "US dollars charged for calls of unknown outcome, at their most"
        yield GaugeMetricFamily("farthing_unknown_usd", said, value=unknown)
        disputed = self.charged.disputed
        said = "US dollars that replies claimed beyond what their calls can have cost; not charged"
        yield GaugeMetricFamily("farthing_disputed_usd", said, value=usd_from_nano(disputed.nano))
        said = "Replies that claimed more than their calls can have taken"
        yield GaugeMetricFamily("farthing_disputed_replies", said, value=disputed.calls)


def _forget_dead(folder: Path) -> None:
    """Leave out what is true of living workers alone.

    What dead ones had under way they never count down, and how a policy is that they had may be
    said of one that is served no more.
    """
    for file in folder.glob("gauge_*.db"):
        number = int(file.stem.rpartition("_")[2])
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            file.unlink(missing_ok=True)
        except PermissionError:
            continue


def _quantiles(recent: Sequence[float]) -> tuple[float, float]:
    median, slow = np.quantile(list(recent), [0.5, 0.95])
    return float(median), float(slow)
