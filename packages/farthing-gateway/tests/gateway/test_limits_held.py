"""What a request through the gateway may spend, whoever answers it: limits, failures, windows."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from gateway_running import gateway, models, serve_section
from policy_running import SYSTEM, config, letter, made_bundle
from serving import marked, total, until

from farthing.errors import ConfigError, ModelError
from farthing.runtime.journal import Attempt, entry
from farthing_gateway import app_state
from farthing_gateway.charging import ChargingJournal, RequestCharges, RequestLimits
from farthing_gateway.config import read_config
from farthing_gateway.config_sections import AUDIT, SHADOW
from farthing_gateway.storage.keys import KeyLimit, open_keys
from farthing_gateway.storage.ledger.base import Amount, Limit, LimitError, Unit
from farthing_gateway.storage.ledger.ledger import open_ledger
from farthing_gateway.storage.migrations import migrate

MANY = 45
OTHER = '"other-2026" = { input_per_million = 1, output_per_million = 1 }\n'
DOORS = pytest.mark.parametrize("door", ["model", "stream", "policy"])


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle of an agreement."""
    folder = tmp_path_factory.mktemp("bundle")
    made_bundle(folder)
    return folder / "bundle"


def through(door: str) -> dict[str, Any]:
    """Return what is asked through a door: a model, whole or as a stream, or a policy."""
    system = {"role": "system", "content": SYSTEM}
    user = {"role": "user", "content": "number 7"}
    return {
        "model": "farthing/letters" if door == "policy" else "small",
        "messages": [system, user],
        "stream": door == "stream",
    }


def made_key(folder: Path, name: str, *limits: KeyLimit) -> dict[str, str]:
    """Make a key; return the header that it opens with."""

    async def make() -> str:
        await migrate(str(folder / "gateway.db"))
        keys = await open_keys(str(folder / "gateway.db"))
        try:
            return (await keys.make(name, None, ["call"], limits))[1]
        finally:
            await keys.aclose()

    return {"Authorization": f"Bearer {asyncio.run(make())}"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        {"max_completion_tokens": 2**31 - 1, "n": 128},
        {"thinking_budget": 10**18},
        {"thinking_budget": 2**64 - 1, "n": 128},
    ],
)
def test_what_no_budget_can_hold_is_refused(
    tmp_path: Path, more: dict[str, Any], *, stream: bool
) -> None:
    with Endpoint() as stub:
        text = serve_section() + models(stub.url).replace(" = 20 ", " = 60 ")
        with gateway(tmp_path, text) as running:
            reply = running.chat("large", "x", stream=stream, **more)
    assert (reply.status, stub.requests) == (400, [])
    assert "ask for fewer" in reply.json["error"]["message"]


@DOORS
@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (KeyLimit("calls", "total", 1), "1 call in total on key:app"),
        (KeyLimit("usd", "day", 400_000), "$0.0004 a day on key:app"),
        (KeyLimit("tokens", "month", 400), "400 tokens a month on key:app"),
    ],
)
def test_a_keys_own_limits_hold_and_are_no_other_keys(
    tmp_path: Path, bundle: Path, door: str, limit: KeyLimit, said: str
) -> None:
    tight, other = made_key(tmp_path, "app", limit), made_key(tmp_path, "other")
    with Endpoint(letter) as stub:
        text = config(stub, bundle, keys=True, default_max_output=20)
        text = text.replace("max_tokens = 50", "max_tokens = 20")
        with gateway(tmp_path, text) as running:
            statuses = [running.post(through(door), tight).status for _ in range(MANY)]
            answered = statuses.count(200)
            assert 1 <= answered < MANY
            assert statuses == [200] * answered + [402] * (MANY - answered)
            assert len(stub.requests) == answered, "nothing is sent that a limit refuses"
            assert said in running.post(through(door), tight).json["error"]["message"]
            assert running.post(through(door), other).status == 200
    spent = total(str(tmp_path / "gateway.db"), "key:app").settled
    assert spent.of(limit.unit) <= limit.most


@DOORS
@pytest.mark.parametrize("fault", ["cut", "reset"])
def test_a_failure_of_unknown_cost_is_booked_at_its_bound(
    tmp_path: Path, bundle: Path, door: str, fault: str
) -> None:
    with (
        Endpoint(letter, faults={fault: 1.0}) as stub,
        gateway(tmp_path, config(stub, bundle, default_max_output=1_000)) as running,
    ):
        running.post(through(door))
        asked = len(stub.requests)
    database = str(tmp_path / "gateway.db")
    found, balance = marked(database), total(database)
    assert balance.held == Amount(calls=0)
    assert balance.settled.calls == len(found) == asked > 0
    assert balance.settled.nano == sum(one.amount.nano for one in found)
    assert all(one.amount.nano > 50 * 2 * 1_000 for one in found), (
        "50 tokens at 2 dollars a million"
    )


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_may_cost_as_much_as_its_budget_and_no_nano_dollar_more(
    tmp_path: Path, *, stream: bool
) -> None:
    asked: dict[str, Any] = {"max_tokens": 7, "stream": stream}
    with (
        Endpoint(faults={"cut": 1.0}) as stub,
        gateway(tmp_path, serve_section() + models(stub.url)) as running,
    ):
        running.chat("large", "two words", **asked)
        (most,) = [one.amount.nano for one in marked(str(tmp_path / "gateway.db"))]
        stub.faults = {}
        for nano, status in ((most, 200), (most - 1, 402)):
            budget = {"X-Farthing-Budget": f"{nano / 1e9:.9f}"}
            assert running.chat("large", "two words", headers=budget, **asked).status == status


