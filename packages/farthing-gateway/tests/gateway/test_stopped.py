"""A client stops a stream: it pays for what it had, as far as that is known, and it is counted."""

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from chat_server import Endpoint
from gateway_running import Running, gateway, models, serve_section
from serving import marked, recorded, total, until
from stub_upstream import chunk, events, saying, streaming, usage_chunk, whole
from stub_upstream import serving as stub_serving

from farthing.models.base import Usage
from farthing_gateway.stream_bounds import AHEAD, ENOUGH, HiddenTokens, StreamedTokens

RECORD = "[record]\nshare = 0.0\n"
LONG = " ".join(["word"] * 200)


def stop_after(running: Running, pieces: int, **fields: Any) -> None:
    """Ask for a stream, and go away after so many pieces."""
    host, port = running.url.removeprefix("http://").split(":")
    message = {"role": "user", "content": "say it"}
    body = json.dumps({"model": "large", "messages": [message], "stream": True, **fields}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body)
        heard = b""
        while heard.count(b"data: ") < pieces:
            heard += connection.recv(4_096)


def shows_all(running: Running) -> None:
    """Have a model show all that it writes, as often as it takes to be believed."""
    for _ in range(ENOUGH):
        assert running.chat("large", "say it", stream=True).status == 200


def test_a_stream_that_is_stopped_costs_what_its_text_can_have_cost(tmp_path: Path) -> None:
    database = str(tmp_path / "gateway.db")
    with Endpoint(lambda _: LONG) as stub:
        text = serve_section() + models(stub.url) + RECORD
        with gateway(tmp_path, text) as running:
            shows_all(running)
            until(lambda: total(database).settled.calls == ENOUGH)
            whole = total(database).settled.nano
            stub.between_s = 0.02
            stop_after(running, 6)
            until(lambda: total(database).settled.calls == ENOUGH + 1)
            figures = running.get("/metrics").body.decode()
    charged = total(database).settled.nano - whole
    # Six pieces of a word were heard, and the provider had written no more than some of the next.
    assert charged >= 2 * 10_000 + 6 * 20_000
    # Its input counts by its bytes: so many of the whole body, and what a template adds.
    assert charged < (400 + 64 + 8) * 10_000 + (12 * 10 + AHEAD) * 20_000
    assert charged < 0.1 * 4_096 * 20_000
    assert (marked(database), total(database).held.nano) == ([], 0)
    assert 'farthing_promises_total{kind="stopped",model="large"} 1.0' in figures
    cost = next(line for line in figures.splitlines() if line.startswith("farthing_cost_usd_total"))
    assert float(cost.split()[1]) == pytest.approx((whole + charged) / 1e9)
    stopped = next(one for one in recorded(tmp_path) if one.trace.calls[0].error)
    (call,) = stopped.trace.calls
    assert (call.error and call.error.type, call.answer) == ("stopped", None)
    assert (call.text or "").startswith("word word")
    assert round((call.cost_usd or 0) * 1e9) == charged


