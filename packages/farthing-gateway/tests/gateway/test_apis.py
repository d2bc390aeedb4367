"""Completions, embeddings, responses and messages: passed through, or answered as a chat."""

import asyncio
import contextlib
import json
import sqlite3
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint
from gateway_running import Reply, Running, gateway, models, serve_section
from hypothesis import given, settings
from hypothesis import strategies as st
from native_upstream import EVENTS, SAID, WHOLE, NativeProvider
from policy_running import SYSTEM, config, letter, made_bundle

from farthing.errors import BadRequestError
from farthing.models.config import models_from
from farthing_gateway.apis import APIS
from farthing_gateway.apis.base import Api
from farthing_gateway.apis.messages import MESSAGES
from farthing_gateway.chat_request import read_request
from farthing_gateway.recording.export import as_pool
from farthing_gateway.recording.traffic import open_traffic
from farthing_gateway.storage.keys import open_keys
from farthing_gateway.storage.ledger.ledger import open_ledger
from farthing_gateway.storage.migrations import migrate
from farthing_gateway.upstream import open_upstreams
from farthing_gateway.upstream_base import Upstream

BY_NAME = {api.name: api for api in APIS}
ASKED: dict[str, dict[str, Any]] = {
    "completions": {"prompt": "The capital?", "max_tokens": 50},
    "embeddings": {"input": ["The capital?", "Of Portugal?"]},
    "responses": {"input": "The capital?", "max_output_tokens": 50},
    "messages": {"messages": [{"role": "user", "content": "The capital?"}], "max_tokens": 50},
}
SPEAKS = '\napis = ["completions", "embeddings", "responses", "messages"]'
NANO = {
    # small: a dollar a million read, two written; what goes into a cache a quarter more
    "completions": 5 * 1_000 + 7 * 2_000,
    "embeddings": 5 * 1_000,
    "responses": 20 * 1_000 + 9 * 2_000,
    "messages": 41 * 1_000 + 40 * 1_250 + 9 * 2_000,
}
STREAMED = [name for name in ASKED if name != "embeddings"]


def native(url: str) -> str:
    """Return the models of a provider that speaks all of them."""
    return models(url).replace("retries =", f"{SPEAKS.strip()}\nretries =")


def post(running: Running, name: str, body: dict[str, Any], **headers: str) -> Reply:
    sent = {"Content-Type": "application/json", **headers}
    address = f"{running.url}/v1{BY_NAME[name].path}"
    return running.send(urllib.request.Request(address, json.dumps(body).encode(), sent))


def ask(running: Running, name: str, model: str = "small", **more: Any) -> Reply:
    return post(running, name, {"model": model, **ASKED[name], **more})


def charged(folder: Path) -> int:
    async def total() -> int:
        ledger = await open_ledger(str(folder / "gateway.db"))
        (found,) = [b for b in await ledger.balances(["all"]) if b.period == "total"]
        await ledger.aclose()
        assert found.held.nano == 0
        return found.settled.nano

    return asyncio.run(total())


def data(reply: Reply) -> list[Any]:
    """Return the data of a stream's events; each is called as its data says."""
    blocks = reply.body.decode().strip().split("\n\n")
    found = []
    for block in blocks:
        lines = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if lines.get("data", "[DONE]") != "[DONE]":
            event = json.loads(lines["data"])
            assert lines.get("event", event.get("type")) == event.get("type")
            found.append(event)
    return found


@pytest.fixture
def provider() -> Iterator[NativeProvider]:
    with NativeProvider() as found:
        yield found


@pytest.mark.parametrize("name", ASKED)
def test_a_reply_passes_unchanged_with_what_it_cost(
    tmp_path: Path, provider: NativeProvider, name: str
) -> None:
    with gateway(tmp_path, serve_section() + native(provider.url)) as running:
        reply = ask(running, name, tomorrow={"a": 1}, farthing={"budget": 1})
    assert reply.status == 200, reply.body
    told = reply.json
    receipt = told.pop("farthing")
    assert told == WHOLE[name]
    assert (receipt["cost_nano"], receipt["cost_estimated"]) == (NANO[name], False)
    assert reply.headers["X-Farthing-Answered-By"] == "small"
    assert charged(tmp_path) == NANO[name]
    assert provider.paths == [f"/v1{BY_NAME[name].path}"]
    assert provider.requests == [{**ASKED[name], "model": "small-2026", "tomorrow": {"a": 1}}]


