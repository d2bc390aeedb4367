"""What clients hear: of failures upstream, of budgets, of a reply that is repeated."""

import asyncio
import hashlib
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint
from gateway_running import gateway, models, serve_section
from policy_running import SYSTEM, config, letter, made_bundle

from farthing.models.prices import unpriced
from farthing.models.retry import RetryPolicy
from farthing.tasks.base import Question
from farthing_gateway.bundles import most_nano
from farthing_gateway.errors import in_progress
from farthing_gateway.storage.ledger.base import Limit, LimitError
from farthing_gateway.storage.ledger.ledger import open_ledger


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle of an agreement."""
    folder = tmp_path_factory.mktemp("bundle")
    made_bundle(folder)
    return folder / "bundle"


@pytest.mark.parametrize("fault", ["500", "429", "reset", "cut", "garbage", "content type"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_upstream_says_nothing_of_the_provider(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str, *, stream: bool
) -> None:
    with (
        Endpoint(faults={fault: 1.0}) as stub,
        gateway(tmp_path, serve_section() + models(stub.url)) as running,
    ):
        body = running.chat("large", "a secret text", stream=stream).body.decode()
    assert stub.url not in body
    assert "127.0.0.1" not in body
    assert "large" in body
    assert '"message":"no model answered: large (' in body
    for advice in ("check", "lower the limits", "configuration", "is it running"):
        assert advice not in body
    assert stub.url in caplog.text
    assert "secret" not in caplog.text


def _failing(status: int, message: str) -> Any:
    return lambda _: web.json_response({"error": {"message": message, "code": "x"}}, status=status)


def test_what_a_provider_says_of_a_request_is_passed_on(tmp_path: Path) -> None:
    with (
        Endpoint(reply=_failing(400, "max_tokens is too large")) as stub,
        gateway(tmp_path, serve_section() + models(stub.url)) as running,
    ):
        refused = running.chat("large", "x")
        stub.reply = lambda _: web.Response(text="<html>nginx</html>", status=400)
        page = running.chat("large", "x")
    assert refused.status == page.status == 400
    assert refused.json["error"]["message"] == "max_tokens is too large"
    assert page.json["error"]["message"] == "large: its provider does not take this request"


def test_a_policys_failures_say_nothing_of_the_provider(tmp_path: Path, bundle: Path) -> None:
    with (
        Endpoint(letter, faults={"500": 1.0}) as stub,
        gateway(tmp_path, config(stub, bundle)) as running,
    ):
        failed = running.chat("farthing/letters", SYSTEM, "number 7")
    assert failed.status == 502
    assert stub.url not in failed.body.decode()
    assert "no model answered: small (its provider failed" in failed.json["error"]["message"]


def test_a_long_pause_that_a_provider_asks_for_is_the_clients(tmp_path: Path) -> None:
    limits = "[limits.one]\nconcurrent = 4\n"
    text = serve_section() + limits
    with Endpoint(faults={"429 seconds": 1.0}, retry_after_s=30) as stub:
        text += models(stub.url, tries=6).replace("retries", 'limits = "one"\nretries')
        with gateway(tmp_path, text) as running:
            began = time.monotonic()
            replies = [running.chat("large", "x", stream=stream) for stream in (False, True, False)]
            assert time.monotonic() - began < 20
            assert len(stub.requests) == 1  # the others are told so at once
    assert [one.status for one in replies] == [429] * 3
    assert all(10 <= int(one.headers["Retry-After"]) <= 30 for one in replies)


def test_a_pause_longer_than_the_deadline_is_the_clients(tmp_path: Path) -> None:
    with (
        Endpoint(faults={"429 seconds": 1.0}, retry_after_s=40) as stub,
        gateway(tmp_path, serve_section() + models(stub.url, tries=6)) as running,
    ):
        began = time.monotonic()
        reply = running.chat("large", "x", farthing={"deadline": 20})
        assert time.monotonic() - began < 15
    assert (reply.status, reply.headers["Retry-After"]) == (429, "40")


def test_who_asks_twice_hears_how_long_it_can_take(tmp_path: Path) -> None:
    text = serve_section(deadline_s=100, lease_s=130)
    with Endpoint() as stub, gateway(tmp_path, text + models(stub.url)) as running:
        body = json.dumps(
            {"model": "large", "messages": [{"role": "user", "content": "x"}]}
        ).encode()
        _claim_as_a_worker_that_died(tmp_path, "once", body, 100)
        refused = running.post(body, {"Idempotency-Key": "once"})
    assert refused.status == 409
    said = refused.json["error"]["message"]
    assert "in 99 s" in said or "in 100 s" in said
    assert 30 <= int(refused.headers["Retry-After"]) <= 31  # so long ago it was begun


def _claim_as_a_worker_that_died(folder: Path, once: str, body: bytes, left_s: float) -> None:
    async def claim() -> None:
        ledger = await open_ledger(str(folder / "gateway.db"))
        key = f":{hashlib.sha256(once.encode()).hexdigest()}"
        await ledger.claim(key, hashlib.sha256(body).hexdigest(), lease_s=left_s)
        await ledger.aclose()

    asyncio.run(claim())


@pytest.mark.parametrize(("age", "left", "again"), [(0, 600, 1), (40, 560, 40), (590, 10, 10)])
def test_nobody_waits_longer_than_it_took_so_far(age: int, left: int, again: int) -> None:
    until = datetime.now(UTC) + timedelta(seconds=left)
    assert abs(int(in_progress(until, age + left).headers["Retry-After"]) - again) <= 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_repeated_reply_has_its_headers(tmp_path: Path, *, stream: bool) -> None:
    with Endpoint() as stub, gateway(tmp_path, serve_section() + models(stub.url)) as running:
        key = {"Idempotency-Key": "one"}
        first, again = (running.chat("large", "x", headers=key, stream=stream) for _ in range(2))
    said = {name: value for name, value in again.headers.items() if name.startswith("x-farthing-")}
    assert again.headers["Idempotent-Replayed"] == "true"
    assert said["x-farthing-trace"] == first.headers["X-Farthing-Trace"]
    assert {"x-farthing-cost-usd", "x-farthing-calls", "x-farthing-promise"} <= said.keys()
    for name, value in said.items():
        assert stream or first.headers[name] == value


def test_the_mode_is_in_a_header(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle)) as running:
        reply = running.chat("farthing/letters", SYSTEM, "number 7")
        other = running.chat("large", "number 7")
    assert reply.headers["X-Farthing-Mode"] == reply.json["farthing"]["mode"] == "default"
    assert "X-Farthing-Mode" not in other.headers


def test_a_cost_that_nobody_counted_is_marked(tmp_path: Path) -> None:
    with (
        Endpoint(faults={"no usage": 1.0}) as stub,
        gateway(tmp_path, serve_section() + models(stub.url)) as running,
    ):
        guessed = running.chat("large", "x").json["farthing"]
        stub.faults = {}
        counted = running.chat("large", "x").json["farthing"]
    assert (guessed["cost_estimated"], counted["cost_estimated"]) == (True, False)
    assert guessed["cost_nano"] > 4_096 * 20_000


def test_a_budget_that_binds_nothing_leaves_the_promise(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle)) as running:

        def said(usd: float, question: str = "number 7") -> Any:
            asked = {"budget": usd}
            reply = running.chat("farthing/letters", SYSTEM, question, farthing=asked)
            return reply.json.get("farthing") or reply.json["error"]

        free = said(1.0)
        assert (free["promise"], free["certificate"] is None) == ("agreement", False)
        assert "Nothing is promised" not in free["says"]
        # Both models once, and the dearer one again where a question is passed on: of each
        # the input's bytes and what a template adds, and 50 tokens of output.
        tokens = len(SYSTEM) + len("number 7") + 64 + 2 * 8
        small, large = tokens * 1_000 + 50 * 2_000, tokens * 10_000 + 50 * 20_000
        most = (small + 2 * large) / 1e9
        assert said(most)["promise"] == "agreement"
        tight = said(most - 1e-9)
        assert (tight["promise"], tight["certificate"]) == ("none", None)
        assert tight["says"].startswith("Nothing is promised: nothing was calibrated under")
        assert "95 times" not in tight["says"]
        assert said(most, "number 7 and more")["promise"] == "none"  # a longer question


def test_a_budget_that_allows_nothing_says_what_it_was(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle)) as running:
        asked = {"budget": 1e-7}
        refused = running.chat("farthing/letters", SYSTEM, "number 7", farthing=asked)
    assert refused.status == 402
    message = refused.json["error"]["message"]
    assert "this request allows $0.0000001: allow more, or name no budget" in message


def test_limits_are_left_or_is_left() -> None:
    calls = str(LimitError(Limit("key:a", "calls", "minute", 3), 1, 0))
    assert "only 0 calls are left" in calls
    assert "only 1 call is left" in str(LimitError(Limit("key:a", "calls", "day", 3), 2, 1))
    assert "only $0.01 is left" in str(LimitError(Limit("a", "usd", "day", 3), 1, 10_000_000))


def test_a_model_without_a_price_has_no_bound() -> None:
    class Unpriced:
        role = "m"

        async def act(self, turn: Any, client: Any) -> None:
            raise unpriced("m")

    class Asks:
        def turns(self) -> list[Any]:
            return [(1, Unpriced())]

    plan: Any = Asks()
    assert asyncio.run(most_nano(plan, Question("q", "x"), RetryPolicy().tries)) is None
