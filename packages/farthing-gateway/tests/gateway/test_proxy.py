"""A model is asked through the gateway: what the client gets, what is paid, what goes wrong."""

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint
from gateway_running import Running, gateway, models, serve_section

from farthing_gateway.storage.keys import open_keys
from farthing_gateway.storage.ledger.base import AccountBalance, UnknownCall
from farthing_gateway.storage.ledger.ledger import open_ledger
from farthing_gateway.storage.migrations import migrate

BUDGETS = """
[[budgets]]
of = "all"
per = "day"
usd = {usd}
"""


def spent(folder: Path, account: str = "all") -> AccountBalance:
    """Return where an account stands over all time."""

    async def read() -> AccountBalance:
        await migrate(str(folder / "gateway.db"))
        ledger = await open_ledger(str(folder / "gateway.db"))
        try:
            return next(b for b in await ledger.balances([account]) if b.period == "total")
        finally:
            await ledger.aclose()

    return asyncio.run(read())


def unknowns(folder: Path) -> list[UnknownCall]:
    """Return the calls that were marked."""

    async def read() -> list[UnknownCall]:
        await migrate(str(folder / "gateway.db"))
        ledger = await open_ledger(str(folder / "gateway.db"))
        try:
            return await ledger.unknowns()
        finally:
            await ledger.aclose()

    return asyncio.run(read())


def test_a_reply_passes_unchanged_with_what_it_cost(tmp_path: Path) -> None:
    with Endpoint() as stub, gateway(tmp_path, serve_section() + models(stub.url)) as running:
        reply = running.chat("large", "Be brief.", "two words", temperature=0.5, tomorrow={"a": 1})
        assert reply.status == 200
        said = reply.json
        assert said["choices"][0]["message"]["content"] == "reply to two words"
        (asked,) = stub.requests
        assert asked["model"] == "large-2026"
        assert asked["temperature"] == 0.5
        assert asked["tomorrow"] == {"a": 1}
        # 4 tokens at 10 and 4 at 20 dollars a million
        assert said["farthing"]["cost_nano"] == 4 * 10_000 + 4 * 20_000
        assert said["farthing"]["promise"] == "none"
        assert reply.headers["X-Farthing-Cost-Usd"] == "0.000120000"
    total = spent(tmp_path)
    assert (total.settled.nano, total.settled.calls, total.held.nano) == (120_000, 1, 0)
    assert total.settled.tokens == 8
    assert spent(tmp_path, "model:large").settled.nano == 120_000


def test_a_cheaper_model_says_what_it_saves_against_the_strongest(tmp_path: Path) -> None:
    with Endpoint() as stub, gateway(tmp_path, serve_section() + models(stub.url)) as running:
        said = running.chat("small", "two words").json["farthing"]
    assert said["saved_usd"] * 1e9 == pytest.approx(9 * said["cost_nano"])


def test_models_and_policies_are_listed(tmp_path: Path) -> None:
    text = serve_section() + models("http://127.0.0.1:9/v1") + '[policies.mine]\npool=["small"]\n'
    with gateway(tmp_path, text) as running:
        listed = running.get("/v1/models").json
        assert [one["id"] for one in listed["data"]] == ["small", "large", "farthing/mine"]
        assert running.get("/v1/models/farthing/mine").json["farthing"]["kind"] == "policy"
        assert running.get("/v1/models/none").status == 404
        assert running.get("/health").json["status"] == "ok"
        assert running.get("/ready").json["status"] == "ready"
        assert running.get("/openapi.json").json["openapi"] == "3.1.0"
        assert running.get("/nowhere").json["error"]["code"] == "not_found"