@pytest.mark.parametrize("name", STREAMED)
def test_a_stream_passes_event_by_event(
    tmp_path: Path, provider: NativeProvider, name: str
) -> None:
    with gateway(tmp_path, serve_section() + native(provider.url)) as running:
        reply = ask(running, name, stream=True)
    unasked = 1 if name == "completions" else 0  # the chunk of usage, which nobody asked for
    assert data(reply) == EVENTS[name][: len(EVENTS[name]) - unasked]
    ends = reply.body.endswith(b"data: [DONE]\n\n")
    assert ends == (name == "completions")
    (receipt,) = [x for x in reply.body.decode().split("\n\n") if x.startswith(": farthing ")]
    assert json.loads(receipt.removeprefix(": farthing "))["cost_nano"] == NANO[name]
    assert charged(tmp_path) == NANO[name]


@pytest.mark.parametrize("name", STREAMED)
def test_a_stream_that_breaks_is_charged_in_full_and_says_so(
    tmp_path: Path, provider: NativeProvider, name: str
) -> None:
    provider.broken = 2
    with gateway(tmp_path, serve_section() + native(provider.url)) as running:
        reply = ask(running, name, stream=True)
    *told, last = data(reply)
    assert told == EVENTS[name][:2]
    assert "no model answered" in last["error"]["message"]
    assert charged(tmp_path) > NANO[name]


def test_the_key_and_version_of_messages_are_anthropics(
    tmp_path: Path, provider: NativeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "sk-own")
    text = native(provider.url).replace("retries =", 'key_env = "A_KEY"\nretries =')
    with gateway(tmp_path, serve_section() + text) as running:
        body = {"model": "small", **ASKED["messages"]}
        beta = {"anthropic-version": "2099-01-01", "anthropic-beta": "new", "x-api-key": "mine"}
        assert post(running, "messages", body, **beta).status == 200
        assert ask(running, "messages").status == 200
    sent, plain = provider.headers
    assert (sent["x-api-key"], sent["anthropic-version"]) == ("sk-own", "2099-01-01")
    assert sent["anthropic-beta"] == "new"
    assert (plain["anthropic-version"], "anthropic-beta" in plain) == ("2023-06-01", False)


@pytest.mark.parametrize(
    ("name", "more", "param"),
    [
        ("responses", {"previous_response_id": "resp_0"}, "previous_response_id"),
        ("responses", {"conversation": "c"}, "conversation"),
        ("responses", {"background": True}, "background"),
        ("responses", {"tools": [{"type": "web_search"}]}, "tools"),
        ("responses", {"max_output_tokens": 0}, "max_output_tokens"),
        ("responses", {"input": []}, "input"),
        ("responses", {"input": [{"role": "judge", "content": "x"}]}, "input"),
        ("messages", {"tools": [{"type": "web_search_20250305", "name": "w"}]}, "tools"),
        ("messages", {"speed": "fast"}, "speed"),
        ("messages", {"max_tokens": None}, "max_tokens"),
        ("messages", {"messages": []}, "messages"),
        ("completions", {"n": 0}, "n"),
        ("completions", {"prompt": {}}, "prompt"),
        ("embeddings", {"input": []}, "input"),
        ("embeddings", {"model": None}, "model"),
    ],
)
def test_what_is_refused_names_its_field(
    tmp_path: Path, provider: NativeProvider, name: str, more: dict[str, Any], param: str
) -> None:
    with gateway(tmp_path, serve_section() + native(provider.url)) as running:
        reply = (
            ask(running, name, **more)
            if "model" not in more
            else post(running, name, ASKED[name] | more)
        )
    assert reply.status == 400, reply.body
    assert reply.json["error"]["param"] == param
    assert param in reply.json["error"]["message"]
    assert provider.requests == []
    assert charged(tmp_path) == 0


