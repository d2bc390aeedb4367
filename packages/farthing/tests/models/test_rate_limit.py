"""No minute holds more than the limits, in any order of arrivals; nobody overtakes or leaks."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError, RateLimitError
from farthing.models.base import Message, Prompt, Usage
from farthing.models.clock import ManualClock
from farthing.models.prices import largest_usage
from farthing.models.rate_limit import Limited, RateLimiter, RateLimits
from farthing.models.scripted import Reply, ScriptedModel

T = TypeVar("T")


def run(work: Callable[[ManualClock], Coroutine[None, None, T]]) -> T:
    async def inside() -> T:
        return await asyncio.wait_for(work(ManualClock()), 30)

    return asyncio.run(inside())


arrivals = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), min_size=1, max_size=15)


@given(arrivals, st.integers(1, 6), st.integers(20, 60))
@settings(deadline=None, max_examples=30)
def test_no_minute_holds_more_than_the_limits(
    calls: list[tuple[int, int]], requests: int, tokens: int
) -> None:
    """Arrivals are (seconds after the one before, tokens)."""

    async def work(clock: ManualClock) -> list[tuple[int, float, int]]:
        limits = RateLimits(requests_per_minute=requests, tokens_per_minute=tokens)
        admission = RateLimiter(limits, clock)
        admitted: list[tuple[int, float, int]] = []

        async def call(k: int, size: int) -> None:
            async with admission.admit(size):
                admitted.append((k, clock.now(), size))

        tasks = []
        for k, (gap, size) in enumerate(calls):
            await clock.advance(gap)
            tasks.append(asyncio.create_task(call(k, size)))
        await clock.advance(60.0 * len(calls) + 1)
        await asyncio.gather(*tasks)
        return admitted

    admitted = run(work)
    assert [k for k, _, _ in admitted] == list(range(len(calls)))  # nobody overtakes
    for _, moment, _ in admitted:
        minute = [size for _, at, size in admitted if moment <= at < moment + 60]
        assert len(minute) <= requests
        assert sum(minute) <= tokens
    for k in range(1, len(admitted)):  # nobody waits without need
        arrived = sum(gap for gap, _ in calls[: k + 1])
        _, at, size = admitted[k]
        if at > max(arrived, admitted[k - 1][1]):
            just_before = [s for _, t, s in admitted[:k] if at - 60 - 1e-6 <= t]
            assert len(just_before) >= requests or sum(just_before) + size > tokens


def test_concurrency_is_kept_and_the_line_is_fair() -> None:
    async def work(clock: ManualClock) -> tuple[int, list[int]]:
        admission = RateLimiter(RateLimits(concurrent=3), clock)
        under_way = most = 0
        order: list[int] = []

        async def call(k: int) -> None:
            nonlocal under_way, most
            async with admission.admit(1):
                order.append(k)
                under_way += 1
                most = max(most, under_way)
                await clock.sleep(1)
                under_way -= 1

        tasks = [asyncio.create_task(call(k)) for k in range(10)]
        await clock.advance(3.5)
        assert not all(task.done() for task in tasks)
        await clock.advance(1)
        await asyncio.gather(*tasks)
        return most, order

    assert run(work) == (3, list(range(10)))


def test_a_cancelled_wait_gives_everything_back() -> None:
    async def work(clock: ManualClock) -> float:
        admission = RateLimiter(RateLimits(requests_per_minute=2, concurrent=1), clock)

        async def call() -> None:
            async with admission.admit(1):
                pass

        await call()
        await call()
        waiting = [asyncio.create_task(call()) for _ in range(5)]
        await clock.advance(10)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert all(task.cancelled() for task in waiting)
        last = [asyncio.create_task(call()) for _ in range(2)]
        await clock.advance(50)
        await asyncio.gather(*last)
        return clock.now()

    assert run(work) == 60


def test_a_cancelled_call_leaves_its_place() -> None:
    async def work(clock: ManualClock) -> float:
        admission = RateLimiter(RateLimits(concurrent=1), clock)

        async def call() -> None:
            async with admission.admit(1):
                await clock.sleep(100)

        first = asyncio.create_task(call())
        await clock.advance(1)
        second = asyncio.create_task(call())
        await clock.advance(1)
        second.cancel()
        first.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        async with asyncio.timeout(5), admission.admit(1):
            return clock.now()

    assert run(work) == 2


def test_tokens_that_were_not_used_come_back_at_once() -> None:
    async def work(clock: ManualClock) -> float:
        admission = RateLimiter(RateLimits(tokens_per_minute=100), clock)
        async with admission.admit(90) as ticket:
            waiting = asyncio.create_task(_admitted_at(admission, clock, 50))
            await clock.advance(5)
            assert not waiting.done()
            admission.correct(ticket, 10)
        await clock.advance(0)
        return await waiting

    assert run(work) == 5


async def _admitted_at(admission: RateLimiter, clock: ManualClock, tokens: int) -> float:
    async with admission.admit(tokens):
        return clock.now()


def test_a_call_larger_than_a_minute_is_admitted_alone() -> None:
    async def work(clock: ManualClock) -> float:
        admission = RateLimiter(RateLimits(tokens_per_minute=100), clock)
        await _admitted_at(admission, clock, 1)
        waiting = asyncio.create_task(_admitted_at(admission, clock, 500))
        await clock.advance(61)
        return await waiting

    assert run(work) == 60


def test_an_endpoint_that_asks_to_wait_is_left_alone_by_all() -> None:
    prompt = Prompt((Message("user", "hi"),))

    async def work(clock: ManualClock) -> float:
        script: list[Reply] = [RateLimitError("slow down", retry_after_s=7), "fine"]
        scripted = ScriptedModel(lambda _: script.pop(0))
        model = Limited(scripted, RateLimiter(RateLimits(concurrent=1), clock))
        with pytest.raises(RateLimitError):
            await model.complete(prompt)
        other = asyncio.create_task(model.complete(prompt))
        await clock.advance(6.9)
        assert len(scripted.calls) == 1
        await clock.advance(0.2)
        await other
        return clock.now()

    assert run(work) == pytest.approx(7.1)


def test_a_limited_model_counts_what_was_used() -> None:
    prompt = Prompt((Message("user", "hi"),), max_tokens=100)
    largest = largest_usage(prompt)

    async def work(clock: ManualClock) -> None:
        size = largest.input_tokens + largest.output_tokens
        admission = RateLimiter(RateLimits(tokens_per_minute=size), clock)
        model = Limited(ScriptedModel(lambda _: "a b c"), admission)
        done = await model.complete(prompt)
        assert done.usage == Usage(1, 3)
        await _admitted_at(admission, clock, size - 4)  # at once: four tokens were used

    run(work)


def test_shares_keep_the_limit_and_too_many_workers_are_refused() -> None:
    whole = RateLimits(requests_per_minute=100, tokens_per_minute=1_001, concurrent=7)
    part = whole.share(3)
    assert part == RateLimits(requests_per_minute=33, tokens_per_minute=333, concurrent=2)
    with pytest.raises(InputError, match="8 workers cannot share concurrent = 7"):
        whole.share(8)
