"""Asks models off the requests' path, out of a budget of its own."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from farthing.money import nano_from_usd
from farthing.runtime.base import Agent, Turn
from farthing.runtime.meter import Meter
from farthing.runtime.protocol import ask_agent
from farthing.tasks.base import Question
from farthing.traces.base import Call
from farthing_gateway.charging import ChargingJournal, RequestCharges, RequestLimits
from farthing_gateway.storage.ledger.base import Limit
from farthing_gateway.storage.ledger.ledger import AccountLedger


@dataclass(frozen=True)
class BackgroundCaller:
    """Who pays for what is asked in the background, and how much a day."""

    name: str
    """What it is charged to, as `policy:NAME`."""
    usd_per_day: float
    ledger: AccountLedger
    limits: RequestLimits
    sections: Mapping[str, str]
    """What clients call a model to what its provider calls it."""
    lease_s: float

    async def ask(self, agent: Agent, trace: str, question: str) -> Call:
        charges = RequestCharges(self.ledger, self._limits(), None, self.lease_s, self.name, trace)
        journal = ChargingJournal(charges, self.sections)
        meter = Meter(journal, disputes=True)
        try:
            return await ask_agent(agent, Turn(Question(trace, question), 1), meter.client)
        finally:
            await asyncio.shield(journal.close())

    def _limits(self) -> RequestLimits:
        account = f"policy:{self.name}"
        own = Limit(account, "usd", "day", nano_from_usd(self.usd_per_day))
        both = (own, *self.limits.on([account]))
        return RequestLimits({**self.limits.by_account, account: both})