def test_messages_refuse_in_anthropics_form(tmp_path: Path, provider: NativeProvider) -> None:
    with gateway(tmp_path, serve_section(keys=True) + native(provider.url)) as running:
        stranger = ask(running, "messages")
    assert (stranger.status, stranger.json["type"]) == (401, "error")
    assert stranger.json["error"]["type"] == "authentication_error"
    limit = '\n[[budgets]]\nof = "all"\nusd = 0.00001\nper = "day"\n'
    with gateway(tmp_path, serve_section() + native(provider.url) + limit) as running:
        poor = ask(running, "messages")
    assert (poor.status, poor.json["error"]["type"]) == (402, "billing_error")
    assert poor.json["error"]["code"] == "budget_exceeded"


def test_a_key_may_come_as_anthropics_clients_send_it(
    tmp_path: Path, provider: NativeProvider
) -> None:
    async def made() -> str:
        await migrate(str(tmp_path / "gateway.db"))
        keys = await open_keys(str(tmp_path / "gateway.db"))
        secret = (await keys.make("mine"))[1]
        await keys.aclose()
        return secret

    key = asyncio.run(made())
    with gateway(tmp_path, serve_section(keys=True) + native(provider.url)) as running:
        body = {"model": "small", **ASKED["messages"]}
        assert post(running, "messages", body, **{"x-api-key": key}).status == 200
        assert post(running, "messages", body, **{"x-api-key": key + "x"}).status == 401


TRANSLATED = {
    "completions": lambda said: said["choices"][0]["text"],
    "responses": lambda said: said["output"][0]["content"][0]["text"],
    "messages": lambda said: said["content"][0]["text"],
}
USED = {
    "completions": ("prompt_tokens", "completion_tokens"),
    "responses": ("input_tokens", "output_tokens"),
    "messages": ("input_tokens", "output_tokens"),
}


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_speaks_chats_alone_is_asked_as_a_chat(
    tmp_path: Path, name: str, *, stream: bool
) -> None:
    with (
        Endpoint(lambda _: SAID) as stub,
        gateway(
            tmp_path,
            serve_section() + models(stub.url).replace("retries =", "apis = []\nretries ="),
        ) as running,
    ):
        reply = ask(running, name, stream=stream, temperature=0.5)
        (asked,) = stub.requests
    assert asked["messages"] == [{"role": "user", "content": "The capital?"}]
    assert (asked["temperature"], asked["max_tokens"]) == (0.5, 50)
    assert reply.status == 200, reply.body
    if stream:
        texts, used = _streamed(name, data(reply))
        assert texts == SAID
    else:
        assert TRANSLATED[name](reply.json) == SAID
        used = reply.json["usage"]
        assert reply.json["farthing"]["cost_nano"] == charged(tmp_path)
    if used is not None:
        read, written = (used[key] for key in USED[name])
        assert read * 1_000 + written * 2_000 == charged(tmp_path) > 0


def _streamed(name: str, events: list[Any]) -> tuple[str, Any]:
    """Return what a translated stream says and used; its events come in the order of the vendor."""
    if name == "completions":
        return "".join(e["choices"][0]["text"] for e in events if e["choices"]), None
    if name == "messages":
        kinds = [event["type"] for event in events]
        assert kinds[:2] == ["message_start", "content_block_start"]
        assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
        texts = [e["delta"]["text"] for e in events if e["type"] == "content_block_delta"]
        assert events[-2]["delta"]["stop_reason"] == "end_turn"
        return "".join(texts), events[-2]["usage"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    texts = [e["delta"] for e in events if e["type"] == "response.output_text.delta"]
    last = events[-1]
    assert (events[0]["type"], last["type"]) == ("response.created", "response.completed")
    assert last["response"]["output"][0]["content"][0]["text"] == "".join(texts)
    return "".join(texts), last["response"]["usage"]


@pytest.mark.parametrize(
    ("name", "more", "param"),
    [
        ("responses", {"tools": [{"type": "function", "name": "f"}]}, "tools"),
        ("responses", {"input": [{"type": "function_call", "role": "user"}]}, "input"),
        ("messages", {"tools": [{"name": "f", "input_schema": {}}]}, "tools"),
        ("messages", {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages"),
        ("completions", {"echo": True}, "echo"),
        ("completions", {"prompt": ["a", "b"]}, "prompt"),
        ("embeddings", {}, "input"),
    ],
)
def test_what_a_chat_cannot_say_is_refused_by_a_model_of_chats(
    tmp_path: Path, name: str, more: dict[str, Any], param: str
) -> None:
    with (
        Endpoint(lambda _: SAID) as stub,
        gateway(
            tmp_path,
            serve_section() + models(stub.url).replace("retries =", "apis = []\nretries ="),
        ) as running,
    ):
        reply = ask(running, name, **more)
        assert stub.requests == []
    assert (reply.status, reply.json["error"]["param"]) == (400, param), reply.body
    assert "chat completions" in reply.json["error"]["message"]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    made_bundle(folder)
    return folder / "bundle"


AS_TASK: dict[str, dict[str, Any]] = {
    "responses": {"instructions": SYSTEM, "input": "number 7"},
    "messages": {
        "system": [{"type": "text", "text": SYSTEM}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "number 7"}]}],
        "max_tokens": 50,
    },
}