def test_a_failure_whose_cost_nobody_knows_is_booked_at_its_bound(where: str) -> None:
    failed = ModelError("no word on its cost", cost_nano=None)

    async def run() -> None:
        ledger = await open_ledger(where)
        charges = RequestCharges(ledger, RequestLimits({}), None, 60.0)
        journal = ChargingJournal(charges, {"small": "small-2026"})
        number = await journal.start(entry(Attempt("q", 1, "small"), "small-2026", "x", 0), 700)
        await journal.fail(number, failed, None)
        hold = await charges.reserve("large", Amount(900, 10))
        with pytest.raises(ModelError):
            async with charges.trying("large", hold):
                raise failed
        assert charges.spent_nano == 1_600
        (balance,) = [one for one in await ledger.balances(["all"]) if one.period == "total"]
        assert (balance.settled.nano, balance.held.nano) == (1_600, 0)
        assert sorted(one.amount.nano for one in await ledger.unknowns()) == [700, 900]
        await ledger.aclose()

    asyncio.run(run())


@pytest.mark.parametrize("held", [Amount(0, 0, 1), Amount(0, 7, 0), Amount(7, 0, 0)])
def test_a_window_in_which_anything_is_held_is_not_forgotten(where: str, held: Amount) -> None:
    """A call of a free model is held at $0, and a limit on calls counts it all the same."""
    now = datetime(2026, 11, 22, 14, 5, tzinfo=UTC)
    unit: Unit = "calls" if held.calls else "tokens" if held.tokens else "usd"
    most = held.of(unit)
    limits = [Limit("all", unit, "minute", most), Limit("all", unit, "hour", most)]

    async def run() -> None:
        ledger = await open_ledger(where, lambda: now)
        hold = await ledger.reserve(["all"], held, (), lease_s=60)
        await ledger.forget(now + timedelta(days=2))
        for limit in limits:
            with pytest.raises(LimitError):
                await ledger.reserve(["all"], held, [limit], lease_s=60)
        await ledger.settle(hold, held)
        for limit in limits:
            with pytest.raises(LimitError):
                await ledger.reserve(["all"], held, [limit], lease_s=60)
        found = {one.period: one for one in await ledger.balances(["all"])}
        assert found["minute"].settled == found["hour"].settled == held
        await ledger.aclose()

    asyncio.run(run())


def test_what_is_free_counts_as_a_call(tmp_path: Path) -> None:
    free = '[prices]\n"free-2026" = { input_per_million = 0, output_per_million = 0 }\n'
    with Endpoint() as stub:
        text = serve_section(strongest="free") + models(stub.url, "free").partition("[prices]")[0]
        text += free + '[[budgets]]\nof = "all"\nper = "day"\ncalls = 2\n'
        with gateway(tmp_path, text) as running:
            statuses = [running.chat("free", "two words").status for _ in range(3)]
    assert statuses == [200, 200, 402]


@pytest.mark.parametrize(("trials", "audits"), [(1.0, 0.0), (0.0, 1.0)])
def test_trials_and_audits_have_money_of_their_own(
    tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch, trials: float, audits: float
) -> None:
    monkeypatch.setattr(app_state, "AUDIT_S", 0.05)
    with Endpoint(letter) as stub:
        text = config(stub, bundle).replace(
            "[policies.letters]\n", '[policies.letters]\naudit = 1.0\ntrial = ["other"]\n'
        )
        text += models(stub.url, "other").partition("[prices]")[0]
        text = text.replace("[prices]\n", f"[prices]\n{OTHER}")
        text += f"[record]\nshare = 1.0\nusd_per_day = {trials}\naudit_usd_per_day = {audits}\n"
        with gateway(tmp_path, text) as running:
            assert running.post(through("policy")).status == 200
            until(lambda: len(stub.requests) == 2)
            time.sleep(0.5)  # so long the one without money would have had
        asked = [one["model"] for one in stub.requests]
    assert asked == ["small-2026", "other-2026" if trials else "large-2026"]
    database = str(tmp_path / "gateway.db")
    spent = [total(database, f"policy:{name}").settled.calls for name in (SHADOW, AUDIT)]
    assert spent == [int(trials), int(audits)]


def test_a_budget_of_the_configuration_holds_for_audits_too(
    tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_state, "AUDIT_S", 0.05)
    with Endpoint(letter) as stub:
        text = config(stub, bundle).replace(
            "[policies.letters]\n", "[policies.letters]\naudit = 1.0\n"
        )
        text += '[[budgets]]\nof = "policy:audit"\nper = "day"\ncalls = 1\n[record]\nshare = 0.0\n'
        with gateway(tmp_path, text) as running:
            assert [running.post(through("policy")).status for _ in range(3)] == [200] * 3
            until(lambda: len(stub.requests) == 4)
            time.sleep(0.5)
            assert len(stub.requests) == 4
    assert total(str(tmp_path / "gateway.db"), "policy:audit").settled.calls == 1


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (
            (
                '[policies.one]\npool = ["small"]\nbundle = "b"\n'
                "[policies.one.pacing]\nusd_per_day = 1.0\nrequests = 9\n"
            ),
            "needs two modes or more",
        ),
        ('[policies.audit]\npool = ["small"]\n', "is what background calls are charged to"),
        ('[policies.shadow]\npool = ["small"]\n', "is what background calls are charged to"),
    ],
)
def test_a_policy_whose_money_could_not_be_told_apart_is_refused(
    tmp_path: Path, section: str, said: str
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(serve_section() + models("http://127.0.0.1:9/v1") + section)
    with pytest.raises(ConfigError, match=said):
        read_config(file)
