"""What pages say: the figures of what is recorded, and what to do first where there is nothing."""

import html
import re
import sqlite3
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from chat_server import Endpoint
from gateway_running import models, serve_section
from made_traffic import call, passed
from page_running import (
    Browser,
    config,
    made_key,
    now,
    page,
    put,
    spend,
    traffic,
    watched,
)
from scripted_watch import ScriptedWatch

from farthing.budgets.accounts.base import Amount, Balance, Limit
from farthing.gateway.database import moment
from farthing.gateway.pages.charts import bars, floor_of, scale
from farthing.gateway.pages.figures import Day, week
from farthing.gateway.pages.overview import budget, promise
from farthing.gateway.pages.rendering import money
from farthing.gateway.passed import FALLBACK, STOPPED, Decided
from farthing.gateway.traffic_rows import cost_of
from farthing.gateway.watching.base import Recent
from farthing.traces.base import CallError

NO_BUNDLE = config().replace('bundle = "bundle"', "")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """Somebody with an admin key, two weeks after the gateway began."""
    where = str(tmp_path / "gateway.db")
    put(where, *traffic(700, now()), later=(call("tiny"),))
    spend(where, 15.0, "key:shop")
    made_key(where, "shop", "call", usd=20.0)
    owner = made_key(where, "owner", "admin")
    with page(tmp_path, NO_BUNDLE, watched(now())) as running:
        found = Browser(running)
        found.login(owner)
        yield found


def words(browser: Browser, path: str) -> str:
    """Return what a page says, in one line."""
    reply = browser.get(path)
    assert reply.status == 200, reply.text
    text = re.sub(r"<[^>]*>", " ", reply.text)
    return re.sub(r"\s+", " ", html.unescape(text).replace("\xa0", " "))


def test_the_overview_says_what_was_saved(browser: Browser) -> None:
    requests = traffic(700, now())
    saved = sum(one.saved_nano or 0 for one in requests)
    paid = sum(cost_of(one.trace.calls) for one in requests)
    said = words(browser, "/admin")
    share = f"{100 * saved / (saved + paid):.0f} %"
    assert f"In all {money(saved)} {share} of {money(saved + paid)}; {money(paid)} was paid" in said
    assert "700 requests; trials and audits in the background cost $0.0100 more" in said
    assert "all everything together $15.00 of $20 a day" in said
    assert "key:shop $15.00 of $20 a day" in said
    assert "97.3 % ✓ kept" in said
    assert "✕ broken" in said
    assert "1 open alarm" in said
    assert "farthing recalibrate --policy letters" in said


def test_requests_come_in_pages_and_by_filter(browser: Browser) -> None:
    seen: list[str] = []
    path = "/admin/requests?policy=support"
    while path:
        text = browser.get(path).text
        seen += re.findall(r'id="r-(\w+)"', text)
        older = re.search(r'href="([^"]*)" rel="next"', text)
        path = html.unescape(older[1]) if older else ""
    wanted = [one.id for one in reversed(traffic(700, now())) if one.policy == "support"]
    assert seen == wanted
    assert 'value="support" selected' in browser.get("/admin/requests?policy=support").text
    assert "No request fits this filter" in words(browser, "/admin/requests?model=gone")


def test_the_list_says_when_nothing_is_new(browser: Browser) -> None:
    text = browser.get("/admin/requests?promise=none").text
    (address,) = re.findall(r'hx-get="([^"]*)"', text)
    address = html.unescape(address)
    assert browser.get(address, HX_Request="true").status == 204
    one = replace(passed("f" * 32, at=now() + timedelta(seconds=1)), policy="support")
    put(str(browser.running.folder / "gateway.db"), one)
    reply = browser.get(address, HX_Request="true")
    assert reply.status == 200
    assert reply.text.index(one.id) < reply.text.index('id="r-', reply.text.index(one.id) + 5)
    assert "<html" not in reply.text