@pytest.mark.parametrize("name", AS_TASK)
@pytest.mark.parametrize("model", ["farthing/letters", "large"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_policy_decides_about_every_form_of_its_task(
    tmp_path: Path, bundle: Path, name: str, model: str, *, stream: bool
) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle), record=True) as running:
        reply = post(running, name, AS_TASK[name] | {"model": model, "stream": stream})
        assert [one["model"] for one in stub.requests] == ["small-2026"]
    assert reply.status == 200, reply.body
    assert reply.headers["X-Farthing-Promise"] == "agreement"
    if stream:
        said, used = _streamed(name, data(reply))
        assert used["output_tokens"] > 0
    else:
        said = TRANSLATED[name](reply.json)
        assert reply.json["farthing"]["promise"] == "agreement"
    assert said == "The answer is B."
    with sqlite3.connect(tmp_path / "gateway.db") as connection:
        ((trace,),) = connection.execute("SELECT trace FROM traffic_requests").fetchall()
    connection.close()
    assert "number 7" in str(trace)


def test_what_is_no_task_goes_to_the_strongest_in_its_own_form(
    tmp_path: Path, bundle: Path, provider: NativeProvider
) -> None:
    with Endpoint(letter) as stub:
        text = config(stub, bundle).replace(
            f'model = "large-2026"\nurl = "{stub.url}"',
            f'model = "large-2026"\nurl = "{provider.url}"{SPEAKS}',
        )
        with gateway(tmp_path, text) as running:
            tools = [{"type": "function", "name": "f", "parameters": {}}]
            reply = ask(running, "responses", "farthing/letters", tools=tools)
    assert reply.status == 200, reply.body
    assert reply.headers["X-Farthing-Promise"] == "none"
    assert "outside the task" in reply.json["farthing"]["says"]
    assert provider.requests[0]["tools"] == tools


def test_embeddings_are_no_chat_of_a_policy(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle)) as running:
        reply = ask(running, "embeddings", "farthing/letters")
        assert (reply.status, reply.json["error"]["param"]) == (400, "model")
        assert stub.requests == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_is_sent_again_is_answered_once(
    tmp_path: Path, provider: NativeProvider, *, stream: bool
) -> None:
    with gateway(tmp_path, serve_section() + native(provider.url)) as running:
        body = {"model": "small", **ASKED["messages"], "stream": stream}
        first, again = (
            post(running, "messages", body, **{"Idempotency-Key": "one"}) for _ in range(2)
        )
    assert first.body == again.body
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(provider.requests) == 1


@pytest.mark.parametrize("name", ASKED)
def test_what_was_asked_and_said_is_recorded(
    tmp_path: Path, provider: NativeProvider, name: str
) -> None:
    with gateway(tmp_path, serve_section() + native(provider.url), record=True) as running:
        ask(running, name)
    with sqlite3.connect(tmp_path / "gateway.db") as connection:
        ((trace,),) = connection.execute("SELECT trace FROM traffic_requests").fetchall()
    connection.close()
    found = json.loads(trace)
    assert "The capital?" in found["question"]
    assert found["calls"][0].get("text") == (None if name == "embeddings" else SAID)

    async def exported() -> int:
        traffic = await open_traffic(str(tmp_path / "gateway.db"), None, keep_prompts=True)
        pool = as_pool([one async for one in traffic.read()])
        await traffic.aclose()
        return len(pool.traces)

    assert asyncio.run(exported()) == (0 if name == "embeddings" else 1)


