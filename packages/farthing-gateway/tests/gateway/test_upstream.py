"""Against a stub over a real socket: what passes through, what it costs, how each failure ends."""

import asyncio
import json
import math
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from aiohttp import web
from stub_upstream import (
    Handler,
    Stub,
    chunk,
    events,
    saying,
    serving,
    streaming,
    usage_chunk,
    whole,
)

from farthing.errors import (
    AuthenticationError,
    BadRequestError,
    MalformedReplyError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
    RedirectedError,
)
from farthing.models import chat_endpoint
from farthing.models.base import Usage
from farthing.models.config import models_from
from farthing_gateway.charging import RequestCharges, RequestLimits
from farthing_gateway.chat_request import ChatRequest, read_request
from farthing_gateway.http_upstream import HttpUpstream
from farthing_gateway.paid_call import PaidCall
from farthing_gateway.storage.ledger.ledger import open_ledger
from farthing_gateway.storage.migrations import migrate
from farthing_gateway.upstream import open_upstreams
from farthing_gateway.upstream_base import Reply, StreamedReply, Upstream

SECRET = "sk-very-secret-0123456789"
PRICE = {"input_per_million": 2, "output_per_million": 8, "cached_input_per_million": 0.5}
PAID = 300 * 2_000 + 700 * 500 + 10 * 8_000
"""Of the stub's usage, in nano-dollars: fresh input, cached input, output."""
HELLO = [{"role": "user", "content": "2 + 2?"}]
T = TypeVar("T")
Work = Callable[[Upstream, Stub], Awaitable[T]]


def ask(**more: Any) -> ChatRequest:
    return read_request(json.dumps({"model": "base", "messages": HELLO} | more).encode(), {})


def _open(tables: Mapping[str, Any]) -> dict[str, Upstream]:
    models = models_from(tables, "f.toml")
    return open_upstreams(models, models.admissions())


def using(handle: Handler, work: Work[T], limits: dict[str, int] | None = None, **more: Any) -> T:
    """Do some work with the one model of a configuration and the stub behind it."""

    async def run() -> T:
        async with serving(handle) as stub:
            section = {"provider": "openai-compatible", "model": "m", "url": stub.url} | more
            tables: dict[str, Any] = {"models": {"base": section}, "prices": {"m": PRICE}}
            if limits:
                tables["limits"] = {"shared": limits}
                section["limits"] = "shared"
            upstream = _open(tables)["base"]
            try:
                return await work(upstream, stub)
            finally:
                await upstream.aclose()

    return asyncio.run(run())


def sent(handle: Handler, request: ChatRequest | None = None, **more: Any) -> tuple[Reply, Stub]:
    async def work(upstream: Upstream, stub: Stub) -> tuple[Reply, Stub]:
        return await upstream.prepare(request or ask(), 50).send(), stub

    return using(handle, work, **more)


def streamed(
    handle: Handler, request: ChatRequest | None = None, **more: Any
) -> tuple[list[bytes], Reply, Stub]:
    async def work(upstream: Upstream, stub: Stub) -> tuple[list[bytes], Reply, Stub]:
        async with upstream.prepare(request or ask(stream=True), 50).stream() as pieces:
            found = await rest(pieces)
            assert pieces.ended
            return found, pieces.reply, stub

    return using(handle, work, **more)


async def rest(pieces: StreamedReply) -> list[bytes]:
    return [piece async for some in pieces for piece in some]


def largest(request: ChatRequest | None = None, **more: Any) -> int:
    async def work(upstream: Upstream, _: Stub) -> int:
        nano = upstream.prepare(request or ask(), 50).bound.nano
        assert nano is not None
        return nano

    return using(saying(b""), work, **more)


def failed(handle: Handler, *, streaming: bool, **more: Any) -> ModelError:
    way: Callable[..., object] = streamed if streaming else sent
    with pytest.raises(ModelError) as caught:
        way(handle, **more)
    return caught.value


def test_a_reply_passes_through_and_is_priced_by_hand() -> None:
    body = whole()
    reply, stub = sent(saying(body))
    assert reply.body == body
    assert reply.usage == Usage(1_000, 10, cached_tokens=700)
    assert (reply.cached_tokens, reply.cost_nano, reply.model) == (700, PAID, "m-2026")
    assert reply.tries == 1
    assert 0 < reply.latency_s < 5
    assert stub.bodies == [{"model": "m", "messages": HELLO, "max_tokens": 50}]


