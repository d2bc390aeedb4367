"""What a request's tries cost reaches its budget and its receipt, to the nano-dollar."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion
from gateway_running import Running, gateway, models, serve_section
from policy_running import letter
from serving import marked, total, until

from farthing.models.prices import Rates, TokenPrice
from farthing.traces.base import Call
from farthing_gateway.policy_reply import Baseline
from farthing_gateway.storage.ledger.base import Amount

SECTION = serve_section(default_max_output=1_000)


def most(folder: Path) -> Amount:
    """Return what one call to `large` can take at most: what a lost one is charged."""
    folder.mkdir()
    with Endpoint(faults={"cut": 1.0}) as stub, gateway(folder, SECTION + models(stub.url)) as one:
        one.chat("large", "two words")
    (lost,) = marked(str(folder / "gateway.db"))
    return lost.amount


def claiming(read: int, written: int) -> Any:
    usage = {"prompt_tokens": read, "completion_tokens": written}
    return lambda body: web.json_response(
        completion(body, letter(body["messages"])) | {"usage": usage}
    )


def settled(running: Running, account: str) -> Amount:
    """Return what an account has, once nothing is under way."""
    database = str(running.folder / "gateway.db")
    until(lambda: not total(database).held.calls)
    return total(database, account).settled


@pytest.mark.parametrize("beyond", ["money", "tokens"])
def test_a_claim_beyond_one_bound_alone_is_disputed(tmp_path: Path, beyond: str) -> None:
    """All the tokens that a call can take, all written: dearer than it can be. And the reverse."""
    bound = most(tmp_path / "bound")
    read, written = (1, bound.tokens - 1) if beyond == "money" else (bound.tokens + 6, 1)
    claimed = 10_000 * read + 20_000 * written
    assert (claimed > bound.nano) == (beyond == "money")
    with (
        Endpoint(reply=claiming(read, written)) as stub,
        gateway(tmp_path, SECTION + models(stub.url)) as running,
    ):
        said = running.chat("large", "two words").json["farthing"]
        until(lambda: total(str(tmp_path / "gateway.db"), "disputed:all").settled.calls == 1)
        rest, charged = settled(running, "disputed:all"), settled(running, "all")
    assert rest.tokens == max(0, read + written - bound.tokens)
    assert rest.nano == max(0, claimed - bound.nano)
    assert charged == Amount(min(claimed, bound.nano), min(read + written, bound.tokens), 1)
    assert said["cost_nano"] == charged.nano
    assert said["cost_estimated"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_try_that_failed_counts_in_the_budget_of_its_request(
    tmp_path: Path, *, stream: bool
) -> None:
    """The next one is made where both can be paid, and not for a nano-dollar less."""
    bound = most(tmp_path / "bound").nano
    for nano, tries in ((2 * bound, 2), (2 * bound - 1, 1)):
        folder = tmp_path / str(nano)
        folder.mkdir()
        with (
            Endpoint(faults={"reset": 1.0}, only_first=True) as stub,
            gateway(folder, SECTION + models(stub.url, tries=2)) as running,
        ):
            budget = {"X-Farthing-Budget": f"{nano / 1e9:.9f}"}
            reply = running.chat("large", "two words", headers=budget, stream=stream)
        assert len(stub.requests) == tries
        assert reply.status == (200 if tries == 2 else 402)
        if tries == 1:
            assert "of which tries that failed took" in reply.json["error"]["message"]


def test_a_try_that_failed_is_in_the_cost_of_its_reply(tmp_path: Path) -> None:
    bound = most(tmp_path / "bound").nano
    with (
        Endpoint(faults={"cut": 1.0}, only_first=True) as stub,
        gateway(tmp_path, SECTION + models(stub.url, tries=2)) as running,
    ):
        said = running.chat("large", "two words").json["farthing"]
        paid = 2 * 10_000 + 4 * 20_000
        assert [one["cost_usd"] for one in said["calls"]] == [bound / 1e9, paid / 1e9]
        assert said["cost_nano"] == bound + paid == settled(running, "all").nano
    assert said["saved_usd"] == pytest.approx(-bound / 1e9)  # large itself is what is saved on


def test_the_strongest_would_have_cost_its_own_tokens_or_those_of_the_last_reply() -> None:
    price = TokenPrice((Rates(Decimal(10), Decimal(20)),))
    strongest = Baseline("large", price)

    def call(role: str, read: int | None, wrote: int | None) -> Call:
        return Call(round=1, role=role, input_tokens=read, output_tokens=wrote)

    first, last, unsaid = call("small", 10, 5), call("small", 30, 9), call("small", None, None)
    own = call("large", 20, 7)
    assert strongest.would_cost([first, own, last, unsaid]) == 20 * 10_000 + 7 * 20_000
    assert strongest.would_cost([first, last, unsaid]) == 30 * 10_000 + 9 * 20_000
    assert strongest.would_cost([call("large", None, None), first]) == 10 * 10_000 + 5 * 20_000
    assert strongest.would_cost([unsaid]) is strongest.would_cost([]) is None
    assert Baseline("large", None).would_cost([first]) is None
