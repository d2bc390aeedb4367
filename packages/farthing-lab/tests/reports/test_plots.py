from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from farthing.methods.cards import cards
from farthing.recommendation.base import Comparison
from farthing.reports import saved_figure
from farthing.reports.style import looks
from farthing_lab.comparison.rows import mean_of, ran
from farthing_lab.reports import plots

ALPHA = Fraction(1, 10)


def test_boxes_show_every_policy_that_ran_and_the_target(comparison: Comparison) -> None:
    figure = plots.boxes(comparison, ALPHA)
    coverage, cost = figure.axes
    shown = [label.get_text() for label in coverage.get_yticklabels()]
    assert len(shown) == sum(map(ran, comparison.rows))
    assert shown[0] == "Supervised stopping"
    assert shown[-1] == "Random (no promise)"
    targets = [np.asarray(line.get_xdata()).tolist() for line in coverage.lines]
    assert [0.9, 0.9] in targets
    row = next(row for row in comparison.rows if row.policy == "stopping")
    medians = [np.asarray(line.get_xdata()) for line in cost.lines]
    middle = float(np.median(row.per_split["cost_usd"])) * 1000
    assert any(len(found) == 2 and np.allclose(found, middle) for found in medians)


def test_frontier_key_is_in_the_order_of_the_cost_of_the_promise(comparison: Comparison) -> None:
    (axes,) = plots.frontier(comparison, ALPHA).axes
    legend = axes.get_legend()
    assert legend
    key = [text.get_text() for text in legend.get_texts()]
    swept = sorted(
        (row for row in comparison.rows if len(row.frontier) > 1),
        key=lambda row: (min(cost for cost, y in row.frontier if y >= 0.9), row.label),
    )
    assert key == [
        "known optimum, in expectation",
        *(row.label for row in swept),
        "CPO",
        "Fixed depth 1",
        "Fixed depth 2",
        "Random (0.58, off the plot)",
        "hollow: published",
    ]


def test_a_line_that_only_falls_stays_in_the_plot(comparison: Comparison) -> None:
    falls = [(2e-4, share) for share in np.linspace(0, 0.85, 20)]
    played = {"cost_usd": [2e-4], "coverage": [0.82]}
    online = next(row for row in comparison.rows if row.policy == "cpo-online")
    row = replace(online, frontier=[*falls, (3e-4, 0.9)], per_split=played)
    drawn = plots._worth_drawing(row, "coverage")
    assert drawn == [falls[-1], (3e-4, 0.9)]  # 0.85 is the one step above the 0.82 that it plays
    assert plots._worth_drawing(replace(row, frontier=falls[:1]), "coverage") == []


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["random", "fixed-depth-2", "stopping"])
def test_what_is_asked_for_is_in_the_plot_of_one_policy(
    comparison: Comparison, policy: str
) -> None:
    rows = [row for row in comparison.rows if row.policy == policy]
    alone = replace(comparison, rows=rows, optimum=[], published=[], differences=[])
    (axes,) = plots.frontier(alone, ALPHA).axes
    assert axes.get_ylim()[0] < 0.9 < axes.get_ylim()[1]
    for draw in (plots.frontier, plots.boxes):  # a label outside would squeeze the axes: a warning
        assert saved_figure.svg(draw(alone, ALPHA), "alone")


@pytest.mark.slow
def test_svg_is_the_same_twice_and_has_no_date(comparison: Comparison) -> None:
    once, again = (saved_figure.svg(plots.frontier(comparison, ALPHA), "t") for _ in range(2))
    assert once == again
    assert "date" not in once.lower()


def test_a_policy_keeps_its_colour_whoever_else_is_shown() -> None:
    assert looks(["ccpo"])["ccpo"] == looks(["a", "b", "ccpo", "stopping"])["ccpo"]
    everyone = looks([*(card.name for card in cards()), "fixed-1", "fixed-2", "x", "y"])
    assert len(set(everyone.values())) == len(everyone)
    assert len({marker for _, marker in everyone.values()}) == len(everyone)


def test_points_far_below_do_not_flatten_the_lines(comparison: Comparison) -> None:
    (axes,) = plots.frontier(comparison, ALPHA).axes
    random = next(row for row in comparison.rows if row.policy == "random")
    assert axes.get_ylim()[0] > mean_of(random, "coverage")
    alone = replace(comparison, rows=[random], optimum=[], published=[], differences=[])
    assert plots.frontier(alone, ALPHA).axes
