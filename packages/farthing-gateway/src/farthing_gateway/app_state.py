"""All that a running gateway holds open, and the order in which it is opened and closed."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from farthing.errors import ConfigError, FarthingError
from farthing.models.prices import unpriced
from farthing_gateway.background import BackgroundCaller
from farthing_gateway.charging import RequestLimits
from farthing_gateway.chat import Chat
from farthing_gateway.circuit_breaker import CircuitBreaker, limit_retries, with_efforts
from farthing_gateway.config import ServeConfig
from farthing_gateway.config_sections import AUDIT, SHADOW, RecordSection
from farthing_gateway.errors import logged
from farthing_gateway.metrics import Metrics
from farthing_gateway.monitoring.auditor import Auditor
from farthing_gateway.monitoring.feedback import Grading
from farthing_gateway.monitoring.monitor_job import Watcher
from farthing_gateway.monitoring.status import StoredWatch, open_watch
from farthing_gateway.open_policies import open_policies
from farthing_gateway.pacing import Pace
from farthing_gateway.policies import GatewayPolicy
from farthing_gateway.policy_reply import Baseline
from farthing_gateway.proxy import Proxy
from farthing_gateway.recording.recorder import Recorder
from farthing_gateway.recording.redaction import load_redaction
from farthing_gateway.recording.shadow import Shadow
from farthing_gateway.recording.text_retention import TextRetention
from farthing_gateway.recording.traffic import Traffic, open_traffic
from farthing_gateway.storage.keys import Keys, open_keys
from farthing_gateway.storage.ledger.ledger import AccountLedger, open_ledger
from farthing_gateway.telemetry import Telemetry, open_telemetry
from farthing_gateway.upstream import open_upstreams

LOG = logging.getLogger("farthing_gateway")
SWEEP_S = 5.0
"""How often ended leases are looked for."""
WATCH_S = 2.0
"""How often bundles are looked at, and what happened to promises is counted."""
AUDIT_S = 0.5
"""How often audits are looked for that are due."""
CLEAN_S = 3_600.0
"""How often what is too old is deleted."""
REMEMBERED = timedelta(days=1)
"""How long an idempotency key is known."""


@dataclass(frozen=True)
class GatewayState:
    """What requests need."""

    config: ServeConfig
    chat: Chat
    ledger: AccountLedger
    keys: Keys | None
    """None: everybody may ask."""
    metrics: Metrics
    watch: StoredWatch | None
    """How promises are kept; None where nothing is recorded."""
    grading: Grading | None
    """Takes feedback; None where nothing is recorded."""
    telemetry: Telemetry | None = None
    """None: OpenTelemetry hears nothing."""


@contextlib.asynccontextmanager
async def open_gateway(config: ServeConfig, *, watch: bool) -> AsyncIterator[GatewayState]:
    """Open a gateway while the block runs; what waits to be written is written at its end.

    Args:
        config: what is served.
        watch: whether bundles are read again when they change.
    """
    serve = config.serve
    async with contextlib.AsyncExitStack() as stack:
        ledger = await open_ledger(serve.database)
        stack.push_async_callback(ledger.aclose)
        keys = await open_keys(serve.database) if serve.keys else None
        if keys is not None:
            stack.push_async_callback(keys.aclose)
        admissions = config.models.admissions(workers=serve.workers)
        fallbacks = with_efforts(serve.fallbacks, config.models.sections)
        hurried = limit_retries(config.models, fallbacks)
        upstreams = open_upstreams(hurried, admissions)
        for name, upstream in upstreams.items():
            stack.push_async_callback(upstream.aclose)
            if upstream.price is None:  # nothing could be reserved for it
                raise ConfigError(config.file, f"models.{name}", str(unpriced(upstream.model)))
        models = hurried.open(admissions=admissions)
        for one in models.values():
            stack.push_async_callback(one.aclose)
        policies, closing = open_policies(replace(config, models=hurried), models)
        for other in closing:
            stack.push_async_callback(other.aclose)
        metrics, limits = Metrics(), RequestLimits.of(config.limits)
        sections = {name: upstream.model for name, upstream in upstreams.items()}
        opening = _Opening(config, stack, ledger, limits, metrics, sections, policies)
        telemetry = open_telemetry(sections) if serve.telemetry else None
        if telemetry is not None:
            stack.push_async_callback(telemetry.aclose)
        recording = None if config.record is None else await opening.recording(config.record)
        strongest = Baseline(serve.strongest, upstreams[serve.strongest].price)
        breaker = CircuitBreaker(serve.cooldown_s, serve.fallbacks)
        proxy = Proxy(
            upstreams,
            serve.default_max_output,
            fallbacks,
            breaker,
            shortens=serve.over_budget == "shorten",
        )
        paces = {
            name: Pace.of(section.pacing, serve.workers)
            for name, section in config.policies.items()
            if section.pacing is not None
        }
        chat = Chat(
            config=config,
            proxy=proxy,
            policies=policies,
            ledger=ledger,
            limits=limits,
            strongest=strongest,
            metrics=metrics,
            recorder=None if recording is None else recording.recorder,
            paces=paces,
        )
        await _background(stack, _every(SWEEP_S, ledger.sweep), _clean(config, ledger, recording))
        if recording is not None:
            counting = _every(WATCH_S, recording.watcher.once)
            await _background(stack, _audit(recording.auditor), counting)
        if watch:
            await _background(stack, _watch(policies, recording))
        yield GatewayState(
            config,
            chat,
            ledger,
            keys,
            metrics,
            None if recording is None else recording.watcher.watch,
            None if recording is None else recording.grading,
            telemetry,
        )


@dataclass(frozen=True)
class _Recording:
    """What there is where traffic is recorded."""

    traffic: Traffic
    recorder: Recorder
    auditor: Auditor
    watcher: Watcher
    grading: Grading


@dataclass(frozen=True)
class _Opening:
    """What recording is opened with."""

    config: ServeConfig
    stack: contextlib.AsyncExitStack
    ledger: AccountLedger
    limits: RequestLimits
    metrics: Metrics
    sections: dict[str, str]
    policies: dict[str, GatewayPolicy]

    async def recording(self, section: RecordSection) -> _Recording:
        where = self.config.serve.database
        redact = None if section.redact is None else load_redaction(section.redact)
        traffic = await open_traffic(where, redact, keep_prompts=section.prompts)
        self.stack.push_async_callback(traffic.aclose)
        watch = await open_watch(where)
        self.stack.push_async_callback(watch.aclose)
        trials, audits = self._asking(SHADOW, section), self._asking(AUDIT, section)
        shadow = Shadow(section, trials, traffic, self.metrics)
        self.stack.push_async_callback(shadow.aclose)
        auditor = Auditor(watch.database, traffic, audits, self.policies, section.at_once)
        watcher = Watcher(self.config.watch, watch, self.policies, self.metrics)
        await watcher.begin()
        grading = Grading(watch.database, traffic, TextRetention(redact, section.prompts))
        recorder = Recorder(traffic, shadow, auditor, self.sections)
        return _Recording(traffic, recorder, auditor, watcher, grading)

    def _asking(self, name: str, section: RecordSection) -> BackgroundCaller:
        usd = section.usd_per_day if name == SHADOW else section.audit_usd_per_day
        lease_s = self.config.serve.lease_s
        return BackgroundCaller(name, usd, self.ledger, self.limits, self.sections, lease_s)


async def _background(stack: contextlib.AsyncExitStack, *jobs: Coroutine[None, None, None]) -> None:
    tasks = [asyncio.ensure_future(job) for job in jobs]

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    stack.push_async_callback(end)


async def _clean(config: ServeConfig, ledger: AccountLedger, recording: _Recording | None) -> None:
    async def once() -> None:
        now = datetime.now(UTC)
        await ledger.forget(now - REMEMBERED)
        if recording is not None and config.record is not None:
            oldest = now - timedelta(days=config.record.days)
            await recording.traffic.delete_before(oldest)
            await recording.watcher.watch.forget_before(oldest)

    await _every(CLEAN_S, once)


async def _audit(auditor: Auditor) -> None:
    async def once() -> None:
        while await auditor.once():
            pass

    await _every(AUDIT_S, once)


async def _watch(policies: dict[str, GatewayPolicy], recording: _Recording | None) -> None:
    async def once() -> None:
        for name, policy in policies.items():
            before, unproved = dict(policy.loaded), policy.unproved
            try:
                for mode in await asyncio.to_thread(policy.load):
                    LOG.warning("policy %s: read the bundle of mode %s", name, mode)
                    for note in policy.notes(mode):
                        LOG.warning("note: %s", note)
            except FarthingError as error:  # one that is damaged keeps no other from being read
                LOG.warning("policy %s: %s; what was read before goes on", name, error)
            new = {mode for mode, one in policy.loaded.items() if before.get(mode) is not one}
            new |= policy.unproved - unproved
            if recording is not None:
                await recording.watcher.note_loaded(policy, sorted(new))

    await _every(WATCH_S, once)


async def _every(seconds: float, once: Callable[[], Awaitable[object]]) -> None:
    """Do something again and again; a failure is logged, and it is tried again."""
    while True:
        try:
            await once()
        except FarthingError as error:
            LOG.warning("%s", error)
        except Exception as error:  # noqa: BLE001 - else nobody would do it any more
            logged(error)
        await asyncio.sleep(seconds)