def test_a_key_for_one_model_hears_nothing_of_another(tmp_path: Path) -> None:
    async def made() -> str:
        await migrate(str(tmp_path / "gateway.db"))
        keys = await open_keys(str(tmp_path / "gateway.db"))
        try:
            return (await keys.make("app", None, ["call"], models=["small"]))[1]
        finally:
            await keys.aclose()

    opens = {"Authorization": f"Bearer {asyncio.run(made())}"}
    with gateway(tmp_path, serve_section(keys=True) + models("http://127.0.0.1:9/v1")) as running:
        assert [one["id"] for one in running.get("/v1/models", **opens).json["data"]] == ["small"]
        assert running.get("/v1/models/small", **opens).json["farthing"]["price"]
        other = running.get("/v1/models/large", **opens)
        assert (other.status, other.json["error"]["code"]) == (403, "forbidden")
        for none in (
            running.get("/v1/models/none", **opens),
            running.chat("none", "x", headers=opens),
        ):
            assert none.status == 404
            assert "large" not in none.json["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"{", 400, None),
        ({"model": "large", "messages": []}, 400, "messages"),
        ({"model": "none", "messages": [{"role": "user", "content": "x"}]}, 404, "model"),
        (b'{"model": "large", "x": "' + b"a" * 2_000 + b'"}', 413, None),
    ],
)
def test_what_cannot_be_answered_is_said_in_openai_form(
    tmp_path: Path, body: Any, status: int, param: str | None
) -> None:
    text = serve_section(most_body_bytes=1_000) + models("http://127.0.0.1:9/v1")
    with gateway(tmp_path, text) as running:
        reply = running.post(body)
    assert reply.status == status
    error = reply.json["error"]
    assert error["param"] == param
    assert set(error) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("fault", "status"),
    [("500", 502), ("reset", 502), ("cut", 502), ("garbage", 502), ("429 seconds", 429)],
)
def test_an_upstream_failure_has_its_status_and_costs_what_it_can(
    tmp_path: Path, fault: str, status: int
) -> None:
    with Endpoint(faults={fault: 1.0}, retry_after_s=7) as stub:
        with gateway(tmp_path, serve_section() + models(stub.url)) as running:
            reply = running.chat("large", "two words")
        assert reply.status == status
        if status == 429:
            assert reply.headers["Retry-After"] == "7"
    charged = fault in {"reset", "cut", "garbage"}
    assert (spent(tmp_path).settled.nano > 0) == charged
    assert len(unknowns(tmp_path)) == charged


@pytest.mark.parametrize(
    ("fault", "said", "calls", "stream"),
    [
        ("reset", "", 2, False),
        ("reset", "", 2, True),
        ("garbage", "", 2, False),
        ("garbage", ", paid = 0", 1, False),
        ("reset", ", paid = 3", 4, True),
        ("500", "", 6, False),
    ],
)
def test_what_may_have_to_be_paid_is_tried_once_more(
    tmp_path: Path, fault: str, said: str, calls: int, stream: bool
) -> None:
    with Endpoint(faults={fault: 1.0}) as stub:
        text = serve_section() + models(stub.url, tries=6)
        text = text.replace("tries = 6", f"tries = 6, first_s = 0.001{said}")
        with gateway(tmp_path, text) as running:
            assert running.chat("large", "two words", stream=stream).status == 502
        assert len(stub.requests) == calls
    assert len(unknowns(tmp_path)) == (0 if fault == "500" else calls)
    each = {one.amount.nano for one in unknowns(tmp_path)}
    assert spent(tmp_path).settled.nano == sum(each) * len(unknowns(tmp_path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("service_tier", "priority"),
        ("web_search_options", {"search_context_size": "low"}),
        ("modalities", ["text", "audio"]),
    ],
)
def test_what_no_price_of_tokens_covers_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    with Endpoint() as stub, gateway(tmp_path, serve_section() + models(stub.url)) as running:
        reply = running.post(_asking(**{name: value}))
        assert (reply.status, reply.json["error"]["param"]) == (400, name)
        assert not stub.requests
        assert running.post(_asking(service_tier="default", modalities=["text"])).status == 200


def _asking(**fields: Any) -> dict[str, Any]:
    return {"model": "large", "messages": [{"role": "user", "content": "two words"}], **fields}


def test_a_redirect_is_the_operators_to_mend_and_not_tried_again(tmp_path: Path) -> None:
    elsewhere = {"Location": "http://127.0.0.1:9/v1/chat/completions"}
    with Endpoint(reply=lambda _: web.Response(status=307, headers=elsewhere)) as stub:
        with gateway(tmp_path, serve_section() + models(stub.url, tries=3)) as running:
            reply = running.chat("large", "two words")
        assert (reply.status, reply.json["error"]["code"]) == (502, "upstream_redirected")
        assert len(stub.requests) == 1


