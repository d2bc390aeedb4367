"""What pages say: the figures of what is recorded, and what to do first where there is nothing."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

from gateway_running import models, serve_section
from page_running import (
    NO_BUNDLE,
    Browser,
    made_key,
    now,
    page,
    traffic,
    watched,
    words,
)
from scripted_watch import ScriptedWatch

from farthing.gateway.admin.figures import week
from farthing.gateway.admin.rendering import money
from farthing.gateway.charging import settle_soon
from farthing.gateway.recording.traffic_rows import cost_of
from farthing.storage.ledger.base import Amount
from farthing.storage.ledger.ledger import open_ledger


def test_the_overview_says_what_was_saved(browser: Browser) -> None:
    requests = traffic(700, now())
    saved = sum(one.saved_nano or 0 for one in requests)
    paid = sum(cost_of(one.trace.calls) for one in requests)
    said = words(browser, "/admin")
    share = f"{100 * saved / (saved + paid):.0f} %"
    assert f"In all {money(saved)} {share} of {money(saved + paid)}; {money(paid)} was paid" in said
    assert "700 requests; trials and audits in the background cost $0.0100 more" in said
    assert "Everything together $15.00 of $20 a day" in said
    assert "Trials in the background $0 of $1 a day" in said
    assert "Key shop $15.00 of $20 a day" in said
    assert "policy:shadow" not in said
    assert "97.3 % ✓ kept" in said
    assert "✕ broken" in said
    assert "1 open alarm" in said
    assert "farthing recalibrate --policy letters" in said


def test_the_overview_says_what_is_disputed(browser: Browser, tmp_path: Path) -> None:
    assert "Disputed" not in words(browser, "/admin")

    async def claim() -> None:
        ledger = await open_ledger(str(tmp_path / "gateway.db"))
        hold = await ledger.reserve(["all", "model:large"], Amount(900_000, 45), (), lease_s=60)
        settle_soon(ledger, hold, Amount(12_500_000_900_000, 1_000_000_045))
        await ledger.aclose()

    asyncio.run(claim())
    said = words(browser, "/admin")
    assert "Model large: 1 call claimed $12,500.00 and 1,000,000,000 tokens beyond what" in said


def test_alarms_are_closed_by_whom(browser: Browser) -> None:
    assert "closed 20" in words(browser, "/admin/alarms")
    assert browser.submit("/admin/alarms", "/admin/alarms/close", id="a1").status == 303
    said = words(browser, "/admin/alarms")
    assert "No alarm is open" in said
    assert "by owner" in said
    assert "open alarm" not in words(browser, "/admin")
    assert browser.submit("/admin/alarms", "/admin/alarms/close", id="gone").status == 303


def test_closing_an_alarm_asks_first(tmp_path: Path) -> None:
    alarm = watched(now()).rung[0]
    promised = replace(alarm, id="a2", signal="promise")
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    with page(tmp_path, NO_BUNDLE, ScriptedWatch([], [alarm, promised])) as running:
        browser = Browser(running)
        browser.login(owner)
        for path in ("/admin", "/admin/alarms"):
            text = browser.get(path).text
            forms = re.findall(r'<form[^>]*alarms/close".*?</form>', text, re.DOTALL)
            assert len(forms) == 2
            for form in forms:
                assert form.index("<summary>Close") < form.index("<button"), "a click asks first"
                assert ("Replies under this certificate will promise again" in form) == (
                    'value="a2"' in form
                )


def test_keys_that_ended_say_what_they_had_spent(browser: Browser) -> None:
    browser.submit("/admin/keys", "/admin/keys", name="idle", scope="call", most="0", unit="usd")
    said = words(browser, "/admin/keys")
    assert "$0 in total $0 spent of it; every request is refused" in said
    assert "of it; every" not in said.replace("$0 spent of it; every", "")
    assert "revoked or expired" not in said
    text = browser.get("/admin/keys").text
    (shop,) = re.findall(r'name="id" value="(\w+)">\s*<details class="sure"><summary>Revoke'
                         r'<span class="unseen"> shop<', text)  # fmt: skip
    assert browser.submit("/admin/keys", "/admin/keys/revoke", id=shop).status == 303
    said = words(browser, "/admin/keys")
    assert "1 key revoked or expired shop" in said
    assert "$15.00 spent in all" in said
    assert "of this name" not in said
    browser.submit("/admin/keys", "/admin/keys", name="shop", scope="call")
    assert "spent in all, with the key of this name that is valid" in words(browser, "/admin/keys")


def test_an_unknown_address_answers_with_a_page(browser: Browser) -> None:
    reply = browser.get("/admin/gone")
    assert (reply.status, reply.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such page." in reply.text
    assert 'href="/admin/requests"' in reply.text
    for path, to in (
        ("/admin/", "/admin"),
        ("/admin/keys/", "/admin/keys"),
        ("/admin//", "/admin"),
    ):
        reply = browser.get(path)
        assert (reply.status, reply.headers["Location"]) == (303, to), path
    stranger = Browser(browser.running).get("/admin/gone")
    assert (stranger.status, stranger.headers["Location"]) == (303, "/admin/login")


def test_what_decided_when_is_told(browser: Browser) -> None:
    said = words(browser, "/admin/certificates")
    assert "rolled back" in said
    assert said.index("rolled back") < said.index("recalibrated") < said.index(" loaded ")
    assert "farthing recommend day.db" in said


def test_policies_say_who_may_answer(browser: Browser) -> None:
    said = words(browser, "/admin/policies")
    assert "Clients ask for farthing/letters Takes requests to large" in said
    assert "Nobody yet: the strongest model answers" in said
    count = sum(one.policy == "support" for one in traffic(700, now()) if one.at >= week(now()))
    assert f"{count} requests" in said


def test_a_newcomer_is_told_what_to_do_first(tmp_path: Path) -> None:
    text = serve_section(keys=True) + models("http://127.0.0.1:9/v1")
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    with page(tmp_path, text) as running:
        browser = Browser(running)
        assert "farthing keys make owner --scope admin" in words(browser, "/admin/login")
        browser.login(owner)
        first = words(browser, "/admin")
        assert "Nothing has passed yet" in first
        assert "start the gateway with --record" in first
        assert f"export OPENAI_BASE_URL={running.url}/v1" in first
        assert "There is no policy" in first
        assert "[[budgets]]" in first
        assert "[policies.support]" in words(browser, "/admin/policies")
        assert "There is no policy" in words(browser, "/admin/frontier")
        assert "Nothing is recorded" in words(browser, "/admin/requests")
        assert "None has ever rung" in words(browser, "/admin/alarms")
        assert "No bundle was put in place yet" in words(browser, "/admin/certificates")


def test_the_scripted_watch_is_a_watch(tmp_path: Path) -> None:
    watch = ScriptedWatch()
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    with page(tmp_path, NO_BUNDLE, watch) as running:
        browser = Browser(running)
        browser.login(owner)
        assert "Nothing is promised yet" in words(browser, "/admin")
