"""The meter: the one place where money is reserved before a try and settled after it.

A question's agents ask through a client of the meter. What the journal knows is not paid again;
every try of anything else, retries included, goes through `Meter.pay`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Self, TypeVar, cast

import msgspec

from farthing.budgets.ledger import Ledger, MemoryLedger, Reservation
from farthing.errors import BudgetError, ModelError
from farthing.models.base import Completion, Model, Prompt, longest
from farthing.models.retry import complete
from farthing.money import dollars
from farthing.runtime.base import Agent
from farthing.runtime.journal import Attempt, Entries, Entry, Journal, RecordedReply
from farthing.tasks.base import Question
from farthing.tasks.tools import Tool, ToolReply

T = TypeVar("T", Completion, ToolReply)
PROBE_ID = "(probe)"
"""Stands in the journal for a question where a call is about none."""
CALLED = ("the question's budget", "--max-cost (of corl --budget, in Python budget_usd)")
"""What messages call the budget of a question, and what sets it."""


@dataclass
class QuestionBudget:
    """What one question may cost, and what it has cost."""

    ledger: Ledger | None = None
    """Holds the budget; None where there is none."""
    spent_nano: int | None = 0
    """In nano-dollars; None once something was paid whose price is not known."""

    @classmethod
    def of(cls, nano: int | None) -> Self:
        """Return the budget of a question that may cost so much; None: no limit."""
        return cls(None if nano is None else MemoryLedger(nano, *CALLED))

    @property
    def left_nano(self) -> int | None:
        """What may still be reserved; None where there is no budget."""
        return None if self.ledger is None else self.ledger.balance().left_nano


@dataclass
class CallBudget:
    """What the tries of one call may cost: out of its question's budget, within its own bound."""

    question: QuestionBudget
    call: str
    """What messages call it."""
    bound_nano: int | None = None
    """The most that its tries may cost together; None: as much as the question."""
    _taken_nano: int = 0
    """What was settled and what is reserved."""

    @property
    def limited(self) -> bool:
        """Whether a try may be refused here."""
        return self.question.ledger is not None or self.bound_nano is not None

    def reserve(self, largest_nano: int) -> Reservation:
        """Set aside the most that a try can cost; all or nothing."""
        bound, ledger = self.bound_nano, self.question.ledger
        if bound is not None and self._taken_nano + largest_nano > bound:
            raise BudgetError(
                f"the next try of {self.call} can cost {dollars(largest_nano)}, and of the "
                f"{dollars(bound)} that this call may cost only "
                f"{dollars(max(0, bound - self._taken_nano))} is left; calibrate with a larger "
                "--largest ROLE=USD (in Python largest_usd)"
            )
        held = ledger.reserve(largest_nano) if ledger else Reservation(0, largest_nano)
        self._taken_nano += largest_nano
        return held

    def settle(self, held: Reservation, cost_nano: int | None) -> None:
        """Pay for a try, 0 where it was not sent; under a limit an unknown cost is the largest."""
        if self.limited and cost_nano is None:
            cost_nano = held.nano
        if self.question.ledger:
            self.question.ledger.settle(held, cost_nano or 0)
        self._taken_nano += (cost_nano or 0) - held.nano
        spent = self.question.spent_nano
        known = spent is not None and cost_nano is not None
        self.question.spent_nano = (spent or 0) + (cost_nano or 0) if known else None