def test_a_fallback_answers_where_a_model_fails(tmp_path: Path) -> None:
    with (
        Endpoint(faults={"500": 1.0}) as broken,
        Endpoint() as well,
        gateway(tmp_path, _both(broken.url, well.url)) as running,
    ):
        reply = running.chat("large", "two words")
        assert reply.status == 200
        assert reply.json["farthing"]["answered_by"] == "small"
        streamed = running.chat("large", "two words", stream=True)
        assert streamed.status == 200


def test_a_stream_passes_piece_by_piece_and_ends_with_its_receipt(tmp_path: Path) -> None:
    with Endpoint() as stub, gateway(tmp_path, serve_section() + models(stub.url)) as running:
        reply = running.chat("large", "two words", stream=True)
        pieces = [json.loads(event) for event in reply.events[:-1]]
        assert reply.events[-1] == "[DONE]"
        said = "".join(p["choices"][0]["delta"].get("content", "") for p in pieces)
        assert said == "reply to two words"
        assert all("usage" not in piece for piece in pieces)
        (comment,) = [line for line in reply.body.split(b"\n\n") if line.startswith(b": farthing")]
        assert json.loads(comment.removeprefix(b": farthing "))["cost_nano"] == 100_000
        wanted = running.chat(
            "large", "two words", stream=True, stream_options={"include_usage": True}
        )
        last = json.loads(wanted.events[-2])
        assert last["usage"]["total_tokens"] == 6
        assert last["farthing"]["cost_nano"] == 100_000
    assert spent(tmp_path).settled.nano == 200_000


def test_a_stream_that_breaks_ends_with_an_event_in_openai_form(tmp_path: Path) -> None:
    with Endpoint(between_s=0.2) as stub:
        with gateway(tmp_path, serve_section() + models(stub.url)) as running:
            reply = running.chat("large", "a b c d e", stream=True, farthing={"deadline": 0.5})
        assert reply.status == 200
        error = json.loads(reply.events[-2])["error"]
        assert error["code"] == "deadline_exceeded"
        assert "0.5 s" in error["message"]
    assert len(unknowns(tmp_path)) == 1


def _both(large: str, small: str) -> str:
    text = serve_section() + "[serve.fallbacks]\nlarge = ['small']\n" + models(large)
    one, other = text.split("[models.large]")
    return one.replace(large, small) + "[models.large]" + other


def test_a_budget_is_never_exceeded_and_says_when_it_resets(tmp_path: Path) -> None:
    text = serve_section(default_max_output=10) + BUDGETS.format(usd=0.01)
    with Endpoint() as stub, gateway(tmp_path, text + models(stub.url)) as running:
        statuses = [running.chat("large", "two words").status for _ in range(99)]
        refused = running.chat("large", "two words")
        assert refused.status == 402
        assert "$0.01 a day on all" in refused.json["error"]["message"]
        assert refused.json["error"]["code"] == "budget_exceeded"
        assert "Retry-After" not in refused.headers, "no client is to wait for hours"
        assert datetime.fromisoformat(refused.headers["X-Farthing-Resets-At"]) > datetime.now(UTC)
        assert statuses.count(200) == len(stub.requests) > 0
    assert spent(tmp_path).settled.nano <= 10_000_000


def test_a_request_may_name_its_own_budget(tmp_path: Path) -> None:
    with Endpoint() as stub, gateway(tmp_path, serve_section() + models(stub.url)) as running:
        reply = running.chat("large", "two words", headers={"X-Farthing-Budget": "0.0001"})
        assert reply.status == 402
        assert reply.json["error"]["code"] == "request_budget_exceeded"
        assert not stub.requests
        body = {"budget": 0.01}
        assert running.chat("large", "two words", farthing=body, max_tokens=9).status == 200
        assert "farthing" not in stub.requests[0]


def test_a_limit_a_minute_is_to_be_waited_for(tmp_path: Path) -> None:
    text = serve_section() + '[[budgets]]\nof = "model:small"\nper = "minute"\ncalls = 2\n'
    with Endpoint() as stub, gateway(tmp_path, text + models(stub.url)) as running:
        statuses = [running.chat("small", "two words").status for _ in range(4)]
        assert statuses[-1] == 429
        assert statuses.count(200) == 2
        assert running.chat("large", "two words").status == 200
        assert 1 <= int(running.chat("small", "x").headers["Retry-After"]) <= 60


