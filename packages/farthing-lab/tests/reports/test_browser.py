"""The pages of results in a real browser: at a desk and on a phone, light and dark."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from made_up_pool import pool
from playwright.sync_api import Browser, sync_playwright

from farthing.methods.base import Dataset
from farthing.methods.cards import card
from farthing.promises.kinds.parity import Parity
from farthing.recommendation import candidates
from farthing.recommendation.base import Alone, Comparison
from farthing.recommendation.recommend import recommend
from farthing.reports import recommendation_page
from farthing_lab.reports import page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
OUTSIDE = """() => [...document.querySelectorAll("body *")]
    .filter((one) => !one.closest(".wide.figure") && !one.ownerSVGElement)
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1
        || one.scrollWidth > Math.max(one.clientWidth, innerWidth))
    .map((one) => one.outerHTML.slice(0, 120))"""
"""What stands out of the window; only the researcher's wide figures may be scrolled."""
CUT_OFF = """() => [...document.querySelectorAll(".wide:not(.figure)")]
    .filter((one) => one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.outerHTML.slice(0, 120))"""
BRIGHTNESS = """() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g)
    .slice(0, 3).reduce((sum, value) => sum + Number(value), 0) / 765"""

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; apt-get install chromium"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def pages(
    comparison: Comparison, proved: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Path]:
    """Write a recommendation, and comparisons under coverage and under parity."""
    monkeypatch.setattr(candidates, "cards", lambda: [card("evidence-cascade"), card("pool-gain")])
    found = recommend(Dataset("made up", pool(700)), Parity("large", "0.05"))
    covered = replace(comparison, today=Alone("guide", 9e-4, 0.91), reference="guide")
    written = {
        "recommendation": recommendation_page.html(found, "tickets-of-the-first-quarter.jsonl"),
        "coverage": page.html(covered),
        "parity": page.html(proved),
    }
    for name, text in written.items():
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
    return [tmp_path / f"{name}.html" for name in written]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_table_fits_a_desk_and_a_phone(
    chromium: Browser, pages: list[Path], scheme: str
) -> None:
    for width in (1200, 390):
        context = chromium.new_context(
            viewport={"width": width, "height": 844},
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        window = context.new_page()
        for path in pages:
            window.goto(path.as_uri())
            where = (path.name, width)
            assert window.locator("table").count() > 0, where
            assert window.evaluate(OUTSIDE) == [], where
            assert window.evaluate(CUT_OFF) == [], where
            assert window.evaluate("document.documentElement.scrollWidth <= innerWidth"), where
            assert (window.evaluate(BRIGHTNESS) > 0.5) == (scheme == "light"), where
        context.close()


@pytest.mark.slow
def test_a_phone_says_what_each_cell_is(chromium: Browser, pages: list[Path]) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    window = context.new_page()
    for path in pages:
        window.goto(path.as_uri())
        assert not window.locator("thead").first.is_visible()
        said = window.evaluate("""() => [...document.querySelectorAll(".cards td")]
            .map((one) => getComputedStyle(one, "::before").content)""")
        assert said
        assert not {'""', "none", "normal"} & set(said), path.name
    context.close()
