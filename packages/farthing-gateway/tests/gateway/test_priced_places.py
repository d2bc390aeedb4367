"""What in a request has a price, by its place: passed, left out, priced or refused."""

import json
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint
from gateway_running import Reply, Running, gateway, models, serve_section
from hypothesis import given, settings
from hypothesis import strategies as st
from native_upstream import EVENTS, RESPONSE, WHOLE, NativeProvider
from serving import total, until

from farthing_gateway.priced_places import places_in

WINDOW = 200_000
SECTION = f'apis = ["responses", "messages"]\ncontext_window = {WINDOW}\nmax_output = 1_000\n'
FORMS: dict[str, dict[str, Any]] = {
    "chat/completions": {"messages": [{"role": "user", "content": "Go on."}], "max_tokens": 50},
    "responses": {"input": "Go on.", "max_output_tokens": 50},
    "messages": {"messages": [{"role": "user", "content": "Go on."}], "max_tokens": 50},
}
URL = "https://a.example/x"
FILE = {"type": "file", "file": {"file_id": "f"}}


@pytest.fixture
def provider() -> Iterator[NativeProvider]:
    with NativeProvider() as found:
        yield found


def text(url: str, *, section: str = SECTION, budget: float | None = None) -> str:
    """Return a configuration whose models have the lines of a section."""
    said = serve_section() + models(url).replace("retries =", f"{section}retries =")
    if budget is None:
        return said
    return said + f'\n[[budgets]]\nof = "model:small"\nper = "total"\nusd = {budget}\n'


def post(running: Running, form: str, **more: Any) -> Reply:
    """Ask the small model, a dollar a million tokens read and two written."""
    body = json.dumps({"model": "small", **FORMS[form], **more}).encode()
    sent = {"Content-Type": "application/json"}
    return running.send(urllib.request.Request(f"{running.url}/v1/{form}", body, sent))


def refusal(reply: Reply) -> str:
    assert reply.status == 400, reply.body
    return str(reply.json["error"]["message"])


def settled(folder: Path) -> int:
    database = str(folder / "gateway.db")
    until(lambda: not total(database).held.calls)
    return total(database).settled.nano


CLIENTS = [
    ("responses", {"type": "function", "name": "f", "parameters": {}}),
    ("responses", {"type": "custom", "name": "f"}),
    ("responses", {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]}),
    ("responses", {"type": "local_shell"}),
    ("responses", {"type": "shell", "environment": {"type": "local"}}),
    ("responses", {"type": "apply_patch"}),
    ("responses", {"type": "computer"}),
    ("responses", {"type": "tool_search", "execution": "client"}),
    ("messages", {"name": "f", "input_schema": {}}),
    ("responses", {"functionDeclarations": [{"name": "f"}]}),
    ("messages", {"type": "custom", "name": "f", "input_schema": {}}),
    ("messages", {"type": "browser_toolset_20260801"}),
    ("messages", {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}),
    ("messages", {"type": "bash_20250124", "name": "bash"}),
    ("messages", {"type": "memory_20250818", "name": "memory"}),
    ("messages", {"type": "computer_20251124", "name": "computer"}),
]


def test_tools_that_clients_run_cost_tokens_alone(tmp_path: Path, provider: NativeProvider) -> None:
    with gateway(tmp_path, text(provider.url)) as running:
        for form, tool in CLIENTS:
            reply = post(running, form, tools=[tool])
            assert reply.status == 200, (tool, reply.body)
            assert "X-Farthing-Dropped" not in reply.headers
            assert provider.requests[-1]["tools"] == [tool]


