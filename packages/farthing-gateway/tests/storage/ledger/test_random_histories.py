"""After any history, accounts stand where a plain list of what happened says."""

import asyncio
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from accounts_reference import Entry, MovedClock, Reference
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError
from farthing_gateway.storage.ledger.base import (
    NOTHING,
    PERIODS,
    Amount,
    Hold,
    LeaseError,
    Limit,
    LimitError,
)
from farthing_gateway.storage.ledger.ledger import AccountLedger, open_ledger

NAMES = ("all", "key", "team")
amounts = st.builds(Amount, st.integers(0, 60), st.integers(0, 9), st.integers(0, 2))
holds = st.integers(0, 30)
waits = st.sampled_from([0.0, 1.0, 20.0, 75.0, 3_600.0, 86_400.0, 31 * 86_400.0])
limits = st.lists(
    st.builds(
        Limit,
        st.sampled_from(NAMES),
        st.sampled_from(["usd", "tokens", "calls"]),
        st.sampled_from(PERIODS),
        st.integers(0, 90),
    ),
    max_size=4,
)
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("reserve"),
            st.lists(st.sampled_from(NAMES), min_size=1, max_size=4),
            amounts,
            waits,
            st.booleans(),
        ),
        st.tuples(
            st.just("crowd"),
            st.lists(st.sampled_from(NAMES), min_size=1, max_size=4),
            st.lists(amounts, min_size=2, max_size=8),
        ),
        st.tuples(st.just("settle_at_once"), st.lists(st.tuples(holds, amounts), max_size=8)),
        st.tuples(st.just("sent"), holds),
        st.tuples(st.just("extend"), holds, waits),
        st.tuples(st.just("settle"), holds, amounts),
        st.tuples(st.just("release"), holds),
        st.tuples(st.just("unknown"), holds),
        st.tuples(st.just("sweep")),
        st.tuples(st.just("reconcile"), holds, amounts),
        st.tuples(st.just("wait"), waits),
    ),
    max_size=25,
)


