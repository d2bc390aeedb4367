"""Who pays for a request: the accounts that its calls are charged to, and the limits on them.

Every try is reserved in the ledger before it is sent, at the most that it can cost, and settled
after it. One of unknown outcome is charged in full and marked.
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from farthing.errors import ModelConnectionError, ModelError
from farthing.models.base import Completion, Usage
from farthing.models.chat_endpoint import Sending, watched
from farthing.models.thinking import split_name
from farthing.money import dollars
from farthing.runtime.journal import Entry, RecordedReply
from farthing.tasks.tools import ToolReply
from farthing.traces.base import CallError, Trace
from farthing_gateway.config_sections import ALL
from farthing_gateway.recording.record import COOLING
from farthing_gateway.storage.keys import KeyRecord
from farthing_gateway.storage.ledger.base import LARGEST, NOTHING, Amount, Hold, Limit, LimitError
from farthing_gateway.storage.ledger.ledger import AccountLedger
from farthing_gateway.upstream_base import Reply

LOG = logging.getLogger("farthing_gateway")
DISPUTED = "disputed:"
"""How the accounts begin that keep what replies claim beyond what their calls can have taken: each
account of such a call has one."""


class CircuitOpenError(ModelConnectionError):
    """A model failed again and again, and is left alone for a while; nothing was sent."""

    kind = COOLING
    retriable = False


@dataclass(frozen=True)
class RequestLimits:
    """The limits of a configuration, by the account that they are on."""

    by_account: Mapping[str, tuple[Limit, ...]]

    @classmethod
    def of(cls, limits: Sequence[Limit]) -> "RequestLimits":
        """Return limits by account."""
        names = dict.fromkeys(limit.account for limit in limits)
        return cls({n: tuple(one for one in limits if one.account == n) for n in names})

    def on(self, accounts: Sequence[str]) -> tuple[Limit, ...]:
        """Return the limits on some accounts."""
        return tuple(one for name in accounts for one in self.by_account.get(name, ()))


@dataclass(frozen=True)
class DeferredSettlements:
    """Settlements that wait until a request's reply is kept under its idempotency key.

    So a process that dies between the two leaves calls that are charged in full and marked, and a
    reply that is repeated: what was settled is never run again.
    """

    ledger: AccountLedger
    costs: list[tuple[Hold, Amount, Amount]] = field(default_factory=list)
    """Each with what its reply claims, and the most that counts of that."""

    def settle(self) -> None:
        """Settle what waits."""
        while self.costs:
            settle_soon(self.ledger, *self.costs.pop())


def disputed(most: Amount, claimed: Amount) -> Amount:
    """Return what a reply claims beyond what its call can have taken; nothing where it does not."""
    nano, tokens = (
        min(LARGEST, max(0, claimed.of(unit) - most.of(unit))) for unit in ("usd", "tokens")
    )
    return Amount(nano, tokens, int(nano > 0 or tokens > 0))


def settle_soon(ledger: AccountLedger, hold: Hold, claimed: Amount, most: Amount) -> None:
    """Charge what a reply claims, at most what its call can have taken; book the rest as disputed.

    Nobody waits for it: until it is written the hold counts in full, and it stays so where it
    cannot be written, which is logged.
    """
    rest = disputed(most, claimed)
    charged = Amount(min(claimed.nano, most.nano), min(claimed.tokens, most.tokens), claimed.calls)
    ledger.settle_soon(hold, charged)
    if rest.calls:
        ledger.book_soon([DISPUTED + name for name in hold.accounts], rest)


@dataclass(frozen=True)
class RequestCharges:
    """Whose money a request spends."""

    ledger: AccountLedger
    limits: RequestLimits
    key: KeyRecord | None
    lease_s: float
    policy: str | None = None
    note: str = ""
    """What a call of unknown outcome is marked with: the trace's id."""
    waiting: DeferredSettlements | None = None
    """Where settlements wait; None: they do not."""
    noting: frozenset[str] = frozenset()
    """Models whose calls note when they are written (`Sending`)."""
    claimable: Mapping[str, Amount] = field(default_factory=dict)
    """By model, the most that counts of what a reply claims, where that is known."""
    tries: list["ChargeAttempt"] = field(default_factory=list)
    """Every try of the request, in the order in which they began."""

    @property
    def spent_nano(self) -> int:
        """What the tries so far cost, in nano-dollars; one under way counts as its largest."""
        return sum(one.cost_nano for one in self.tries)

    @property
    def estimated(self) -> bool:
        """Whether a bound stands for what a try cost, since nobody said that."""
        return any(one.estimated for one in self.tries)

    def attempt(self, model: str, hold: Hold) -> "ChargeAttempt":
        """Return the try of a model that a hold is for."""
        sending = watched() if model in self.noting else None
        made = ChargeAttempt(self.ledger, hold, model, self.waiting, sending)
        made.claimable = self.claimable.get(model, NOTHING)
        self.tries.append(made)
        return made

    def skip(self, model: str) -> CircuitOpenError:
        """Note that a model is left alone, which costs nothing; return the error that says so."""
        error = CircuitOpenError(f"'{model}' failed again and again, and is left alone for a while")
        hold = Hold("", NOTHING, (), datetime.now(UTC))
        why = CallError(error.kind, str(error))
        self.tries.append(
            ChargeAttempt(self.ledger, hold, model, ended=True, error=why, paid_nano=0)
        )
        return error

    @property
    def failed(self) -> dict[str, str]:
        """The models that failed, to the kind of their last failure, in the order of that."""
        found: dict[str, str] = {}
        for one in self.tries:
            found.pop(one.model, None)
            if one.error is not None:
                found[one.model] = one.error.type
        return found

    @property
    def again_s(self) -> int:
        """After how many whole seconds the first of the models that failed may be asked again."""
        last = {one.model: one.again_s or 0.0 for one in self.tries if one.error is not None}
        return max(1, math.ceil(min(last.values(), default=0.0)))

    def accounts(self, model: str) -> tuple[str, ...]:
        """Return what a call to a model is charged to; at an effort also the model itself."""
        own = [] if self.key is None else [self.key.account]
        team = None if self.key is None else self.key.team
        models = dict.fromkeys((split_name(model)[0], model))
        named = [("team:", team), ("policy:", self.policy), *(("model:", one) for one in models)]
        others = (prefix + name for prefix, name in named if name is not None)
        return (ALL, *own, *others)

    async def reserve(self, model: str, amount: Amount) -> Hold:
        """Set aside the most that a call can cost, about to be sent."""
        accounts = self.accounts(model)
        limits = (*self.limits.on(accounts), *(self.key.on_account if self.key else ()))
        return await self.ledger.reserve(
            accounts, amount, limits, lease_s=self.lease_s, sent=True, note=self.note
        )

    @asynccontextmanager
    async def trying(self, model: str, hold: Hold) -> AsyncIterator["ChargeAttempt"]:
        """Note a try that is reserved while the block makes it; what that leaves is unknown."""
        attempt = self.attempt(model, hold)
        try:
            yield attempt
        except ModelError as error:
            await attempt.failed(error, error.cost_nano)
            raise
        finally:
            # Also where the request was cancelled: the write must not be.
            if not attempt.ended:
                await asyncio.shield(attempt.unknown())


