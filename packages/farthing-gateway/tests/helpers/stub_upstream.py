"""An upstream that does what a test says, over a real socket: byte by byte where it must."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
USAGE = {
    "prompt_tokens": 1_000,
    "completion_tokens": 10,
    "total_tokens": 1_010,
    "prompt_tokens_details": {"cached_tokens": 700},
}


@dataclass
class Stub:
    """What was asked, and what is answered next."""

    handle: Handler
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)
    """Ports that clients connected from: one for each connection."""
    under_way: int = 0
    left: int = 0
    """Calls whose client went away."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Note a request and answer it."""
        self.bodies.append(await request.json())
        self.headers.append(dict(request.headers))
        assert request.transport is not None
        self.ports.add(request.transport.get_extra_info("peername")[1])
        self.under_way += 1
        try:
            return await self.handle(request)
        except (asyncio.CancelledError, ConnectionError):
            self.left += 1
            raise
        finally:
            self.under_way -= 1


@asynccontextmanager
async def serving(handle: Handler) -> AsyncIterator[Stub]:
    """Serve on a local socket, in this event loop."""
    stub = Stub(handle)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", stub.answer)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    stub.url = f"http://{host}:{port}/v1"
    try:
        yield stub
    finally:
        await runner.cleanup()


def whole(**more: Any) -> bytes:
    """Return a reply as a provider writes it, odd spaces included."""
    said = {"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c1", "model": "m-2026", "choices": [said], "usage": USAGE, "new": 1} | more,
        indent=1,
    ).encode()


def saying(body: bytes, status: int = 200, **headers: str) -> Handler:
    """Answer every request with this."""

    async def handle(_: web.Request) -> web.StreamResponse:
        kind = "application/json"
        return web.Response(body=body, status=status, content_type=kind, headers=headers)

    return handle


def chunk(text: str, **more: Any) -> bytes:
    """Return one chunk of a stream."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return json.dumps({"id": "c1", "model": "m-2026", "choices": [choice]} | more).encode()


def usage_chunk(**more: Any) -> bytes:
    """Return the chunk that ends a stream with what was used."""
    return json.dumps(
        {"id": "c1", "model": "m-2026", "choices": [], "usage": USAGE | more}
    ).encode()


def events(*data: bytes, done: bool = True) -> bytes:
    """Return server-sent events."""
    return b"".join(b"data: " + one + b"\n\n" for one in (*data, *([b"[DONE]"] if done else [])))


def streaming(
    *parts: bytes, then: str = "end", kind: str = "text/event-stream", first_s: float = 0.0
) -> Handler:
    """Send these bytes part by part, then end, hang, or cut the connection."""

    async def handle(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(first_s)
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        for part in parts:
            await response.write(part)
            await asyncio.sleep(0.005)
        if then == "hang":
            await asyncio.sleep(30)
        if then == "cut":
            assert request.transport is not None
            request.transport.abort()
        return response

    return handle
