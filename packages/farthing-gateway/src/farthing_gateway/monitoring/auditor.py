"""Has audits and explorations asked in the background: the models that were not asked are.

What was drawn waits in the database, so that nothing of it is dropped under load: it is asked for
as money and models allow, by the worker that drew it or, if that one is gone, by another. Texts
that recording takes out are in the memory of the worker that drew it alone; where that is gone, the
audit fails, which is counted, and nothing of the texts had to do with it.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol
from uuid import uuid4

import msgspec

from farthing.errors import FarthingError
from farthing.runtime.base import Agent
from farthing.runtime.protocol import may_succeed_later
from farthing.tasks.base import Task
from farthing.traces.base import Call
from farthing_gateway.config_sections import AUDIT
from farthing_gateway.monitoring.audits import (
    MOST_TRIES,
    Audit,
    find_audit,
    finish,
    grade,
    happened,
    next_try,
    put_off,
    take_up,
)
from farthing_gateway.monitoring.events import AuditAsked
from farthing_gateway.monitoring.feedback import gold_of
from farthing_gateway.monitoring.promises import agrees, kept
from farthing_gateway.recording.record import RequestRecord, answered_directly
from farthing_gateway.recording.traffic import Traffic
from farthing_gateway.recording.traffic_rows import cost_of
from farthing_gateway.storage.database import Database, Step
from farthing_gateway.storage.ledger.base import LimitError

MOST_REMEMBERED = 2_000
"""Requests that a worker remembers as they were asked, until their audit is over."""
LOG = logging.getLogger("farthing_gateway")


@dataclass(frozen=True)
class _AuditReplies:
    """What came of asking."""

    calls: Sequence[Call]
    """That the recorded trace lacks."""
    left: bool = False
    """Whether models are to be asked again."""
    unpaid_until: datetime | None = None
    """When there is money again, where it lacked."""


class Asks(Protocol):
    """Asks a model, and pays for it; see `BackgroundCaller`."""

    async def ask(self, agent: Agent, trace: str, question: str) -> Call:
        """Return what an agent says."""
        ...


class Audited(Protocol):
    """A policy whose replies are audited; see `GatewayPolicy`."""

    @property
    def to_audit(self) -> Sequence[Agent]:
        """Whom audits ask."""
        ...

    @property
    def to_explore(self) -> Sequence[Agent]:
        """Whom exploration asks."""
        ...

    @property
    def task(self) -> Task:
        """What says which answers are the same."""
        ...


@dataclass
class Auditor:
    """Asks for the audits of a worker."""

    database: Database
    traffic: Traffic
    asking: Asks
    policies: Mapping[str, Audited]
    at_once: int
    _passed: OrderedDict[str, RequestRecord] = field(default_factory=OrderedDict)

    def remember(self, passed: RequestRecord) -> None:
        """Keep a request that was drawn as it was asked, until its models were."""
        self._passed[passed.id] = passed
        while len(self._passed) > MOST_REMEMBERED:
            self._passed.popitem(last=False)

    async def once(self) -> int:
        """Ask for what is due, some at a time; return for how many."""
        due = await take_up(self.database, self.traffic.worker, self.at_once)
        await asyncio.gather(*(self._audit(one) for one in due))
        return len(due)

    async def _audit(self, audit: Audit) -> None:
        policy, written = self.policies.get(audit.under.policy), await self.traffic.find(audit.id)
        asked = self._passed.get(audit.id) or (written if audit.whole else None)
        if policy is None or written is None or asked is None:
            name = audit.under.policy
            LOG.warning("an audit of %s cannot be asked: its text is gone", name)
            await self._write(audit, written, _AuditReplies(()), policy, failed=True)
            return
        agents = policy.to_audit if audit.purpose == AUDIT else policy.to_explore
        found = await self._asked(agents, asked, written)
        asked = _with(asked, found.calls)
        self.remember(asked)  # what was answered is not asked again, written or not
        await self._write(audit, asked, found, policy, failed=False)
        now = await find_audit(self.database, audit.id)
        if now is None or now.state != "waiting":
            self._passed.pop(audit.id, None)
        if now is not None and now.state == "done" and now.value is None:
            # Feedback may have come while it was written.
            steps = await self._graded(now, asked, policy, uuid4().hex, failed=False)
            await self.database.write(*steps)

    async def _asked(
        self, agents: Sequence[Agent], asked: RequestRecord, written: RequestRecord
    ) -> _AuditReplies:
        """Ask the models that were not asked; what they say is bought once.

        One that failed while the client waited is asked no second time: that it gave no answer is
        what a proof would have seen. One that fails here is, and so is one that was left alone
        then, or failed in the place of another.
        """
        there = _roles(written)
        own = [call for call in asked.trace.calls if answered_directly(call)]
        unwritten = [call for call in own if call.role not in there]
        known = there | {call.role for call in unwritten}
        others = [one for one in agents if one.role not in known]
        results = await asyncio.gather(*(self._ask(one, asked) for one in others))
        calls = [one for one in results if isinstance(one, Call) and not may_succeed_later(one)]
        unpaid = [one.resets_at for one in results if isinstance(one, LimitError)]
        until = None
        if unpaid:
            soon = datetime.now(UTC) + timedelta(hours=1)
            until = min(one or soon for one in unpaid)
        return _AuditReplies([*unwritten, *calls], len(calls) < len(others), until)

    async def _ask(self, agent: Agent, asked: RequestRecord) -> Call | FarthingError:
        try:
            return await self.asking.ask(agent, asked.id, asked.trace.question)
        except FarthingError as error:
            return error

    async def _write(
        self,
        audit: Audit,
        asked: RequestRecord | None,
        found: _AuditReplies,
        policy: Audited | None,
        *,
        failed: bool,
    ) -> None:
        writer, worker, now = uuid4().hex, self.traffic.worker, datetime.now(UTC)
        tries = audit.tries + (found.unpaid_until is None)
        failed = failed or (found.left and tries >= MOST_TRIES)
        ended = failed or not found.left
        steps: list[Step] = []
        if ended:
            steps.append(finish(audit, worker, writer, failed=failed))
        else:
            due = found.unpaid_until or next_try(tries, now)
            steps.append(put_off(audit, worker, due, tries, writer))
        event = AuditAsked(
            group=None if asked is None else asked.group,
            purpose=audit.purpose,
            cost_nano=cost_of(found.calls),
            ended=ended,
            failed=failed,
        )
        steps.append(happened(audit, event, writer))
        if ended and asked is not None and policy is not None:
            steps += await self._graded(audit, asked, policy, writer, failed=failed)
        await self.traffic.attach(audit.id, found.calls, *steps)

    async def _graded(
        self, audit: Audit, asked: RequestRecord, policy: Audited, writer: str, *, failed: bool
    ) -> list[Step]:
        decided = asked.decided
        if audit.purpose != AUDIT or decided is None:
            return []
        value: float | None = None
        if decided.graded_by == "reference":
            said = agrees(decided, asked.trace.calls, policy.task)
            value = None if said is None else float(said)
        elif (gold := await gold_of(self.database, audit.id)) is not None:
            calls, task = asked.trace.calls, policy.task
            value = kept(decided, calls, gold, task, whole=not failed)
        return [] if value is None else grade(audit, value, asked.group, writer)


def _with(passed: RequestRecord, calls: Sequence[Call]) -> RequestRecord:
    """Return what passed with later calls beside its own; of two in a role the first counts."""
    known = _roles(passed)
    more = [call for call in calls if call.role not in known]
    trace = msgspec.structs.replace(passed.trace, calls=[*passed.trace.calls, *more])
    return replace(passed, trace=trace)


def _roles(passed: RequestRecord) -> set[str]:
    return {call.role for call in passed.trace.calls if answered_directly(call)}
