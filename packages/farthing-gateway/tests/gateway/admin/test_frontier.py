"""The frontier of a gateway that runs: what live traffic keeps is drawn with its interval."""

import re
from pathlib import Path

import pytest
from chat_server import Endpoint
from gateway_running import gateway
from page_running import Browser, made_key, words
from policy_running import SYSTEM, config, letter, made_bundle
from serving import until

from farthing_gateway import app_state
from farthing_gateway.admin.frontier import FEW

RECORD = "[record]\nshare = 0.0\nusd_per_day = 1.0\n"
INTERVAL = r"(\d+\.\d) % to (\d+\.\d) %"


@pytest.mark.slow
def test_a_share_is_shown_with_its_interval_and_drawn_once_enough_is_graded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_state, "WATCH_S", 0.05)
    monkeypatch.setattr(app_state, "AUDIT_S", 0.05)
    made_bundle(tmp_path)
    where = str(tmp_path / "gateway.db")
    owner, caller = made_key(where, "owner", "admin"), made_key(where, "app", "call")
    with Endpoint(letter) as stub:
        text = config(stub, tmp_path / "bundle", keys=True) + RECORD
        text = text.replace("[policies.letters]\n", "[policies.letters]\naudit = 1.0\n")
        with gateway(tmp_path, text) as running:
            browser = Browser(running)
            browser.login(owner)

            def ask(first: int, last: int) -> tuple[str, str]:
                opens = {"Authorization": f"Bearer {caller}"}
                for k in range(first, last):
                    said = running.chat("farthing/letters", SYSTEM, f"number {k}", headers=opens)
                    assert said.json["farthing"]["promise"] == "agreement"
                of = f"the share is of {last} graded audits"
                until(lambda: of in words(browser, "/admin/frontier"))
                text = browser.get("/admin/frontier").text
                return words(browser, "/admin/frontier"), text

            said, page = ask(0, 3)
            assert "100.0 % 0.0 % to 100.0 %" in said
            assert f"too few for the picture: it takes {FEW}" in said
            assert 'class="now"' not in page
            said, page = ask(3, 40)
            assert "too few" not in said
            found = re.search(r"100\.0 % " + INTERVAL, said)
            assert found is not None
            assert 80.0 < float(found[1]) < 95.0
            assert 'circle class="now"' in page
            line = re.search(r'<line class="interval"[^>]*y1="([\d.]+)%" y2="([\d.]+)%"', page)
            assert line is not None
            top, bottom = float(line[1]), float(line[2])
            assert top == 0
            assert 20 < bottom <= 100, "the line ends where the interval does"