@pytest.mark.parametrize("api", APIS)
def test_bytes_that_are_no_request_are_refused(api: Api) -> None:
    for body in (b"", b"[]", b'{"model": 4}', b'{"model": "m"', b'{"prompt": "x", "input": "x"}'):
        with pytest.raises(BadRequestError):
            read_request(body, {}, api)


def test_what_goes_into_a_cache_is_counted_by_itself() -> None:
    read = MESSAGES.read(json.dumps(WHOLE["messages"]).encode()).usage
    assert read is not None
    assert (read.input_tokens, read.cached_tokens, read.cache_writes) == (81, 30, 40)


ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4) | st.floats(0, 2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "text", "source", "data", "effort", "a"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
FIELDS = (
    *("prompt", "input", "messages", "system", "instructions", "max_tokens", "stream", "tools"),
    *("stream_options", "reasoning", "thinking", "text", "metadata", "n", "best_of", "stop"),
    *("max_output_tokens", "temperature", "service_tier", "stop_sequences", "farthing"),
)


MORE = given(more=st.dictionaries(st.sampled_from(FIELDS), ANY, min_size=1, max_size=3))


@pytest.mark.parametrize("name", ASKED)
@settings(max_examples=25, deadline=None)
@MORE
def test_any_field_is_read_or_refused_and_what_is_read_is_bounded(
    name: str, more: dict[str, Any]
) -> None:
    read_or_refused(name, more)


@pytest.mark.slow
@pytest.mark.parametrize("name", ASKED)
@settings(max_examples=200, deadline=None)
@MORE
def test_any_of_many_fields_is_read_or_refused(name: str, more: dict[str, Any]) -> None:
    read_or_refused(name, more)


def read_or_refused(name: str, more: dict[str, Any]) -> None:
    api = BY_NAME[name]
    body = json.dumps({"model": "small", **ASKED[name], **more}).encode()
    with contextlib.suppress(BadRequestError):
        request = read_request(body, {}, api)
        for upstream in (WITH_APIS, CHATS_ALONE):
            with contextlib.suppress(BadRequestError):
                bound = upstream.prepare(request, None).bound
                assert bound.nano is not None
                assert bound.nano > 0


def _upstream(apis: list[str]) -> Upstream:
    section = {"provider": "openai-compatible", "model": "m", "url": "http://127.0.0.1:9/v1"}
    tables = {
        "models": {"one": section | {"apis": apis, "context_window": 1_000}},
        "prices": {"m": {"input_per_million": 1, "output_per_million": 2}},
    }
    opened = models_from(tables, "f.toml")
    return open_upstreams(opened, opened.admissions())["one"]


WITH_APIS = _upstream(["completions", "embeddings", "responses", "messages"])
CHATS_ALONE = _upstream([])


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("choices", [["x"], [{"index": 0, "message": 4}], [{"index": "a"}]])
def test_a_paid_reply_that_is_no_chat_is_said_to_be_none(
    tmp_path: Path, name: str, choices: list[Any]
) -> None:
    odd = {"choices": choices, "usage": {"prompt_tokens": 5, "completion_tokens": 7}}
    text = models("{url}").replace("retries =", "apis = []\nretries =")
    with (
        Endpoint(reply=lambda _: web.json_response(odd)) as stub,
        gateway(tmp_path, serve_section() + text.replace("{url}", stub.url)) as running,
    ):
        reply = ask(running, name)
    assert (reply.status, reply.json["error"]["code"]) == (502, "upstream_malformed"), reply.body
    assert charged(tmp_path) == 5 * 1_000 + 7 * 2_000


@pytest.mark.parametrize("name", STREAMED)
def test_a_choice_without_a_message_says_nothing(tmp_path: Path, name: str) -> None:
    odd = {"choices": [{"index": 0, "message": None, "finish_reason": "length"}]}
    text = models("{url}").replace("retries =", "apis = []\nretries =")
    with (
        Endpoint(reply=lambda _: web.json_response(odd)) as stub,
        gateway(tmp_path, serve_section() + text.replace("{url}", stub.url)) as running,
    ):
        reply = ask(running, name)
    assert reply.status == 200, reply.body