def test_a_request_is_told_step_by_step(browser: Browser) -> None:
    requests = traffic(700, now())
    failed = next(one for one in requests if one.trace.calls[0].error)
    said = words(browser, f"/admin/requests/{failed.id}")
    small, large = failed.trace.calls
    assert "1 small small-2026 $0" in said
    assert "Failed: timeout small: no reply within 20 s" in said
    assert f"2 large large-2026 {money(cost_of([large]))}" in said
    assert "Then it stopped. Everybody in the pool had been asked." in said
    assert small.error
    short = next(o for o in requests if len(o.trace.calls) == 1 and o.policy == "letters")
    said = words(browser, f"/admin/requests/{short.id}")
    assert "The policy needed no more; large was not asked." in said
    assert "Certificate 9f8e7d6c5b4a" in said
    first = words(browser, f"/admin/requests/{requests[0].id}")
    assert "Asked in the background afterwards" in first
    assert browser.get("/admin/requests/gone").status == 404


def test_why_it_stopped_is_said_where_a_stream_was_left_or_a_fallback_answered(
    browser: Browser,
) -> None:
    left = msgspec.structs.replace(call("large", None), error=CallError(STOPPED, "the client left"))
    failed = msgspec.structs.replace(call("large", None), error=CallError("connection", "down"))
    stood_in = msgspec.structs.replace(call("small"), extra={FALLBACK: 1.0})
    for name, calls, says in (
        ("d" * 32, [left], "Then it stopped. The client stopped the stream"),
        ("e" * 32, [failed, stood_in], "Then it stopped. small answered in the place of a model"),
    ):
        one = replace(passed(name, at=now(), calls=calls), policy="letters", mode="default")
        put(str(browser.running.folder / "gateway.db"), replace(one, answered_by="small"))
        assert says in words(browser, f"/admin/requests/{name}")


def test_a_reply_of_which_nothing_was_promised_says_why(tmp_path: Path) -> None:
    watch = watched(now())
    alarm = replace(watch.rung[0], signal="promise")
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    decided = Decided(kind="agreement", graded_by="reference", promised=0.95, reference="large")
    one = replace(
        passed("a" * 32, at=now()), policy="letters", mode="default", decided=decided,
        certificate=alarm.certificate,
    )  # fmt: skip
    ended = msgspec.structs.replace(decided, ended_by="budget")
    bare = replace(one, certificate=None, decided=None)
    cases = [
        (one, f"since {alarm.at:%Y-%m-%d %H:%M} UTC an alarm says that what was promised is not"),
        (replace(one, id="b" * 32, at=alarm.at - timedelta(days=1)), "the certificate did not"),
        (replace(one, id="c" * 32, decided=ended), "the money that it could spend ended"),
        (replace(bare, id="d" * 32), "the bundle that decided promises nothing"),
        (replace(bare, id="e" * 32, mode=None), "no bundle decided it"),
        (replace(bare, id="f" * 32, mode=None, policy=None), "a model was asked by its name"),
    ]
    put(str(tmp_path / "gateway.db"), *[case for case, _ in cases])
    with page(tmp_path, NO_BUNDLE, ScriptedWatch([], [alarm])) as running:
        browser = Browser(running)
        browser.login(owner)
        for case, why in cases:
            said = words(browser, f"/admin/requests/{case.id}")
            assert f"What was promised Nothing: {why}" in said, said
            assert "on at least" not in said


