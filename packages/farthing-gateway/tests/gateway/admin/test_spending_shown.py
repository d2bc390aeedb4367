"""What days cost is what the ledger has of them; who may not see an account is not told of it."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from gateway_running import models, serve_section

from farthing_gateway.admin.figures import Figures
from farthing_gateway.admin.periods import Days, chosen
from farthing_gateway.admin.spending import has_spent, spending
from farthing_gateway.config import read_config
from farthing_gateway.storage.database import Step, open_database
from farthing_gateway.storage.keys import KeyRecord, open_keys

FIRST = datetime(2026, 11, 20, tzinfo=UTC)
ROW = """
INSERT INTO ledger_windows (account, "window", settled_nano, settled_tokens, settled_calls)
VALUES ($1, $2, $3, $4, $5)"""


def test_days_are_added_up_by_account(where: str, tmp_path: Path) -> None:
    names = [f"k{at:04}" for at in range(1_203)]
    file = tmp_path / "serve.toml"
    file.write_text(serve_section(database=where) + models("http://127.0.0.1:9/v1"))
    config = read_config(file, record=False)
    windows = ["2026-11-19", "2026-11-20", "2026-11-20T05", "2026-11-21", "2026-11-22", "2026-11"]
    days = Days("", FIRST, FIRST + timedelta(days=2))

    async def go() -> None:
        database, keys = await open_database(where), await open_keys(where)
        assert not await has_spent(database)
        records: list[KeyRecord] = [(await keys.make(names[0], "web"))[0]]
        records += [replace(records[0], id=name, name=name) for name in names[1:]]
        accounts = ["all", "team:web", "model:large", *(f"key:{name}" for name in names)]
        rows = [
            (account, window, 10**at, at, 1)
            for account in accounts
            for at, window in enumerate(windows)
        ]
        rows += [(account, "total", 7, 7, 7) for account in accounts[:4]]
        await database.write(Step(ROW, rows))
        assert await has_spent(database)
        found = await spending(database, config, records, days)
        whole = 10**1 + 10**3
        assert (found.all.nano, found.all.tokens, found.all.calls) == (whole, 4, 2)
        assert [one.name for one in found.by["key"]] == names
        assert {one.amount.nano for some in found.by.values() for one in some} == {whole}
        assert [one.account for one in found.by["team"]] == ["team:web"]
        less = await spending(database, config, [], days)
        assert less.all == found.all
        assert less.by["key"] == less.by["team"] == []
        assert [one.name for one in less.by["model"]] == ["large"]
        ever = await chosen({"range": "all"}, Figures(database), FIRST)
        every = await spending(database, config, records, ever)
        assert every.all.nano == 7
        assert [one.name for one in every.by["key"]] == names[:1]
        await database.aclose()
        await keys.aclose()

    asyncio.run(go())


@pytest.mark.parametrize(
    ("days", "hours", "bars"),
    [(1, 1, 24), (2, 1, 48), (3, 24, 3), (48, 24, 48), (49, 168, 7), (400, 672, 15)],
)
def test_a_chart_has_as_many_bars_as_can_be_read(days: int, hours: int, bars: int) -> None:
    of = Days("", FIRST, FIRST + timedelta(days=days))
    assert of.slot_hours == hours
    assert -(-days * 24 // hours) == bars


def test_a_chart_of_many_years_has_no_more_bars() -> None:
    of = Days("", FIRST - timedelta(days=9_000), FIRST)
    assert 9_000 * 24 / of.slot_hours <= 48
    assert of.slot_hours % 24 == 0