def test_a_request_passes_through_but_for_name_limit_and_settings() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    request = ask(tools=tools, max_tokens=9, tomorrow={"a": 1}, top_p=0.5, farthing={"budget": 1})
    settings = {
        "limit_name": "max_completion_tokens",
        "omit": ["top_p"],
        "extra": {"reasoning_effort": "low"},
    }
    _, stub = sent(saying(whole()), request, **settings)
    assert stub.bodies == [
        {
            "model": "m",
            "messages": HELLO,
            "tools": tools,
            "max_completion_tokens": 9,
            "tomorrow": {"a": 1},
            "reasoning_effort": "low",
        }
    ]


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "many"}, 7])
def test_without_a_readable_usage_a_reply_counts_as_the_largest(usage: Any) -> None:
    reply, _ = sent(saying(whole(usage=usage)))
    assert reply.cost_nano == largest()
    assert reply.usage.estimated


def test_the_largest_cost_by_hand() -> None:
    # {"messages":[{"role":"user","content":"2 + 2?"}],"max_tokens":50,"model":"m"}: 77 bytes
    assert largest() == (77 + 64 + 8) * 2_000 + 50 * 8_000
    # ,"n":3 and three times the output
    assert largest(ask(n=3)) == (77 + 6 + 72) * 2_000 + 3 * 50 * 8_000
    assert largest(ask(max_tokens=9)) == (76 + 72) * 2_000 + 9 * 8_000
    assert largest(ask(stream=True, stream_options={"include_usage": True})) == largest()
    tools = [{"type": "function", "function": {"name": "f", "description": "é" * 1_000}}]
    assert largest(ask(tools=tools)) > largest() + 2 * 2_000 * 2_000
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]
    with pytest.raises(BadRequestError, match=r"messages\[0\].content\[0\].*context_window"):
        largest(ask(messages=image))
    assert largest(ask(messages=image), context_window=9) == 9 * 2_000 + 50 * 8_000
    text = len(
        '{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":}}]}]}'
    )
    text += len(',"max_tokens":50,"model":"m"') + 72
    assert largest(ask(messages=image), image_tokens=700) == (text + 700) * 2_000 + 50 * 8_000


def picture(data: str, detail: str | None = None) -> dict[str, Any]:
    said = {"url": f"data:image/png;base64,{data}"} | ({"detail": detail} if detail else {})
    return {"role": "user", "content": [{"type": "image_url", "image_url": said}]}


def test_an_image_is_reserved_by_the_formula_of_its_model() -> None:
    """Whatever its size: at most 8 tiles of 170 tokens and 85, or 1,536 patches times 2.46."""
    little, much = ask(messages=[picture("a")]), ask(messages=[picture("a" * 900_000)])
    twice = ask(messages=[picture("a"), picture("a", "low")])
    sold = {"price_provider": "openai", "model": "gpt-4o-2024-08-06"}
    assert largest(little, **sold) == largest(much, **sold)
    # 2.50 dollars a million in, 10 out; the text is less than 250 bytes and its template
    assert 1_445 * 2_500 < largest(little, **sold) - 50 * 10_000 < (1_445 + 322) * 2_500
    assert 85 * 2_500 < largest(twice, **sold) - largest(little, **sold) < (85 + 150) * 2_500
    nano = sold | {"model": "gpt-4.1-nano"}
    assert 3_779 * 100 < largest(much, **nano) - 50 * 400 < (3_779 + 322) * 100
    sound = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
    heard = ask(messages=[{"role": "user", "content": [sound]}])
    assert largest(heard, **sold) == 128_000 * 2_500 + 50 * 10_000, "its published window"


def test_an_output_without_a_limit_is_a_windows() -> None:
    assert largest(omit=["max_tokens"], context_window=100) > largest() + 40 * 8_000


