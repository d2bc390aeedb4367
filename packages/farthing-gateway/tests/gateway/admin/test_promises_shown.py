"""What the page says of how promises are kept."""

import re
from dataclasses import replace
from pathlib import Path

from page_running import (
    NO_BUNDLE,
    Browser,
    made_key,
    now,
    page,
    watched,
    words,
)
from scripted_watch import ScriptedWatch

from farthing_gateway.admin.overview import promise
from farthing_gateway.monitoring.base import StatusSinceAlarm
from farthing_gateway.storage.database import moment


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
            assert "confidence, whenever you look" not in said
            assert 'class="span"' not in browser.get(path).text


def test_how_a_promise_is_kept_since_its_alarm_is_told(tmp_path: Path) -> None:
    one = replace(watched(now()).promises[0], changed=True)
    rang = StatusSinceAlarm(moment(0), closed=False, graded=212, share=0.69, low=0.61, high=0.77)
    closed = StatusSinceAlarm(moment(0), closed=True, graded=0, share=None, low=None, high=None)
    mixed = StatusSinceAlarm(moment(0), closed=True, graded=9, share=0.5, low=None, high=None)
    cases = [(rang, "rang: 69.0 % of 212 graded audits, 61.0 % to 77.0 %, with 95 % confidence"),
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


def test_a_difference_of_accuracies_is_told_in_points(tmp_path: Path) -> None:
    recent = StatusSinceAlarm(moment(0), closed=False, graded=9, share=-0.02, low=None, high=None)
    one = replace(watched(now()).promises[0], kind="parity", share=-0.012, recent=recent)
    owner = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    with page(tmp_path, NO_BUNDLE, ScriptedWatch([one])) as running:
        browser = Browser(running)
        browser.login(owner)
        said = words(browser, "/admin")
        assert "-1.2 points beside the reference" in said
        assert "when its alarm rang: -2.0 points in 9 graded audits" in said
