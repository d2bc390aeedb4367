from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest

from farthing.process.operating_points import OperatingPoints
from farthing.promises.statistics.fixed_sequence import proven
from farthing_lab.comparison.pools import Fallback, Outcome, coverage, parity, summary


def made_up(cost: np.ndarray, correct: np.ndarray, answered: np.ndarray) -> OperatingPoints:
    """Points, [n, G], of one call each, whose one answer is the whole set."""
    calls = np.ones(cost.shape, dtype=np.int16)
    values = np.arange(float(cost.shape[1]))
    return OperatingPoints(
        values, cost, correct, answered, correct, calls=calls, set_size=calls, answers=calls
    )


def nested_points(rng: np.random.Generator, n: int) -> tuple[OperatingPoints, Fallback]:
    """Operating points that each solve what the one before solves, and cost a dollar more."""
    depth = rng.integers(
        0, 12, size=n
    )  # the operating point that first solves the question; 11: none
    solves = depth[:, None] <= np.arange(10)
    cost = np.tile(np.arange(1, 11), (n, 1))
    points = made_up(cost, solves, np.ones_like(solves))
    return points, Fallback(np.full(n, 12), depth < 11)


@pytest.mark.slow
def test_coverage_is_kept_on_average_over_calibrations() -> None:
    rng = np.random.default_rng(0)
    points, fallback = nested_points(rng, 100_000)
    fresh = np.arange(50_000, 100_000)
    margins = []
    for _ in range(400):
        calibrate = rng.integers(0, 50_000, size=60)
        margins.append(coverage(points, fallback, (calibrate, fresh), alpha=0.2).margin)
    assert np.mean(margins) > -3 * np.std(margins) / 20
    assert np.mean(margins) < 0.1  # an operating point covers a whole eleventh more


def test_coverage_allows_as_many_misses_as_the_fraction_does() -> None:
    """Of 99 questions and a next one 0.29 are 29; the binary fraction falls short of that."""
    covered = np.ones((120, 2), dtype=bool)
    covered[:28, 0] = False
    points = made_up(np.tile([1, 9], (120, 1)), covered, covered)
    fallback = Fallback(np.full(120, 9), np.ones(120, dtype=bool))
    for alpha in (0.29, "0.29", Fraction(29, 100)):
        found = coverage(points, fallback, (np.arange(99), np.arange(99, 120)), alpha=alpha)
        assert found.cost == 1e-6
        assert found.margin == 1 - 0.71
    one_more = covered.copy()
    one_more[28, 0] = False
    points = made_up(points.cost_nano, one_more, covered)
    found = coverage(points, fallback, (np.arange(99), np.arange(99, 120)), alpha="0.29")
    assert found.cost == 9e-6


def test_parity_is_broken_in_at_most_delta_of_calibrations() -> None:
    rng = np.random.default_rng(1)
    n = 60_000
    reference = rng.random(n) < 0.8
    loss = np.linspace(0.08, 0.0, 9)  # the operating point at index 6 loses exactly epsilon
    correct = reference[:, None] & (rng.random((n, 1)) > loss / 0.8)
    points = made_up(np.tile(np.arange(9), (n, 1)), correct, np.ones_like(correct))
    fallback = Fallback(np.full(n, 9), reference)
    fresh = np.arange(30_000, n)
    kept = []
    for _ in range(150):
        calibrate = rng.integers(0, 30_000, size=400)
        found = parity(points, fallback, (calibrate, fresh), epsilon=0.02, delta=0.1)
        kept.append(found.margin > -0.003)
    assert np.mean(kept) >= 0.9 - 3 * np.sqrt(0.09 / 150)


def test_where_nothing_is_proved_the_fallback_pays_and_keeps_the_promise() -> None:
    wrong = np.zeros((50, 2), dtype=bool)
    points = made_up(np.ones((50, 2), dtype=np.int64), wrong, ~wrong)
    fallback = Fallback(np.full(50, 7_000_000), np.ones(50, dtype=bool))
    rows = np.arange(30), np.arange(30, 50)
    for outcome in (
        parity(points, fallback, rows, epsilon=0.02, delta=0.1),
        coverage(points, fallback, rows, alpha=0.1),
    ):
        assert outcome.fell_back
        assert outcome.cost == pytest.approx(7.0)
        assert outcome.margin > 0


def test_the_summary_of_two_splits() -> None:
    row = summary([Outcome(1.0, -0.01, fell_back=False), Outcome(3.0, 0.03, fell_back=True)])
    assert (row.cost, row.cost_error) == (2.0, 1.0)
    assert (row.kept, row.fell_back) == (0.5, 0.5)
    assert row.margin == pytest.approx(0.01)


@pytest.mark.extras("mapie")
def test_a_point_is_chosen_as_mapie_controls_the_risk() -> None:
    methods = import_module("mapie.risk_control.methods")
    rng = np.random.default_rng(2)
    for alpha in (0.13, 0.2, 0.3):
        points, fallback = nested_points(rng, 400)
        calibrate = np.flatnonzero(fallback.right)[:150]
        missed = (~points.covered[calibrate]).astype(float)
        _, bound = methods.get_r_hat_plus(missed, points.values, "crc", None, None, None)
        # it asks for a bound below alpha, and the theorem for one of at most alpha
        theirs = methods.find_best_predict_param(points.values, bound, np.array([alpha + 1e-9]))
        rows = calibrate, np.arange(len(points))
        found = coverage(points, fallback, rows, alpha=alpha)
        assert found.cost == pytest.approx(points.cost_nano[0, int(theirs[0])] * 1e-6)


@pytest.mark.extras("mapie")
def test_a_sequence_is_tested_as_mapie_does() -> None:
    control = import_module("mapie.risk_control.fwer_control")
    rng = np.random.default_rng(3)
    for _ in range(50):
        p_values = np.sort(rng.random(12)) ** 3
        p_values[rng.integers(12)] = rng.random()
        theirs = control.control_fwer(p_values, 0.1, "fixed_sequence")
        np.testing.assert_array_equal(np.flatnonzero(proven(p_values, 0.1)), theirs)
