"""What clients and a gateway say to each other over a real socket, as text that stays the same."""

import json
import re
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from chat_server import Endpoint
from gateway_running import Reply, Running, gateway, serve_section
from kept import command
from native_upstream import NativeProvider

SYSTEM = "Say A or B."
MODEL = """
[models.{name}]
provider = "openai-compatible"
model = "{name}-2026"
url = "{url}"
retries = {{ tries = 1 }}
apis = {apis}
"""
REST = """
[prices]
"small-2026" = {{ input_per_million = 1, output_per_million = 2 }}
"large-2026" = {{ input_per_million = 10, output_per_million = 20 }}
"native-2026" = {{ input_per_million = 1, output_per_million = 2 }}
"busy-2026" = {{ input_per_million = 1, output_per_million = 2 }}
"gone-2026" = {{ input_per_million = 1, output_per_million = 2 }}

[policies.letters]
pool = ["small", "large"]
system = "{system}"
task = "multiple_choice"
max_tokens = 50
bundle = {bundle}
answers_for = ["large"]

[[budgets]]
of = "key:poor"
usd = 0.00001
per = "day"

[[budgets]]
of = "key:idle"
calls = 0
per = "day"
"""
CHAT = "/v1/chat/completions"
SAY = {"messages": [{"role": "user", "content": "number 7"}], "max_tokens": 50}
ASK = {"messages": [{"role": "system", "content": SYSTEM}, *SAY["messages"]]}  # type: ignore[misc]
TALK = {"messages": [{"role": "user", "content": "The capital?"}], "max_tokens": 50}
EXCHANGES: dict[str, tuple[str, str, Any]] = {
    "models": ("mine", "/v1/models", None),
    "health": ("", "/health", None),
    "ready": ("mine", "/ready", None),
    "chat": ("mine", CHAT, {"model": "small", **SAY}),
    "chat streamed": ("mine", CHAT, {"model": "small", **SAY, "stream": True}),
    "chat streamed with usage": (
        "mine",
        CHAT,
        {"model": "small", **SAY, "stream": True, "stream_options": {"include_usage": True}},
    ),
    "completions": ("mine", "/v1/completions", {"model": "native", "prompt": "The capital?"}),
    "completions streamed": (
        "mine",
        "/v1/completions",
        {"model": "native", "prompt": "The capital?", "stream": True},
    ),
    "completions as a chat": ("mine", "/v1/completions", {"model": "small", "prompt": "number 7"}),
    "responses": ("mine", "/v1/responses", {"model": "native", "input": "The capital?"}),
    "responses streamed": (
        "mine",
        "/v1/responses",
        {"model": "native", "input": "The capital?", "stream": True},
    ),
    "responses as a chat": ("mine", "/v1/responses", {"model": "small", "input": "number 7"}),
    "responses as a chat streamed": (
        "mine",
        "/v1/responses",
        {"model": "small", "input": "number 7", "stream": True},
    ),
    "messages": ("mine", "/v1/messages", {"model": "native", **TALK}),
    "messages streamed": ("mine", "/v1/messages", {"model": "native", **TALK, "stream": True}),
    "messages as a chat": ("mine", "/v1/messages", {"model": "small", **SAY}),
    "messages as a chat streamed": (
        "mine",
        "/v1/messages",
        {"model": "small", **SAY, "stream": True},
    ),
    "embeddings": ("mine", "/v1/embeddings", {"model": "native", "input": ["The capital?"]}),
    "policy": ("mine", CHAT, {"model": "farthing/letters", **ASK}),
    "policy streamed": ("mine", CHAT, {"model": "farthing/letters", **ASK, "stream": True}),
    "policy for a model": ("mine", CHAT, {"model": "large", **ASK}),
    "policy outside its task": ("mine", CHAT, {"model": "farthing/letters", **SAY}),
    "policy that must be surer": (
        "mine",
        CHAT,
        {"model": "farthing/letters", **ASK, "farthing": {"reliability": 0.99}},
    ),
    "policy of a mode that is not": (
        "mine",
        CHAT,
        {"model": "farthing/letters", **ASK, "farthing": {"mode": "dear"}},
    ),
    "400 no JSON": ("mine", CHAT, b"{"),
    "400 of a field": ("mine", CHAT, {"model": "small", **SAY, "n": 0}),
    "400 of messages": (
        "mine",
        "/v1/messages",
        {"model": "native", "messages": [], "max_tokens": 1},
    ),
    "400 of farthing": ("mine", CHAT, {"model": "small", **SAY, "farthing": {"tomorrow": 1}}),
    "401": ("", CHAT, {"model": "small", **SAY}),
    "401 of messages": ("wrong", "/v1/messages", {"model": "native", **TALK}),
    "402": ("poor", CHAT, {"model": "large", **SAY}),
    "402 of messages": ("poor", "/v1/messages", {"model": "native", **TALK}),
    "402 of a request": ("mine", CHAT, {"model": "large", **SAY, "farthing": {"budget": 1e-9}}),
    "403": ("narrow", CHAT, {"model": "large", **SAY}),
    "404 model": ("mine", CHAT, {"model": "gpt-9", **SAY}),
    "404 address": ("mine", "/v1/nothing", {}),
    "405": ("mine", CHAT, None),
    "429": ("mine", CHAT, {"model": "busy", **SAY}),
    "429 of calls": ("idle", CHAT, {"model": "small", **SAY}),
    "502": ("mine", CHAT, {"model": "gone", **SAY}),
    "502 streamed": ("mine", CHAT, {"model": "gone", **SAY, "stream": True}),
}
"""Name to whose key asks, where, and what; None: a GET."""
OURS = re.compile(r"x-farthing-|content-type$|retry-after$|www-authenticate$|allow$", re.IGNORECASE)
VARIES = (
    (re.compile(r"http://127\.0\.0\.1:\d+"), "http://UPSTREAM"),
    (re.compile(r'("(?:created|created_at|completed_at)": ?)\d+'), r"\g<1>0"),
    (re.compile(r"[0-9a-f]{32}"), "ID"),
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)?"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"), "TIME"),
    (re.compile(r'("version": ?)"[^"]*"'), r'\g<1>"VERSION"'),
    (re.compile(r'("(?:latency_s|seconds|uptime_s)": ?)[\d.e-]+'), r"\g<1>0"),
)
"""What differs from run to run, and what stands in its place."""


