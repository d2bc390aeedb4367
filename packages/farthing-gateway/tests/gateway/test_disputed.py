"""A reply claims more than its call can have taken: the bound is charged, the rest is shown."""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion
from gateway_running import Reply, Running, gateway, models, serve_section
from policy_running import SYSTEM, config, letter, made_bundle
from serving import recorded, total, until

from farthing.cli.main import _run as farthing
from farthing_gateway.storage.keys import KeyLimit, Scope, open_keys
from farthing_gateway.storage.ledger.base import Amount
from farthing_gateway.storage.migrations import migrate

Claims = Callable[[dict[str, Any]], web.Response]
RECORD = "\n[record]\nshare = 0.0\n"
MOST_USD = 0.03
"""More than a call to `large` can cost: 1,000 tokens at 20 dollars a million, and the prompt."""
BILLION = 10**9


def claiming(read: Any, written: Any) -> Claims:
    """Return what answers with a usage of its own, whole or as a stream."""
    usage = {"prompt_tokens": read, "completion_tokens": written}

    def reply(body: dict[str, Any]) -> web.Response:
        whole = completion(body, letter(body["messages"])) | {"usage": usage}
        if not body.get("stream"):
            return web.json_response(whole)
        piece = whole["choices"][0] | {"delta": {"content": "word"}}
        chunks = [whole | {"choices": [piece], "usage": None}, whole | {"choices": []}]
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
        return web.Response(text="".join(lines), content_type="text/event-stream")

    return reply


def made_key(folder: Path, *scopes: Scope) -> dict[str, str]:
    """Make a key that may spend 5 dollars; return the header that it opens with."""

    async def make() -> str:
        await migrate(str(folder / "gateway.db"))
        keys = await open_keys(str(folder / "gateway.db"))
        try:
            return (await keys.make("app", None, scopes, [KeyLimit("usd", "total", 5 * 10**9)]))[1]
        finally:
            await keys.aclose()

    return {"Authorization": f"Bearer {asyncio.run(make())}"}


def receipt(reply: Reply) -> Any:
    """Return what a reply says that it cost, also at the end of a stream."""
    assert reply.status == 200
    if reply.body.startswith(b"{"):
        return reply.json["farthing"]
    comment = next(part for part in reply.body.split(b"\n\n") if part.startswith(b": farthing "))
    return json.loads(comment.removeprefix(b": farthing "))


def is_at_the_bound(running: Running, said: Any) -> None:
    """Check that a reply is charged at its bound, in all that says so."""
    database = str(running.folder / "gateway.db")
    until(lambda: not total(database).held.calls)  # of a stream that is kept, after its end
    charged = total(database)
    assert said["cost_nano"] == charged.settled.nano
    assert 0 < said["cost_usd"] < MOST_USD
    assert said["cost_estimated"]
    assert abs(said["saved_usd"]) < MOST_USD
    assert (charged.held.nano, charged.overcharged_nano) == (0, 0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("idempotent", [False, True])
def test_a_claim_beyond_the_bound_is_disputed_and_shown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    *,
    stream: bool,
    idempotent: bool,
) -> None:
    opens = made_key(tmp_path, "call", "admin")
    sent = opens | ({"Idempotency-Key": "one"} if idempotent else {})
    with Endpoint(reply=claiming(2, BILLION)) as stub:
        text = serve_section(keys=True, default_max_output=1_000) + models(stub.url) + RECORD
        with gateway(tmp_path, text) as running, caplog.at_level(logging.WARNING):
            said = receipt(running.chat("large", "two words", headers=sent, stream=stream))
            is_at_the_bound(running, said)
            assert "claims $20,000" in caplog.text
            assert "disputed" in caplog.text
            stub.reply = None
            assert running.chat("large", "more", headers=opens).status == 200, "the key goes on"
            until(lambda: total(str(tmp_path / "gateway.db"), "disputed:all").settled.calls == 1)
            spending = running.get("/v1/spending", **opens).json
            metrics = running.get("/metrics", **opens).body.decode()
    excess = 20_000 + 2 * 10 / 1e6 - said["cost_usd"]
    assert spending["disputed"]["usd"] == pytest.approx(excess, abs=1e-6)
    assert spending["disputed"]["calls"] == 1
    accounts = {one["account"]: one["disputed"]["calls"] for one in spending["accounts"]}
    assert {name for name, calls in accounts.items() if calls} == {"all", "key:app", "model:large"}
    left = {one["account"]: one["left"] for one in spending["limits"]}
    assert left["key:app"] > 4.9
    assert "farthing_disputed_replies 1.0" in metrics
    assert f"farthing_disputed_usd {spending['disputed']['usd']}" in metrics
    assert farthing(["spending", str(tmp_path / "serve.toml")]) == 0
    assert "warning: $20,000 was claimed" in capsys.readouterr().err
    [first, *_] = recorded(tmp_path)
    [call] = first.trace.calls
    assert call.cost_usd == said["cost_usd"]
    assert call.input_tokens == 2
    assert 1_000 <= (call.output_tokens or 0) < 1_300


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "usage", [(2**63, 2**63), (2**70, 1), (-1, 5), (5, -(2**63)), (1e300, 1), (5.5, 1), (1, "many")]
)
def test_counts_that_mean_nothing_lose_no_reply(
    tmp_path: Path, usage: tuple[Any, Any], *, stream: bool
) -> None:
    with Endpoint(reply=claiming(*usage)) as stub:
        text = serve_section(default_max_output=1_000) + models(stub.url) + RECORD
        with gateway(tmp_path, text) as running:
            is_at_the_bound(running, receipt(running.chat("large", "two words", stream=stream)))
    [passed] = recorded(tmp_path)
    assert len(passed.trace.calls) == 1