class Meter:
    """Pays for every try: reservation, then the try, then what it cost.

    Two ledgers bound what is reserved, all or nothing: the question's, and the job's, which the
    journal keeps. Where the job's cap leaves no room while other tries are under way, a try waits
    for what they do not use, in the order of arrival. When there is no room and nothing to wait
    for, the meter closes: tries under way are brought to an end, and none is begun.
    """

    def __init__(
        self,
        journal: Journal | None = None,
        parameters: Mapping[str, str] | None = None,
        *,
        disputes: bool = False,
    ) -> None:
        """Pay within a job's cap, or, without a journal, within the questions' budgets alone.

        `parameters` are settings of a role's model that no prompt shows. With `disputes`, a reply
        that claims more than its call can take counts as what that is; the journal is told the
        claim.
        """
        self.journal = journal
        self._disputes = disputes
        self._parameters = parameters or {}
        self._line = asyncio.Lock()
        self._change = asyncio.Event()
        self._under_way = 0
        self.closed: BudgetError | None = None
        """Why no more tries are begun."""

    def close(self, why: BudgetError) -> None:
        """Begin no more tries; the first reason counts."""
        if self.closed is None:
            self.closed = why
        self._change.set()

    def client(
        self,
        question: Question,
        number: int,
        agent: Agent,
        budget: QuestionBudget | None = None,
        bound_nano: int | None = None,
    ) -> "MeteredClient":
        """Open the client of one call of a trace, in a round from 1.

        Its tries may cost at most `bound_nano` together; None, as for the budget: no limit.
        """
        parameters = self._parameters.get(agent.role, "")
        call = f"'{agent.role}' in round {number}"
        return MeteredClient(
            self,
            Attempt(question.id, number, agent.role, parameters),
            CallBudget(budget or QuestionBudget(), call, bound_nano),
        )

    async def pay(
        self,
        call: Entry,
        budget: CallBudget,
        largest_nano: Callable[[], int],
        make: Callable[[], Awaitable[T]],
    ) -> T:
        """Make one try of a call, within what it may use of the question's budget.

        A try that is cancelled counts at the most that it can cost, and stays in the journal as
        started: nobody knows what it cost. `largest_nano` is asked only where a limit applies.
        """
        largest = largest_nano() if self.journal or budget.limited else 0
        held = budget.reserve(largest)
        try:
            number = await self._start(call, largest)
        except BaseException:
            budget.settle(held, 0)
            raise
        cost: int | None = None
        try:
            reply = await make()
            cost = reply.cost_nano
        except ModelError as error:
            cost = error.cost_nano
            if self.journal:
                await self.journal.fail(number, error, cost)
            raise
        else:
            if self.journal:
                await self.journal.complete(number, reply, cost)
            if self._disputes:
                reply = cast("T", _within(reply, largest, call.tokens))
                cost = reply.cost_nano
            return reply
        finally:
            budget.settle(held, cost)
            self._under_way -= 1
            self._change.set()

    async def _start(self, call: Entry, largest_nano: int) -> int:
        """Write a try down and reserve it in the job's ledger, in line; return its number."""
        if not self._line.locked():
            number = await self._try_to_start(call, largest_nano)
            if number is not None:
                return number
            self._change.set()  # the first in line may have counted on it
        async with self._line:
            while not self.closed:
                self._change.clear()
                number = await self._try_to_start(call, largest_nano)
                if number is not None:
                    return number
                await self._change.wait()
        raise BudgetError(str(self.closed))

    async def _try_to_start(self, call: Entry, largest_nano: int) -> int | None:
        """Return the number of a try that may be made; None where there is no room for it now."""
        if self.closed:
            return None
        self._under_way += 1
        try:
            return await self.journal.start(call, largest_nano) if self.journal else 0
        except BaseException as error:
            self._under_way -= 1
            if not isinstance(error, BudgetError):
                self._change.set()
                raise
            if not self._under_way:
                self.close(error)
            return None


class MeteredClient:
    """The client of one call of a trace: what the journal knows comes from it, the rest is paid.

    A reply from the journal counts against the question's budget at what it cost when it was made,
    so that the same question under the same budget goes the same way.
    """

    def __init__(self, meter: Meter, attempt: Attempt, budget: CallBudget) -> None:
        self._meter = meter
        self._entries = Entries(attempt)
        self._budget = budget

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        """Return the recorded reply, or have the model answer; see `Client`."""
        call, largest = (
            self._entries.next_entry(model.name, prompt, longest(model, prompt)),
            partial(model.largest_cost_nano, prompt),
        )
        known = await self._known(call, largest)
        if known.reply is not None:
            completion = msgspec.json.decode(known.reply, type=Completion)
            return replace(completion, cost_nano=known.spent_nano, tries=known.tries)
        pay = partial(self._meter.pay, call, self._budget, largest)
        completion = await complete(model, prompt, pay)
        if not known.tries:
            return completion
        cost = None if completion.cost_nano is None else completion.cost_nano + known.spent_nano
        return replace(completion, cost_nano=cost, tries=completion.tries + known.tries)

    def beside(self) -> "MeteredClient":
        """Return a client of what is asked once for all questions, which the job pays for."""
        attempt = replace(self._entries.attempt, question=PROBE_ID, round=1)
        return MeteredClient(self._meter, attempt, CallBudget(QuestionBudget(), "a probe"))

    async def use(self, tool: Tool, query: str) -> ToolReply:
        """Return the recorded reply, or have the tool answer; see `Client`."""
        call = self._entries.next_entry(tool.name, query)
        known = await self._known(call, lambda: tool.cost_nano)
        if known.reply is not None:
            reply = msgspec.json.decode(known.reply, type=ToolReply)
            return replace(reply, cost_nano=known.spent_nano)
        make = partial(tool.run, query)
        reply = await self._meter.pay(call, self._budget, lambda: tool.cost_nano, make)
        return replace(reply, cost_nano=reply.cost_nano + known.spent_nano)

    async def _known(self, call: Entry, largest_nano: Callable[[], int]) -> RecordedReply:
        """Return what the journal knows of a call, charged as it was when it was made."""
        known = await self._meter.journal.find(call) if self._meter.journal else RecordedReply()
        if known.tries:
            answered = known.reply is not None and self._budget.limited
            largest = largest_nano() if answered else 0
            held = self._budget.reserve(max(known.spent_nano, largest))
            self._budget.settle(held, known.spent_nano)
        return known


def _within(reply: Completion | ToolReply, nano: int, tokens: int) -> Completion | ToolReply:
    """Return a reply that counts as no more than a call can take; a tool says what it costs."""
    if not isinstance(reply, Completion):
        return reply
    cost = None if reply.cost_nano is None else min(reply.cost_nano, nano)
    return replace(reply, usage=reply.usage.within(tokens), cost_nano=cost)