@pytest.mark.parametrize("fields", [{}, {"reasoning_effort": "high"}, {"reasoning_effort": "none"}])
def test_where_nothing_bounds_it_a_stopped_stream_costs_the_most(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    database = str(tmp_path / "gateway.db")
    with (
        Endpoint(lambda _: LONG) as stub,
        gateway(tmp_path, serve_section() + models(stub.url)) as running,
    ):
        if fields:  # else no whole stream of the model was seen; with thoughts off none like it
            shows_all(running)
        stub.between_s = 0.02
        stop_after(running, 4, **fields)
        until(lambda: len(marked(database)) == 1)
    assert marked(database)[0].amount.nano > 4_096 * 20_000


def test_a_stream_that_breaks_after_its_count_costs_what_was_counted(tmp_path: Path) -> None:
    handle = streaming(events(chunk("4"), usage_chunk(), done=False), then="cut")
    database = str(tmp_path / "gateway.db")
    text = serve_section() + models("URL", "large")

    async def ask() -> int:
        async with stub_serving(handle) as stub:
            with gateway(tmp_path, text.replace("URL", stub.url)) as running:
                reply = await asyncio.to_thread(running.chat, "large", "say it", stream=True)
                await asyncio.to_thread(until, lambda: total(database).held.nano == 0)
                return len(reply.events)

    assert asyncio.run(ask()) > 0
    assert total(database).settled.nano == 1_000 * 10_000 + 10 * 20_000
    assert (total(database).settled.tokens, marked(database)) == (1_010, [])


def test_a_model_that_hides_some_of_its_tokens_is_not_bounded_by_its_text() -> None:
    shown, text = HiddenTokens(), StreamedTokens()
    text.add([{"content": "x" * 40}])
    known = []
    for written in (*[10] * ENOUGH, 60, *[10] * ENOUGH):
        shown.learn(Usage(5, written), text)
        known.append(shown.known)
    assert known == [*[None] * (ENOUGH - 1), True, *[False] * (ENOUGH + 1)]
    thinking = HiddenTokens()
    thinking.learn(Usage(5, 10, reasoning_tokens=4), text)
    assert thinking.known is False


@pytest.mark.parametrize("how", ["stream", "whole"])
def test_a_model_that_thinks_at_times_is_not_taken_for_one_that_never_does(
    tmp_path: Path, how: str
) -> None:
    """One that thought once may think again, however often it showed all it wrote since."""
    database, thought = str(tmp_path / "gateway.db"), [0]
    usage = {"prompt_tokens": 5, "completion_tokens": 60}

    async def handle(request: web.Request) -> web.StreamResponse:
        details = {"completion_tokens_details": {"reasoning_tokens": thought[0]}}
        if not (await request.json()).get("stream"):
            return await saying(whole(usage=usage | details))(request)
        data = events(chunk(LONG), usage_chunk(**usage, **details))
        return await streaming(data)(request)

    async def ask() -> None:
        async with stub_serving(handle) as stub:
            text = serve_section() + models(stub.url, "large")
            with gateway(tmp_path, text) as running:
                thought[0] = 40
                await asyncio.to_thread(running.chat, "large", "2 + 2?", stream=how == "stream")
                thought[0] = 0
                await asyncio.to_thread(shows_all, running)
                stub.handle = streaming(events(chunk("4"), done=False), then="hang")
                await asyncio.to_thread(stop_after, running, 1)
                await asyncio.to_thread(until, lambda: len(marked(database)) == 1)

    asyncio.run(ask())
    assert marked(database)[0].amount.nano > 4_096 * 20_000


def test_a_text_has_no_more_tokens_than_bytes() -> None:
    heard = StreamedTokens()
    for delta in ({"role": "assistant"}, {"content": "na\u00efve \u4f60"}, {}):
        heard.add([msgspec.Raw(msgspec.json.encode({"index": 0, "delta": delta}))])
    # Every byte may be a token: byte-level vocabularies have one for each.
    assert heard.tokens == len(b"assistant") + len("na\u00efve \u4f60".encode()) + 1
    assert heard.bound(Usage(7, 4_096)) == Usage(7, heard.tokens + 10 + AHEAD, estimated=True)
    assert heard.bound(Usage(7, 5)).output_tokens == 5
    assert heard.can_have(3), "each piece is a token at least"
    assert heard.can_have(heard.tokens)
    assert not heard.can_have(heard.tokens + 1)


def test_a_stream_whose_time_runs_out_costs_what_its_text_can_have_cost(tmp_path: Path) -> None:
    database = str(tmp_path / "gateway.db")
    with (
        Endpoint(lambda _: LONG) as stub,
        gateway(tmp_path, serve_section() + models(stub.url)) as running,
    ):
        shows_all(running)
        before = total(database).settled.nano
        stub.between_s = 0.05
        began = time.monotonic()
        late = running.chat("large", "say it", stream=True, farthing={"deadline": 2})
        assert time.monotonic() - began < 20
    assert b"deadline_exceeded" in late.body
    assert 0 < total(database).settled.nano - before < 0.1 * 4_096 * 20_000
    assert marked(database) == []