@pytest.mark.parametrize("usage", [(2, BILLION), (2**70, 2**70), (-1, -1)])
def test_a_policys_reply_counts_at_the_bound(tmp_path: Path, usage: tuple[int, int]) -> None:
    made_bundle(tmp_path)
    with Endpoint(reply=claiming(*usage)) as stub:
        text = config(stub, tmp_path / "bundle") + RECORD
        with gateway(tmp_path, text) as running:
            said = receipt(running.chat("farthing/letters", SYSTEM, "number 7"))
            is_at_the_bound(running, said)
            assert said["answered_by"] == "small"
            assert said["promise"] == "agreement"
    [passed] = recorded(tmp_path)
    assert sum(call.cost_usd or 0.0 for call in passed.trace.calls) == said["cost_usd"]
    disputed = total(str(tmp_path / "gateway.db"), "disputed:policy:letters")
    assert disputed.settled == (Amount(calls=0) if usage == (-1, -1) else disputed.settled)
    assert (disputed.settled.nano > 0) == (usage != (-1, -1))


def test_a_reply_at_its_bound_is_not_disputed(tmp_path: Path) -> None:
    with Endpoint() as stub:
        text = serve_section(default_max_output=1_000) + models(stub.url)
        with gateway(tmp_path, text) as running:
            stub.reply = claiming(2, 1_000)
            said = receipt(running.chat("large", "two words"))
    assert said["cost_usd"] == (2 * 10 + 1_000 * 20) / 1e6
    assert not said["cost_estimated"]
    assert total(str(tmp_path / "gateway.db"), "disputed:all").settled == Amount(calls=0)


def test_a_policys_claim_counts_up_to_what_its_model_can_take(tmp_path: Path) -> None:
    """All of a window of 3,000 tokens and as much output, at one and two dollars a million."""
    made_bundle(tmp_path)
    with Endpoint(reply=claiming(2, BILLION)) as stub:
        text = config(stub, tmp_path / "bundle") + RECORD
        text = text.replace(f'url = "{stub.url}"', f'url = "{stub.url}"\ncontext_window = 3000')
        with gateway(tmp_path, text) as running:
            said = receipt(running.chat("farthing/letters", SYSTEM, "number 7"))
    assert said["answered_by"] == "small"
    assert (said["cost_nano"], said["cost_estimated"]) == (3_000 * (1_000 + 2_000), True)
    assert total(str(tmp_path / "gateway.db")).settled.nano == said["cost_nano"]
