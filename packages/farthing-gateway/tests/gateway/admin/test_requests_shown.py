"""What the page says of requests: the list of them, and each one step by step."""

import html
import re
import sqlite3
import urllib.request
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from chat_server import Endpoint
from gateway_running import models, serve_section
from made_traffic import call, passed
from page_running import (
    NO_BUNDLE,
    Browser,
    fail,
    failures,
    made_key,
    now,
    page,
    put,
    traffic,
    watched,
    words,
)
from scripted_watch import ScriptedWatch

from farthing.traces.base import CallError
from farthing_gateway.admin.rendering import money
from farthing_gateway.recording.record import FALLBACK, STOPPED, PolicyDecision
from farthing_gateway.recording.traffic_rows import cost_of


@pytest.mark.slow
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
    decided = PolicyDecision(
        kind="agreement", graded_by="reference", promised=0.95, reference="large"
    )
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
    decided = PolicyDecision(kind="agreement", graded_by="reference")
    one = replace(passed("a" * 32, at=now()), policy="letters", mode="default", certificate="c")
    put(where, replace(one, audit=0.5, audited=True, decided=decided, promise="agreement"))
    with page(tmp_path, NO_BUNDLE) as running:
        execute(where, f"UPDATE audits SET state = '{state}'")
        browser = Browser(running)
        browser.login(owner)
        assert says in words(browser, f"/admin/requests/{one.id}")


@pytest.mark.slow
def test_a_request_that_was_not_answered_is_in_the_list_and_told_step_by_step(
    browser: Browser, tmp_path: Path
) -> None:
    where = str(tmp_path / "gateway.db")
    reader = Browser(browser.running)
    reader.login(made_key(where, "reader", "read"))
    refused, _, failed, _ = failures(4, now(), days=0.0)
    fail(where, refused, replace(failed, key="00aa00aa", id="<i>&?"))
    said = words(browser, "/admin/requests")
    assert "large large connection → large connection failed 502 the model's provider" in said
    assert "refused 402 a budget is used up" in said
    assert f'id="r-{refused.id}"' in browser.get("/admin/requests?status=402").text
    assert f'id="r-{refused.id}"' not in browser.get("/admin/requests?status=failed").text
    said = words(browser, f"/admin/requests/{refused.id}")
    assert "Refused: a budget is used up. When" in said
    assert "key:shop may spend $20 a day; nothing is left" in said
    assert "No model was asked." in said
    said = words(browser, "/admin/requests/%3Ci%3E%26%3F")
    assert "Failed: the model's provider could not be reached" in said
    assert "2 large $0.00200 1.25 s Failed: connection" in said
    assert "Key 00aa00aa" in said
    said = words(reader, f"/admin/requests/{refused.id}")
    assert "key:shop" not in said
    assert "Its words are shown to admin keys alone" in said


def test_a_request_is_found_by_its_id_key_text_and_time(tmp_path: Path) -> None:
    where = str(tmp_path / "gateway.db")
    owner, reader = made_key(where, "owner", "admin"), made_key(where, "reader", "read")
    one, other = (passed(f"{at:032x}", at=now() - timedelta(hours=at)) for at in (1, 2))
    key = owner.split("-")[1]
    put(where, replace(one, key=key), other)
    (failed,) = failures(1, now())
    fail(where, failed)
    with page(tmp_path, NO_BUNDLE + "\n") as running:
        browser, less = Browser(running), Browser(running)
        browser.login(owner)
        less.login(reader)

        def ids(query: str) -> list[str]:
            return re.findall(r'id="r-(\w+)"', browser.get(f"/admin/requests?{query}").text)

        for of in (one, failed):
            for who in (browser, less):
                reply = who.get(f"/admin/requests?text=%20{of.id}")
                assert (reply.status, reply.headers["Location"]) == (
                    303,
                    f"/admin/requests/{of.id}",
                )
        assert ids(f"key={key}") == [one.id]
        assert "owner" in words(browser, f"/admin/requests?key={key}")
        assert ids("text=2+%2B+2") == [one.id, other.id]
        assert ids("text=NOTHING+is+left") == [failed.id]
        cut = f"{now() - timedelta(minutes=90):%Y-%m-%dT%H:%M}"
        assert ids(f"until={cut}") == [other.id]
        assert ids(f"since={cut}") == [failed.id, one.id]
        live = 'hx-trigger="every 2s"'
        assert live in browser.get(f"/admin/requests?since={cut}").text
        for still in ("text=x", f"until={cut}"):
            assert live not in browser.get(f"/admin/requests?{still}").text
        for wrong, said in (
            ("since=yesterday", "&#39;yesterday&#39; is no time; write it as"),
            ("until=0001-01-01T00:00%2B14:00", "is no time; write it as"),
            (f"text={'x' * 1_001}", "what &#39;text&#39; looks for is longer than 1,000"),
            ("text=x&audits=kept", "look for a text or for what audits came to"),
        ):
            reply = browser.get(f"/admin/requests?{wrong}")
            assert (reply.status, said in reply.text) == (422, True), reply.text
        for nothing in ("text=%00", "text=%25", "status=9999", "key=%00&policy=%00", "text=%22%5C"):
            assert ids(nothing) == [], nothing
        for hidden in ("text=2", f"key={key}"):
            reply = less.get(f"/admin/requests?{hidden}")
            assert reply.status == 403
            assert one.id not in reply.text
        assert "owner" not in words(less, "/admin/requests")


def test_a_page_says_how_far_it_looked(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farthing_gateway.admin.request_search.LOOKED", 100)
    path, text = "/admin/requests?text=nowhere", ""
    for at in range(8):
        text = browser.get(path).text
        further = re.search(r'href="([^"]*)" rel="next">Look further back', text)
        assert ("Nothing that fits since" in text) == (at < 7) == (further is not None)
        path = html.unescape(further[1]) if further else ""
    assert "No older request fits this filter" in text


def execute(where: str, sql: str) -> None:
    """Change an SQLite database from beside the gateway."""
    connection = sqlite3.connect(where)
    with connection:
        connection.execute(sql)
    connection.close()


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
