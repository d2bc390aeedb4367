"""Somebody who looks at the page."""

from collections.abc import Iterator
from pathlib import Path

import playwright.sync_api as driven
import pytest
from chromium_running import CHROMIUM, FLAGS
from gateway_running import Running
from made_traffic import call
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
)


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


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a gateway with a page for all tests of a file."""
    folder = tmp_path_factory.mktemp("page")
    where = str(folder / "gateway.db")
    put(where, *traffic(400, now()), later=(call("tiny"),))
    fail(where, *failures(40, now()))
    spend(where, 15.0, "key:shop", "model:large", "policy:letters")
    made_key(where, "shop", "call", usd=20.0)
    with page(folder, NO_BUNDLE, watched(now())) as found:
        yield found


@pytest.fixture(scope="module")
def owner(running: Running) -> str:
    """Return an admin key of it."""
    return made_key(str(running.folder / "gateway.db"), "owner", "admin")


@pytest.fixture(scope="module")
def chromium() -> Iterator[driven.Browser]:
    """Start Chromium."""
    with driven.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
