"""A day under a pacer: the money lasts, and a new day begins anew."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chat_server import Endpoint
from gateway_running import models, serve_section
from policy_running import POLICY, SYSTEM, made_bundle

from farthing.budgets.pacing.base import PacingState
from farthing_gateway.app_state import open_gateway
from farthing_gateway.chat_request import read_request
from farthing_gateway.config import read_config
from farthing_gateway.config_sections import PacingSection
from farthing_gateway.deadline import Deadline
from farthing_gateway.errors import ApiError
from farthing_gateway.pacing import Pace
from farthing_gateway.request_context import RequestContext
from farthing_gateway.storage.migrations import migrate

MORNING = datetime(2026, 11, 1, tzinfo=UTC)
CHEAP, DEAR = 100_000, 1_000_000


def mode(name: str, cost_nano: int, accuracy: float) -> Any:
    """Return a bundle as a pacer sees it."""
    yours = SimpleNamespace(cost_nano=cost_nano * 100, questions=100, accuracy=accuracy)
    value = SimpleNamespace(yours=yours)
    return SimpleNamespace(mode=name, reliability=None, value=value)


MODES = [mode("careful", DEAR, 0.95), mode("economy", CHEAP, 0.90)]


def day(pace: Pace, begun: datetime, requests: int) -> tuple[int, list[str]]:
    """Return what a day's requests cost, and their modes."""
    spent, names = 0, []
    for at in range(requests):
        now = begun + timedelta(days=1) * at / requests
        paced = pace.choose(MODES, now)
        cost = DEAR if paced.mode.mode == "careful" else CHEAP
        spent += cost
        names.append(paced.mode.mode)
        pace.settle(paced, cost, now)
    return spent, names


@pytest.mark.parametrize("workers", [1, 4])
def test_a_days_money_lasts_the_day(workers: int) -> None:
    section = PacingSection(usd_per_day=0.4, requests=1_000)
    paces = [Pace.of(section, workers) for _ in range(workers)]
    found = [day(pace, MORNING, 1_000 // workers) for pace in paces]
    assert 360_000_000 <= sum(spent for spent, _ in found) <= 400_000_000
    for _, names in found:
        half = len(names) // 2
        assert names[half:].count("careful") >= 0.2 * half  # the evening has its share


def test_a_new_day_has_its_own_money_and_yesterdays_hours() -> None:
    pace = Pace.of(PacingSection(usd_per_day=0.4, requests=1_000), 1)
    day(pace, MORNING, 1_000)
    spent, _ = day(pace, MORNING + timedelta(days=1), 1_000)
    assert 360_000_000 <= spent <= 400_000_000
    assert pace.usual is not None
    assert sum(pace.usual) == 1_000


def test_where_nothing_is_left_the_cheapest_is_taken_and_the_ledger_decides() -> None:
    pace = Pace.of(PacingSection(usd_per_day=0.00005, requests=10), 1)
    paced = pace.choose(MODES, MORNING)
    assert paced.mode.mode == "economy"
    assert paced.option.largest_nano == 0
    pace.settle(paced, CHEAP, MORNING)


def test_what_was_not_answered_is_given_back() -> None:
    pace = Pace.of(PacingSection(usd_per_day=1.0, requests=10), 1)
    paced = pace.choose(MODES, MORNING)
    assert pace.state.reserved_nano == paced.option.largest_nano > 0
    pace.settle(paced, None, MORNING)
    assert (pace.state.reserved_nano, pace.state.spent_nano) == (0, 0)


def test_what_failed_and_was_charged_is_spent(tmp_path: Path) -> None:
    made_bundle(tmp_path)
    modes = "[policies.letters.modes]\nfirst = 'bundle'\nsecond = 'bundle'\n"
    paced = "[policies.letters.pacing]\nusd_per_day = 1\nrequests = 100\n"
    said = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "7"}]
    body = json.dumps({"model": "farthing/letters", "messages": said}).encode()

    async def ask(url: str) -> tuple[PacingState, int]:
        text = serve_section() + models(url) + POLICY.replace('bundle = "bundle"\n', "")
        (tmp_path / "serve.toml").write_text(text + modes + paced)
        await migrate(str(tmp_path / "gateway.db"))
        async with open_gateway(read_config(tmp_path / "serve.toml"), watch=False) as gateway:
            asked = RequestContext(read=read_request(body, {}), deadline=Deadline.within(30.0))
            with pytest.raises(ApiError):
                await gateway.chat.whole(asked, None)
            (balance,) = [b for b in await gateway.ledger.balances(["all"]) if b.period == "total"]
            return gateway.chat.paces["letters"].state, balance.settled.nano

    with Endpoint(faults={"garbage": 1.0}) as stub:
        state, charged = asyncio.run(ask(stub.url))
    assert state.spent_nano == charged > 0
    assert state.reserved_nano == 0


def test_what_midnight_divides_is_the_first_days() -> None:
    pace = Pace.of(PacingSection(usd_per_day=1.0, requests=10), 1)
    late = pace.choose(MODES, MORNING + timedelta(hours=23, minutes=59))
    early = pace.choose(MODES, MORNING + timedelta(days=1, minutes=1))
    pace.settle(late, DEAR, MORNING + timedelta(days=1, minutes=2))
    assert pace.state.reserved_nano == early.option.largest_nano > 0
    assert pace.state.spent_nano == 0


def test_bidding_is_told_what_a_day_can_be_answered_in() -> None:
    section = PacingSection(usd_per_day=0.4, requests=1_000, pacer="bidding")
    pace = Pace.of(section, 1)
    before = pace.pacer
    spent, names = day(pace, MORNING, 1_000)
    assert pace.pacer != before
    assert 360_000_000 <= spent <= 400_000_000
    assert len(names) == 1_000
    free = Pace.of(section, 1)
    assert free.choose([mode("only", 0, 0.9)], MORNING).mode.mode == "only"
    assert free.pacer == before, "where nothing costs anything there is nothing to learn"
