"""A limit on output tokens is sent where somebody names one; what is reserved without one."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint
from gateway_running import Reply, Running, gateway, models, serve_section
from serving import total

from farthing.errors import ConfigError
from farthing_gateway.config import read_config
from farthing_gateway.storage.migrations import migrate

LIMITS = ("max_tokens", "max_completion_tokens")
BUDGET = """
[[budgets]]
of = "model:large"
per = "total"
{limit}
"""


def text(stub: Endpoint, *, own: int | None = 1_000_000, budget: str = "", **serve: Any) -> str:
    """Return a configuration in which the models write so many tokens by themselves."""
    said = serve_section(**{"default_max_output": None, **serve}) + models(stub.url)
    if own is not None:
        said = said.replace("retries =", f"max_output = {own}\nretries =")
    return said + (BUDGET.format(limit=budget) if budget else "")


def asked(running: Running, **fields: Any) -> Reply:
    return running.chat("large", "two words", **fields)


def sent(stub: Endpoint) -> dict[str, Any]:
    """Return the limits that the last request had upstream."""
    return {name: value for name, value in stub.requests[-1].items() if name in LIMITS}


def receipt(reply: Reply) -> str:
    assert reply.status == 200, reply.body
    return str(reply.headers["X-Farthing-Max-Tokens"])


@pytest.mark.parametrize("stream", [False, True])
def test_a_limit_is_sent_where_the_client_or_the_configuration_names_one(
    tmp_path: Path, *, stream: bool
) -> None:
    with Endpoint() as stub:
        with gateway(tmp_path, text(stub)) as running:
            assert receipt(asked(running, stream=stream)) == "None"
            assert sent(stub) == {}
            asked(running, stream=stream, max_completion_tokens=7)
            assert sent(stub) == {"max_tokens": 7}
        with gateway(tmp_path, text(stub, default_max_output=90)) as running:
            asked(running, stream=stream)
            assert sent(stub) == {"max_tokens": 90}


def test_without_a_limit_as_much_is_reserved_as_the_model_may_write(tmp_path: Path) -> None:
    asyncio.run(migrate(str(tmp_path / "gateway.db")))
    with Endpoint(faults={"reset": 1.0}) as stub:
        for own, most in ((1_000, 1_000), (None, 2**21)):  # of unknown outcome: charged in full
            before = total(str(tmp_path / "gateway.db")).settled.tokens
            with gateway(tmp_path, text(stub, own=own)) as running:
                assert asked(running).status == 502
            charged = total(str(tmp_path / "gateway.db")).settled.tokens - before
            assert most < charged < most + 300


@pytest.mark.parametrize("budget", ["usd = 5.0", "tokens = 90_000"])
def test_what_cannot_be_paid_is_refused_with_the_figure_that_can(
    tmp_path: Path, budget: str
) -> None:
    with Endpoint() as stub, gateway(tmp_path, text(stub, budget=budget)) as running:
        refused = asked(running)
        assert (refused.status, refused.json["error"]["code"]) == (402, "budget_exceeded")
        said = refused.json["error"]["message"]
        assert ("$20" if "usd" in budget else "1,000,") in said
        figure = re.search(r"name a max_tokens: at most ([0-9,]+) can be paid now", said)
        assert figure is not None
        most = int(figure[1].replace(",", ""))
        assert asked(running, max_tokens=2 * most).status == 402
        assert asked(running, max_tokens=most).status == 200
        named = asked(running, max_tokens=10**6).json["error"]["message"]
        assert "name a max_tokens" not in named
        assert not any("1000000" in str(body) for body in stub.requests)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("budget", ["usd = 5.0", "tokens = 90_000"])
def test_where_so_configured_the_limit_that_can_be_paid_is_sent(
    tmp_path: Path, budget: str, *, stream: bool
) -> None:
    with Endpoint(lambda _: "word") as stub:
        shortening = text(stub, budget=budget, over_budget="shorten")
        with gateway(tmp_path, shortening) as running:
            first = receipt(asked(running, stream=stream))
            assert sent(stub) == {"max_tokens": int(first)}
            assert int(first) > 80_000
            again = int(receipt(asked(running, stream=stream, farthing={"budget": 0.01})))
            assert 300 < again < 500
            assert asked(running, stream=stream, max_tokens=10**6).status == 402
            assert receipt(asked(running, max_tokens=9)) == "None"
    balance = total(str(tmp_path / "gateway.db"))
    assert (balance.held.nano, balance.overcharged_nano) == (0, 0)


def test_a_figure_that_the_model_may_not_take_is_no_promise(tmp_path: Path) -> None:
    said = []
    with Endpoint() as stub:
        for own in (1_000_000, None):
            with gateway(tmp_path, text(stub, own=own, budget="usd = 5.0")) as running:
                said.append(asked(running).json["error"]["message"])
    lower = "the limit of large itself may be lower"
    assert [lower in one for one in said] == [False, True]


def test_shortening_needs_to_know_how_much_each_model_writes(tmp_path: Path) -> None:
    written = text(
        Endpoint(url="http://127.0.0.1:9/v1"),
        own=None,
        over_budget="shorten",
        strongest="large@low",
    )
    (tmp_path / "serve.toml").write_text(written)
    with pytest.raises(ConfigError) as refused:
        read_config(tmp_path / "serve.toml")
    found = re.findall(
        r"models\.(\S+)\.max_output: is missing|and models\.(\S+)\.max_output", str(refused.value)
    )
    assert [one or other for one, other in found] == ["small", "large"]
    limited = written.replace("[serve]", "[serve]\ndefault_max_output = 90")
    (tmp_path / "serve.toml").write_text(limited)  # no request is without a limit
    assert read_config(tmp_path / "serve.toml").serve.over_budget == "shorten"


@pytest.mark.parametrize("stream", [False, True])
def test_a_try_that_is_shortened_is_one_of_those_that_are_allowed(
    tmp_path: Path, *, stream: bool
) -> None:
    replies = [
        web.Response(text="{", content_type="application/json"),  # paid for, as far as is known
        web.json_response({"error": {"message": "it broke"}}, status=500),
    ]
    with Endpoint() as stub:
        stub.reply = lambda _: replies.pop(0)
        shortening = text(stub, own=100_000, budget="usd = 3.0", over_budget="shorten")
        two = shortening.replace("tries = 1", "tries = 2, first_s = 0.01")
        with gateway(tmp_path, two) as running:
            assert asked(running, stream=stream).status == 502
    assert [body.get("max_tokens", 0) > 0 for body in stub.requests] == [False, True]


def test_a_reply_is_not_shortened_to_a_few_tokens(tmp_path: Path) -> None:
    with Endpoint() as stub:
        shortening = text(stub, budget="usd = 0.0015", over_budget="shorten")
        with gateway(tmp_path, shortening) as running:
            refused = asked(running)
        assert refused.status == 402
        assert "max_tokens" not in refused.json["error"]["message"]
        assert not stub.requests