@dataclass
class ChargeAttempt:
    """A try whose money is set aside."""

    ledger: AccountLedger
    hold: Hold
    model: str
    """What clients call it."""
    waiting: DeferredSettlements | None = None
    sending: Sending | None = None
    """Says whether it was begun to be sent; None: that is not known."""
    ended: bool = False
    answered: bool = False
    """Whether a reply came, or the beginning of one."""
    estimated: bool = False
    """Whether its cost is a bound, since the provider gave no count."""
    error: CallError | None = None
    """Why it failed, where it did."""
    again_s: float | None = None
    """Seconds after which its provider takes requests again, where it said so."""
    counted: tuple[int, Usage] | None = None
    """What its provider said that it cost, in nano-dollars, and took, though it failed later."""
    began: float = field(default_factory=time.perf_counter)
    took_s: float = 0.0
    """Seconds from its beginning to its end, once it has ended."""
    usage: Usage | None = None
    """The tokens that its provider counted; None: it has not, or did not say."""
    paid_nano: int | None = None
    """What it was settled for; None: it was not, and counts as its largest cost."""
    listed_nano: int | None = None
    """What the list says, where the provider says that it billed another price."""
    max_tokens: int | None = None
    """The limit that it was sent with since more could not be paid; None: as it was asked."""
    dropped: tuple[str, ...] = ()
    """What was left out of the request, by its place."""
    claimable: Amount = NOTHING
    """The most that counts of what its reply claims, where that is more than was set aside."""

    @property
    def cost_nano(self) -> int:
        """What it cost, in nano-dollars, or can cost at most."""
        return self.hold.amount.nano if self.paid_nano is None else self.paid_nano

    @property
    def most(self) -> Amount:
        """The most that can be charged for it."""
        held, more = self.hold.amount, self.claimable
        return Amount(max(held.nano, more.nano), max(held.tokens, more.tokens), held.calls)

    def settle(self, cost_nano: int | None, usage: Usage) -> None:
        """Put what it cost in place of the reservation; an unknown cost is the largest."""
        self._end()
        self.answered = self.error is None
        self.estimated = usage.estimated or cost_nano is None
        self.paid_nano = cost_nano
        counted = not usage.estimated and (self.error is None or self.counted is not None)
        self.usage = usage.within(self.most.tokens) if counted else None
        if usage.estimated and usage.unknown:  # a count that nobody knows the price of
            names = [DISPUTED + name for name in self.hold.accounts]
            self.ledger.book_soon(names, Amount(0, 0, 1))
        tokens = usage.input_tokens + usage.output_tokens
        claimed = Amount(self.cost_nano, tokens, self.hold.amount.calls)
        if disputed(self.hold.amount, claimed).calls:
            self._dispute(claimed)
        if self.waiting is None:
            settle_soon(self.ledger, self.hold, claimed, self.most)
        else:
            self.waiting.costs.append((self.hold, claimed, self.most))

    def bounded(self, reply: Reply) -> Reply:
        """Return a reply that took no more than can be: what it claims beyond is disputed."""
        usage = reply.usage.within(self.most.tokens)
        return reply if usage is reply.usage else replace(reply, usage=usage)

    async def failed(self, error: ModelError, cost_nano: int | None) -> None:
        """Settle what a failure cost: what was counted, nothing, or what nobody knows."""
        self.error = CallError(error.kind, str(error))
        self.again_s = error.retry_after_s
        if error.used is not None and cost_nano is not None:
            self.counted = cost_nano, Usage(*error.used)
        if self.counted is not None:
            self.settle(*self.counted)
        elif cost_nano == 0:
            self.settle(0, Usage(0, 0))
        else:
            await self.unknown()

    async def unknown(self) -> None:
        """Charge it in full, and mark it; what was never begun to be sent is given back."""
        self._end()
        if self.sending is not None and not self.sending.begun:
            self.paid_nano = 0
            await self.ledger.release(self.hold)
        else:
            self.estimated = True
            await self.ledger.unknown(self.hold)

    def _dispute(self, claimed: Amount) -> None:
        """Count no more than the call can have taken, and say so."""
        most, held = self.most, self.hold.amount
        self.estimated = True
        self.paid_nano = min(claimed.nano, most.nano)
        LOG.warning(
            "%s: a reply claims %s for %d tokens, and its call can cost at most %s for %d: %s is "
            "charged, and the rest is disputed; compare the provider's bill",
            self.model,
            dollars(claimed.nano),
            claimed.tokens,
            dollars(held.nano),
            held.tokens,
            dollars(self.paid_nano),
        )

    def _end(self) -> None:
        self.ended, self.took_s = True, time.perf_counter() - self.began