def letter(messages: list[dict[str, str]]) -> str:
    """Answer as both models do: B where the question has an odd number."""
    number = int("".join(c for c in messages[-1]["content"] if c.isdecimal()) or 0)
    return f"The answer is {'B' if number % 2 else 'A'}."


def transcripts(folder: Path, bundle: Path) -> dict[str, Any]:
    """Return what each request is answered by a gateway with a policy of this bundle."""
    return dict(_asked(folder, bundle))


def _asked(folder: Path, bundle: Path) -> Iterator[tuple[str, Any]]:
    database = str(folder / "gateway.db")
    keys = {"": "", "wrong": "fk-wrong"}
    for name in ("mine", "poor", "idle", "narrow"):
        only = ("--model", "small") if name == "narrow" else ()
        _, said = command("keys", "make", name, "--database", database, *only, "--json")
        keys[name] = json.loads(said)["key"]
    with ExitStack() as open_:
        chats = open_.enter_context(Endpoint(letter))
        busy = open_.enter_context(Endpoint(letter, faults={"429 seconds": 1.0}, retry_after_s=7))
        native = open_.enter_context(NativeProvider())
        spoken = json.dumps(["completions", "embeddings", "responses", "messages"])
        urls = {"small": chats.url, "large": chats.url, "native": native.url, "busy": busy.url}
        models = "".join(
            MODEL.format(name=name, url=url, apis=spoken if name == "native" else "[]")
            for name, url in (urls | {"gone": "http://127.0.0.1:9/v1"}).items()
        )
        text = serve_section(keys=True) + models
        text += REST.format(system=SYSTEM, bundle=json.dumps(str(bundle)))
        running = open_.enter_context(gateway(folder, text))
        for name, (who, path, body) in EXCHANGES.items():
            yield name, _exchange(running, keys[who], path, body, who)


def _exchange(running: Running, key: str, path: str, body: Any, who: str) -> dict[str, Any]:
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} | (
        {"Authorization": f"Bearer {key}"} if key else {}
    )
    reply = running.send(urllib.request.Request(running.url + path, data, headers))
    asked = body.decode() if isinstance(body, bytes) else body
    return {"request": {"key": who, "path": path, "body": asked}, "reply": _shown(reply)}


def _shown(reply: Reply) -> dict[str, Any]:
    text = reply.body.decode()
    headers = {k.lower(): v for k, v in reply.headers.items() if OURS.match(k)}
    for pattern, stands in VARIES:
        text = pattern.sub(stands, text)
        headers = {name: pattern.sub(stands, value) for name, value in headers.items()}
    headers |= {name: "0" for name in headers if name == "x-farthing-latency"}
    try:
        body = json.loads(text)
    except ValueError:
        body = text.split("\n")
    return {"status": reply.status, "headers": dict(sorted(headers.items())), "body": body}
