"""What budgets go by is seen: in a command, at an address, in metrics, beside what is recorded."""

import asyncio
import json
import re
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from gateway_running import gateway, models, serve_section
from made_traffic import call, passed

from farthing.cli.main import _run as farthing
from farthing_gateway.recording.traffic import open_traffic
from farthing_gateway.recording.traffic_summary import LedgerComparison, summarise
from farthing_gateway.spending_report import charged
from farthing_gateway.storage.keys import KeyLimit, Scope, open_keys
from farthing_gateway.storage.ledger.base import Amount, Limit
from farthing_gateway.storage.ledger.ledger import open_ledger
from farthing_gateway.storage.migrations import migrate

NOW = datetime(2026, 11, 22, 14, 5, tzinfo=UTC)
BUDGETS = """
[[budgets]]
of = "all"
per = "day"
usd = 5.0
[[budgets]]
of = "model:large"
per = "total"
calls = 100
"""


ANSWERED = (2 * 10 + 4 * 20) / 1e6
"""What the answer costs: two tokens read and four written, a million at 10 and 20 dollars."""


def keyed(folder: Path, name: str, *scopes: Scope, limits: tuple[KeyLimit, ...] = ()) -> str:
    """Make a key; return the header that it opens with."""

    async def make() -> str:
        await migrate(str(folder / "gateway.db"))
        keys = await open_keys(str(folder / "gateway.db"))
        try:
            return (await keys.make(name, "web", scopes, limits))[1]
        finally:
            await keys.aclose()

    return f"Bearer {asyncio.run(make())}"


def test_what_was_spent_held_and_left(where: str) -> None:
    limit, other = Limit("key:a", "usd", "day", 1_000), Limit("key:a", "calls", "total", 2)

    async def play() -> None:
        now = NOW
        ledger = await open_ledger(where, lambda: now)
        first = await ledger.reserve(["all", "key:a"], Amount(400, 9), (), lease_s=60)
        await ledger.settle(first, Amount(300, 7))
        now += timedelta(days=1)
        await ledger.reserve(["all", "key:a"], Amount(250, 5), (), lease_s=60)
        lost = await ledger.reserve(["all", "key:b"], Amount(50, 5), (), lease_s=60, sent=True)
        await ledger.unknown(lost)
        found = await charged(ledger, ["all"], [limit, other, limit])
        every, key = found.accounts
        assert (every.name, every.today.nano, every.total.nano) == ("all", 50, 350)
        assert (key.name, key.today, key.held) == ("key:a", Amount(0, 0, 0), Amount(250, 5, 1))
        day, total = found.limits
        assert (day.spent, day.held, day.left) == (0, 250, 750)
        assert day.resets_at == datetime(2026, 11, 24, tzinfo=UTC)
        assert (total.spent, total.held, total.left, total.resets_at) == (1, 1, 0, None)
        assert [one.id for one in found.unknown] == [lost.id]
        assert (await charged(ledger, ["key:a"], [])).unknown == ()  # those of others are not its
        await ledger.aclose()

    asyncio.run(play())


def test_recorded_days_are_compared_with_the_ledgers(where: str) -> None:
    """Of the oldest day some may have been deleted, once the ledger knows an earlier one."""

    async def charge(at: datetime, nano: int) -> None:
        ledger = await open_ledger(where, lambda: at)
        hold = await ledger.reserve(["all", "model:large"], Amount(nano), (), lease_s=60)
        await ledger.settle(hold, Amount(nano))
        await ledger.aclose()

    async def play() -> None:
        traffic = await open_traffic(where, None, keep_prompts=True)
        for day in range(3):
            traffic.put(passed(f"q{day}", at=NOW + timedelta(days=day)))  # a cent each
        await traffic.attach("q2", [call("small", cost_usd=0.001)])
        await traffic.aclose()
        assert (await summarise(where)).compared is None  # there is no ledger
        for day in range(3):
            await charge(NOW + timedelta(days=day), 12_000_000)
        assert (await summarise(where)).compared == LedgerComparison(
            NOW.date(), 31_000_000, 36_000_000
        )
        await charge(NOW - timedelta(days=1), 50_000_000)
        tomorrow = NOW.date() + timedelta(days=1)
        assert (await summarise(where)).compared == LedgerComparison(
            tomorrow, 21_000_000, 24_000_000
        )

    asyncio.run(play())


@dataclass(frozen=True)
class Seen:
    """What was said after one answer and one call of unknown outcome."""

    folder: Path
    own: Any
    read: Any
    whole: Any
    metrics: dict[str, float]

    @property
    def unknown(self) -> float:
        """What the lost call is charged."""
        return float(self.own["unknown"]["usd"])


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("seen")
    caller = keyed(folder, "app", "call", limits=(KeyLimit("usd", "day", 2_000_000_000),))
    reader, owner = keyed(folder, "see", "read"), keyed(folder, "owner", "admin")
    with Endpoint() as stub:
        text = serve_section(keys=True, default_max_output=1_000) + models(stub.url) + BUDGETS
        with gateway(folder, text + "[record]\nshare = 0.0\n") as running:
            opens = {"Authorization": caller}
            assert running.chat("large", "two words", headers=opens).status == 200
            stub.faults = {"cut": 1.0}
            assert running.chat("large", "two words", headers=opens).status == 502
            own = running.get("/v1/spending", Authorization=caller).json
            read = running.get("/v1/spending", Authorization=reader).json
            whole = running.get("/v1/spending", Authorization=owner).json
            assert running.get("/v1/spending").status == 401
            assert running.get("/ready", Authorization=caller).json == {"status": "ready"}
            assert running.get("/ready").json == {"status": "ready"}
            assert "policies" in running.get("/ready", Authorization=reader).json
            text = running.get("/metrics", Authorization=reader).body.decode()
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return Seen(folder, own, read, whole, {name: float(value) for name, value in lines})


