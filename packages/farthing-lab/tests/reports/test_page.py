import json
import re
import sys
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest

import farthing.reports
import farthing_lab.reports
from farthing.errors import InputError
from farthing.recommendation.base import Comparison
from farthing.reports import saved_figure
from farthing_lab.reports import page, plots

VOID = {"meta", "br", "img", "hr", "link", "input"}


class Tags(HTMLParser):
    """Collects tags and attributes, and checks that what opens closes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    tags.close()
    assert not tags.open
    return tags


@pytest.mark.slow
def test_asks_nothing_of_the_network_and_runs_nothing(comparison: Comparison) -> None:
    text = page.html(comparison)
    tags = parsed(text)
    assert not {"script", "link", "iframe", "object", "img"} & set(tags.seen)
    for name, value in tags.attributes:
        assert not name.startswith("on")
        assert name not in {"src", "href"} or (value or "").startswith("#")
        assert name != "xlink:href" or (value or "").startswith("#")
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


@pytest.mark.slow
def test_names_from_traces_are_escaped(hostile: Comparison) -> None:
    text = page.html(hostile)
    tags = parsed(text)
    assert "script" not in tags.seen
    assert "<script>alert('x')</script>" in tags.text  # it is shown, as text


@pytest.mark.slow
def test_a_hostile_name_inside_a_plot_is_text(hostile: Comparison) -> None:
    drawn = saved_figure.svg(plots.boxes(hostile, Fraction(1, 10)), 'a "title" <b>')
    assert "<script" not in drawn
    assert "<b>" not in drawn
    assert "alert" in parsed(drawn).text


@pytest.mark.slow
def test_says_who_is_cheapest_and_what_to_doubt(comparison: Comparison) -> None:
    text = parsed(page.html(comparison)).text
    for expected in (
        "Supervised stopping is the cheapest policy with a promise",
        "What to doubt",
        "trained on 1,000 questions",
        comparison.fingerprint,
        "no replies recorded",
        "made-up questions. No model was asked. Random and UALA agree with the paper",
        "Cost, × optimum",
    ):
        assert expected in text


@pytest.mark.slow
def test_the_same_comparison_gives_the_same_bytes(comparison: Comparison, tmp_path: Path) -> None:
    first = {p.name: p.read_bytes() for p in page.write_report(comparison, tmp_path / "a")}
    again = {p.name: p.read_bytes() for p in page.write_report(comparison, tmp_path / "b")}
    assert first == again
    assert set(first) == {"results.json", "table.md", "report.html"}
    assert {entry["policy"] for entry in json.loads(first["results.json"])} == {
        row.policy for row in comparison.rows
    }


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_named(comparison: Comparison, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        page.write_report(comparison, tmp_path / "file")


@pytest.mark.slow
def test_a_comparison_where_nothing_could_run(comparison: Comparison) -> None:
    rows = [row for row in comparison.rows if row.policy == "llm-policy-guide"]
    text = page.html(replace(comparison, rows=rows, differences=[], optimum=[], published=[]))
    parsed(text)
    assert rows
    assert all(row.note and row.note in text for row in rows)


@pytest.mark.slow
def test_without_matplotlib_the_page_has_its_tables_and_says_what_draws(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = page.html(comparison)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for room, name in (
        (farthing_lab.reports, "plots"),
        (farthing_lab.reports, "training"),
        (farthing.reports, "saved_figure"),
    ):
        monkeypatch.delitem(sys.modules, f"{room.__name__}.{name}")
        monkeypatch.delattr(room, name)
    text = page.html(comparison)
    parsed(text)
    assert "<svg" in whole
    assert "<svg" not in text
    assert re.search(r"figures of this section are left out: drawing plots needs .*\[plots\]", text)
    assert re.findall("<td.*?</td>", text) == re.findall("<td.*?</td>", whole)


@pytest.mark.slow
def test_a_table_that_is_wider_than_the_text_is_not_cut_off(comparison: Comparison) -> None:
    text = page.html(comparison)
    style = text[text.index("<style>") : text.index("</style>")]
    for rule in re.findall(r"[^{}]*\b(?:th|td)\b[^{}]*\{[^{}]*nowrap[^{}]*\}", style):
        assert rule.strip().startswith("td small"), "no other cell may keep its words in one line"
    assert re.search(r"\.wide \{ overflow-x: auto", style)
