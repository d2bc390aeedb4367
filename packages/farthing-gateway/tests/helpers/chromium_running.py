"""Debian's Chromium, driven by Playwright, and what is noted of its windows."""

import shutil
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Request, expect

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome")
     if (found := shutil.which(name))), None,
)  # fmt: skip
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]
PAGES = [
    "",
    "/requests",
    "/requests?status=failed",
    "/frontier",
    "/certificates",
    "/alarms",
    "/policies",
    "/keys",
]
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
"""Of tests that need it."""


@dataclass
class Watched:
    """A window whose errors and requests are noted."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def note(self) -> None:
        """Begin to note."""
        page = self.page
        page.on("console", lambda said: self._said(said.type, said.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._asked)

    def go(self, path: str) -> None:
        """Open a page."""
        self.page.goto(f"{self.url}/admin{path}")

    def _said(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.errors.append(text)

    def _asked(self, request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.url).netloc:
            self.elsewhere.append(request.url)


def login(window: Watched, key: str) -> None:
    window.go("/login")
    window.page.get_by_label("Key").fill(key)
    window.page.get_by_role("button", name="Log in").click()
    expect(window.page.get_by_role("heading", name="Overview")).to_be_visible()