def test_a_stream_passes_through_without_the_usage_that_nobody_asked_for() -> None:
    chunks = [chunk("2"), chunk("", usage=None), chunk(' "usage"')]
    data = events(*chunks, usage_chunk())
    cuts = [data[at : at + 7] for at in range(0, len(data), 7)]
    found, reply, stub = streamed(streaming(b": hello\n\n", *cuts))
    assert found == chunks
    assert (reply.cost_nano, reply.cached_tokens, reply.model) == (PAID, 700, "m-2026")
    assert reply.body == b""
    assert stub.bodies[0]["stream"] is True
    assert stub.bodies[0]["stream_options"] == {"include_usage": True}


def test_a_client_that_asks_for_usage_has_it() -> None:
    request = ask(stream=True, stream_options={"include_usage": True, "new": 1})
    found, _, stub = streamed(streaming(events(chunk("4"), usage_chunk())), request)
    assert found == [chunk("4"), usage_chunk()]
    assert stub.bodies[0]["stream_options"] == {"include_usage": True, "new": 1}


def test_usage_may_come_with_the_last_words_and_lines_may_end_as_they_like() -> None:
    last = json.loads(chunk("4")) | {"usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    data = events(chunk("2"), json.dumps(last).encode()).replace(b"\n", b"\r\n").rstrip()
    found, reply, _ = streamed(streaming(data))
    assert len(found) == 2
    assert reply.cost_nano == 3 * 2_000 + 2 * 8_000


def test_a_stream_without_usage_counts_as_the_largest() -> None:
    found, reply, _ = streamed(streaming(events(chunk("4"))))
    assert found == [chunk("4")]
    assert reply.cost_nano == largest()
    assert reply.usage.estimated


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("status", "headers", "kind", "after_s", "charged"),
    [
        (401, {}, AuthenticationError, None, False),
        (429, {"Retry-After": "7"}, RateLimitError, 7.0, False),
        (500, {}, ModelConnectionError, None, False),
        (504, {}, ModelTimeoutError, None, True),
        (307, {"Location": "/v1/chat/completions"}, RedirectedError, None, False),
    ],
)
def test_an_error_status_becomes_its_error(
    streaming: bool,
    status: int,
    headers: dict[str, str],
    kind: type[ModelError],
    after_s: float | None,
    charged: bool,
) -> None:
    error = failed(saying(b"no " * 100_000, status, **headers), streaming=streaming)
    assert type(error) is kind
    assert error.retry_after_s == after_s
    assert error.cost_nano == (largest() if charged else 0)
    assert len(str(error)) < 500


def patience(kind: type[ModelError]) -> float:
    """Return for how many seconds to wait for a failure: long, unless waiting is the failure."""
    return 2.0 if kind is ModelTimeoutError else 30.0


@pytest.mark.parametrize(
    ("handle", "kind", "said"),
    [
        (saying(b'{"choices": ['), MalformedReplyError, "cannot be read"),
        (saying(b'{"choices": []}'), MalformedReplyError, "no choices"),
        (saying(b"[]"), MalformedReplyError, "cannot be read"),
        (streaming(whole(), kind="text/html"), MalformedReplyError, "not JSON"),
        (streaming(b"{", kind="application/json", then="cut"), ModelConnectionError, "broke"),
        (streaming(b"{", kind="application/json", then="hang"), ModelTimeoutError, "in time"),
        (streaming(first_s=30), ModelTimeoutError, "in time"),
        (
            streaming(*[b" "] * 1_000, kind="application/json"),
            ModelTimeoutError,
            "in time",
        ),
    ],
)
def test_a_reply_of_unknown_outcome_counts_in_full(
    handle: Handler, kind: type[ModelError], said: str
) -> None:
    error = failed(handle, streaming=False, timeout_s=patience(kind))
    assert type(error) is kind
    assert said in str(error)
    assert error.cost_nano == largest()


