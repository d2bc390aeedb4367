"""The ledger: a call is made only if the dearest outcome still fits every limit on it."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from secrets import token_hex
from typing import cast

from farthing.errors import InputError, StoreError
from farthing_gateway.storage.database import SCHEMES, check_tables
from farthing_gateway.storage.ledger.base import (
    NOTHING,
    PERIODS,
    AccountBalance,
    Amount,
    Claimed,
    Different,
    Done,
    Hold,
    LeaseError,
    Limit,
    LimitError,
    New,
    Now,
    Period,
    Swept,
    UnderWay,
    UnknownCall,
    checked_amount,
    checked_name,
    checked_names,
    read,
    resets,
    starts,
    utc_now,
    window,
    windows,
    written,
)
from farthing_gateway.storage.ledger.operations import (
    Abandon,
    Balances,
    Broken,
    Check,
    Claim,
    Count,
    Extend,
    Finish,
    Forget,
    Gone,
    HoldRow,
    Holds,
    KeyRow,
    LedgerDatabase,
    Mark,
    MarkSent,
    Operation,
    Outcome,
    Reserve,
    Settle,
    SweepEnded,
    SweepResult,
    Unknowns,
    WindowRow,
    Windows,
)
from farthing_gateway.storage.ledger.postgres import PostgresLedgerDatabase
from farthing_gateway.storage.ledger.sqlite import SqliteLedgerDatabase

LOG = logging.getLogger("farthing_gateway")
BOOKED_S = 60.0
"""Most seconds between the two steps of `book_soon`."""
AT_ONCE = 200
"""Operations in one transaction at most, so that other processes have their turn."""


async def open_ledger(where: str, now: Now = utc_now) -> "AccountLedger":
    """Open the ledger of a database whose tables are made; see `open_database`.

    Args:
        where: the path of an SQLite file, or the address of a PostgreSQL database, such as
            `postgresql://user:password@host:5432/database`; `?search_path=NAME` has the tables in
            a schema of their own, which must exist.
        now: the clock.
    """
    await check_tables(where)
    if where.startswith(SCHEMES):
        database: LedgerDatabase = await PostgresLedgerDatabase.open(where)
    else:
        database = await SqliteLedgerDatabase.open(where)
    return AccountLedger(database, now)


class AccountLedger:
    """Keeps settled + held at or below every limit, for many tasks, processes and machines.

    A hold counts in each of its accounts, and there in the minute, hour, day and month in which
    it was reserved and in the total. Whatever it is settled for is charged to those windows, also
    after midnight. Only a provider that charges more than a call's largest cost breaks a limit.

    While one transaction is under way, whatever is asked waits and goes into the next one. So a
    hundred tasks cost little more than one, and each goes on once what it asked for is committed.
    Every method raises StoreError where the database cannot be read or written. It belongs to one
    event loop.
    """

    def __init__(self, database: LedgerDatabase, now: Now = utc_now) -> None:
        """Keep accounts in a database; clocks of several machines should agree within a second."""
        self._database = database
        self._now = now
        self._waiting: list[tuple[Operation, asyncio.Future[Outcome]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._closed = False

    async def reserve(
        self,
        accounts: Sequence[str],
        amount: Amount,
        limits: Sequence[Limit],
        *,
        lease_s: float,
        sent: bool = False,
        note: str = "",
    ) -> Hold:
        """Set aside the most that a call can cost, in all of its accounts or in none.

        Args:
            accounts: the accounts that it counts in, at least one.
            amount: the most that it can cost.
            limits: what is checked; limits on other accounts mean nothing here.
            lease_s: seconds after which the hold is swept, unless it is closed before.
            sent: whether the call is sent at once, so that `sent` need not be called.
            note: what to say of the call should its outcome be unknown; no secrets.

        Raises:
            LimitError: it breaks a limit, of several the one that resets last; nothing was written.
        """
        now = self._now()
        hold = Hold(token_hex(16), checked_amount(amount), checked_names(accounts), now)
        ours = [limit for limit in limits if limit.account in hold.accounts]
        row = _row(hold, lease_s, "sent" if sent else "reserved", note)
        checks = [
            Check(one.account, window(one.period, now), one.unit, one.most, amount.of(one.unit))
            for one in ours
        ]
        try:
            outcome = await self._ask(Reserve(row, checks))
        except asyncio.CancelledError:
            # The hold may be written all the same, and nobody would ever close it.
            if not self._closed:
                self._put(_settle(hold.id, NOTHING)).cancel()
            raise
        if isinstance(outcome, Broken):
            total = await self._ask(Balances(list(hold.accounts), [window("total", now)]))
            held = {row.account: row for row in cast("Windows", total).rows}
            raise _refusal(ours, outcome, amount, now, held)
        return hold

    async def sent(self, hold: Hold) -> None:
        """Say that the call is about to be sent: an ended lease now charges it in full.

        Raises:
            LeaseError: the hold was swept; do not send.
        """
        await self._close(MarkSent(hold.id), hold)

    async def extend(self, hold: Hold, lease_s: float) -> None:
        """Let the lease end so many seconds from now; raises like `sent`."""
        await self._close(Extend(hold.id, _later(self._now(), lease_s)), hold)

    async def settle(self, hold: Hold, amount: Amount) -> None:
        """Put what a call really cost in place of its reservation, in the windows of that.

        What goes beyond the reservation is recorded and counted as overcharged. A hold that was
        marked unknown meanwhile is corrected.

        Raises:
            LeaseError: it was closed before, or swept without ever being sent.
        """
        await self._close(_settle(hold.id, checked_amount(amount)), hold)

    def settle_soon(self, hold: Hold, amount: Amount) -> None:
        """Settle without being waited for; what keeps it from being written is logged.

        It is in order with what is asked later, and is written before the ledger closes. Until
        then the hold counts in full.
        """
        self._put(_settle(hold.id, checked_amount(amount))).add_done_callback(_logged)

    def book_soon(self, accounts: Sequence[str], amount: Amount) -> None:
        """Charge accounts with what nobody set aside, under no limit; see `settle_soon`."""
        now = self._now()
        hold = Hold(token_hex(16), checked_amount(amount), checked_names(accounts), now)
        self._put(Reserve(_row(hold, BOOKED_S, "reserved"), [])).add_done_callback(_logged)
        self.settle_soon(hold, amount)

    async def release(self, hold: Hold) -> None:
        """Give a hold back: nothing was sent. Raises like `settle`."""
        await self._close(_settle(hold.id, NOTHING), hold)

    async def unknown(self, hold: Hold) -> None:
        """Charge a hold in full and mark it: nobody knows its outcome. Raises like `settle`."""
        await self._close(Mark(hold.id, written(self._now())), hold)

    async def sweep(self) -> Swept:
        """Close holds whose lease has ended: never sent comes back, sent is charged and marked."""
        closed = cast("SweepResult", await self._ask(SweepEnded(written(self._now()))))
        return Swept(closed.returned, closed.charged)

    async def unknowns(self) -> list[UnknownCall]:
        """Return the calls of unknown outcome that nobody has reconciled, oldest first."""
        return [_unknown(row) for row in cast("Holds", await self._ask(Unknowns())).rows]

    async def reconcile(self, hold_id: str, amount: Amount) -> None:
        """Put the real cost of a call of unknown outcome in place of the full charge.

        Raises:
            InputError: no marked call has this id.
        """
        outcome = await self._ask(
            _settle(checked_name(hold_id), checked_amount(amount), marked=True)
        )
        if isinstance(outcome, Gone):
            raise InputError(
                f"no call of unknown outcome has the id {hold_id}; list those that there are"
            )

    async def balances(self, accounts: Sequence[str]) -> list[AccountBalance]:
        """Return where accounts stand now, in each period: `len(accounts) * 5` balances."""
        now, names = self._now(), checked_names(accounts)
        asked = Balances(list(names), windows(now))
        rows = cast("Windows", await self._ask(asked)).rows
        found = {(row.account, row.window): row for row in rows}
        return [_balance(name, period, now, found) for name in names for period in PERIODS]

    async def claim(self, key: str, fingerprint: str, *, lease_s: float) -> Claimed:
        """Ask to run a request under an idempotency key; of many askers one gets `New`.

        Args:
            key: the key; one that is unique to its user.
            fingerprint: hash of the request.
            lease_s: seconds after which another asker gets `New`, unless `finish` came first.
        """
        now = self._now()
        ends = _later(now, lease_s)
        asked = Claim(
            checked_name(key), checked_name(fingerprint), token_hex(16), written(now), ends
        )
        outcome = await self._ask(asked)
        if not isinstance(outcome, KeyRow):
            return New()
        if outcome.fingerprint != fingerprint:
            return Different()
        if outcome.status is None:
            return UnderWay(read(outcome.lease_ends))
        return Done(outcome.status, outcome.body or b"")

    async def finish(self, key: str, status: int, body: bytes) -> None:
        """Keep the answer to a request for all later askers; the first answer stays."""
        await self._ask(Finish(checked_name(key), status, body))

    async def abandon(self, key: str) -> None:
        """Free a key whose request was not answered."""
        await self._ask(Abandon(checked_name(key)))

    async def forget(self, before: datetime) -> int:
        """Drop what nobody asks for any more; return how many keys that were.

        These are keys claimed before a moment, but none whose lease lasts, and minutes and hours
        that ended before it.
        """
        asked = Forget(written(before), written(self._now()))
        return cast("Count", await self._ask(asked)).number

    async def aclose(self) -> None:
        """Finish what waits, and close the database; a second time does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._writer is not None:
            await self._writer
        await self._database.aclose()

    async def _close(self, operation: Operation, hold: Hold) -> None:
        if isinstance(await self._ask(operation), Gone):
            raise LeaseError(hold.id)

    async def _ask(self, operation: Operation) -> Outcome:
        """Carry out an operation; it is carried out even if the caller is cancelled meanwhile."""
        return await self._put(operation)

    def _put(self, operation: Operation) -> asyncio.Future[Outcome]:
        if self._closed:
            raise StoreError("the ledger was closed; open it again")
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((operation, future))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return future

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
            asked = self._database.apply([operation for operation, _ in batch])
            [outcomes] = await asyncio.gather(asked, return_exceptions=True)
            for k, (_, future) in enumerate(batch):
                if future.done():  # its task was cancelled; what it asked for stays
                    continue
                if isinstance(outcomes, BaseException):
                    future.set_exception(outcomes)
                else:
                    future.set_result(outcomes[k])


