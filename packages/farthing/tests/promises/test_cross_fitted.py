"""What a row of points is likely to cost once it is proved, against loops."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.promises.certificate import FloatArray
from farthing.promises.statistics.cross_fitted import CrossFitted


def net(row: CrossFitted, point: int) -> float:
    seen = row.lost[point] - row.won[point]
    return float(seen if row.expected is None else (seen + row.expected[point]) / 2)


def bound(row: CrossFitted, point: int, proving: int, caution: float) -> float:
    """Return the loss of a point that a proof would rule out; of the worst of the dearer ones."""
    worst = -np.inf
    for dearer in range(point, len(row.cost)):
        spread = row.lost[dearer] + row.won[dearer] + 2 / row.n
        proof = stats.norm.ppf(0.9) * (spread / proving) ** 0.5
        worst = max(worst, net(row, dearer) + proof + caution * (spread / row.n) ** 0.5)
    return float(worst)


def scored(row: CrossFitted, margin: float, proving: int) -> float:
    """Return the mean cost over what may be lost, and over what is not known."""
    costs = []
    for caution in (0.5, 1.0, 1.5):
        for times in (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5):
            least = 1.0
            for point, cost in enumerate(row.cost):
                if bound(row, point, proving, caution) <= times * max(margin, 0.01):
                    least = min(least, float(cost))
            costs.append(least)
    return row.surcharge * sum(costs) / len(costs)


def drawn(seed: int, *, tied: bool = False) -> CrossFitted:
    rng = np.random.default_rng(seed)
    points, n = int(rng.integers(1, 12)), int(rng.integers(20, 400))
    cost = np.sort(rng.uniform(0, 1.2, points))
    lost = np.sort(rng.uniform(0, 0.15, points))[::-1]
    if tied:
        lost = np.round(lost, 2)
    expected = rng.uniform(-0.05, 0.1, points) if rng.random() < 0.5 else None
    return CrossFitted(n, cost, lost, rng.uniform(0, 0.05, points), expected, 1 + seed % 3 / 20)


@pytest.mark.slow
@given(st.integers(0, 10_000), st.sampled_from([-0.05, 0.0, 0.005, 0.02, 0.1]), st.booleans())
@settings(deadline=None, max_examples=40)
def test_the_score_is_that_of_loops(seed: int, margin: float, tied: bool) -> None:
    row, proving = drawn(seed, tied=tied), 50 + seed % 700
    assert row.score(margin, proving) == pytest.approx(scored(row, margin, proving))
    for caution in (0.0, 1.0):
        by_hand = [bound(row, point, proving, caution) for point in range(len(row.cost))]
        assert row.bound(proving, caution) == pytest.approx(by_hand)


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=50)
def test_more_proof_more_margin_and_fewer_losses_never_cost_more(seed: int) -> None:
    row = drawn(seed)
    score = row.score(0.03, 300)
    assert row.score(0.03, 600) <= score
    assert row.score(0.06, 300) <= score
    assert replace(row, lost=row.lost / 2, expected=None).score(0.03, 300) <= (
        replace(row, expected=None).score(0.03, 300)
    )
    assert score <= row.surcharge


def test_a_margin_of_nothing_or_of_a_gain_is_scored_like_a_small_one() -> None:
    row = drawn(3)
    assert row.score(-0.1, 300) == row.score(0.0, 300) == row.score(0.01, 300)


def row_of(*net_loss: float, n: int = 300) -> CrossFitted:
    """Return points from the cheapest that lose, or win where it is negative."""
    loss: FloatArray = np.array(net_loss)
    cost = np.linspace(0.1, 0.9, len(loss))
    return CrossFitted(n, cost, np.maximum(loss, 0), np.maximum(-loss, 0))


def test_testing_begins_at_the_dearest_point_of_use_where_something_may_be_lost() -> None:
    row = row_of(0.2, 0.1, 0.05, 0.0)
    every = np.ones(4, dtype=bool)
    assert row.start(0.02, every, 500) == 3
    assert row.start(0.02, np.array([True, False, True, False]), 500) == 2
    assert row.start(1e-9, every, 500) == 3  # however likely another one is
    assert row_of(0.0, 0.0, 0.5).start(0.02, np.ones(3, dtype=bool), 500) == 2


@pytest.mark.parametrize("margin", [0.02, 0.0, -0.02])
def test_where_nothing_is_of_use_the_cheapest_point_is_tested(margin: float) -> None:
    assert row_of(0.2, 0.0, -0.1).start(margin, np.zeros(3, dtype=bool), 500) == 0


@pytest.mark.parametrize("margin", [0.0, -0.02])
def test_where_nothing_may_be_lost_testing_begins_at_the_likeliest_point(margin: float) -> None:
    """One that loses and wins nothing proves nothing, but the one that wins most does."""
    row = row_of(0.05, -0.06, -0.02, 0.0)
    every = np.ones(4, dtype=bool)
    assert row.start(margin, every, 500) == 1
    assert row.start(margin, np.array([True, False, True, True]), 500) == 2
    assert row.start(margin, np.array([True, False, False, False]), 500) == 0


@pytest.mark.parametrize("margin", [0.0, -0.02])
def test_of_equally_likely_points_testing_begins_at_the_dearest(margin: float) -> None:
    row = row_of(0.1, -0.05, 0.0, -0.05, 0.0)
    assert row.start(margin, np.ones(5, dtype=bool), 500) == 3
    assert row_of(0.0, 0.0).start(margin, np.ones(2, dtype=bool), 500) == 1


def test_the_point_that_testing_would_reach_is_the_cheapest_that_bounds_within_the_margin() -> None:
    row = row_of(0.2, 0.05, 0.01, 0.0)
    assert [row.likely_point(3, margin, 500) for margin in (0.3, 0.1, 0.03, 0.001)] == [0, 1, 2, 3]
    assert row.likely_point(1, 0.001, 500) == 1  # nothing is: it stays where it begins
    assert row.likely_point(0, 0.5, 500) == 0
    assert row.likely_point(1, 0.3, 500) == 0


def test_testing_reaches_no_point_behind_one_that_is_not_proved() -> None:
    """The second one loses much, and so nothing cheaper is reached, whatever that loses."""
    row = row_of(0.0, 0.3, 0.0)
    assert row.likely_point(2, 0.05, 500) == 2
    assert row.score(0.05, 500) > row_of(0.0, 0.0, 0.0).score(0.05, 500)
    assert row.score(0.05, 500) == pytest.approx(0.9)


def test_costs_that_do_not_rise_with_the_points_are_taken_as_they_are() -> None:
    row = CrossFitted(300, np.array([0.5, 0.2, 0.8]), np.zeros(3), np.zeros(3))
    assert row.likely_point(2, 0.1, 500) == 1
    dear = CrossFitted(300, np.array([1.4]), np.zeros(1), np.zeros(1))
    assert dear.score(0.1, 500) == 1.0  # it is not taken, and the reference answers
