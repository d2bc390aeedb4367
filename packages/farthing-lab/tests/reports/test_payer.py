"""The first screen of a report, for who pays, and what is said of other promises than coverage."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from farthing.promises.base import Promise
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.budget import Budget
from farthing.promises.kinds.selective import Selective
from farthing.recommendation.base import Alone, Comparison
from farthing.reports import saved_figure
from farthing.reports.base import thousand
from farthing_lab.comparison.rows import best, mean_of
from farthing_lab.reports import glossary, page, plots, summary, tables

ALPHA = Fraction(1, 10)


def screen(comparison: Comparison) -> str:
    """Return the text of the page before the researcher's part, without its figure."""
    first = page.html(comparison).partition("<main>")[2].partition("How it was compared")[0]
    first = re.sub(r"<svg.*?</svg>", "", first, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", first).split())


@pytest.mark.slow
def test_the_first_screen_holds_the_figures_of_the_record(proved: Comparison) -> None:
    text = screen(proved)
    for expected in (
        "Today Always guide $0.900 per 1,000 questions 0.910 accuracy",
        "Tomorrow Cheap $0.300 per 1,000 questions 0.900 accuracy",
        "Saved 66.7 % 95 % interval: 61.7 % to 71.7 %",
        "accuracy −0.010 (95 % interval: −0.020 to +0.010)",
        "Of 100 questions at most 2 fewer are answered right than by guide alone.",
        "You may be 90 % sure",
        "on the test questions of 95 % of the splits",
        "A model, prompt, price, tool, or the version of the features changes.",
        "A comparison&#39;s winner carries no certificate: run farthing recommend or calibrate",
    ):
        assert expected in text
    assert "Broken" not in text


@pytest.mark.slow
def test_coverage_says_what_is_promised_of_sets(comparison: Comparison) -> None:
    text = screen(replace(comparison, today=Alone("guide", 9e-4, 0.91), reference="guide"))
    stopping = next(row for row in comparison.rows if row.policy == "stopping")
    cost = thousand(mean_of(stopping, "cost_usd"))
    assert f"Tomorrow Supervised stopping {cost} per 1,000 questions" in text
    assert "accuracy of its best answer" in text
    assert "At least 90 of 100 new questions of the same kind get a right answer" in text
    assert "How sure On average over what chance gives one to calibrate on." in text


@pytest.mark.slow
def test_a_model_that_was_not_recorded_alone_is_said_to_be_so(comparison: Comparison) -> None:
    text = screen(comparison)
    assert "Today not recorded alone" in text
    assert "Saved – the models were not recorded alone" in text


@pytest.mark.slow
def test_where_nobody_wins_the_screen_says_why(proved: Comparison) -> None:
    text = screen(replace(proved, rows=proved.rows[1:], differences=[]))
    assert "Tomorrow No winner" in text
    assert "no policy kept the promise on average: ask guide for everything" in text
    assert "certificate" not in text
    nothing = replace(proved, rows=proved.rows[2:], differences=[])
    assert "calibration questions prove no policy: ask guide" in screen(nothing)


def test_the_sentence_of_a_promise(proved: Comparison) -> None:
    (said, last) = summary.sentences(proved)
    assert said.startswith(
        "Under parity with guide minus 0.02, Cheap is the cheapest that kept the promise: $0.300 "
        "per 1,000 questions, accuracy 0.900 (−0.010 beside guide); saved on always guide: 66.7 % "
        "(95 % interval 61.7 % to 71.7 %); on 10 % of the splits nothing was proved."
    )
    assert "than by guide alone, and you may be 90 % sure of that." in said
    assert last == summary.NO_CERTIFICATE


def test_a_winner_that_saves_nothing_is_no_reason_to_change(proved: Comparison) -> None:
    alike = replace(
        proved,
        rows=[
            replace(proved.rows[2], per_split={**proved.rows[2].per_split, "fell_back": [0.0] * 20})
        ],
    )
    assert "no policy is proved that costs less than always guide" in summary.sentence(alike, ALPHA)


def test_columns_and_plots_of_a_promise(proved: Comparison) -> None:
    grid = tables.policy_grid(proved, ALPHA)
    assert grid.short == ("Policy", "USD/q", "Saved", "Acc.", "Gap", "Kept", "Back")
    cheap = next(line for line in grid.lines if line.best)
    assert [str(cell) for cell in cheap.cells] == [
        "0.000300",
        "66.7 %",
        "0.900",
        "−0.010",
        "95 %",
        "10 %",
    ]
    assert all(f"{one.short}" in glossary.key(proved) for one in glossary.columns(proved)[1:])
    (axes,) = plots.frontier(proved, ALPHA).axes
    assert axes.get_title(loc="left") == "Accuracy less guide's"
    assert axes.get_ylim()[0] < -0.02 < axes.get_ylim()[1]
    assert saved_figure.svg(plots.boxes(proved, ALPHA), "boxes")


def told(proved: Comparison, asked: Promise, **figures: float) -> str:
    row = proved.rows[0]
    values = {**row.per_split, **{name: [value] * 20 for name, value in figures.items()}}
    changed = replace(proved, promise=asked, differences=[], rows=[replace(row, per_split=values)])
    assert best(changed, ALPHA) is not None
    assert page.html(changed)
    return f"{summary.sentence(changed, ALPHA)} {summary.in_plain_words(changed, ALPHA)}"


@pytest.mark.slow
def test_each_promise_has_its_sentence(proved: Comparison) -> None:
    same = told(proved, Agreement("guide", Fraction(1, 20)), realised=0.97, accuracy=np.nan)
    assert "Under agreement with guide of 0.95, Cheap is the cheapest" in same
    assert "agreement 0.970; saved" in same
    assert "at least 95 are answered as guide would have answered them, and you may" in same
    few = told(proved, Selective(Fraction(9, 10)), realised=0.95, answered=0.6)
    assert "Cheap answers most of those that kept the promise" in few
    assert "60 % of them answered, and 0.950 of the answers right" in few
    cheap = told(proved, Budget(Fraction(1, 1000), Fraction(1, 10)), realised=3e-4)
    assert "Under $0.00100 a question, Cheap is right most often" in cheap
    assert "less than $1.00 on average, and you may be 90 % sure of that; how many" in cheap


def test_an_offer_without_splits_enough_has_no_interval(proved: Comparison) -> None:
    row = replace(proved.rows[0], intervals={"saved": (np.nan, np.nan), "gained": (np.nan, np.nan)})
    found = page.offer(replace(proved, rows=[row]), ALPHA)
    assert found.saved_within == "no interval of one split"
