"""What a gateway books of what replies say: a request, the reply, the ledger."""

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion
from gateway_running import Running, gateway, serve_section
from serving import recorded, total, until

PRICES = "input_per_million = 3, output_per_million = 15, cached_input_per_million = 0.3"
LONG = "word " * 20_000
Found = dict[str, Any]


def serving_one(url: str, model: str = "m", prices: str = PRICES, **more: str) -> str:
    """Return a configuration with one model, priced as said or by the list."""
    own = f'[prices]\n"{model}" = {{ {prices} }}\n' if prices else ""
    section = "".join(f'{name} = "{value}"\n' for name, value in more.items())
    return (
        f"{serve_section(default_max_output=1_000, strongest='one')}\n[models.one]\n"
        f'provider = "openai-compatible"\nmodel = "{model}"\nurl = "{url}"\n'
        f'apis = ["messages", "responses", "embeddings"]\nretries = {{ tries = 1 }}\n'
        f"context_window = 200_000\n{section}{own}\n[record]\nshare = 0.0\n"
    )


def booked(running: Running) -> int:
    database = str(running.folder / "gateway.db")
    until(lambda: not total(database).held.calls)
    return total(database).settled.nano


def asked(
    tmp_path: Path, said: Found | str, path: str = "/chat/completions", **served: Any
) -> tuple[Found, int]:
    """Ask for one reply; return what its receipt says, and what the ledger booked."""

    def reply(body: Found) -> web.Response:
        if isinstance(said, str):
            return web.Response(text=said, content_type="text/event-stream")
        whole: Found = completion(body, "4")
        return web.json_response(said if "type" in said else whole | said)

    with (
        Endpoint(reply=reply) as stub,
        gateway(tmp_path, serving_one(stub.url, **served)) as running,
    ):
        body: Found = {"model": "one", "messages": [{"role": "user", "content": LONG}]}
        body |= {"max_tokens": 500, "stream": isinstance(said, str)}
        answer = running.post(body) if "chat" in path else post(running, path, body)
        assert answer.status == 200, answer.body
        receipt = {} if isinstance(said, str) else answer.json.get("farthing", {})
        return receipt, booked(running)


def post(running: Running, path: str, body: Found) -> Any:
    sent = json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    return running.send(urllib.request.Request(f"{running.url}/v1{path}", sent, headers))


@pytest.mark.parametrize(
    ("said", "right"),
    [
        (
            {
                "usage": {
                    "prompt_tokens": 18_014,
                    "completion_tokens": 10,
                    "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 18_011},
                }
            },
            3 * 3_000 + 18_011 * 3_750 + 10 * 15_000,
        ),
        ({"usage": {"prompt_tokens": 1000.0, "completion_tokens": "10"}}, 3_150_000),
        (
            {
                "usage": {
                    "prompt_tokens": 1_000,
                    "completion_tokens": 10,
                    "prompt_cache_hit_tokens": 900,
                }
            },
            100 * 3_000 + 900 * 300 + 10 * 15_000,
        ),
        (
            {
                "usage": {
                    "prompt_tokens": 1_000,
                    "completion_tokens": 10,
                    "total_tokens": 1_710,
                    "completion_tokens_details": {"reasoning_tokens": 700},
                }
            },
            1_000 * 3_000 + 710 * 15_000,
        ),
    ],
)
def test_a_whole_reply_is_booked_as_it_counts(tmp_path: Path, said: Found, right: int) -> None:
    receipt, nano = asked(tmp_path, said)
    assert (receipt["cost_nano"], nano) == (right, right)
    assert not receipt["cost_estimated"]


def events(start: Found, end: Found) -> str:
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": start}
    block = {"type": "text", "text": ""}
    pieces: list[Found] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "4"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in pieces)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ({"input_tokens": 1_500, "output_tokens": 1}, {"input_tokens": 0, "output_tokens": 20}),
        ({"input_tokens": 0, "output_tokens": 0}, {"input_tokens": 1_500, "output_tokens": 20}),
        ({"input_tokens": 1_500, "output_tokens": 1}, {"output_tokens": 20}),
    ],
)
def test_a_zero_at_either_end_of_a_message_is_no_count(
    tmp_path: Path, start: Found, end: Found
) -> None:
    _, nano = asked(tmp_path, events(start, end), "/messages")
    assert nano == 1_500 * 3_000 + 20 * 15_000


def test_an_hours_writes_cost_twice(tmp_path: Path) -> None:
    said: Found = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "4"}],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 10,
            "cache_creation_input_tokens": 10_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 10_000},
        },
    }
    _, nano = asked(tmp_path, said, "/messages")
    assert nano == 10 * 3_000 + 10_000 * 6_000 + 10 * 15_000
    [passed] = recorded(tmp_path)
    assert passed.trace.calls[0].extra["cache_writes_hour"] == 10_000


