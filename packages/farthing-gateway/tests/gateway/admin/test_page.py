"""What pages say: the figures of what is recorded, and what to do first where there is nothing."""

import asyncio
import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from gateway_running import models, serve_section
from page_running import (
    NO_BUNDLE,
    Browser,
    fail,
    failures,
    made_key,
    now,
    page,
    put,
    spend,
    traffic,
    watched,
    words,
)
from scripted_watch import ScriptedWatch
from serving import until as wait_until

from farthing_gateway.admin.figures import week
from farthing_gateway.admin.rendering import money
from farthing_gateway.charging import settle_soon
from farthing_gateway.recording.traffic_rows import cost_of
from farthing_gateway.storage.ledger.base import Amount
from farthing_gateway.storage.ledger.ledger import open_ledger


@pytest.mark.slow
def test_the_overview_says_what_was_saved(browser: Browser) -> None:
    requests = traffic(700, now())
    saved = sum(one.saved_nano or 0 for one in requests)
    paid = sum(cost_of(one.trace.calls) for one in requests)
    said = words(browser, "/admin?range=all")
    share = f"{100 * saved / (saved + paid):.0f} %"
    assert f"always calling large {money(saved)} {share} of {money(saved + paid)}; " in said
    assert f"{money(paid)} was paid Trials and audits in the background cost $0.0100 more" in said
    assert "Answered 700 of 700 requests Refused 0.0 % no request Failed 0.0 % no request" in said
    assert "Everything together $15.00 of $20 a day" in said
    assert "Trials in the background $0 of $1 a day" in said
    assert "Key shop $15.00 of $20 a day" in said
    assert "policy:shadow" not in said
    assert "97.3 % ✓ kept" in said
    assert "✕ broken" in said
    assert "1 open alarm" in said
    assert "farthing recalibrate --policy letters" in said


@pytest.mark.slow
def test_the_overview_says_what_is_disputed(browser: Browser, tmp_path: Path) -> None:
    assert "Disputed" not in words(browser, "/admin")

    async def claim() -> None:
        ledger = await open_ledger(str(tmp_path / "gateway.db"))
        hold = await ledger.reserve(["all", "model:large"], Amount(900_000, 45), (), lease_s=60)
        most = Amount(900_000, 45)
        settle_soon(ledger, hold, Amount(12_500_000_900_000, 1_000_000_045), most)
        await ledger.aclose()

    asyncio.run(claim())
    said = words(browser, "/admin")
    assert "Model large: 1 call claimed $12,500.00 and 1,000,000,000 tokens beyond what" in said


@pytest.mark.slow
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


def test_a_controller_is_said_to_promise_nothing(tmp_path: Path) -> None:
    text = serve_section(keys=True) + models("http://127.0.0.1:9/v1") + "[record]\n"
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin", "call")
    with page(tmp_path, text + '[policies.sums]\ncontroller = "two"\n') as running:
        headers = {"Authorization": f"Bearer {owner}"}
        reply = running.chat("farthing/sums", "c=b*7+2;a=4;b=a*3+5;c?", headers=headers)
        browser = Browser(running)
        browser.login(owner)
        said = words(browser, "/admin/policies")
        assert "the experts of its controller" in said
        assert "low: a controller that is told of $0.0000738 a request, and promises" in said
        assert "A controller decides, and promises nothing" in words(browser, "/admin/certificates")
        assert browser.get("/admin/frontier").status == 200
        path = f"/admin/requests/{reply.json['farthing']['trace_id']}"
        wait_until(lambda: browser.get(path).status == 200)
        assert "The controller asked nobody else" in words(browser, path)


def test_a_newcomer_is_told_what_to_do_first(tmp_path: Path) -> None:
    text = serve_section(keys=True) + models("http://127.0.0.1:9/v1")
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    with page(tmp_path, text) as running:
        browser = Browser(running)
        assert "farthing keys make owner --scope admin" in words(browser, "/admin/login")
        browser.login(owner)
        first = words(browser, "/admin")
        assert "What to do next Record what passes next" in first
        assert "start the gateway with --record" in first
        assert "Nothing has passed yet" in first
        assert f"export OPENAI_BASE_URL={running.url}/v1" in first
        assert "There is no policy" in first
        assert "[[budgets]]" in first
        assert "$0" not in first
        assert "Saved" not in first
        assert "[policies.support]" in words(browser, "/admin/policies")
        assert "There is no policy" in words(browser, "/admin/frontier")
        assert "Nothing is recorded" in words(browser, "/admin/requests")
        assert "None has ever rung" in words(browser, "/admin/alarms")
        assert "No bundle was put in place yet" in words(browser, "/admin/certificates")


