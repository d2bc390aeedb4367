"""What benchmarks of routers print: by loops over points and mixtures, and a score they printed."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from made_up_pool import pool

from farthing.methods.base import Dataset
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.parity import Parity
from farthing.recommendation.base import Comparison, Row
from farthing_lab.comparison.compare import compare
from farthing_lab.comparison.names import (
    AIQ,
    ARENA_SCORE,
    GAIN_AT_EQUAL_COST,
    ROUTER_FIGURES,
    SAVING_AT_EQUAL_ACCURACY,
)
from farthing_lab.comparison.plan import Plan
from farthing_lab.comparison.router_figures import (
    aiq,
    arena_score,
    gain_at_equal_cost,
    hull,
    saving_at_equal_accuracy,
)
from farthing_lab.comparison.rows import results_json
from farthing_lab.reports import tables

ALPHA = Fraction(1, 10)


def curves(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    return rng.integers(1, 12, n) / 4, rng.integers(0, 9, n) / 8


def mixed(cost: np.ndarray, accuracy: np.ndarray, at: float) -> float:
    """Return the most that two points mixed reach for no more than a mean cost."""
    cheapest = cost.min()
    if at < cheapest:
        return float(accuracy[cost == cheapest].max() * at / cheapest)
    found = 0.0
    for a, b in zip(cost, accuracy, strict=True):
        for c, d in zip(cost, accuracy, strict=True):
            if a <= at:
                share = 1.0 if c <= at else (at - a) / (c - a)
                found = max(found, float(b + share * (d - b)), float(b))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_aiq_is_the_mean_of_the_best_mixtures(seed: int) -> None:
    cost, accuracy = curves(seed)
    low, high = 0.5, 4.5
    steps = 4_000
    middles = low + (np.arange(steps) + 0.5) * (high - low) / steps
    slowly = np.mean([mixed(cost, accuracy, at) for at in middles])
    assert aiq(cost, accuracy, low, high) == pytest.approx(slowly, abs=1e-3)
    assert aiq(cost, accuracy, high, high) == pytest.approx(mixed(cost, accuracy, high))


@pytest.mark.parametrize("seed", range(20))
def test_no_corner_of_the_hull_is_reached_by_others(seed: int) -> None:
    cost, accuracy = curves(seed)
    corners, heights = hull(cost, accuracy)
    assert (np.diff(corners) > 0).all()
    assert (np.diff(heights) > 0).all()
    for k in range(1, len(corners)):
        others = (cost != corners[k]) | (accuracy != heights[k])
        assert mixed(cost[others], accuracy[others], corners[k]) < heights[k]


@pytest.mark.parametrize("seed", range(20))
def test_gain_and_saving_by_a_loop_over_points(seed: int) -> None:
    cost, accuracy = curves(seed)
    most, theirs = 1.5, 0.5
    gains = [b - theirs for a, b in zip(cost, accuracy, strict=True) if a <= most]
    savings = [1 - a / most for a, b in zip(cost, accuracy, strict=True) if b >= theirs]
    gain = gain_at_equal_cost(cost, accuracy, most, theirs)
    saving = saving_at_equal_accuracy(cost, accuracy, most, theirs)
    assert gain == pytest.approx(max(gains)) if gains else np.isnan(gain)
    assert saving == pytest.approx(max(savings)) if savings else np.isnan(saving)


def test_the_arena_printed_this_score() -> None:
    """An evaluation of RouterArena: accuracy 18.18 %, $0.0518 per 1,000 questions, score 0.1953."""
    assert arena_score(0.0518 / 1_000, 0.1818) == pytest.approx(0.1953, abs=1e-4)
    assert arena_score(0.2, 0.9) == pytest.approx(0.0)  # the most expensive router of all
    assert arena_score(0.4, 0.9) < 0


NAMES = ("always-large", "always-small", "c3po", "ucci")


@pytest.fixture(scope="module")
def proved() -> Comparison:
    asked = Parity("large", Fraction(1, 50))
    plan = Plan((ALPHA,), NAMES, splits=3, workers=1, promise=asked)
    return compare(Dataset("p", pool(900)), plan)


def row_of(found: Comparison, policy: str) -> Row:
    return next(row for row in found.rows if row.policy == policy)


def test_the_best_single_model_gains_and_saves_nothing(proved: Comparison) -> None:
    best = row_of(proved, "always-large").router_figures
    assert best[GAIN_AT_EQUAL_COST] == pytest.approx(0)
    assert best[SAVING_AT_EQUAL_ACCURACY] == pytest.approx(0)
    small = row_of(proved, "always-small").router_figures
    assert small[GAIN_AT_EQUAL_COST] < 0
    assert SAVING_AT_EQUAL_ACCURACY not in small
    assert small[AIQ] == pytest.approx(row_of(proved, "always-small").curve[0][1])


def test_a_row_has_the_figures_of_its_points_and_of_its_means(proved: Comparison) -> None:
    row, large = row_of(proved, "ucci"), row_of(proved, "always-large")
    cost, accuracy = np.array(row.curve).T
    ((paid, right),) = large.curve
    assert row.router_figures[GAIN_AT_EQUAL_COST] == accuracy[cost <= paid].max() - right
    means = (float(np.mean(row.per_split[name])) for name in ("cost_usd", "accuracy"))
    assert row.router_figures[ARENA_SCORE] == arena_score(*means)
    found = {one["policy"]: one for one in json.loads(results_json(proved))}
    assert {name: found["ucci"].get(name) for name in ROUTER_FIGURES} == {
        name: row.router_figures.get(name) for name in ROUTER_FIGURES
    }
    assert found["always-small"][SAVING_AT_EQUAL_ACCURACY] is None


def test_reports_have_the_columns(proved: Comparison) -> None:
    shown = tables.markdown(proved)
    assert "as benchmarks of routers print it" in shown
    assert (
        "| Policy | Gain at equal cost, points | Saving at equal accuracy | AIQ | Arena score |"
        in shown
    )


def test_a_promise_of_coverage_has_them_too() -> None:
    found = compare(Dataset("p", pool(900)), Plan((ALPHA,), ("always-large", "lazy"), splits=2))
    best = row_of(found, "always-large").router_figures
    assert best[GAIN_AT_EQUAL_COST] == pytest.approx(0)
    assert set(row_of(found, "lazy").router_figures) >= {AIQ, ARENA_SCORE, GAIN_AT_EQUAL_COST}


def test_what_is_not_known_is_left_out() -> None:
    """Answers that nobody graded: accuracy is unknown, and every figure needs it."""
    traces = pool(900)
    hidden = np.zeros(traces.answer.shape, dtype=bool)
    hidden[::7, :, 1] = True
    partly = replace(traces, ungraded=hidden, correct=traces.correct & ~hidden)
    plan = Plan(
        (ALPHA,),
        ("always-small", "c3po"),
        splits=2,
        workers=1,
        promise=Agreement("large", Fraction(1, 20)),
    )
    for row in compare(Dataset("p", partly), plan).rows:
        assert row.router_figures == {}
