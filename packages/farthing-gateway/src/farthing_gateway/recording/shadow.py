"""Trials off the requests' path: the other models of a policy are asked the same, now and then.

What they would have answered is how a policy is learned and proved. Trials have a budget of their
own, are drawn by conversation, so that one is tried whole or not at all, and are the first thing
that is left out under load. Once a bundle decides, the models of its pool are asked by audits
alone (see `watching/auditor.py`), and trials ask those that are not in the pool yet.
"""

import asyncio
import logging
import time
from dataclasses import dataclass, field
from hashlib import sha256

from farthing.errors import FarthingError
from farthing.runtime.base import Agent
from farthing.traces.base import Call, Trace
from farthing_gateway.background import BackgroundCaller
from farthing_gateway.config_sections import RecordSection
from farthing_gateway.metrics import Metrics
from farthing_gateway.policies import GatewayPolicy
from farthing_gateway.recording.record import answered_directly
from farthing_gateway.recording.traffic import Traffic

DROPPED = "trial"
LOG = logging.getLogger("farthing_gateway")
SAID_S = 60.0
"""How often it is said that trials are left out."""
ENDING_S = 2.0
"""Seconds that trials under way are given when the server ends."""


@dataclass(frozen=True)
class ShadowRequest:
    """A question that was answered, and may be tried on others."""

    policy: GatewayPolicy
    trace: Trace
    conversation: str


@dataclass
class Shadow:
    """Asks the models of a policy that were not asked."""

    section: RecordSection
    asking: BackgroundCaller
    traffic: Traffic
    metrics: Metrics
    _under_way: set[asyncio.Task[None]] = field(default_factory=set)
    _unsaid: int = 0
    _say_at: float = 0.0

    def maybe_shadow(self, trial: ShadowRequest) -> None:
        """Try a question on the other models, if its conversation is drawn and there is room."""
        if not drawn(trial.conversation, self.section.share):
            return
        if len(self._under_way) >= self.section.at_once:
            self._left_out()
            return
        task = asyncio.ensure_future(self._try(trial))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def _left_out(self) -> None:
        """Count a trial that there was no room for, and say so once a minute."""
        self.metrics.dropped(DROPPED)
        self.traffic.left_out()
        self._unsaid += 1
        if time.monotonic() >= self._say_at:
            said = "%d trials were left out: %d were under way (at_once under [record])"
            LOG.warning(said, self._unsaid, self.section.at_once)
            self._unsaid, self._say_at = 0, time.monotonic() + SAID_S

    async def aclose(self) -> None:
        """Give trials under way a moment, then cancel them: they hold nothing up, nor an end."""
        tasks = set(self._under_way)
        if tasks:
            await asyncio.wait(tasks, timeout=ENDING_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _try(self, trial: ShadowRequest) -> None:
        # Of two calls in a role the first counts.
        known = {call.role for call in trial.trace.calls if answered_directly(call)}
        others = [one for one in trial.policy.to_try if one.role not in known]
        found = await asyncio.gather(*(self._ask(one, trial) for one in others))
        calls = [call for call in found if call is not None]
        if calls:
            await self.traffic.attach(trial.trace.id, calls)

    async def _ask(self, agent: Agent, trial: ShadowRequest) -> Call | None:
        try:
            return await self.asking.ask(agent, trial.trace.id, trial.trace.question)
        except FarthingError:
            self.metrics.dropped(DROPPED)
            return None


def drawn(conversation: str, share: float) -> bool:
    """Return whether a conversation is drawn: by its mark alone, so by every process alike.

    >>> sum(drawn(str(k), 0.25) for k in range(4_000))
    1041
    """
    number = int.from_bytes(sha256(conversation.encode()).digest()[:8], "big")
    return number < share * 2**64
