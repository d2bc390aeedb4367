"""`farthing recommend --report`: a page beside the screen."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_up_pool import pool, write

from farthing import reports
from farthing.methods.cards import card
from farthing.recommendation import candidates

Farthing = Callable[..., Any]
Refused = Callable[..., str]
PROMISE = ("--promise", "parity", "--epsilon", 0.05, "--reference", "large")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one method take part, so that it takes a moment."""
    monkeypatch.setattr(candidates, "cards", lambda: [card("pool-gain")])


@pytest.mark.slow
def test_the_page_says_what_the_screen_says(farthing: Farthing, tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", pool(700))
    done = farthing("recommend", "--traces", "log.jsonl", *PROMISE, "--report", "report.html")
    assert done.code == 0, done.err
    assert "report: report.html" in done.err
    page = Path("report.html").read_text(encoding="utf-8")
    assert "<h1>log.jsonl</h1>" in page
    assert "Use pool-gain" in page
    assert "<svg" in page
    (saved,) = re.findall(r"^Saved +([\d.]+ %)", done.out, re.MULTILINE)
    assert f"<b>{saved}</b>" in page


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_trained(
    refused: Refused, tmp_path: Path
) -> None:
    write(tmp_path / "log.jsonl", pool(700))
    said = refused("recommend", "--traces", "log.jsonl", *PROMISE, "--report", "absent/report.html")
    assert "there is no folder absent" in said


@pytest.mark.slow
def test_without_a_plotting_library_the_page_says_what_draws(
    farthing: Farthing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "log.jsonl", pool(700))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "farthing.reports.saved_figure", raising=False)
    monkeypatch.delitem(sys.modules, "farthing_lab.reports.plots", raising=False)
    for name in ("saved_figure", "plots"):
        monkeypatch.delattr(reports, name, raising=False)
    done = farthing("recommend", "--traces", "log.jsonl", *PROMISE, "--report", "report.html")
    assert done.code == 0, done.err
    page = Path("report.html").read_text(encoding="utf-8")
    assert "<svg" not in page
    assert "The figure is left out: drawing plots needs" in page