@pytest.mark.parametrize(
    ("handle", "kind", "said"),
    [
        (streaming(whole(), kind="text/html"), MalformedReplyError, "no stream"),
        (streaming(events()), MalformedReplyError, "no chunk"),
        (streaming(events(b'{"choices": [')), MalformedReplyError, "cannot be read"),
        (streaming(then="cut"), ModelConnectionError, "broke"),
        (streaming(first_s=30), ModelTimeoutError, "in time"),
        (streaming(b": wait\n\n", then="hang"), ModelTimeoutError, "in time"),
    ],
)
def test_a_stream_that_fails_before_its_first_piece_does_not_begin(
    handle: Handler, kind: type[ModelError], said: str
) -> None:
    async def work(upstream: Upstream, _: Stub) -> None:
        block = upstream.prepare(ask(), 50).stream()
        with pytest.raises(kind, match=said) as caught:
            await block.__aenter__()
        bound = upstream.prepare(ask(), 50).bound
        assert caught.value.cost_nano == bound.nano

    using(handle, work, timeout_s=patience(kind))


GOOD = events(chunk("4"), done=False)


@pytest.mark.parametrize(
    ("handle", "kind", "said"),
    [
        (streaming(GOOD, then="cut"), ModelConnectionError, "broke"),
        (streaming(GOOD), ModelConnectionError, "before its end"),
        (streaming(GOOD, b"data: {"), ModelConnectionError, "before its end"),
        (streaming(GOOD, then="hang"), ModelTimeoutError, "in time"),
        (streaming(GOOD, events(b"{")), MalformedReplyError, "cannot be read"),
    ],
)
def test_a_stream_that_breaks_midway_says_so_and_counts_in_full(
    handle: Handler, kind: type[ModelError], said: str
) -> None:
    async def work(upstream: Upstream, _: Stub) -> None:
        async with upstream.prepare(ask(), 50).stream() as pieces:
            assert await anext(pieces) == [chunk("4")]
            with pytest.raises(kind, match=said) as caught:
                await anext(pieces)
            assert caught.value.cost_nano == upstream.prepare(ask(), 50).bound.nano
            assert not pieces.ended
            with pytest.raises(RuntimeError):
                repr(pieces.reply)

    using(handle, work, timeout_s=patience(kind))


def test_an_error_in_place_of_the_first_piece_costs_nothing() -> None:
    error = failed(streaming(events(b'{"error": {"message": "no"}}')), streaming=True)
    assert error.cost_nano == 0


def test_what_breaks_after_its_count_costs_what_was_counted() -> None:
    async def work(upstream: Upstream, _: Stub) -> int | None:
        async with upstream.prepare(ask(), 50).stream() as pieces:
            with pytest.raises(ModelConnectionError) as caught:
                await rest(pieces)
        return caught.value.cost_nano

    counted = events(chunk("4"), usage_chunk(), done=False)
    assert using(streaming(counted, then="cut"), work) == PAID


def test_nobody_there_costs_nothing() -> None:
    error = failed(saying(b""), streaming=False, url="http://127.0.0.1:1/v1")
    assert "is it running" in str(error)
    assert error.cost_nano == 0


@pytest.mark.parametrize("streaming_", [False, True])
def test_a_huge_reply_is_given_up(monkeypatch: pytest.MonkeyPatch, streaming_: bool) -> None:
    monkeypatch.setattr(chat_endpoint, "MOST_BYTES", 100_000)
    parts = [events(chunk("x" * 50_000), done=False)] * 4
    kind = "text/event-stream" if streaming_ else "application/json"
    error = failed(streaming(*parts, kind=kind), streaming=streaming_)
    assert type(error) is MalformedReplyError
    assert "more than 100,000 bytes" in str(error)


@pytest.mark.parametrize("streaming_", [False, True])
def test_cancelling_closes_the_connection(streaming_: bool) -> None:
    async def work(upstream: Upstream, stub: Stub) -> int:
        async def consume() -> None:
            if streaming_:
                async with upstream.prepare(ask(), 50).stream() as pieces:
                    async for _ in pieces:
                        begun.set()
            else:
                await upstream.prepare(ask(), 50).send()

        begun = asyncio.Event()
        task = asyncio.create_task(consume())
        async with asyncio.timeout(5):
            while not stub.under_way or (streaming_ and not begun.is_set()):
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            while not stub.left:
                await asyncio.sleep(0.01)
        return stub.under_way

    assert using(streaming(GOOD, then="hang"), work) == 0


def test_leaving_a_stream_early_closes_the_connection() -> None:
    async def work(upstream: Upstream, stub: Stub) -> int:
        async with upstream.prepare(ask(), 50).stream() as pieces:
            await anext(pieces)
        async with asyncio.timeout(5):
            while not stub.left:
                await asyncio.sleep(0.01)
        return stub.left

    assert using(streaming(GOOD, then="hang"), work) == 1