MEMBER: list[tuple[str, dict[str, Any], str]] = [
    ("chat/completions", {"plugins": [{"id": "web"}]}, "plugins[0]: web"),
    (
        "chat/completions",
        {"tools": [{"type": "openrouter:web_search"}]},
        "tools[0]: openrouter:web",
    ),
    ("chat/completions", {"tools": [{"type": "browser_search"}]}, "tools[0]: browser_search"),
    ("chat/completions", {"tools": [{"type": "builtin_function"}]}, "tools[0]: builtin_function"),
    ("chat/completions", {"tools": [{"google_search": {}}]}, "tools[0]: google_search"),
    ("chat/completions", {"tools": ["web_search"]}, "tools[0]: web_search"),
    ("chat/completions", {"search_parameters": {"mode": "on"}}, "search_parameters: on"),
    ("chat/completions", {"search_parameters": {}}, "search_parameters"),
    ("chat/completions", {"enable_search": True}, "enable_search"),
    ("chat/completions", {"web_search_options": {}}, "web_search_options"),
    ("chat/completions", {"web_search": {"enable": True}}, "web_search"),
    ("chat/completions", {"compound_custom": {"tools": {}}}, "compound_custom"),
    ("chat/completions", {"tools": {"type": "web_search"}}, "tools: web_search"),
    (
        "chat/completions",
        {"tools": [{"function_declarations": [], "google_search": {}}]},
        "tools[0]: function_declarations",
    ),
    ("chat/completions", {"extra_body": {"enable_search": True}}, "extra_body.enable_search"),
    ("responses", {"tools": [{"type": "function"}, {"type": "mcp"}]}, "tools[1]: mcp"),
    ("responses", {"tools": [{"type": "shell"}]}, "tools[0]: shell"),
    ("responses", {"tools": [{"type": "tool_search"}]}, "tools[0]: tool_search"),
    ("responses", {"tools": [{"type": "tool_of_2027"}]}, "tools[0]: tool_of_2027"),
    (
        "responses",
        {"tools": [{"type": "namespace", "tools": [{"type": "web_search"}]}]},
        "tools[0].tools[0]: web_search",
    ),
    ("responses", {"context_management": [{"type": "compaction"}]}, "context_management[0]"),
    ("messages", {"tools": [{"type": "web_search_20250305"}]}, "tools[0]: web_search_20250305"),
    ("messages", {"tools": [{"type": "code_execution_20250825"}]}, "tools[0]: code_execution"),
    ("messages", {"mcp_servers": [{"type": "url", "url": URL}]}, "mcp_servers[0]: url"),
    ("messages", {"container": {"skills": []}}, "container"),
    (
        "messages",
        {"context_management": {"edits": [{"type": "compact_2026"}]}},
        "edits[0]: compact",
    ),
]
RATES: list[tuple[str, dict[str, Any], str]] = [
    ("chat/completions", {"service_tier": "priority"}, "service_tier: priority"),
    ("chat/completions", {"modalities": ["text", "audio"]}, "modalities[1]: audio"),
    ("chat/completions", {"models": ["other"]}, "models[0]: other"),
    ("responses", {"service_tier": "priority"}, "service_tier: priority"),
    ("messages", {"speed": "fast"}, "speed: fast"),
    ("messages", {"inference_geo": "eu"}, "inference_geo: eu"),
    ("chat/completions", {"serviceTier": "priority"}, "serviceTier: priority"),
    ("messages", {"cache_control": {"type": "ephemeral", "ttl": "24h"}}, "cache_control.ttl: 24h"),
]


def test_what_has_a_price_of_its_own_is_refused_by_its_place(
    tmp_path: Path, provider: NativeProvider
) -> None:
    with gateway(tmp_path, text(provider.url)) as running:
        for form, more, place in MEMBER + RATES:
            reply = post(running, form, **more)
            assert place in refusal(reply), (more, reply.body)
            assert reply.json["error"]["param"] == next(iter(more))
    assert (provider.requests, settled(tmp_path)) == ([], 0)