def test_usage_in_a_choice_of_a_stream_counts(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1_000, "completion_tokens": 10, "cached_tokens": 500}
    pieces = [
        {"choices": [{"index": 0, "delta": {"content": "4"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": usage}]},
    ]
    text = "".join(f"data: {json.dumps(one)}\n\n" for one in pieces) + "data: [DONE]\n\n"
    _, nano = asked(tmp_path, text)
    assert nano == 500 * 3_000 + 500 * 300 + 10 * 15_000


LISTED = {"model": "gpt-5", "prices": "", "price_provider": "openai"}
TOKENS = {"prompt_tokens": 10_000, "completion_tokens": 400}


@pytest.mark.parametrize(("tier", "times"), [("default", 1), ("flex", 0.5), ("priority", 2)])
def test_the_tier_that_was_served_is_what_is_paid(tmp_path: Path, tier: str, times: float) -> None:
    receipt, nano = asked(tmp_path, {"usage": TOKENS, "service_tier": tier}, **LISTED)
    assert receipt["cost_nano"] == nano == times * (10_000 * 1_250 + 400 * 10_000)


def test_a_model_served_at_a_dearer_tier_once_is_reserved_at_it_later(tmp_path: Path) -> None:
    held = []

    def reply(body: Found) -> web.Response:
        with ThreadPoolExecutor() as pool:  # this is an event loop already
            held.append(pool.submit(total, str(tmp_path / "gateway.db")).result().held.nano)
        return web.json_response(
            completion(body, "4") | {"usage": TOKENS, "service_tier": "priority"}
        )

    with (
        Endpoint(reply=reply) as stub,
        gateway(tmp_path, serving_one(stub.url, **LISTED)) as running,
    ):
        for _ in range(2):
            assert running.chat("one", LONG, max_tokens=500).status == 200
            booked(running)
    assert held[1] == 2 * held[0]


def test_what_was_billed_is_booked_and_the_list_shown(tmp_path: Path) -> None:
    receipt, nano = asked(tmp_path, {"usage": TOKENS | {"cost": 0.02}}, **LISTED)
    assert receipt["cost_nano"] == nano == 20_000_000
    assert receipt["calls"][0]["listed_usd"] == 0.0165


def test_a_bill_beyond_the_bound_is_disputed(tmp_path: Path) -> None:
    receipt, nano = asked(tmp_path, {"usage": TOKENS | {"cost": 50.0}}, **LISTED)
    assert receipt["cost_nano"] == nano < 3 * 10**9  # its whole window, read and written
    assert receipt["cost_estimated"]
    assert total(str(tmp_path / "gateway.db"), "disputed:all").settled.nano == 50 * 10**9 - nano


@pytest.mark.parametrize(
    "more",
    [
        {"usage": TOKENS, "service_tier": "scale"},
        {"usage": TOKENS | {"server_tool_use": {"quantum_requests": 2}}},
        {"usage": TOKENS | {"prompt_tokens_details": {"audio_tokens": 9_000}}},
    ],
)
def test_a_count_without_a_known_price_is_disputed_and_never_free(
    tmp_path: Path, more: Found
) -> None:
    receipt, nano = asked(tmp_path, more)
    assert receipt["cost_nano"] == nano > 10_000 * 3_000 + 400 * 15_000
    assert receipt["cost_estimated"]
    disputed = total(str(tmp_path / "gateway.db"), "disputed:all").settled
    assert (disputed.calls, disputed.nano) == (1, 0)


def test_own_prices_of_the_cache_and_of_sound(tmp_path: Path) -> None:
    prices = f"{PRICES}, cache_write_per_million = 4, audio_input_per_million = 30"
    usage = {
        "prompt_tokens": 1_000,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cache_write_tokens": 500, "audio_tokens": 100},
    }
    receipt, nano = asked(tmp_path, {"usage": usage}, prices=prices)
    assert nano == 400 * 3_000 + 500 * 4_000 + 100 * 30_000 + 10 * 15_000
    assert receipt["cost_nano"] == nano


def test_a_model_that_searches_unasked_is_refused_by_name(tmp_path: Path) -> None:
    with Endpoint() as stub:
        text = serving_one(stub.url, "sonar-deep-research", "", price_provider="perplexity")
        with gateway(tmp_path, text) as running:
            answer = running.chat("one", "hi")
    assert answer.status == 422
    assert "web_searches" in answer.json["error"]["message"]


ZERO = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
FOUR = {"content": "4"}


def chunks(*said: tuple[Found, str | None, Found | None]) -> str:
    made = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": end}], "usage": usage}
        for delta, end, usage in said
    ]
    return "".join(f"data: {json.dumps(one)}\n\n" for one in made) + "data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({"usage": ZERO}, "/chat/completions"),
        ({"usage": {"prompt_tokens": 1_000, "completion_tokens": 0}}, "/chat/completions"),
        (
            chunks(
                ({}, None, ZERO | {"prompt_tokens": 1_000}), (FOUR, None, None), ({}, "stop", None)
            ),
            "/chat/completions",
        ),
        (
            chunks(({}, None, {"prompt_tokens": 9, "completion_tokens": 1}), (FOUR, "stop", None)),
            "/chat/completions",
        ),
        (events({"input_tokens": 1_000, "output_tokens": 1}, {}), "/messages"),
        (events({"input_tokens": 1_000, "output_tokens": 1}, {"output_tokens": None}), "/messages"),
    ],
)
def test_a_count_that_leaves_out_what_was_written_is_none(
    tmp_path: Path, said: Any, path: str
) -> None:
    """No call reads nothing, and a count before a text is not of it: the bound stands for both."""
    _, nano = asked(tmp_path, said, path)
    assert nano > len(LONG) * 3_000


def test_an_empty_reply_has_no_output(tmp_path: Path) -> None:
    used = {"prompt_tokens": 1_000, "completion_tokens": 0}
    said = chunks(({"role": "assistant", "content": ""}, "stop", used))
    assert asked(tmp_path, said)[1] == 3_000_000


def test_inference_in_one_country_costs_its_surcharge(tmp_path: Path) -> None:
    used = {"input_tokens": 1_000, "output_tokens": 10, "inference_geo": "us"}
    part = {"type": "text", "text": "4"}
    said = {"type": "message", "role": "assistant", "content": [part], "usage": used}
    assert asked(tmp_path, said, "/messages")[1] == 3_465_000
