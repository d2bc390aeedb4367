"""Requests by what became of their audits: those that a filter by hand gives, by an index."""

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from made_traffic import NOW, call, passed
from page_running import Browser, config, made_key, page, put

from farthing_gateway.admin import audits_read
from farthing_gateway.admin.audits_read import OUTCOMES, Outcome
from farthing_gateway.admin.requests_read import PAGE, PageCursor, audited_lines
from farthing_gateway.recording.record import PolicyDecision, RequestRecord
from farthing_gateway.storage.database import Database, Step, open_database

CAME: tuple[tuple[str, float | None], ...] = (
    ("done", 0.0), ("done", 1.0), ("waiting", None), ("done", None), ("failed", None), ("done", 0.5)
)  # fmt: skip
"""The states and grades that audits have in turn."""
FIT: dict[Outcome, set[int]] = {"failed": {0}, "kept": {1, 5}, "waiting": {2, 3}}


def audited(at: int) -> RequestRecord:
    one = passed(
        f"{at:032x}",
        at=NOW + timedelta(seconds=at // 2),
        policy="letters" if at % 5 else "support",
        calls=[call("small" if at % 7 else "large")],
    )
    decided = PolicyDecision(kind="agreement", graded_by="reference")
    one = replace(one, certificate="c", mode="default", decided=decided, audit=0.5)
    return replace(one, audited=at % 8 != 0, promise="agreement" if at % 3 else "none")


REQUESTS = [audited(at) for at in range(900)]


async def filled(where: str) -> Database:
    database = await open_database(where)
    rows = [(one.id, *CAME[at % len(CAME)]) for at, one in enumerate(REQUESTS)]
    sql = "UPDATE audits SET state = $2, value = CAST($3 AS DOUBLE PRECISION) WHERE id = $1"
    await database.write(Step(sql, rows))
    return database


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize(
    "wanted", [{}, {"policy": "support"}, {"promise": "none", "model": "small"}]
)
def test_pages_are_the_requests_whose_audits_came_to_it(
    where: str, outcome: Outcome, wanted: dict[str, str]
) -> None:
    put(where, *REQUESTS)
    by_hand = [
        one
        for at, one in enumerate(REQUESTS)
        if one.audited and at % len(CAME) in FIT[outcome]
        and all(getattr(one, name) == value for name, value in wanted.items())
    ]  # fmt: skip
    by_hand.sort(key=lambda one: (one.at, one.id), reverse=True)

    also = {f"{name} = {{}}": value for name, value in wanted.items()}

    async def play() -> None:
        database, place, found = await filled(where), PageCursor(), []
        while some := await audited_lines(database, outcome, also, place):
            found += some[:PAGE]
            if len(some) <= PAGE:
                break
            place = some[PAGE - 1].place
        assert [one.id for one in found] == [one.id for one in by_hand]
        for one in found:
            assert one.came is not None
            assert (one.came.state, one.came.value) == CAME[int(one.id, 16) % len(CAME)]
        await database.aclose()

    asyncio.run(play())


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_they_are_read_from_an_index_in_its_order(tmp_path: Path, outcome: Outcome) -> None:
    where = f"{tmp_path}/farthing.db"
    put(where, *REQUESTS[:50])

    async def play() -> None:
        database = await filled(where)
        sql, values = audits_read.query("id", outcome, {"policy = {}": "letters"}, (2**62, ""), 51)
        plan = [row[3] for row in await database.read(f"EXPLAIN QUERY PLAN {sql}", *values)]
        assert "audits USING INDEX audits_" in plan[0], plan
        assert "(at_us,id)<(?,?)" in plan[0], plan
        assert "TEMP B-TREE" not in " ".join(plan), plan
        await database.aclose()

    asyncio.run(play())


def test_the_list_says_what_became_of_audits_and_renews_itself_by_it(tmp_path: Path) -> None:
    where = str(tmp_path / "gateway.db")
    put(where, *REQUESTS[1:7])
    owner = made_key(where, "owner", "admin")
    with page(tmp_path, config().replace('bundle = "bundle"', "")) as running:
        browser = Browser(running)
        browser.login(owner)
        text = browser.get("/admin/requests").text
        assert text.count("audit: waits") == 6
        address = re.findall(r'hx-get="([^"]*)"', text)[0].replace("&amp;", "&")
        assert browser.get(address, HX_Request="true").status == 204

        async def grade() -> None:
            await (await filled(where)).aclose()

        asyncio.run(grade())
        text = browser.get(address, HX_Request="true").text
        assert text.count("audit: waits") == 2
        assert text.count("audit: ✓ kept") == 1
        assert text.count("audit: ✕ failed") == 1
        assert text.count("audit: given up") == 1
        failed = browser.get("/admin/requests?audits=failed").text
        assert re.findall(r'id="r-(\w+)"', failed) == [REQUESTS[6].id]
        assert 'value="failed" selected' in failed
        other = browser.get("/admin/requests?audits=other")
        assert (other.status, "audits come to failed, kept, waiting, and not" in other.text) == (
            422,
            True,
        )