def test_values_that_cost_tokens_alone_pass(tmp_path: Path, provider: NativeProvider) -> None:
    clears = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    passing: list[tuple[str, dict[str, Any]]] = [
        ("responses", {"plugins": [{"id": "web", "enabled": False}, {"id": "response-healing"}]}),
        ("responses", {"search_parameters": {"mode": "off"}, "enable_search": False}),
        ("responses", {"service_tier": "flex", "modalities": ["text"], "tools": []}),
        ("messages", {"service_tier": "standard_only", "speed": "standard", "mcp_servers": []}),
        ("messages", {"context_management": clears, "container": None}),
    ]
    with gateway(tmp_path, text(provider.url)) as running:
        for form, more in passing:
            assert post(running, form, **more).status == 200, more
            assert provider.requests[-1].items() >= more.items()


def test_what_the_provider_runs_is_left_out_where_the_owner_says_so(
    tmp_path: Path, provider: NativeProvider
) -> None:
    section = SECTION + 'provider_tools = "drop"\n'
    own = {"type": "function", "name": "f"}
    web = {"type": "web_search"}
    with gateway(tmp_path, text(provider.url, section=section)) as running:
        for form, more, place in MEMBER:
            if form == "chat/completions":
                continue
            reply = post(running, form, **more)
            assert reply.status == 200, (more, reply.body)
            assert place in reply.headers["X-Farthing-Dropped"]
            assert reply.json["farthing"]["dropped"] == [reply.headers["X-Farthing-Dropped"]]
        reply = post(running, "responses", tools=[web, own], tool_choice=web, stream=True)
        assert reply.headers["X-Farthing-Dropped"] == "tools[0]: web_search"
        last = provider.requests[-1]
        assert (last["tools"], "tool_choice" in last) == ([own], False)
        post(running, "responses", tools=[web, own], tool_choice={"type": "function", "name": "f"})
        assert "tool_choice" in provider.requests[-1]
        post(running, "responses", tools=[web], tool_choice="required")
        assert not {"tools", "tool_choice"} & provider.requests[-1].keys()
        for form, more, place in RATES[3:]:  # what changes the price of tokens stays refused
            assert place in refusal(post(running, form, **more))


def test_a_search_that_may_not_reach_the_web_is_left_out_and_named(
    tmp_path: Path, provider: NativeProvider
) -> None:
    web = {"type": "web_search", "external_web_access": False}
    own = {"type": "function", "name": "f"}
    with gateway(tmp_path, text(provider.url)) as running:
        reply = post(running, "responses", tools=[own, web])
        assert (reply.status, reply.headers["X-Farthing-Dropped"]) == (200, "tools[1]: web_search")
        assert provider.requests[-1]["tools"] == [own]
        assert "tools[1]: web_search" in refusal(
            post(running, "responses", tools=[own, web | {"external_web_access": True}])
        )