def test_feedback_is_shown_with_its_words_to_those_who_may_see_prompts(tmp_path: Path) -> None:
    where, one = str(tmp_path / "gateway.db"), "a" * 32
    owner, reader = made_key(where, "owner", "admin"), made_key(where, "reader", "read")
    put(where, replace(passed(one, at=now()), answered_by="large"))
    with page(tmp_path, NO_BUNDLE) as running:
        browser, other = Browser(running), Browser(running)
        browser.login(owner)
        other.login(reader)
        assert "What a user says" not in words(browser, f"/admin/requests/{one}")
        body = {"trace_id": one, "gold": "seventeen", "comment": "<b>not four</b>"}
        opens = {"Authorization": f"Bearer {owner}", "Content-Type": "application/json"}
        data = msgspec.json.encode(body)
        sent = urllib.request.Request(f"{running.url}/v1/feedback", data, opens)
        assert running.send(sent).status == 200
        said = words(browser, f"/admin/requests/{one}")
        assert "Grade ✕ wrong" in said
        assert "By key owner Accepted answer seventeen" in said
        assert "&lt;b&gt;not four&lt;/b&gt;" in browser.get(f"/admin/requests/{one}").text
        less = words(other, f"/admin/requests/{one}")
        assert "Grade ✕ wrong" in less
        assert "seventeen" not in less
        assert "not four" not in less
        assert "By key" not in less


@pytest.mark.parametrize(
    ("state", "says"), [("done", "Nobody was left to ask"), ("waiting", "Nobody was asked in")]
)
def test_an_audit_of_which_nobody_was_left_to_ask_says_so(
    tmp_path: Path, state: str, says: str
) -> None:
    where = str(tmp_path / "gateway.db")
    owner = made_key(where, "owner", "admin")
    decided = Decided(kind="agreement", graded_by="reference")
    one = replace(passed("a" * 32, at=now()), policy="letters", mode="default", certificate="c")
    put(where, replace(one, audit=0.5, audited=True, decided=decided, promise="agreement"))
    with page(tmp_path, NO_BUNDLE) as running:
        execute(where, f"UPDATE audits SET state = '{state}'")
        browser = Browser(running)
        browser.login(owner)
        assert says in words(browser, f"/admin/requests/{one.id}")


def execute(where: str, sql: str) -> None:
    """Change an SQLite database from beside the gateway."""
    connection = sqlite3.connect(where)
    with connection:
        connection.execute(sql)
    connection.close()


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
    assert "farthing recommend --traces day.db" in said


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


def test_a_live_request_is_on_the_page_with_what_the_ledger_has(tmp_path: Path) -> None:
    where = str(tmp_path / "gateway.db")
    owner, app = made_key(where, "owner", "admin"), made_key(where, "app", "call")
    text = serve_section(keys=True)
    with Endpoint() as stub, page(tmp_path, text + models(stub.url) + "[record]\n") as running:
        opens = {"Authorization": f"Bearer {app}"}
        reply = running.chat("large", "2 + 2?", headers=opens)
        assert reply.status == 200, reply.body
        browser = Browser(running)
        browser.login(owner)
        trace = reply.json["farthing"]["trace_id"]
        for _ in range(100):
            if trace in browser.get("/admin/requests").text:
                break
        said = words(browser, f"/admin/requests/{trace}")
        assert "2 + 2?" in said
        assert "Key app" in said
        assert money(reply.json["farthing"]["cost_nano"]) in said
        assert money(reply.json["farthing"]["cost_nano"]) in words(browser, "/admin")


def balance(spent: int, gone: float) -> Balance:
    start = moment(0)
    return Balance("all", "day", Amount(spent), Amount(0), 0, start, start + timedelta(days=1))


@pytest.mark.parametrize(
    ("spent", "gone", "ends"), [(500, 0.25, 2_000), (0, 0.5, 0), (500, 0.01, None), (9, 1.0, 9)]
)
def test_a_pace_is_what_was_spent_by_the_time_that_is_gone(
    spent: int, gone: float, ends: float | None
) -> None:
    at = moment(0) + timedelta(days=gone)
    found = budget(Limit("all", "usd", "day", 1_000), [balance(spent, gone)], at)
    assert found.ends_at == (None if ends is None else pytest.approx(ends))
    assert found.share == min(1.0, spent / 1_000)


def test_a_promise_is_kept_or_broken_where_its_interval_proves_it() -> None:
    (one, group, none, broken) = watched(now()).promises
    found = [promise(each).verdict for each in (one, group, none, broken)]
    assert found == ["kept", "open", "no grades", "broken"]
    assert promise(replace(one, promised=None)).verdict == "open"


