"""Limits of a key are changed where keys are: each by itself, and never by half."""

import asyncio
import re
from pathlib import Path

import pytest
from page_running import Browser, made_key, words

from farthing_gateway.storage.keys import KeyLimit, KeyRecord, open_keys

DAY = {"was:usd:day": "20", "most:usd:day": "20"}


def shop(browser: Browser) -> KeyRecord:
    """Return the key of the shop as it is now."""

    async def look() -> KeyRecord:
        keys = await open_keys(str(browser.running.folder / "gateway.db"))
        found = next(one for one in await keys.list() if one.name == "shop")
        await keys.aclose()
        return found

    return asyncio.run(look())


def test_a_limit_is_changed_another_added_and_one_ended(browser: Browser) -> None:
    def save(**fields: str) -> int:
        sent = {"id": shop(browser).id, **fields}
        return browser.submit("/admin/keys", "/admin/keys/limits", **sent).status

    assert save(**DAY, most="1000", unit="calls", period="hour") == 303
    day, hour = KeyLimit("usd", "day", 20 * 10**9), KeyLimit("calls", "hour", 1_000)
    assert shop(browser).limits == (day, hour)
    said = words(browser, "/admin/keys")
    assert "1,000 calls an hour 1 call spent of it" in said
    assert save(**DAY | {"most:usd:day": "2.5"}) == 303
    assert shop(browser).limits == (KeyLimit("usd", "day", 2_500_000_000), hour)
    field = re.search(r'name="most:usd:day"[^>]* value="([^"]*)"', browser.get("/admin/keys").text)
    assert field is not None
    assert field[1] == "2.5"
    assert save(**{"was:usd:day": "2.5", "most:usd:day": ""}) == 303
    assert shop(browser).limits == (hour,)


def test_what_a_form_leaves_as_it_was_is_not_written_over(browser: Browser) -> None:
    key = shop(browser).id
    sent = {"was:usd:day": "20", "most:usd:day": "5"}
    assert browser.submit("/admin/keys", "/admin/keys/limits", id=key, **sent).status == 303
    stale = {**DAY, "most": "3", "unit": "tokens", "period": "day"}
    assert browser.submit("/admin/keys", "/admin/keys/limits", id=key, **stale).status == 303
    assert shop(browser).limits == (KeyLimit("usd", "day", 5 * 10**9), KeyLimit("tokens", "day", 3))


@pytest.mark.slow
def test_a_limit_that_is_none_changes_nothing(browser: Browser) -> None:
    key, before = shop(browser).id, shop(browser).limits
    for wrong, said in (
        ({"most:usd:day": "much"}, "Nothing was changed: the limit &#39;much&#39; is no amount"),
        ({"most:usd:week": "5"}, "the limit is of no unit or period"),
        ({"most:calls:day": ""}, "the key has no limit calls/day; it has usd/day"),
        ({"most": "1e", "unit": "calls"}, "is no amount"),
    ):
        fields = {"id": key, **wrong}
        reply = browser.submit("/admin/keys", "/admin/keys/limits", **fields)
        assert reply.status == 422, wrong
        assert said in reply.text
    assert browser.submit("/admin/keys", "/admin/keys/limits", id="gone").status == 404
    assert shop(browser).limits == before


@pytest.mark.slow
def test_limits_are_an_administrators(browser: Browser, tmp_path: Path) -> None:
    reader = Browser(browser.running)
    reader.login(made_key(str(tmp_path / "gateway.db"), "reader", "read"))
    sent = {"id": shop(browser).id, "most": "1", "unit": "usd", "period": "day"}
    assert reader.submit("/admin", "/admin/keys/limits", **sent).status == 403
    assert len(shop(browser).limits) == 1