class History:
    """Does each step to the accounts and to the reference, and compares."""

    def __init__(self, accounts: AccountLedger, clock: MovedClock, number: int, most: list[Limit]):
        self.accounts, self.clock, self.number = accounts, clock, number
        self.reference = Reference()
        self.limits = [
            Limit(self.name(one.account), one.unit, one.period, one.most) for one in most
        ]

    def name(self, account: str) -> str:
        """Keep the accounts of one history apart from those of others."""
        return f"{account}:{self.number}"

    def entry(self, index: int) -> Entry | None:
        entries = self.reference.entries
        return entries[index % len(entries)] if entries else None

    async def reserve(
        self, accounts: list[str], amount: Amount, lease_s: float, sent: bool
    ) -> None:
        names, now = [self.name(one) for one in accounts], self.clock()
        broken = self.reference.broken(names, amount, self.limits, now)
        asked = self.accounts.reserve(names, amount, self.limits, lease_s=lease_s, sent=sent)
        if broken:
            with pytest.raises(LimitError) as refused:
                await asked
            error = refused.value
            assert (error.limit, error.left) in broken
            latest = max(PERIODS.index(limit.period) for limit, _ in broken)
            assert PERIODS[latest] == error.limit.period
            return
        hold = await asked
        ends = now + timedelta(seconds=lease_s)
        self.reference.entries.append(Entry(hold, ends, "sent" if sent else "reserved"))

    async def crowd(self, accounts: list[str], amounts: list[Amount]) -> None:
        """Reserve at once: what was admitted fits, and what was refused would not fit even now."""
        names, now = [self.name(one) for one in accounts], self.clock()
        asked = [
            self.accounts.reserve(names, amount, self.limits, lease_s=60) for amount in amounts
        ]
        got = await asyncio.gather(*asked, return_exceptions=True)
        admitted = [one for one in got if isinstance(one, Hold)]
        self.reference.entries += [
            Entry(one, now + timedelta(seconds=60), "reserved") for one in admitted
        ]
        if admitted:
            last = self.reference.entries.pop()
            assert self.reference.broken(names, last.hold.amount, self.limits, now) == []
            self.reference.entries.append(last)
        for amount, outcome in zip(amounts, got, strict=True):
            if not isinstance(outcome, Hold):
                assert isinstance(outcome, LimitError)
                assert self.reference.broken(names, amount, self.limits, now)

    async def settle_at_once(self, closings: list[tuple[int, Amount]]) -> None:
        """Settle at once, some of them twice: each that is open is closed once."""
        asked = [(entry, amount) for index, amount in closings if (entry := self.entry(index))]
        got = await asyncio.gather(
            *(self.accounts.settle(entry.hold, amount) for entry, amount in asked),
            return_exceptions=True,
        )
        for (entry, amount), outcome in zip(asked, got, strict=True):
            if outcome is None:
                assert entry.state != "closed"
                entry.state, entry.charged = "closed", amount
            else:
                assert isinstance(outcome, LeaseError)
        assert all(entry.state == "closed" for entry, _ in asked)

    async def sent(self, index: int) -> None:
        if entry := self.entry(index):
            with expecting(LeaseError, entry.state in {"unknown", "closed"}):
                await self.accounts.sent(entry.hold)
                entry.state = "sent"

    async def extend(self, index: int, lease_s: float) -> None:
        if entry := self.entry(index):
            with expecting(LeaseError, entry.state in {"unknown", "closed"}):
                await self.accounts.extend(entry.hold, lease_s)
                entry.ends = self.clock() + timedelta(seconds=lease_s)

    async def settle(self, index: int, amount: Amount) -> None:
        if entry := self.entry(index):
            with expecting(LeaseError, entry.state == "closed"):
                await self.accounts.settle(entry.hold, amount)
                entry.state, entry.charged = "closed", amount

    async def release(self, index: int) -> None:
        if entry := self.entry(index):
            with expecting(LeaseError, entry.state == "closed"):
                await self.accounts.release(entry.hold)
                entry.state, entry.charged = "closed", NOTHING

    async def unknown(self, index: int) -> None:
        if entry := self.entry(index):
            with expecting(LeaseError, entry.state == "closed"):
                await self.accounts.unknown(entry.hold)
                entry.state, entry.charged = "unknown", entry.hold.amount

    async def sweep(self) -> None:
        swept = await self.accounts.sweep()
        assert (swept.returned, swept.charged) == self.reference.sweep(self.clock())

    async def reconcile(self, index: int, amount: Amount) -> None:
        if entry := self.entry(index):
            with expecting(InputError, entry.state != "unknown"):
                await self.accounts.reconcile(entry.hold.id, amount)
                entry.state, entry.charged = "closed", amount

    async def wait(self, seconds: float) -> None:
        self.clock.move(seconds)

    async def compare(self) -> None:
        balances = await self.accounts.balances([self.name(one) for one in NAMES])
        assert len(balances) == len(NAMES) * len(PERIODS)
        for one in balances:
            sums = self.reference.sums(one.account, one.period, self.clock())
            assert parts(one.settled) == sums["settled"]
            assert parts(one.held) == sums["held"]
            assert one.overcharged_nano == sums["overcharged"][0]
        marked = [one.hold.id for one in self.reference.entries if one.state == "unknown"]
        assert sorted(one.id for one in await self.accounts.unknowns()) == sorted(marked)

    async def end(self) -> None:
        """Leave nothing open to the next history."""
        for entry in self.reference.entries:
            if entry.state != "closed":
                await self.accounts.release(entry.hold)


def expecting(error: type[Exception], refused: bool) -> Any:
    return pytest.raises(error) if refused else Nothing()


class Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def parts(amount: Amount) -> tuple[int, int, int]:
    return amount.nano, amount.tokens, amount.calls


def check(where: str, examples: int) -> None:
    clock, numbers = MovedClock(), count()
    with asyncio.Runner() as runner:
        accounts = runner.run(open_ledger(where, clock))

        async def play(history: list[tuple[Any, ...]], most: list[Limit]) -> None:
            one = History(accounts, clock, next(numbers), most)
            clock.time = MovedClock.time
            for name, *arguments in history:
                await getattr(one, name)(*arguments)
                await one.compare()
            await one.end()

        @given(steps, limits)
        @settings(deadline=None, max_examples=examples, database=None)
        def any_history(history: list[tuple[Any, ...]], most: list[Limit]) -> None:
            runner.run(play(history, most))

        any_history()
        runner.run(accounts.aclose())


def test_accounts_agree_with_a_list(where: str) -> None:
    check(where, 25)


@pytest.mark.slow
def test_accounts_agree_with_a_list_over_many_histories(where: str) -> None:
    check(where, 1_000)
