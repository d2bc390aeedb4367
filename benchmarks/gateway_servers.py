"""What the gateway is measured beside: a stub upstream, and a pass-through that does the least.

    .venv/bin/python benchmarks/gateway_servers.py stub PORT
    .venv/bin/python benchmarks/gateway_servers.py bare PORT UPSTREAM DATABASE

The stub answers after 20 ms; a stream has 52 chunks. The bare one forwards the bytes, and writes a
line of a ledger into SQLite for each request, off its event loop.
"""

import asyncio
import json
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import uvloop
from aiohttp import web

DELAY_S = 0.020
CHUNKS = 52
USAGE = {"prompt_tokens": 12, "completion_tokens": 50, "total_tokens": 62}
TEXT = " ".join(["word"] * 50)


def main() -> None:
    kind, port, *rest = sys.argv[1:]
    app = stub() if kind == "stub" else bare(*rest)
    uvloop.install()
    web.run_app(app, host="127.0.0.1", port=int(port), access_log=None, print=lambda *_: None)


def stub() -> web.Application:
    """Return a provider of OpenAI's form whose replies are all alike."""
    head = {"id": "chatcmpl-1", "created": 0, "model": "stub"}
    message = {"role": "assistant", "content": TEXT}
    whole = head | {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": USAGE,
    }
    body = json.dumps(whole).encode()
    piece = head | {"object": "chat.completion.chunk"}
    deltas = [{"role": "assistant", "content": ""}, *({"content": "word "} for _ in range(50)), {}]
    assert len(deltas) == CHUNKS
    events = [
        b"data: " + json.dumps(piece | {"choices": [{"index": 0, "delta": d}]}).encode() + b"\n\n"
        for d in deltas
    ]
    used = b"data: " + json.dumps(piece | {"choices": [], "usage": USAGE}).encode() + b"\n\n"

    async def chat(request: web.Request) -> web.StreamResponse:
        asked = json.loads(await request.read())
        await asyncio.sleep(DELAY_S)
        if not asked.get("stream"):
            return web.Response(body=body, content_type="application/json")
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        for event in events:
            await reply.write(event)
        if (asked.get("stream_options") or {}).get("include_usage"):
            await reply.write(used)
        await reply.write(b"data: [DONE]\n\n")
        return reply

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    return app


def bare(upstream: str, database: str) -> web.Application:
    """Return a server that forwards and writes a ledger, and does nothing else."""
    writer = ThreadPoolExecutor(1)
    kept: dict[str, sqlite3.Connection] = {}

    def write(cost: int) -> None:
        if "ledger" not in kept:
            kept["ledger"] = sqlite3.connect(database, isolation_level=None)
            kept["ledger"].execute("PRAGMA journal_mode = WAL")
            kept["ledger"].execute("PRAGMA synchronous = NORMAL")
            kept["ledger"].execute("CREATE TABLE IF NOT EXISTS ledger (cost INTEGER)")
        kept["ledger"].execute("INSERT INTO ledger VALUES (?)", (cost,))

    async def session(app: web.Application) -> None:
        app["session"] = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        loop = asyncio.get_running_loop()
        headers = {"Content-Type": "application/json"}
        url = f"{upstream}/chat/completions"
        async with request.app["session"].post(url, data=body, headers=headers) as reply:
            if not json.loads(body).get("stream"):
                whole = await reply.read()
                used = json.loads(whole)["usage"]["total_tokens"]
                await loop.run_in_executor(writer, write, used)
                return web.Response(body=whole, content_type="application/json")
            sent = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await sent.prepare(request)
            async for part in reply.content.iter_any():
                await sent.write(part)
            await loop.run_in_executor(writer, write, 0)
            return sent

    app = web.Application()
    app.on_startup.append(session)
    app.router.add_post("/v1/chat/completions", chat)
    return app


if __name__ == "__main__":
    main()
