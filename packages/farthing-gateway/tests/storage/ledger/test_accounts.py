"""What each step does to accounts and keys, on every database."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from accounts_reference import MovedClock

from farthing.errors import InputError, StoreError
from farthing_gateway.storage.ledger.base import (
    PERIODS,
    Amount,
    Different,
    Done,
    LeaseError,
    Limit,
    LimitError,
    New,
    Period,
    Swept,
    UnderWay,
)
from farthing_gateway.storage.ledger.ledger import AccountLedger, open_ledger

Story = Callable[[AccountLedger, MovedClock], Coroutine[Any, Any, None]]


def tell(where: str, story: Story) -> None:
    async def inside() -> None:
        clock = MovedClock()
        accounts = await open_ledger(where, clock)
        await asyncio.wait_for(story(accounts, clock), 60)
        await accounts.aclose()

    asyncio.run(inside())


async def settled(accounts: AccountLedger, account: str = "all") -> dict[Period, int]:
    """Return what is settled in an account, in nano-dollars, in each present window."""
    return {one.period: one.settled.nano for one in await accounts.balances([account])}


async def held(accounts: AccountLedger, account: str = "all") -> int:
    return (await accounts.balances([account]))[-1].held.nano


def test_two_hundred_tasks_get_what_a_cap_is_worth(where: str) -> None:
    async def story(accounts: AccountLedger, _: MovedClock) -> None:
        cap = Limit("all", "usd", "day", 50_999)

        async def one() -> bool:
            try:
                await accounts.reserve(["all", "key:a"], Amount(1_000), [cap], lease_s=60)
            except LimitError:
                return False
            return True

        admitted = await asyncio.gather(*(one() for _ in range(200)))
        assert sum(admitted) == 50
        assert await held(accounts) == await held(accounts, "key:a") == 50_000

    tell(where, story)


@pytest.mark.parametrize("broken", ["all", "team:a", "key:a"])
def test_nested_limits_hold_all_or_nothing(where: str, broken: str) -> None:
    async def story(accounts: AccountLedger, _: MovedClock) -> None:
        names = ["all", "team:a", "key:a"]
        limits = [
            Limit(name, unit, "hour", 0 if (name, unit) == (broken, "tokens") else 9_000)
            for name in names
            for unit in ("usd", "tokens", "calls")
        ]
        with pytest.raises(LimitError) as refused:
            await accounts.reserve(names, Amount(10, 1), limits, lease_s=60)
        assert refused.value.limit == Limit(broken, "tokens", "hour", 0)
        for one in await accounts.balances(names):
            assert one.held == one.settled == Amount(0, 0, 0)
        await accounts.reserve(names, Amount(10, 0), limits, lease_s=60)

    tell(where, story)


def test_a_refusal_names_the_limit_that_resets_last(where: str) -> None:
    async def story(accounts: AccountLedger, clock: MovedClock) -> None:
        minute = Limit("key:a", "calls", "minute", 1)
        day = Limit("team:b", "usd", "day", 5_000_000)
        month = Limit("all", "tokens", "month", 1_500)
        total = Limit("all", "usd", "total", 1)
        names, amount = ["key:a", "team:b", "all"], Amount(4_000_000, 1_000)
        await accounts.reserve(names, amount, [minute, day, month], lease_s=60)

        async def refusal(*limits: Limit) -> LimitError:
            with pytest.raises(LimitError) as refused:
                await accounts.reserve(names, amount, limits, lease_s=60)
            return refused.value

        first = await refusal(minute)
        assert str(first) == (
            "the call can cost 1 call, and of the limit of 1 call a minute on key:a only 0 calls "
            "are left; it resets at 2026-11-30 23:59 UTC"
        )
        second = await refusal(minute, day)
        assert (second.limit, second.left) == (day, 1_000_000)
        assert second.resets_at == datetime(2026, 12, 1, tzinfo=UTC)
        assert "of the limit of $0.005 a day on team:b only $0.001 is left" in str(second)
        third = await refusal(month, minute, day)
        assert (third.limit, third.left) == (month, 500)
        assert "1,000 tokens, and of the limit of 1,500 tokens a month on all" in str(third)
        fourth = await refusal(total, month)
        assert (fourth.limit, fourth.resets_at, fourth.left) == (total, None, 0)
        assert str(fourth).endswith("the limit does not reset: raise it to go on")
        clock.move(20)
        await accounts.reserve(names, Amount(0, 0), [minute], lease_s=60)

    tell(where, story)


def test_a_limit_on_another_account_means_nothing(where: str) -> None:
    async def story(accounts: AccountLedger, _: MovedClock) -> None:
        nothing = Limit("key:b", "calls", "total", 0)
        await accounts.reserve(["key:a"], Amount(1), [nothing], lease_s=60)
        assert [await held(accounts, name) for name in ("key:a", "key:b")] == [1, 0]

    tell(where, story)


def test_an_account_named_twice_counts_once(where: str) -> None:
    async def story(accounts: AccountLedger, _: MovedClock) -> None:
        hold = await accounts.reserve(["all", "all"], Amount(10), [], lease_s=60)
        assert (hold.accounts, await held(accounts)) == (("all",), 10)
        assert len(await accounts.balances(["all", "all"])) == len(PERIODS)

    tell(where, story)


def test_what_is_settled_after_midnight_belongs_to_the_day_before(where: str) -> None:
    async def story(accounts: AccountLedger, clock: MovedClock) -> None:
        november = Limit("all", "usd", "month", 100)
        hold = await accounts.reserve(["all"], Amount(100), [november], lease_s=600)
        clock.move(120)
        new = await accounts.reserve(["all"], Amount(100), [november], lease_s=600)
        await accounts.settle(hold, Amount(70))
        assert set((await settled(accounts)).values()) == {0, 70}
        assert (await settled(accounts))["total"] == 70
        await accounts.settle(new, Amount(5))
        assert (await settled(accounts))["month"] == 5
        clock.move(-120)
        assert await settled(accounts) == dict.fromkeys(PERIODS, 70) | {"total": 75}

    tell(where, story)


def test_more_than_was_reserved_is_recorded_and_counted(where: str) -> None:
    async def story(accounts: AccountLedger, _: MovedClock) -> None:
        hold = await accounts.reserve(["all"], Amount(10, 5), [], lease_s=60)
        await accounts.settle(hold, Amount(25, 50))
        total = (await accounts.balances(["all"]))[-1]
        assert (total.settled, total.overcharged_nano) == (Amount(25, 50), 15)
        limit = Limit("all", "usd", "total", 20)
        with pytest.raises(LimitError) as refused:
            await accounts.reserve(["all"], Amount(0), [limit], lease_s=60)
        assert refused.value.left == 0

    tell(where, story)


def test_a_call_of_unknown_outcome_is_charged_once_however_often_it_is_marked(where: str) -> None:
    async def story(accounts: AccountLedger, _clock: MovedClock) -> None:
        hold = await accounts.reserve(["all"], Amount(10), [], lease_s=60)
        for _ in range(2):
            await accounts.unknown(hold)
            assert (await settled(accounts))["total"] == 10
            assert await held(accounts) == 0

    tell(where, story)


def test_what_nobody_says_was_sent_comes_back_when_its_lease_ends(where: str) -> None:
    async def story(accounts: AccountLedger, clock: MovedClock) -> None:
        await accounts.reserve(["all"], Amount(10), [], lease_s=5)
        clock.move(6)
        assert await accounts.sweep() == Swept(returned=1, charged=0)
        assert (await settled(accounts))["total"] == 0

    tell(where, story)


def test_an_ended_lease_comes_back_or_is_charged(where: str) -> None:
    async def story(accounts: AccountLedger, clock: MovedClock) -> None:
        async def hold(sent: bool, note: str = "") -> Any:
            return await accounts.reserve(["all"], Amount(10), [], lease_s=5, sent=sent, note=note)

        never, at_once, later, long = [await hold(k == 1, f"call {k}") for k in range(4)]
        await accounts.sent(later)
        await accounts.extend(long, 60)
        clock.move(4.9)
        assert await accounts.sweep() == Swept(0, 0)
        clock.move(0.1)
        assert await accounts.sweep() == Swept(returned=1, charged=2)
        assert (await held(accounts), (await settled(accounts))["total"]) == (10, 20)
        marked = await accounts.unknowns()
        assert {one.id: one.note for one in marked} == {at_once.id: "call 1", later.id: "call 2"}
        assert {(one.amount, one.accounts, one.made_at) for one in marked} == {
            (Amount(10), ("all",), MovedClock.time)
        }
        assert {one.marked_at for one in marked} == {MovedClock.time + timedelta(seconds=5)}
        for closed in (never, at_once):
            with pytest.raises(LeaseError, match="reserve again before sending"):
                await accounts.sent(closed)
        with pytest.raises(LeaseError, match="is not open"):
            await accounts.settle(never, Amount(10))
        await accounts.settle(long, Amount(3))
        assert await accounts.sweep() == Swept(0, 0)

    tell(where, story)


def test_a_marked_call_is_corrected_where_it_was_charged(where: str) -> None:
    async def story(accounts: AccountLedger, clock: MovedClock) -> None:
        first = await accounts.reserve(["all"], Amount(100, 10), [], lease_s=5, note="a")
        late = await accounts.reserve(["all"], Amount(100, 10), [], lease_s=5, sent=True)
        await accounts.unknown(first)
        clock.move(86_400)
        await accounts.sweep()
        assert set((await settled(accounts)).values()) == {0, 200}
        await accounts.reconcile(first.id, Amount(30, 1))
        await accounts.settle(late, Amount(2, 1))  # its worker was slow, not dead
        assert await accounts.unknowns() == []
        for hold in (first.id, late.id, "0"):
            with pytest.raises(InputError, match=f"no call of unknown outcome has the id {hold}"):
                await accounts.reconcile(hold, Amount(0))
        clock.move(-86_400)
        assert await settled(accounts) == dict.fromkeys(PERIODS, 32)

    tell(where, story)


def test_a_task_that_is_cancelled_leaves_nothing_set_aside(where: str) -> None:
    async def story(accounts: AccountLedger, _: MovedClock) -> None:
        async def reserve() -> None:
            await accounts.reserve(["all"], Amount(10), [], lease_s=60, sent=True)

        nothing = Limit("none", "calls", "total", 0)
        for _k in range(5):
            under_way = asyncio.create_task(accounts.balances(["all"]))
            for _once in range(3):  # until it has begun, so that what follows waits together
                await asyncio.sleep(0)
            tasks = [asyncio.create_task(reserve()) for _ in range(10)]
            refused = asyncio.create_task(
                accounts.reserve(["none"], Amount(1), [nothing], lease_s=60)
            )
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            gone = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(one) for one in gone} == {asyncio.CancelledError}
            with pytest.raises(LimitError):
                await refused
            await under_way
        total = (await accounts.balances(["all"]))[-1]
        assert total.held == total.settled == Amount(0, 0, 0)

    tell(where, story)


def test_one_of_twenty_gets_a_key(where: str) -> None:
    async def story(accounts: AccountLedger, _: MovedClock) -> None:
        claims = [accounts.claim("key", "request", lease_s=60) for _ in range(20)]
        got = await asyncio.gather(*claims)
        under_way = UnderWay(MovedClock.time + timedelta(seconds=60))
        assert (got.count(New()), got.count(under_way)) == (1, 19)

    tell(where, story)


def test_a_key_answers_whoever_repeats_its_request(where: str) -> None:
    async def story(accounts: AccountLedger, clock: MovedClock) -> None:
        assert await accounts.claim("key", "request", lease_s=60) == New()
        assert await accounts.claim("key", "other", lease_s=60) == Different()
        assert await accounts.claim("key2", "other", lease_s=60) == New()
        body = bytes(range(256)) * 50
        await accounts.finish("key", 200, body)
        await accounts.finish("key", 500, b"late")
        await accounts.abandon("key")
        clock.move(3_600)
        assert await accounts.claim("key", "request", lease_s=60) == Done(200, body)
        assert await accounts.claim("key", "other", lease_s=60) == Different()

    tell(where, story)


def test_a_key_is_free_again_once_abandoned_or_its_lease_has_ended(where: str) -> None:
    async def story(accounts: AccountLedger, clock: MovedClock) -> None:
        assert await accounts.claim("key", "request", lease_s=60) == New()
        await accounts.abandon("key")
        assert await accounts.claim("key", "another", lease_s=60) == New()
        clock.move(59)
        assert isinstance(await accounts.claim("key", "another", lease_s=60), UnderWay)
        clock.move(1)
        assert await accounts.claim("key", "request", lease_s=60) == Different()
        assert await accounts.claim("key", "another", lease_s=60) == New()
        assert isinstance(await accounts.claim("key", "another", lease_s=60), UnderWay)

    tell(where, story)


def test_old_keys_minutes_and_hours_are_forgotten(where: str) -> None:
    async def story(accounts: AccountLedger, clock: MovedClock) -> None:
        hold = await accounts.reserve(["all"], Amount(10), [], lease_s=60)
        await accounts.settle(hold, Amount(10))
        open_ = await accounts.reserve(["other"], Amount(10), [], lease_s=60)
        await accounts.claim("old", "f", lease_s=60)
        await accounts.claim("long", "f", lease_s=10**6)
        await accounts.claim("answered", "f", lease_s=10**6)
        await accounts.finish("answered", 200, b"")
        clock.move(7_200)
        await accounts.claim("new", "f", lease_s=60)
        assert await accounts.forget(clock()) == 2
        assert await accounts.claim("old", "g", lease_s=60) == New()
        assert await accounts.claim("long", "g", lease_s=60) == Different()
        clock.move(-7_200)
        assert await settled(accounts) == dict.fromkeys(PERIODS, 10) | {"minute": 0, "hour": 0}
        await accounts.settle(open_, Amount(4))
        assert set((await settled(accounts, "other")).values()) == {4}

    tell(where, story)


def test_what_no_ledger_takes_is_refused(where: str) -> None:
    async def story(accounts: AccountLedger, _: MovedClock) -> None:
        for amount in (Amount(-1), Amount(0, -1), Amount(0, 0, -1), Amount(10**17)):
            with pytest.raises(ValueError, match="each part must lie between 0 and"):
                await accounts.reserve(["all"], amount, [], lease_s=60)
        for name in ("", "a\0b", "a\nb", "\ud800"):
            with pytest.raises(ValueError, match="only printable ones"):
                await accounts.reserve([name], Amount(), [], lease_s=60)
            with pytest.raises(ValueError, match="only printable ones"):
                await accounts.claim(name, "f", lease_s=60)
        with pytest.raises(ValueError, match="at least one account"):
            await accounts.reserve([], Amount(), [], lease_s=60)
        note = "a\0\ud800' OR 1 = 1 -- é"
        hold = await accounts.reserve(["key:'; é"], Amount(), [], lease_s=60, note=note)
        await accounts.unknown(hold)
        [marked] = await accounts.unknowns()
        assert (marked.accounts, marked.note) == (("key:'; é",), "a?' OR 1 = 1 -- é")
        endless = Limit("all", "usd", "total", 2**63 - 1)
        await accounts.reserve(["all"], Amount(10**16), [endless], lease_s=60)

    tell(where, story)


def test_what_was_asked_before_closing_is_done(where: str) -> None:
    async def inside() -> None:
        accounts = await open_ledger(where)
        asked = [
            asyncio.create_task(accounts.reserve(["all"], Amount(1), [], lease_s=60))
            for _ in range(500)
        ]
        await asyncio.sleep(0)
        await accounts.aclose()
        await accounts.aclose()
        await asyncio.gather(*asked)
        with pytest.raises(StoreError, match="was closed"):
            await accounts.balances(["all"])
        again = await open_ledger(where)
        assert await held(again) == 500
        await again.aclose()

    asyncio.run(inside())