def test_connections_are_kept() -> None:
    async def work(upstream: Upstream, stub: Stub) -> set[int]:
        for _ in range(3):
            async with upstream.prepare(ask(), 50).stream() as pieces:
                assert await rest(pieces)
        return stub.ports

    assert len(using(streaming(events(chunk("4"), usage_chunk())), work)) == 1


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", SECRET)
    said = json.dumps({"error": {"message": f"no such key: {SECRET}"}}).encode()
    handles = [
        *(saying(said, status) for status in (401, 429, 500, 504)),
        saying(said),
        saying(SECRET.encode()),
        streaming(events(said)),
        streaming(events(chunk("4"), said)),
        streaming(events(chunk("4"), SECRET.encode())),
        streaming(first_s=30),
        streaming(then="cut"),
    ]
    _, stub = sent(saying(whole()), key_env="A_KEY")
    assert stub.headers[0]["Authorization"] == f"Bearer {SECRET}"
    for handle in handles:
        for way in (False, True):
            error = failed(handle, streaming=way, key_env="A_KEY", timeout_s=0.2)
            assert SECRET not in everything(error)


def everything(error: BaseException) -> str:
    """Return whatever an error can show: text, fields, traceback, the errors behind it."""
    return "".join(_shown(error.with_traceback(None)))