def test_a_key_is_told_its_own_limits(seen: Seen) -> None:
    assert seen.unknown > 0.02  # a thousand tokens at 20 dollars a million, and what is read
    assert seen.own["unknown"]["calls"] == 1
    assert [one["account"] for one in seen.own["accounts"]] == ["key:app"]
    (limit,) = seen.own["limits"]
    assert (limit["account"], limit["unit"], limit["period"]) == ("key:app", "usd", "day")
    assert limit["spent"] == pytest.approx(ANSWERED + seen.unknown)
    assert limit["left"] == pytest.approx(2 - ANSWERED - seen.unknown)


def test_who_may_read_is_not_told_of_other_keys(seen: Seen) -> None:
    accounts = {one["account"]: one for one in seen.read["accounts"]}
    for name in ("all", "model:large"):
        assert accounts[name]["today"]["usd"] == pytest.approx(ANSWERED + seen.unknown)
    named = {*accounts, *(one["account"] for one in seen.read["limits"])}
    assert {name for name in named if name.startswith(("key:", "team:"))} == {
        "key:see",
        "team:web",  # its own
    }


def test_an_admin_is_told_everything(seen: Seen) -> None:
    accounts = {one["account"]: one for one in seen.whole["accounts"]}
    for name in ("all", "key:app", "team:web", "model:large"):
        assert accounts[name]["today"]["usd"] == pytest.approx(ANSWERED + seen.unknown)
    limits = {(one["account"], one["unit"]): one["left"] for one in seen.whole["limits"]}
    assert limits["all", "usd"] == pytest.approx(5 - ANSWERED - seen.unknown)
    assert limits["model:large", "calls"] == 98


def test_metrics_count_what_failed_as_the_ledger_does(seen: Seen) -> None:
    assert seen.metrics['farthing_cost_usd_total{model="large"}'] == pytest.approx(ANSWERED)
    everything = seen.metrics['farthing_charged_usd{account="all"}']
    assert everything == pytest.approx(ANSWERED + seen.unknown)
    assert seen.metrics["farthing_unknown_usd"] == pytest.approx(seen.unknown)
    left = seen.metrics['farthing_limit_left_usd{account="all",period="day"}']
    assert left == pytest.approx(5 - ANSWERED - seen.unknown)
    assert not any("app" in name for name in seen.metrics)


def test_recorded_traffic_says_how_far_it_is_from_the_ledger(
    seen: Seen, capsys: pytest.CaptureFixture[str]
) -> None:
    compared = asyncio.run(summarise(str(seen.folder / "gateway.db"))).compared
    assert compared is not None
    assert compared.recorded_nano == ANSWERED * 1e9
    assert compared.charged_nano == pytest.approx((ANSWERED + seen.unknown) * 1e9)
    assert farthing(["traffic", "show", "--config", str(seen.folder / "serve.toml")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"the ledger was charged \$0\.02\d+, \$0\.02\d+ more than is recorded", shown)


def test_a_call_of_unknown_outcome_is_listed_and_settled(
    seen: Seen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(seen.folder, tmp_path, dirs_exist_ok=True)
    config = str(tmp_path / "serve.toml")
    assert farthing(["spending", config]) == 0
    printed = capsys.readouterr()
    assert max(map(len, printed.out.splitlines())) <= 80
    assert re.search(r"key:app \$2 a day +\$0\.02\d+ +\$0 +\$1\.97", printed.out)
    assert "1 call of unknown outcome" in printed.err
    assert farthing(["spending", config, "--unknown", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert farthing(["spending", config, "--unknown"]) == 0
    listed = capsys.readouterr().out
    assert one["id"][:12] in listed
    assert "key:app" in listed
    beyond = ["spending", config, "--settle", one["id"], "--usd", "5"]
    assert farthing(beyond) == 2
    assert "can have cost $0.02" in capsys.readouterr().err
    assert farthing(["spending", config, "--settle", one["id"][:12], "--usd", "0.001"]) == 0
    capsys.readouterr()
    assert farthing(["spending", config, "--json"]) == 0
    settled = json.loads(capsys.readouterr().out)
    assert settled["unknown"] == {"calls": 0, "usd": 0.0}
    assert settled["accounts"][0]["total"]["usd"] == pytest.approx(ANSWERED + 0.001)
    assert farthing(["spending", config, "--settle", one["id"], "--usd", "0.001"]) == 2
    assert "no call of unknown outcome" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--settle", "x"), "--settle ID needs --usd"),
        (("--usd", "1"), "the id of a call"),
        (("--settle", "x", "--usd", "-1"), "is no amount"),
        ((), "there is no such database"),
    ],
)
def test_wrong_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "serve.toml").write_text(serve_section() + models("http://127.0.0.1:9/v1"))
    assert farthing(["spending", str(tmp_path / "serve.toml"), *arguments]) == 2
    line = capsys.readouterr().err
    assert said in line
    assert line.count("\n") == 1
    assert not (tmp_path / "gateway.db").exists()