def section_of(role: str, model: str, sections: Mapping[str, str]) -> str:
    """Return which section is charged: in a pool it is the role, as two may ask one model.

    Args:
        role: who asks.
        model: who is asked, as its provider calls it.
        sections: what clients call a model, its section, to what its provider calls it.

    >>> section_of("base", "gpt-4o", {"small": "gpt-4.1-nano", "large": "gpt-4o"})
    'large'
    """
    if role in sections:
        return role
    return next((name for name, asked in sections.items() if asked == model), model)


@dataclass
class ChargingJournal:
    """The journal of one request's episode: its calls go through the gateway's ledger."""

    charges: RequestCharges
    sections: Mapping[str, str]
    """What clients call a model, its section, to what its provider calls it."""
    is_open: Callable[[str], bool] = lambda _: False
    """Says whether a model is left alone now."""
    refused: LimitError | None = None
    """The last limit that did not allow a call."""
    _open: dict[int, ChargeAttempt] = field(default_factory=dict)
    _made: int = 0

    async def find(self, _: Entry) -> RecordedReply:
        return RecordedReply()

    async def start(self, entry: Entry, largest_nano: int) -> int:
        largest = Amount(largest_nano, entry.tokens, 1)
        model = section_of(entry.attempt.role, entry.asked, self.sections)
        if self.is_open(model):
            raise self.charges.skip(model)
        try:
            hold = await self.charges.reserve(model, largest)
        except LimitError as error:
            self.refused = error
            raise
        self._made += 1
        self._open[self._made] = self.charges.attempt(model, hold)
        return self._made

    async def complete(
        self, number: int, reply: Completion | ToolReply, cost_nano: int | None
    ) -> None:
        usage = reply.usage if isinstance(reply, Completion) else Usage(0, 0)
        self._open.pop(number).settle(cost_nano, usage)

    async def fail(self, number: int, error: ModelError, cost_nano: int | None) -> None:
        await self._open.pop(number).failed(error, cost_nano)

    async def keep(self, trace: Trace) -> None:
        """Leave it to the recorder of traffic."""

    async def close(self) -> None:
        """Charge in full what was cancelled."""
        while self._open:
            await asyncio.shield(self._open.popitem()[1].unknown())