def test_no_interval_is_told_where_something_changed_on_the_way(tmp_path: Path) -> None:
    one = replace(watched(now()).promises[0], changed=True, low=0.978, high=0.979)
    assert promise(one).span is None
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    with page(tmp_path, NO_BUNDLE, ScriptedWatch([one])) as running:
        browser = Browser(running)
        browser.login(owner)
        for path in ("/admin", "/admin/certificates"):
            said = words(browser, path)
            assert "No one share fits all these replies: something changed on the way." in said
            assert "97.8 %" not in said
            assert "sure to" not in said
            assert 'class="span"' not in browser.get(path).text


def test_how_a_promise_is_kept_since_its_alarm_is_told(tmp_path: Path) -> None:
    one = replace(watched(now()).promises[0], changed=True)
    rang = Recent(moment(0), closed=False, graded=212, share=0.69, low=0.61, high=0.77)
    closed = Recent(moment(0), closed=True, graded=0, share=None, low=None, high=None)
    mixed = Recent(moment(0), closed=True, graded=9, share=0.5, low=None, high=None)
    cases = [(rang, "rang: 69.0 % of 212 graded audits, 61.0 % to 77.0 %, sure to 95 % at every"),
             (closed, "was closed: no audit has a grade yet."),
             (mixed, "was closed: 50.0 % of 9 graded audits; no one share fits these")]  # fmt: skip
    watch = ScriptedWatch([replace(one, recent=recent) for recent, _ in cases])
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    with page(tmp_path, NO_BUNDLE, watch) as running:
        browser = Browser(running)
        browser.login(owner)
        said = words(browser, "/admin")
        for _, words_of in cases:
            assert f"Since 1970-01-01 00:00:00 , when its alarm {words_of}" in said


def test_groups_are_folded_under_their_certificate(tmp_path: Path) -> None:
    one, group, none, _ = watched(now()).promises
    broken = replace(group, group="refunds", share=0.5, low=0.4, high=0.6)
    other = replace(one, policy="support")
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    with page(tmp_path, NO_BUNDLE, ScriptedWatch([one, other, none, group, broken])) as running:
        browser = Browser(running)
        browser.login(owner)
        text = browser.get("/admin").text
        (folded,) = re.findall(r"<details><summary>[^<]*group.*?</details>", text, re.DOTALL)
        assert "2 groups of these replies, 1 broken" in folded
        assert folded.count("billing") == text.count("billing") == 1
        assert text.index("refunds") < text.index(">support<")


def test_bars_are_as_high_as_the_dearer_of_what_was_and_would_be_paid() -> None:
    days = [Day(moment(0), 30, 70, 3), Day(moment(0), 80, -20, 1), Day(moment(0), 0, 0, 0)]
    drawn = bars(days)
    top = drawn.ticks[-1].value
    for bar, whole in zip(drawn.bars, (100, 80, 0), strict=True):
        assert bar.paid_height + bar.rest_height == pytest.approx(100 * whole / top)
        assert bar.rest_y + bar.rest_height == pytest.approx(bar.paid_y)
        assert bar.paid_y + bar.paid_height == pytest.approx(100)
    assert drawn.bars[-1].x + drawn.bars[-1].width <= 100


def test_scales_have_round_ends_beyond_the_most() -> None:
    for most in (1e-9, 0.3, 1.0, 99.9, 100.0, 1.2e12):
        values, top = scale(most)
        assert values[0] == 0
        assert top >= most * (1 - 1e-9)
        assert 3 <= len(values) <= 7
    assert all(floor_of([share]) < share for share in (0.001, 0.3, 0.901, 1.0))


def test_the_scripted_watch_is_a_watch(tmp_path: Path) -> None:
    watch = ScriptedWatch()
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    with page(tmp_path, NO_BUNDLE, watch) as running:
        browser = Browser(running)
        browser.login(owner)
        assert "Nothing is promised yet" in words(browser, "/admin")
