"""A provider that speaks completions, embeddings, responses and messages, each as it is documented.

Its replies are those of the vendors' references, shortened; it keeps what it was sent.
"""

import asyncio
import json
import threading
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

SAID = "Lisbon it is."
COMPLETION = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": 1,
    "model": "m-2026",
    "choices": [{"text": SAID, "index": 0, "logprobs": None, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
}
EMBEDDINGS = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.25, -0.5]}],
    "model": "m-2026",
    "usage": {"prompt_tokens": 5, "total_tokens": 5},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m-2026",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": SAID, "annotations": []}],
        },
    ],
    "usage": {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 8},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 29,
    },
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
_USED = {
    "input_tokens": 11,
    "cache_creation_input_tokens": 40,
    "cache_read_input_tokens": 30,
    "output_tokens": 9,
}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m-2026",
    "content": [{"type": "text", "text": SAID}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": _USED,
}
WHOLE: dict[str, Any] = {
    "completions": COMPLETION,
    "embeddings": EMBEDDINGS,
    "responses": RESPONSE,
    "messages": MESSAGE,
}


def _completion_events() -> list[dict[str, Any]]:
    head = {key: COMPLETION[key] for key in ("id", "object", "created", "model")}
    pieces = [
        head | {"choices": [{"text": text, "index": 0, "logprobs": None, "finish_reason": end}]}
        for text, end in (("Lisbon ", None), ("it is.", None), ("", "stop"))
    ]
    return [*pieces, head | {"choices": [], "usage": COMPLETION["usage"]}]


def _response_events() -> list[dict[str, Any]]:
    at = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    begun = RESPONSE | {"status": "in_progress", "output": [], "usage": None}
    part = {"type": "output_text", "text": "", "annotations": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 1, "item": _item("in_progress", [])},
        {"type": "response.content_part.added", **at, "part": part},
        {"type": "response.output_text.delta", **at, "delta": "Lisbon ", "logprobs": []},
        {"type": "response.output_text.delta", **at, "delta": "it is.", "logprobs": []},
        {"type": "response.output_text.done", **at, "text": SAID, "logprobs": []},
        {"type": "response.completed", "response": RESPONSE},
    ]
    return [event | {"sequence_number": at} for at, event in enumerate(events)]


def _item(status: str, content: list[Any]) -> dict[str, Any]:
    own = {"type": "message", "id": "msg_1", "role": "assistant"}
    return own | {"status": status, "content": content}


def _message_events() -> list[dict[str, Any]]:
    begun = MESSAGE | {"content": [], "stop_reason": None}
    begun["usage"] = {**_USED, "output_tokens": 1}
    delta = {"type": "text_delta"}
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": delta | {"text": "Lisbon "}},
        {"type": "content_block_delta", "index": 0, "delta": delta | {"text": "it is."}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]


EVENTS = {
    "completions": _completion_events(),
    "responses": _response_events(),
    "messages": _message_events(),
}


@dataclass
class NativeProvider:
    """The server and what it was sent."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    broken: int | None = None
    """Streams end after so many events, in mid-air; None: they are whole."""
    url: str = ""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(60), "the test server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        app = web.Application()
        for name in WHOLE:
            app.router.add_post(f"/v1/{name}", self._answer)
        runner = web.AppRunner(app)
        self._loop.run_until_complete(runner.setup())
        site = web.TCPSite(runner, "127.0.0.1", 0)
        self._loop.run_until_complete(site.start())
        port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/v1"
        started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        name = request.path.removeprefix("/v1/")
        asked = await request.json()
        self.requests.append(asked)
        self.headers.append({key.lower(): value for key, value in request.headers.items()})
        self.paths.append(request.path)
        if not asked.get("stream"):
            return web.json_response(WHOLE[name])
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        for event in EVENTS[name][: self.broken]:
            kind = f"event: {event['type']}\n" if "type" in event else ""
            await reply.write(f"{kind}data: {json.dumps(event)}\n\n".encode())
        if name == "completions" and self.broken is None:
            await reply.write(b"data: [DONE]\n\n")
        return reply
