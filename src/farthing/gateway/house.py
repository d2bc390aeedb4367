"""All that a running gateway holds open, and the order in which it is opened and closed."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from farthing.budgets.accounts.base import Accounts
from farthing.budgets.accounts.opening import open_accounts
from farthing.errors import FarthingError
from farthing.gateway.answering import Strongest
from farthing.gateway.chat import Chat
from farthing.gateway.config import ServeConfig
from farthing.gateway.cooling import Cooling, hurry
from farthing.gateway.keys import Keys, open_keys
from farthing.gateway.metrics import Metrics
from farthing.gateway.pacing import Pace
from farthing.gateway.passing import Passing
from farthing.gateway.policies import GatewayPolicy, open_policies
from farthing.gateway.recording import Recorder
from farthing.gateway.redaction import load_redaction
from farthing.gateway.shadow import Shadow
from farthing.gateway.spending import Limits
from farthing.gateway.traffic import Traffic, open_traffic
from farthing.gateway.upstream import open_upstreams
from farthing.models.prices import unpriced

LOG = logging.getLogger("farthing.gateway")
SWEEP_S = 5.0
"""How often ended leases are looked for."""
WATCH_S = 2.0
"""How often bundles are looked at."""
CLEAN_S = 3_600.0
"""How often what is too old is deleted."""
REMEMBERED = timedelta(days=1)
"""How long an idempotency key is known."""


@dataclass(frozen=True)
class House:
    """What requests need."""

    config: ServeConfig
    chat: Chat
    ledger: Accounts
    keys: Keys | None
    """None: everybody may ask."""
    metrics: Metrics


@contextlib.asynccontextmanager
async def opened(config: ServeConfig, *, watch: bool) -> AsyncIterator[House]:
    """Open a gateway while the block runs; what waits to be written is written at its end.

    Args:
        config: what is served.
        watch: whether bundles are read again when they change.

    Raises:
        InputError: a key, a bundle or the database cannot be opened, or a model has no price.
    """
    serve = config.serve
    async with contextlib.AsyncExitStack() as stack:
        ledger = await open_accounts(serve.database)
        stack.push_async_callback(ledger.aclose)
        keys = await open_keys(serve.database) if serve.keys else None
        if keys is not None:
            stack.push_async_callback(keys.aclose)
        admissions = config.models.admissions(workers=serve.workers)
        hurried = hurry(config.models, serve.fallbacks)
        upstreams = open_upstreams(hurried, admissions)
        for upstream in upstreams.values():
            stack.push_async_callback(upstream.aclose)
            if upstream.price is None:  # nothing could be reserved for it
                raise unpriced(upstream.model)
        models = hurried.open(admissions=admissions)
        for one in models.values():
            stack.push_async_callback(one.aclose)
        policies, closing = open_policies(config, models)
        for other in closing:
            stack.push_async_callback(other.aclose)
        metrics, limits = Metrics(), Limits.of(config.limits)
        sections = {name: upstream.model for name, upstream in upstreams.items()}
        traffic, recorder = await _recorder(config, stack, ledger, limits, metrics, sections)
        strongest = Strongest(serve.strongest, upstreams[serve.strongest].price)
        cooling = Cooling(serve.cooldown_s, serve.fallbacks)
        passing = Passing(upstreams, serve.default_max_output, serve.fallbacks, cooling)
        paces = {
            name: Pace.of(section.pacing, serve.workers)
            for name, section in config.policies.items()
            if section.pacing is not None
        }
        chat = Chat(
            config=config,
            passing=passing,
            policies=policies,
            ledger=ledger,
            limits=limits,
            strongest=strongest,
            metrics=metrics,
            recorder=recorder,
            paces=paces,
        )
        await _background(stack, _sweep(ledger), _clean(config, ledger, traffic))
        if watch:
            await _background(stack, _watch(policies))
        yield House(config, chat, ledger, keys, metrics)


async def _recorder(
    config: ServeConfig,
    stack: contextlib.AsyncExitStack,
    ledger: Accounts,
    limits: Limits,
    metrics: Metrics,
    sections: dict[str, str],
) -> tuple[Traffic | None, Recorder | None]:
    section = config.record
    if section is None:
        return None, None
    redact = None if section.redact is None else load_redaction(section.redact)
    traffic = await open_traffic(config.serve.database, redact, section.prompts)
    stack.push_async_callback(traffic.aclose)
    shadow = Shadow(section, ledger, limits, traffic, metrics, sections, config.serve.lease_s)
    stack.push_async_callback(shadow.aclose)
    return traffic, Recorder(traffic, shadow, sections)


async def _background(stack: contextlib.AsyncExitStack, *jobs: Coroutine[None, None, None]) -> None:
    """Run jobs until the stack ends."""
    tasks = [asyncio.ensure_future(job) for job in jobs]

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    stack.push_async_callback(end)


async def _sweep(ledger: Accounts) -> None:
    """Settle what dead workers left."""

    async def once() -> None:
        await ledger.sweep()

    await _every(SWEEP_S, once)


async def _clean(config: ServeConfig, ledger: Accounts, traffic: Traffic | None) -> None:
    """Delete recorded traffic and idempotency keys that are too old."""

    async def once() -> None:
        now = datetime.now(UTC)
        await ledger.forget(now - REMEMBERED)
        if traffic is not None and config.record is not None:
            await traffic.delete_before(now - timedelta(days=config.record.days))

    await _every(CLEAN_S, once)


async def _watch(policies: dict[str, GatewayPolicy]) -> None:
    """Read bundles again that have changed."""

    async def once() -> None:
        for name, policy in policies.items():
            try:
                for mode in await asyncio.to_thread(policy.load):
                    LOG.warning("policy %s: read the bundle of mode %s", name, mode)
            except FarthingError as error:  # one that is damaged keeps no other from being read
                LOG.warning("policy %s: %s; what was read before goes on", name, error)

    await _every(WATCH_S, once)


async def _every(seconds: float, once: Callable[[], Awaitable[None]]) -> None:
    """Do something again and again; a failure is logged, and it is tried again."""
    while True:
        try:
            await once()
        except FarthingError as error:
            LOG.warning("%s", error)
        await asyncio.sleep(seconds)