@pytest.mark.slow
def test_what_to_do_next_ends_with_what_is_done(tmp_path: Path) -> None:
    where = str(tmp_path / "gateway.db")
    owner = made_key(where, "owner", "admin")
    put(where, *(replace(one, policy=None, saved_nano=0) for one in traffic(20, now())))
    spend(where, 0.25, "key:owner", "model:large")
    text = serve_section(keys=True) + models("http://127.0.0.1:9/v1")
    with page(tmp_path, text + "[record]\n") as running:
        browser = Browser(running)
        browser.login(owner)
        said = words(browser, "/admin")
        assert "✓ Send a first request done Set a budget next" in said
        assert "Spent $0.250 1 call" in said
        assert "Saved" not in said, "nothing can be saved without a policy"
        assert 'class="figure good"' not in browser.get("/admin").text
    with page(tmp_path, NO_BUNDLE) as running:
        browser = Browser(running)
        browser.login(owner)
        said = words(browser, "/admin")
        assert "✓ Set a budget done ✓ Name a task and the models that may answer it done" in said
        assert "Prove a promise on what was recorded next" in said
        assert "--policy letters --out day.db" in said


@pytest.mark.slow
def test_spending_is_shown_by_whom_and_on_what(browser: Browser, tmp_path: Path) -> None:
    where = str(tmp_path / "gateway.db")
    spend(where, 5.0, "key:owner", "team:web", "model:small", "policy:shadow")
    reader = Browser(browser.running)
    reader.login(made_key(where, "reader", "read"))
    for path in ("/admin", "/admin?range=today", "/admin?range=all"):
        said = words(browser, path)
        assert "Spent $20.00 2 calls, 2,000 tokens" in said
        assert "By key Key Spent Share Calls Tokens shop $15.00 75 % 1 1,000 owner $5.00" in said
        assert "By model Model Spent Share Calls Tokens small $5.00 25 % 1 1,000" in said
        assert "Trials in the background $5.00 25 %" in said
        less = words(reader, path)
        assert "By model" in less
        assert "By key" not in less
        assert "shop" not in less
    yesterday = f"{now() - timedelta(days=1):%Y-%m-%d}"
    said = words(browser, f"/admin?from={yesterday}&to={yesterday}")
    assert "Spent $0 0 calls" in said
    assert "By key" not in said


@pytest.mark.slow
def test_refused_and_failed_requests_are_rates_with_their_reasons(
    browser: Browser, tmp_path: Path
) -> None:
    fail(str(tmp_path / "gateway.db"), *failures(100, now()))
    said = words(browser, "/admin?range=all")
    assert "Answered 700 of 800 requests Refused 6.2 % 50 requests Failed 6.2 % 50 requests" in said
    assert "a budget is used up 402 25 3.1 % $0" in said
    assert "the model's provider could not be reached 502 25 3.1 % $0.100" in said
    asked = sum(one.model == "large" for one in traffic(700, now())) + 100
    share = f"{100 * 50 / asked:.1f} %"
    assert f"large {asked} {share} {share}" in said
    text = browser.get("/admin").text
    since, until = (f"{now() + timedelta(days=days):%Y-%m-%d}" for days in (-6, 1))
    assert f'href="/admin/requests?status=402&amp;since={since}&amp;until={until}"' in text


@pytest.mark.slow
def test_a_range_is_chosen_by_its_name_or_by_dates(browser: Browser) -> None:
    day = now()
    first = traffic(700, day)[0].at
    for query, since, until in (
        ("", day - timedelta(days=6), day),
        ("?range=30-days", day - timedelta(days=29), day),
        ("?range=all", first, day),
        ("?from=2026-01-01&to=2026-01-31", datetime(2026, 1, 1), datetime(2026, 1, 31)),  # noqa: DTZ001
        (f"?from={day:%Y-%m-%d}", day, day),
    ):
        text = browser.get(f"/admin{query}").text
        assert f'name="from" required value="{since:%Y-%m-%d}"' in text, query
        assert f'name="to" value="{until:%Y-%m-%d}"' in text, query
    for wrong, said in (
        ("range=week", "there is no range &#39;week&#39;, but: today, 7-days, 30-days, all"),
        ("from=2026-13-01", "&#39;2026-13-01&#39; is no day"),
        ("from=0001-01-01", "is no day"),
        ("from=2026-02-01&to=2026-01-01", "the last day 2026-01-01 is before the first 2026-02-01"),
    ):
        reply = browser.get(f"/admin?{wrong}")
        assert (reply.status, said in reply.text) == (422, True), wrong


def test_the_scripted_watch_is_a_watch(tmp_path: Path) -> None:
    watch = ScriptedWatch()
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    with page(tmp_path, NO_BUNDLE, watch) as running:
        browser = Browser(running)
        browser.login(owner)
        assert "Nothing is promised yet" in words(browser, "/admin")
