"""A server that speaks OpenAI's chat completions over a real socket, and fails on demand.

It runs in a thread of its own, so that anything can talk to it: coroutines, threads, processes.
"""

import asyncio
import json
import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from time import time
from typing import Any, Self

from aiohttp import web

Messages = list[dict[str, str]]

FAULTS = (
    "429",  # too many requests, without a word on when to come back
    "429 seconds",  # Retry-After as a number
    "429 date",  # Retry-After as a date
    "500",
    "reset",  # the connection is closed before any reply
    "cut",  # in mid-body
    "slow",  # later than anybody waits
    "garbage",  # JSON that is none
    "no usage",
    "content type",  # a page where JSON was due
)
OF_STREAMS = frozenset({"cut", "slow", "garbage", "no usage", "error event"})
"""Faults that come amid the words of a stream; of a whole reply the last one is a 500."""


@dataclass
class Endpoint:
    """The server, its faults and its books. Change the fields at any time."""

    answer: Callable[[Messages], str] = lambda messages: "reply to " + messages[-1]["content"]
    faults: dict[str, float] = field(default_factory=dict)
    """Share of the calls that meet each fault."""
    only_first: bool = False
    """A content that failed once is answered the next time."""
    latency_s: float = 0.0
    between_s: float = 0.0
    """Between the pieces of a stream."""
    slow_s: float = 20.0
    """How long a slow body takes."""
    gather: int = 0
    """Nobody is answered until so many calls have been under way at once."""
    retry_after_s: float = 0.0
    reply: Callable[[dict[str, Any]], web.Response] | None = None
    """Answers in place of everything else, given the request."""
    seed: int = 0

    calls: Counter[str] = field(default_factory=Counter)
    """Requests by content of the last message."""
    answered: Counter[str] = field(default_factory=Counter)
    """Whole replies that were sent, by content: what a provider charges for."""
    failed: Counter[str] = field(default_factory=Counter)
    """Faults by name."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    disconnects: int = 0
    """Calls that the client gave up while they were under way."""
    under_way: int = 0
    most_under_way: int = 0
    url: str = ""

    def __enter__(self) -> Self:
        self._random = random.Random(self.seed)
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._gathered = asyncio.Event()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(60), "the test server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    def _run(self, started: threading.Event) -> None:
        self._loop.run_until_complete(self._serve(started))
        self._loop.close()

    async def _serve(self, started: threading.Event) -> None:
        app = web.Application()
        for path in ("chat/completions", "messages"):
            app.router.add_post(f"/v1/{path}", self._chat)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        started.set()
        await self._stop.wait()
        await runner.shutdown()
        await asyncio.wait_for(runner.cleanup(), 30)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        body = body | {"messages": [m | {"content": _words(m)} for m in body["messages"]]}
        content = body["messages"][-1]["content"]
        self.calls[content] += 1
        self.headers.append(dict(request.headers))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        if self.under_way >= self.gather:
            self._gathered.set()
        try:
            await self._gathered.wait()
            await asyncio.sleep(self.latency_s)
            if self.reply is not None:
                return self.reply(body)
            fault = self._draw(content)
            if body.get("stream") and fault in OF_STREAMS:
                return await self._stream(request, body, fault)
            if fault:
                return await self._fail(fault, request, body)
            return await self._stream(request, body) if body.get("stream") else self._say(body)
        except asyncio.CancelledError:
            self.disconnects += 1
            raise
        finally:
            self.under_way -= 1

    def _draw(self, content: str) -> str | None:
        if self.only_first and self.calls[content] > 1:
            return None
        number = self._random.random()
        for fault, rate in self.faults.items():
            number -= rate
            if number < 0:
                self.failed[fault] += 1
                return fault
        return None

    def _say(self, body: dict[str, Any]) -> web.Response:
        self.answered[body["messages"][-1]["content"]] += 1
        return web.json_response(completion(body, self.answer(body["messages"])))

    async def _stream(
        self, request: web.Request, body: dict[str, Any], fault: str | None = None
    ) -> web.StreamResponse:
        """Say the same word by word; a fault comes amid the words."""
        if fault in {None, "no usage"}:
            self.answered[body["messages"][-1]["content"]] += 1
        whole = completion(body, self.answer(body["messages"]))
        words = whole["choices"][0]["message"]["content"].split(" ")
        deltas = [{"role": "assistant", "content": ""}, *({"content": w + " "} for w in words[:-1])]
        deltas.append({"content": words[-1]})
        head = whole | {"object": "chat.completion.chunk"}
        usage = head.pop("usage")
        pieces = [head | {"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        pieces.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        if fault != "no usage" and (body.get("stream_options") or {}).get("include_usage"):
            pieces.append(head | {"choices": [], "usage": usage})
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for piece in pieces if fault in {None, "no usage"} else pieces[:3]:
            await stream.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
            await asyncio.sleep(self.between_s)
        if fault == "garbage":
            await stream.write(b'data: {"choices": [\xff\x00{\n\n')
        if fault == "error event":
            await stream.write(b'data: {"error": {"message": "it broke", "code": 500}}\n\n')
        if fault in {"cut", "slow"}:
            await asyncio.sleep(self.slow_s if fault == "slow" else 0.02)
            assert request.transport is not None
            request.transport.abort()
            return stream
        await stream.write(b"data: [DONE]\n\n")
        return stream

    async def _fail(
        self, fault: str, request: web.Request, body: dict[str, Any]
    ) -> web.StreamResponse:
        whole = json.dumps(completion(body, self.answer(body["messages"]))).encode()
        if fault == "reset":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if fault in {"cut", "slow"}:
            return await self._half(fault, request, whole)
        if fault == "no usage":
            self.answered[body["messages"][-1]["content"]] += 1
            return web.json_response(completion(body, self.answer(body["messages"]), usage=False))
        return self._wrong(fault, whole)

    def _wrong(self, fault: str, whole: bytes) -> web.Response:
        after = {
            "429 seconds": f"{self.retry_after_s:g}",
            "429 date": formatdate(time() + self.retry_after_s, usegmt=True),
        }
        headers = {"Retry-After": after[fault]} if fault in after else {}
        if fault.startswith("429"):
            return web.json_response(
                {"error": {"message": "slow down"}}, status=429, headers=headers
            )
        if fault in {"500", "error event"}:
            return web.json_response({"error": {"message": "it broke"}}, status=500)
        if fault == "garbage":
            return web.Response(
                body=b'{"choices": [' + b"\xff\x00{", content_type="application/json"
            )
        assert fault == "content type", fault
        return web.Response(body=whole, content_type="text/html")

    async def _half(self, fault: str, request: web.Request, whole: bytes) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        stream.content_length = len(whole)
        await stream.prepare(request)
        await stream.write(whole[: len(whole) // 2])
        if fault == "slow":
            await asyncio.sleep(self.slow_s)
        assert request.transport is not None
        request.transport.close()
        return stream


def _words(message: dict[str, Any]) -> str:
    """Return the text of a message; anything else than a text is shown as it is."""
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content)


def completion(body: dict[str, Any], text: str, *, usage: bool = True) -> dict[str, Any]:
    """Return what a provider would reply; a token is a word."""
    message = {"role": "assistant", "content": text}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "stop"}
    if body.get("logprobs"):
        choice["logprobs"] = {"content": [_token(word, body) for word in text.split()]}
    reply: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice],
    }
    if usage:
        tokens_in = sum(len(m["content"].split()) for m in body["messages"])
        tokens_out = len(text.split())
        reply["usage"] = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        }
    return reply


def _token(word: str, body: dict[str, Any]) -> dict[str, Any]:
    top = [{"token": word, "logprob": -0.25}, {"token": "other", "logprob": -1.75}]
    return {"token": word, "logprob": -0.25, "top_logprobs": top[: body.get("top_logprobs") or 0]}
