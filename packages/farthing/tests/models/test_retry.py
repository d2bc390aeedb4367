"""When a call is tried again, how long that waits, and what it adds up to."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import (
    AuthenticationError,
    BadRequestError,
    ContentRefusedError,
    ContextTooLongError,
    MalformedReplyError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
)
from farthing.models.base import Completion, Message, Prompt, Usage
from farthing.models.clock import ManualClock
from farthing.models.http_failures import retry_after_s
from farthing.models.retry import Retrying, RetryPolicy, retry
from farthing.models.scripted import Reply, ScriptedModel

PROMPT = Prompt((Message("user", "hi"),))
GOOD = Completion("yes", "m", "stop", Usage(1, 1), 5, 0.1)


def tried(
    replies: list[Reply], patience: RetryPolicy | None = None, uniform: float = 0.5
) -> tuple[Completion | ModelError, float, int]:
    """Return how a call ends, when, and after how many tries."""

    async def run() -> tuple[Completion | ModelError, float, int]:
        clock = ManualClock()
        script = iter(replies)
        scripted = ScriptedModel(lambda _: next(script))
        model = Retrying(scripted, patience, clock=clock, uniform=lambda: uniform)
        started = asyncio.create_task(model.complete(PROMPT))
        while not started.done():
            await clock.advance(0.25)
        failed = started.exception()
        assert failed is None or isinstance(failed, ModelError)
        return failed or started.result(), clock.now(), len(scripted.calls)

    return asyncio.run(run())


def test_what_failed_tries_cost_is_in_the_completion() -> None:
    fails: list[Reply] = [
        ModelTimeoutError("late", cost_nano=100),
        RateLimitError("slow down"),
        MalformedReplyError("what", cost_nano=20),
    ]
    done, _, calls = tried([*fails, GOOD])
    assert isinstance(done, Completion)
    assert (done.cost_nano, done.tries, calls) == (125, 4, 4)


def test_an_unknown_cost_makes_the_sum_unknown() -> None:
    done, _, _ = tried([ModelTimeoutError("late", cost_nano=None), GOOD])
    assert done.cost_nano is None


def test_the_last_error_holds_the_cost_and_number_of_all_tries() -> None:
    late: list[Reply] = [ModelTimeoutError("late", cost_nano=100)] * 3
    error, _, calls = tried(late, RetryPolicy(tries=3))
    assert isinstance(error, ModelTimeoutError)
    assert (error.cost_nano, error.tries, calls) == (300, 3, 3)


@pytest.mark.parametrize(
    "kind", [AuthenticationError, BadRequestError, ContentRefusedError, ContextTooLongError]
)
def test_what_cannot_succeed_later_is_not_tried_again(kind: type[ModelError]) -> None:
    error, at, calls = tried([kind("no"), GOOD])
    assert isinstance(error, kind)
    assert (calls, at) == (1, 0.25)


@pytest.mark.parametrize(
    "kind", [RateLimitError, ModelTimeoutError, ModelConnectionError, MalformedReplyError]
)
def test_what_may_succeed_later_is_tried_again(kind: type[ModelError]) -> None:
    done, _, calls = tried([kind("no"), GOOD])
    assert isinstance(done, Completion)
    assert calls == 2


def test_waits_double_up_to_the_longest() -> None:
    patience = RetryPolicy(tries=6, first_s=1, longest_s=4)
    _, at, _ = tried([*[RateLimitError("no")] * 5, GOOD], patience, uniform=1.0)
    assert at == 1 + 2 + 4 + 4 + 4


def test_retry_after_is_waited_for_and_bounded() -> None:
    asked: list[Reply] = [RateLimitError("no", retry_after_s=40), GOOD]
    done, at, _ = tried(asked, uniform=0.0)
    assert isinstance(done, Completion)
    assert at == 40
    error, at, calls = tried(asked, RetryPolicy(total_s=39), uniform=0.0)
    assert isinstance(error, RateLimitError)
    assert (calls, at) == (1, 0.25)


@given(st.integers(0, 200), st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 1e3))
@settings(deadline=None)
def test_a_wait_is_between_what_was_asked_and_that_plus_the_longest(
    retry: int, uniform: float, asked: float | None
) -> None:
    wait = RetryPolicy().wait_s(retry, asked, uniform)
    assert (asked or 0) <= wait <= (asked or 0) + 30


def test_cancelling_ends_the_waiting() -> None:
    async def run() -> int:
        scripted = ScriptedModel(lambda _: RateLimitError("no", retry_after_s=100))
        task = asyncio.create_task(Retrying(scripted).complete(PROMPT))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(scripted.calls)

    assert asyncio.run(run()) == 1


@given(st.integers(-1_000, 10_000))
@settings(deadline=None)
def test_a_date_in_retry_after_is_seconds_from_now(seconds: int) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    date = format_datetime(now + timedelta(seconds=seconds), usegmt=True)
    assert retry_after_s({"Retry-After": date}, now) == max(0, seconds)


@pytest.mark.parametrize("value", ["", "soon", "nan", "inf", "-", "99 bananas"])
def test_a_retry_after_that_cannot_be_read_says_nothing(value: str) -> None:
    assert retry_after_s({"Retry-After": value}, datetime.now(UTC)) is None
    assert retry_after_s({}, datetime.now(UTC)) is None
    assert retry_after_s({"Retry-After": "-5"}, datetime.now(UTC)) == 0


def test_no_try_begins_at_or_after_the_given_moment() -> None:
    async def run() -> tuple[int, float]:
        clock, made = ManualClock(), 0

        async def attempt() -> Completion:
            nonlocal made
            made += 1
            raise ModelConnectionError("down")

        work = asyncio.ensure_future(
            retry(attempt, RetryPolicy(first_s=1.0), clock=clock, uniform=lambda: 1.0, until=7.0)
        )
        await clock.advance(100)
        with pytest.raises(ModelConnectionError):
            await work
        return made, clock.now()

    assert asyncio.run(run())[0] == 3  # after 0, 1 and 3 seconds; the next would be at 7


def test_a_provider_may_ask_for_so_much_patience_only() -> None:
    async def run(asked_s: float | None) -> int:
        clock, made = ManualClock(), 0

        async def attempt() -> Completion:
            nonlocal made
            made += 1
            raise RateLimitError("slow down", retry_after_s=2.0)

        patience = RetryPolicy(first_s=0.0, asked_s=asked_s)
        work = asyncio.ensure_future(retry(attempt, patience, clock=clock))
        await clock.advance(1_000)
        with pytest.raises(RateLimitError):
            await work
        return made

    assert [asyncio.run(run(asked_s)) for asked_s in (None, 5.0, 1.0, 0.0)] == [6, 3, 1, 1]