def test_the_same_request_under_one_key_is_answered_once(tmp_path: Path) -> None:
    with Endpoint() as stub, gateway(tmp_path, serve_section() + models(stub.url)) as running:
        key = {"Idempotency-Key": "one"}
        first, second = (running.chat("large", "two words", headers=key) for _ in range(2))
        assert first.body == second.body
        assert second.headers["Idempotent-Replayed"] == "true"
        assert len(stub.requests) == 1
        other = running.chat("large", "other words", headers=key)
        assert (other.status, other.json["error"]["code"]) == (422, "idempotency_key_reused")
        stub.faults = {"500": 1.0}
        again = {"Idempotency-Key": "two"}
        assert running.chat("large", "two words", headers=again).status == 502
        stub.faults = {}
        assert running.chat("large", "two words", headers=again).status == 200
    assert spent(tmp_path).settled.calls == 3  # a try that failed is a call


@pytest.mark.parametrize("key", ["a\tb", "\xa0", "a" * 257])
def test_an_idempotency_key_may_be_any_text(tmp_path: Path, key: str) -> None:
    with Endpoint() as stub, gateway(tmp_path, serve_section() + models(stub.url)) as running:
        replies = [running.chat("large", "x", headers={"Idempotency-Key": key}) for _ in range(2)]
    assert [reply.status for reply in replies] == [200, 200]
    assert len(stub.requests) == 1


def test_a_deadline_ends_a_request(tmp_path: Path) -> None:
    text = serve_section() + models("{url}")
    with Endpoint(latency_s=60) as stub, gateway(tmp_path, text.replace("{url}", stub.url)) as it:
        began = time.monotonic()
        reply = it.chat("large", "two words", farthing={"deadline": 3})
        assert reply.status == 504
        assert time.monotonic() - began < 30
        assert it.chat("large", "x", farthing={"deadline": 3}, stream=True).status == 504
    (first, _) = unknowns(tmp_path)
    assert first.amount.nano > 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_cancels_the_upstream_call(tmp_path: Path, *, stream: bool) -> None:
    with (
        Endpoint(latency_s=20) as stub,
        gateway(tmp_path, serve_section() + models(stub.url)) as it,
    ):
        _ask_and_leave(it, stub, stream=stream)
        _until(lambda: stub.disconnects == 1)
        _until(lambda: len(unknowns(tmp_path)) == 1)
    assert spent(tmp_path).held.nano == 0


def _ask_and_leave(running: Running, stub: Endpoint, *, stream: bool) -> None:
    host, port = running.url.removeprefix("http://").split(":")
    message = {"role": "user", "content": "x"}
    body = json.dumps({"model": "large", "messages": [message], "stream": stream}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body)
        _until(lambda: stub.under_way == 1)


def _until(true: Any, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_a_stream_under_an_idempotency_key_ends_once_and_is_kept(tmp_path: Path) -> None:
    with Endpoint() as stub, gateway(tmp_path, serve_section() + models(stub.url)) as running:
        key = {"Idempotency-Key": "one"}
        replies = [running.chat("large", "two words", headers=key, stream=True) for _ in range(2)]
        figures = running.get("/metrics").body.decode()
    assert replies[0].body == replies[1].body
    assert replies[1].headers["Idempotent-Replayed"] == "true"
    assert len(stub.requests) == 1
    assert 'farthing_requests_total{model="large",status="200"} 1.0' in figures
    assert 'status="499"' not in figures
    assert "farthing_requests_under_way 0.0" in figures


def test_a_refusal_says_what_calls_under_way_may_give_back(tmp_path: Path) -> None:
    # Each call can cost some $0.0005 and costs little: two of them at once are too much.
    text = serve_section() + '[[budgets]]\nof = "all"\nper = "day"\nusd = 0.0006\n'
    with Endpoint(latency_s=1.0) as stub, gateway(tmp_path, text + models(stub.url)) as running:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(running.chat, "small", "x", max_tokens=200)
            while not stub.under_way:
                time.sleep(0.01)
            refused = running.chat("small", "x", max_tokens=200)
            assert first.result().status == 200
        assert refused.status == 402
        assert "set aside for calls under way" in refused.json["error"]["message"]
        assert refused.headers["Retry-After"] == "1"
        assert running.chat("small", "x", max_tokens=200).status == 200
        dear = running.chat("small", "x", max_tokens=4_000)
        assert dear.status == 402
        assert "under way" not in dear.json["error"]["message"]
        assert "Retry-After" not in dear.headers