NAMES = ("type", "ttl", "cache_control", "plugins", "service_tier", "file_id", "id", "tools")
ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.sampled_from(["1h", "web_search", "input_file", "priority"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=8,
)


@pytest.mark.slow
@given(said=st.dictionaries(st.sampled_from(NAMES), ANY))
@settings(max_examples=60, deadline=None)
def test_nothing_in_arguments_texts_or_schemas_is_a_place(said: dict[str, Any]) -> None:
    written = json.dumps(said)
    used = {"type": "tool_use", "id": "t", "name": "f", "input": said}
    called = {"type": "function", "function": {"name": "f", "arguments": written}}
    spoken = {"role": "assistant", "content": written, "tool_calls": [called]}
    bodies: list[dict[str, Any]] = [
        {"messages": [{"role": "assistant", "content": [used]}], "metadata": said},
        {"messages": [spoken], "response_format": {"type": "json_schema", "json_schema": said}},
        {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": written}]},
        {"tools": [{"name": "f", "input_schema": said}, {"type": "function", "parameters": said}]},
    ]
    assert [place for body in bodies for place in places_in(body)] == []


HOUR = {"type": "ephemeral", "ttl": "1h"}
LONG = "word " * 2_000


@pytest.mark.parametrize("place", ["system", "message", "tool", "result", "request", "minutes"])
def test_a_cache_of_an_hour_is_reserved_and_charged_at_its_rate(
    tmp_path: Path, provider: NativeProvider, place: str
) -> None:
    """Twice the price of input, where nobody says another: in a tool's arguments it is a text."""
    control = {"cache_control": HOUR if place != "minutes" else {"type": "ephemeral"}}
    said = {"type": "text", "text": LONG} | control
    result = {"type": "tool_result", "tool_use_id": "t", "content": [said]}
    used = {"type": "tool_use", "id": "t", "name": "f", "input": {"ttl": "1h", "text": LONG}}
    turn: list[dict[str, Any]] = [{"role": "assistant", "content": [used]}]
    cases: dict[str, dict[str, Any]] = {
        "system": {"system": [said]},
        "message": {"messages": [{"role": "user", "content": [said]}]},
        "tool": {"tools": [{"name": "f", "input_schema": {}} | control], "system": LONG},
        "result": {"messages": [*turn, {"role": "user", "content": [result]}]},
        "request": control | {"system": LONG},
        "minutes": {"messages": [{"role": "user", "content": [said]}]},
    }
    with gateway(tmp_path, text(provider.url, budget=0.0165)) as running:
        reply = post(running, "messages", **cases[place])
        if place == "minutes":  # some 10,100 tokens at a quarter more than a dollar a million
            assert reply.status == 200, reply.body
        else:
            assert (reply.status, reply.json["error"]["type"]) == (402, "billing_error")
        assert post(running, "messages", messages=turn).status == 200


def test_an_hour_in_a_chat_is_paid_at_twice_the_price(tmp_path: Path) -> None:
    kept = {"cached_tokens": 0, "cache_creation": {"ephemeral_1h_input_tokens": 1_000}}
    usage = {"prompt_tokens": 1_010, "completion_tokens": 10, "prompt_tokens_details": kept}
    said = [{"type": "text", "text": "word " * 500, "cache_control": HOUR}]
    with (
        Endpoint(reply=lambda _: answered(usage)) as stub,
        gateway(tmp_path, text(stub.url)) as running,
    ):
        reply = post(running, "chat/completions", messages=[{"role": "user", "content": said}])
        assert reply.status == 200, reply.body
        assert stub.requests[-1]["messages"][0]["content"] == said
        assert reply.json["farthing"]["cost_nano"] == 2_030_000  # 10,000, 2,000,000, 20,000
    assert settled(tmp_path) == 2_030_000


def answered(usage: Mapping[str, Any], **more: Any) -> web.Response:
    said = {"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}
    return web.json_response({"id": "c", "model": "m", "choices": [said], "usage": usage} | more)


def result(*parts: Any) -> list[Any]:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    return [call, {"type": "function_call_output", "call_id": "c", "output": list(parts)}]


def user(*parts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}]}


SHOT = {"type": "computer_call_output", "call_id": "c"}
REFERENCES: list[tuple[str, dict[str, Any], str]] = [
    ("responses", {"input": [{"type": "item_reference", "id": "msg_abc"}]}, "input[0]"),
    ("responses", {"input": [{"id": "msg_abc"}]}, "input[0]"),
    (
        "chat/completions",
        {"prediction": {"type": "content", "content": [FILE]}},
        "content[0]: file",
    ),
    ("responses", {"input": [{"type": "reasoning", "id": "rs_abc", "summary": []}]}, "input[0]"),
    ("responses", {"input": result({"type": "input_file", "file_id": "f"})}, "input[1].output[0]"),
    ("responses", {"input": result({"type": "input_file", "file_url": URL})}, "input[1].output[0]"),
    ("responses", {"input": result({"type": "input_image", "file_id": "f"})}, "input[1].output[0]"),
    (
        "responses",
        {"input": result({"type": "input_image", "image_url": URL})},
        "input[1].output[0]",
    ),
    (
        "responses",
        {"input": [SHOT | {"output": {"type": "computer_screenshot", "file_id": "f"}}]},
        "input[0].output",
    ),
    ("responses", {"input": [{"type": "memory_of_2027", "ref": "x"}]}, "input[0]: memory_of_2027"),
    ("responses", {"input": [{"type": "web_search_call", "id": "ws_1"}]}, "input[0]"),
    ("messages", user({"type": "document", "source": {"type": "url", "url": URL}}), "content[0]"),
    ("messages", user({"type": "image", "source": {"type": "file", "file_id": "f"}}), "content[0]"),
    (
        "messages",
        user({"type": "tool_result", "content": [{"type": "document", "source": {}}]}),
        "messages[0].content[0].content[0]: document",
    ),
    ("messages", user({"type": "part_of_2027"}), "messages[0].content[0]: part_of_2027"),
    ("chat/completions", user({"type": "file", "file": {"file_id": "f"}}), "content[0]: file"),
    ("chat/completions", user({"type": "video_url", "video_url": {"url": URL}}), "video_url"),
    ("chat/completions", user({"type": "image_url", "image_url": {"url": URL}}), "content[0]"),
    ("chat/completions", {"previous_response_id": "resp_1"}, "previous_response_id"),
    (
        "chat/completions",
        {"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}]},
        "messages[0]",
    ),
]


@pytest.mark.parametrize("known", [True, False])
def test_input_by_reference_is_reserved_at_the_window_or_refused(
    tmp_path: Path, provider: NativeProvider, *, known: bool
) -> None:
    section = SECTION if known else SECTION.replace(f"context_window = {WINDOW}\n", "")
    with gateway(tmp_path, text(provider.url, section=section, budget=0.15)) as running:
        for form, more, place in REFERENCES:
            reply = post(running, form, **more)
            if known:
                assert reply.status == 402, (more, reply.body)
                assert "can cost $0.2" in reply.json["error"]["message"]
            else:
                assert place in refusal(reply), (more, reply.body)
                assert "context_window" in refusal(reply)
        given: list[tuple[str, dict[str, Any]]] = [
            ("responses", {"input": [{"type": "reasoning", "encrypted_content": "x", "id": "r"}]}),
            ("responses", {"input": result({"type": "input_text", "text": "4"})}),
            ("responses", {"input": [{"type": "local_shell_call_output", "output": "4"}]}),
            ("messages", user({"type": "thinking", "thinking": "4", "signature": "x"})),
            ("messages", user({"type": "tool_result", "content": "4"})),
        ]
        for form, more in given:
            assert post(running, form, **more).status == 200, more
    assert len(provider.requests) == len(given)


def test_a_free_model_takes_input_of_any_length(tmp_path: Path, provider: NativeProvider) -> None:
    free = text(provider.url, section='apis = ["messages"]\n')
    free = free.replace('"small-2026" = { input_per_million = 1, output_per_million = 2 }', "")
    free += '"small-2026" = { input_per_million = 0, output_per_million = 0 }\n'
    with gateway(tmp_path, free) as running:
        reply = post(running, "messages", **user({"type": "document", "source": {"data": "x"}}))
    assert reply.status == 200, reply.body


def test_sound_is_refused_where_nobody_says_what_it_costs(tmp_path: Path) -> None:
    sound = {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}
    with Endpoint() as stub, gateway(tmp_path, text(stub.url)) as running:
        said = refusal(post(running, "chat/completions", **user(sound)))
        assert "messages[0].content[0]: input_audio" in said
        assert "audio_input" in said
        assert stub.requests == []


PRICED = SECTION + 'provider_tools = "price"\ntool_uses = 3\n'


def test_what_the_provider_runs_is_priced_where_the_owner_says_so(tmp_path: Path) -> None:
    """Three uses at most, the input read anew after each; charged by how many there were."""
    more: dict[str, Any] = {}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    tools = [{"type": "web_search"}]

    def asked(name: str, budget: float | None, price: str) -> Reply:
        (tmp_path / name).mkdir()
        said = text(stub.url, section=PRICED, budget=budget)
        said = said.replace("output_per_million = 2 }", f"output_per_million = 2{price} }}")
        with gateway(tmp_path / name, said) as running:
            return post(running, "chat/completions", tools=tools)

    own = ", per_tool_use = 0.01"
    most = (4 * WINDOW * 1_000 + 50 * 2_000 + 3 * 10_000_000) / 1e9
    with Endpoint(reply=lambda _: answered(usage | more)) as stub:
        assert "web_searches" in refusal(asked("unpriced", None, ""))
        assert asked("poor", most - 1e-6, own).status == 402
        costs = []
        for more in ({"server_tool_use": {"web_search_requests": 2}}, {"cost": 0.0123}, {}):
            receipt = asked(f"told {more}", most + 1e-6, own).json["farthing"]
            costs.append((receipt["cost_nano"], receipt["cost_estimated"]))
    tokens = 100 * 1_000 + 10 * 2_000
    assert costs == [(tokens + 20_000_000, False), (12_300_000, False), (tokens + 30_000_000, True)]


def test_a_response_says_by_its_output_how_often_a_tool_ran(
    tmp_path: Path, provider: NativeProvider
) -> None:
    priced = text(provider.url, section=PRICED).replace(" = 2 }", " = 2, per_tool_use = 0.01 }")
    ran = {"type": "web_search_call", "id": "ws_1"}
    paid = []
    with gateway(tmp_path, priced) as running:
        said: Any = RESPONSE["output"]
        for output in ([ran, ran, *said], said):
            whole = RESPONSE | {"output": output}
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(WHOLE, "responses", whole)
                patch.setitem(
                    EVENTS, "responses", [{"type": "response.completed", "response": whole}]
                )
                for stream in (False, True):
                    before = settled(tmp_path)
                    post(running, "responses", tools=[{"type": "web_search"}], stream=stream)
                    paid.append(settled(tmp_path) - before)
    tokens = 12 * 1_000 + 8 * 1_000 + 9 * 2_000
    assert paid == [tokens + 20_000_000, tokens + 20_000_000, tokens, tokens]


@pytest.mark.parametrize("stream", [False, True])
def test_a_claim_counts_up_to_what_the_request_can_have_cost_at_most(
    tmp_path: Path, *, stream: bool
) -> None:
    """All of the window and the largest output, whatever was reserved; the rest is shown."""
    usage = {"prompt_tokens": 0, "completion_tokens": 10}

    def reply(body: dict[str, Any]) -> web.Response:
        if not body.get("stream"):
            return answered(usage)
        said = {"index": 0, "delta": {"content": "4"}, "finish_reason": "stop"}
        chunks = [{"choices": [said]}, {"choices": [], "usage": usage}]
        lines = [f"data: {json.dumps(one)}\n\n" for one in chunks] + ["data: [DONE]\n\n"]
        return web.Response(text="".join(lines), content_type="text/event-stream")

    database, claims = str(tmp_path / "gateway.db"), (150_000, 10**7)
    with Endpoint(reply=reply) as stub, gateway(tmp_path, text(stub.url, budget=0.3)) as running:
        costs = []
        for usage["prompt_tokens"] in claims:
            before = settled(tmp_path)
            assert post(running, "chat/completions", stream=stream).status == 200
            costs.append(settled(tmp_path) - before)
        assert costs == [150_000 * 1_000 + 10 * 2_000, WINDOW * 1_000 + 1_000 * 2_000]
        until(lambda: total(database, "disputed:all").settled.calls == 1)
        rest = 10**7 * 1_000 + 10 * 2_000 - costs[1]
        assert total(database, "disputed:all").settled.nano == rest
        spent = post(running, "chat/completions", stream=stream)
        assert (spent.status, spent.json["error"]["code"]) == (402, "budget_exceeded")