def _shown(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield f"{error} {error!r} {vars(error)!r}"
        yield from traceback.format_exception(error)
        error = error.__cause__ or error.__context__


QUICK = {"tries": 3, "first_s": 0.0}


def in_turn(*handles: Handler) -> Handler:
    left = iter(handles)

    async def handle(request: web.Request) -> web.StreamResponse:
        return await next(left)(request)

    return handle


def paying(handle: Handler, work: Callable[[PaidCall, int], Awaitable[T]], seconds: float) -> T:
    """Do some work with a call that a ledger pays for, and the bound of one of its tries.

    Its time begins once all is set up.
    """

    async def inner(upstream: Upstream, _: Stub) -> T:
        bound = upstream.prepare(ask(), 50).bound.nano
        assert bound is not None
        with TemporaryDirectory() as folder:
            await migrate(f"{folder}/ledger.db")
            ledger = await open_ledger(f"{folder}/ledger.db")
            charges = RequestCharges(ledger, RequestLimits({}), None, 60.0)
            until = time.monotonic() + seconds
            try:
                return await work(PaidCall(upstream, ask(), charges, 50, until), bound)
            finally:
                (total,) = [b for b in await ledger.balances(["all"]) if b.period == "total"]
                assert (total.settled.nano, total.held.nano) == (charges.spent_nano, 0)
                await ledger.aclose()

    return using(handle, inner, retries=QUICK)


def test_each_try_is_reserved_and_all_are_summed() -> None:
    async def work(call: PaidCall, bound: int) -> None:
        reply = await call.send()
        assert [one.hold.amount.nano for one in call.charges.tries] == [bound] * 3
        assert (reply.tries, reply.cost_nano) == (3, bound + PAID)
        assert call.charges.spent_nano == 2 * bound, "what goes beyond a bound is disputed"

    paying(in_turn(saying(b"", 504), saying(b"", 500), saying(whole())), work, math.inf)


def test_a_stream_is_retried_before_its_first_piece_only() -> None:
    async def work(call: PaidCall, bound: int) -> None:
        stream = call.stream()
        pieces = await stream.__aenter__()
        assert await anext(pieces) == [chunk("4")]
        assert [one.ended for one in call.charges.tries] == [True, False]
        with pytest.raises(ModelConnectionError) as caught:
            await anext(pieces)
        assert not await stream.__aexit__(ModelConnectionError, caught.value, None)
        assert [one.ended for one in call.charges.tries] == [True, True]
        assert (caught.value.tries, caught.value.cost_nano) == (2, 2 * bound)

    paying(in_turn(saying(b"", 504), streaming(GOOD, then="cut")), work, math.inf)


def test_a_stream_after_failures_costs_what_they_did_as_well() -> None:
    async def work(call: PaidCall, bound: int) -> None:
        async with call.stream() as pieces:
            assert await rest(pieces) == [chunk("4")]
            assert pieces.reply.tries == 2
            assert pieces.reply.cost_nano == PAID + bound

    good = streaming(events(chunk("4"), usage_chunk()))
    paying(in_turn(saying(b"", 504), good), work, math.inf)


def test_all_tries_together_keep_the_time() -> None:
    async def work(call: PaidCall, _: int) -> float:
        started = time.perf_counter()
        with pytest.raises(ModelTimeoutError):
            await call.send()
        return time.perf_counter() - started

    assert 0.25 < paying(streaming(first_s=60), work, 0.5) < 30


@pytest.mark.parametrize("streaming_", [False, True])
def test_limits_are_kept_by_replies_and_streams(streaming_: bool) -> None:
    async def work(upstream: Upstream, stub: Stub) -> None:
        async def one() -> None:
            if streaming_:
                async with upstream.prepare(ask(), 50).stream() as pieces:
                    await rest(pieces)
            else:
                await upstream.prepare(ask(), 50).send()

        await asyncio.gather(*(one() for _ in range(6)))
        assert len(stub.bodies) == 6

    most = counted = 0

    async def handle(request: web.Request) -> web.StreamResponse:
        nonlocal most, counted
        counted += 1
        most = max(most, counted)
        answer = streaming(events(chunk("4"), usage_chunk())) if streaming_ else saying(whole())
        try:
            await asyncio.sleep(0.01)
            return await answer(request)
        finally:
            counted -= 1

    using(handle, work, limits={"concurrent": 2})
    assert most == 2


def test_other_providers_are_spoken_to() -> None:
    tables = {
        "models": {"s": {"provider": "scripted", "model": "m", "otherwise": "four"}},
        "prices": {"m": PRICE},
    }

    async def run() -> None:
        upstream = _open(tables)["s"]
        request = ask(n=2, stream_options={"include_usage": True})
        reply = await upstream.prepare(request, 50).send()
        said = json.loads(reply.body)
        assert [choice["message"]["content"] for choice in said["choices"]] == ["four"] * 2
        assert said["model"] == "base"
        # three words in and one out, twice
        assert (reply.usage, reply.cost_nano) == (Usage(6, 2), 6 * 2_000 + 2 * 8_000)
        bound = upstream.prepare(request, 50).bound
        assert bound.nano == 2 * ((6 + 72) * 2_000 + 50 * 8_000)
        async with upstream.prepare(request, 50).stream() as pieces:
            chunks = [json.loads(piece) for piece in await rest(pieces)]
        assert chunks[-1]["usage"]["completion_tokens"] == 2
        assert pieces.reply.cost_nano == reply.cost_nano
        for unsaid in (ask(tools=[{}]), ask(messages=[{"role": "tool", "content": "4"}])):
            with pytest.raises(BadRequestError):
                upstream.prepare(unsaid, 50)

    asyncio.run(run())


def test_a_spoken_model_that_is_late_counts_in_full() -> None:
    tables = {
        "models": {"s": {"provider": "scripted", "model": "m", "latency_s": 30.0}},
        "prices": {"m": PRICE},
    }

    async def run() -> None:
        upstream = _open(tables)["s"]
        with pytest.raises(ModelTimeoutError) as caught:
            await upstream.prepare(ask(), 50).send(timeout_s=0.5)
        assert caught.value.cost_nano == upstream.prepare(ask(), 50).bound.nano

    asyncio.run(run())


def test_no_cookie_is_kept() -> None:
    async def work(upstream: Upstream, stub: Stub) -> list[dict[str, str]]:
        await upstream.prepare(ask(), 50).send()
        await upstream.prepare(ask(), 50).send()
        return stub.headers

    headers = using(saying(whole(), 200, **{"Set-Cookie": "a=b"}), work)
    assert all("Cookie" not in one for one in headers)


def test_an_upstream_shows_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", SECRET)

    async def work(upstream: Upstream, _: Stub) -> str:
        assert isinstance(upstream, HttpUpstream)
        return repr(upstream)

    assert SECRET not in using(saying(b""), work, key_env="A_KEY")