def _row(hold: Hold, lease_s: float, state: str, note: str = "") -> HoldRow:
    now, amount = hold.made_at, hold.amount
    return HoldRow(
        hold.id,
        list(hold.accounts),
        windows(now),
        amount.nano,
        amount.tokens,
        amount.calls,
        written(now),
        _later(now, lease_s),
        state,
        note.replace("\0", "").encode(errors="replace").decode(),
    )


def _logged(asked: asyncio.Future[Outcome]) -> None:
    """Log why something that nobody waited for was not written."""
    if asked.cancelled():
        return
    if asked.exception() is not None:
        LOG.error("%s", asked.exception())
    elif isinstance(asked.result(), Gone):
        LOG.error("a call was settled whose reservation had ended: it was charged in full")


def _later(now: datetime, seconds: float) -> str:
    return written(now + timedelta(seconds=seconds))


def _settle(hold_id: str, amount: Amount, *, marked: bool = False) -> Settle:
    return Settle(hold_id, amount.nano, amount.tokens, amount.calls, marked)


def _refusal(
    limits: list[Limit],
    broken: Broken,
    amount: Amount,
    now: datetime,
    held: Mapping[str, WindowRow],
) -> LimitError:
    """Return the broken limit that resets last: before that no such call can succeed."""
    errors = []
    for index, used in broken.used:
        limit = limits[index]
        left = max(0, limit.most - used)
        needed, again = amount.of(limit.unit), resets(limit.period, now)
        row = held.get(limit.account)
        # A call that ends gives back what it did not take, and was a call all the same.
        back = NOTHING if row is None else Amount(row.held_nano, row.held_tokens, 0)
        errors.append(LimitError(limit, needed, left, again, held=back.of(limit.unit)))
    return max(errors, key=lambda error: PERIODS.index(error.limit.period))


def _unknown(row: HoldRow) -> UnknownCall:
    amount = Amount(row.nano, row.tokens, row.calls)
    made, marked = read(row.made_at), read(row.marked_at or row.made_at)
    return UnknownCall(row.id, amount, tuple(row.accounts), row.note, made, marked)


def _balance(
    account: str, period: Period, now: datetime, found: dict[tuple[str, str], WindowRow]
) -> AccountBalance:
    span = window(period, now)
    row = found.get((account, span)) or WindowRow(account, span, 0, 0, 0, 0, 0, 0, 0)
    return AccountBalance(
        account,
        period,
        Amount(row.settled_nano, row.settled_tokens, row.settled_calls),
        Amount(row.held_nano, row.held_tokens, row.held_calls),
        row.overcharged_nano,
        starts(period, now),
        resets(period, now),
    )
