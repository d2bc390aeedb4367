import io
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from rich.console import Console

from farthing.recommendation.base import NOBODY_ASKED, TIMES_OPTIMUM, Comparison, Difference
from farthing_lab.comparison import rows
from farthing_lab.reports import glossary, page, tables

ALPHA = Fraction(1, 10)


def printed(comparison: Comparison, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(tables.render_tables(comparison))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120])
def test_fits_a_terminal_and_cuts_no_figure(comparison: Comparison, width: int) -> None:
    text = printed(comparison, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for row in comparison.rows:
        if rows.ran(row):
            assert f"{rows.mean_of(row, 'coverage'):.3f}" in text


def test_a_narrow_terminal_leaves_out_columns_and_says_so(comparison: Comparison) -> None:
    text = printed(comparison, 60)
    assert max(map(len, text.splitlines())) <= 60
    assert "…" not in text
    assert "no room here for Solv., Len, Set, Leaf, Empty: see table.md" in text
    assert "no room" not in printed(comparison, 90)
    assert "[+0.012, +0.028]" in text


def test_markdown_has_the_means_of_the_rows(comparison: Comparison) -> None:
    lines = tables.markdown(comparison).splitlines()
    stopping = next(row for row in comparison.rows if row.policy == "stopping")
    cells = next(line for line in lines if line.startswith("| Supervised stopping")).split("|")
    cents = rows.mean_of(stopping, "total_cost_usd") * 100
    assert float(cells[2].split("±")[0]) == pytest.approx(cents, rel=1e-3)
    assert float(cells[3]) == pytest.approx(rows.mean_of(stopping, "cost_usd"), rel=5e-3)
    assert float(cells[4]) == pytest.approx(rows.mean_of(stopping, "accuracy"), abs=5e-4)
    assert float(cells[5].split("±")[0]) == pytest.approx(
        rows.mean_of(stopping, "coverage"), abs=5e-4
    )


def test_markdown_tables_are_rectangular(comparison: Comparison) -> None:
    for block in tables.markdown(comparison).split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1


def test_a_policy_that_could_not_run_says_why(comparison: Comparison) -> None:
    for text in (tables.markdown(comparison), printed(comparison, 80)):
        assert "LLM as policy (guide): no replies recorded" in text
    grid = tables.policy_grid(comparison, ALPHA)
    line = next(line for line in grid.lines if line.policy == "llm-policy-guide")
    assert {str(cell) for cell in line.cells} == {"–"}


def test_published_figures_stand_beside_ours(comparison: Comparison) -> None:
    (line,) = tables.published_grid(comparison, ALPHA).lines
    assert line.policy == "cpo-batch"
    assert str(line.cells[0]).endswith("/ 0.392")  # 7.835 cents for 200 questions
    assert not tables.published_grid(comparison, Fraction(1, 20)).lines


@pytest.mark.slow
def test_the_table_of_published_figures_says_what_its_columns_are(comparison: Comparison) -> None:
    for text in (tables.markdown(comparison), printed(comparison, 80), page.html(comparison)):
        flat = " ".join(text.split()).replace("&#39;", "'")
        assert "before the stroke ours, on made-up questions; behind it the paper's" in flat
        assert "as printed in table 2 of arXiv 2511.11828, on 200 recorded ones" in flat
        assert "not in the paper: " in flat
        assert "CCPO (λ=0) has a corrected constraint, the paper's own is ccpo-published" in flat
    assert not tables.published_grid(comparison, Fraction(1, 20)).notes
    recorded = tables.markdown(replace(comparison, published=[]))
    assert "before the stroke" not in recorded


@pytest.mark.slow
def test_what_to_know_before_the_figures_stands_before_them(comparison: Comparison) -> None:
    told = replace(comparison, lede="of <another> promise")
    for text, said in (
        (page.html(told), "of &lt;another&gt; promise"),
        (tables.markdown(told), "of &lt;another> promise"),
    ):
        assert text.index(said) < text.index("alpha = 0.1")


def test_differences_are_written_with_their_interval(comparison: Comparison) -> None:
    one = Difference(ALPHA, "cpo-batch", "stopping", "cost_usd", 1e-4, -2e-5, 2.2e-4)
    grid = tables.difference_grid(replace(comparison, differences=[one]), ALPHA)
    assert str(grid.lines[0].cells[0]) == "+0.100 [-0.020, +0.220]"
    assert str(grid.lines[0].cells[2]) == "–"


def test_names_cannot_break_a_table(hostile: Comparison) -> None:
    text = tables.markdown(hostile)
    assert "<script>" not in text
    assert "\\|" in text
    assert "[red]**bold**" in printed(hostile, 120)


def test_a_policy_that_must_return_everything_says_so(comparison: Comparison) -> None:
    rows = [replace(row, kappa=[0.0] * 40) if row.kappa else row for row in comparison.rows]
    found = replace(comparison, rows=rows)
    grid = tables.policy_grid(found, ALPHA)
    assert not any(line.best for line in grid.lines)
    assert any("UALA" in note and "everything is returned" in note for note in grid.notes)
    assert not tables.difference_grid(found, ALPHA).lines


def test_a_terminal_shows_the_groups_and_what_the_headings_mean(comparison: Comparison) -> None:
    text = printed(comparison, 120)
    groups = [line for line in map(str.strip, text.splitlines()) if line in rows.GROUPS.values()]
    assert groups == [said for how, said in rows.GROUPS.items() if how != "proved"]
    text = " ".join(text.split())
    key = glossary.key(comparison)
    assert key in text
    for column in glossary.columns(comparison)[2:-1]:
        assert column.short == "Coverage" or f"{column.short}:" in key


def test_each_row_is_held_against_the_known_optimum(comparison: Comparison) -> None:
    table = tables.markdown(comparison).splitlines()
    place = next(line for line in table if "Coverage" in line).split(" | ").index("Cost, × optimum")
    stopping = next(line for line in table if line.startswith("| Supervised stopping"))
    assert stopping.split(" | ")[place] == "1.07"  # 3.1 / 2.9
    assert re.search(r"×opt\b.*\n", printed(comparison, 80))
    assert "×opt: cost over the optimum's" in printed(comparison, 120)
    rows = [
        replace(row, per_split={k: v for k, v in row.per_split.items() if k != TIMES_OPTIMUM})
        for row in comparison.rows
    ]
    unknown = replace(comparison, rows=rows)
    assert "× optimum" not in tables.markdown(unknown)
    assert "×opt" not in printed(unknown, 120)


def test_made_up_questions_are_called_so_in_the_first_line(comparison: Comparison) -> None:
    first, second, third = tables.markdown(comparison).split("\n\n")[:3]
    assert first == "# hotpotqa-llama2-7b: made-up questions"
    assert second == NOBODY_ASKED
    assert third.startswith("train 1,000")
    recorded = replace(comparison, made_up="", published=[])
    assert tables.markdown(recorded).startswith("# hotpotqa-llama2-7b\n\ntrain 1,000")
