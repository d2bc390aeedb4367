import numpy as np
import pytest
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.kinds.budget import Spending, budget_point

RUNS, DELTA = 2_000, 0.1
MOST = 1_000_000
MEANS = np.array([0.05, 0.10, 0.12])
"""Expected costs of the operating points, as shares of the largest: below, at and above the
budget."""


def draw(rng: np.random.Generator, n: int = 200) -> Spending:
    """Skewed costs, and dearer operating points that achieve more."""
    shares = rng.beta(0.5, 0.5 / MEANS - 0.5, size=(n, 3))
    return Spending((shares * MOST).astype(np.int64), rng.random((n, 3)) < [0.5, 0.7, 0.9], MOST)


@pytest.mark.slow
def test_a_point_over_budget_is_as_rare_as_promised() -> None:
    rng = np.random.default_rng(0)
    chosen = [budget_point(draw(rng), MOST // 10, DELTA) for _ in range(RUNS)]
    failures = sum(found in {1, 2} for found in chosen)
    assert stats.binomtest(failures, RUNS, DELTA, alternative="greater").pvalue > 1e-4
    assert sum(found == 0 for found in chosen) > 0.8 * RUNS


def test_it_takes_what_achieves_most_among_what_fits() -> None:
    cost = np.tile([10, 20, 30, 90], (300, 1))
    achieved = np.ones((300, 4), bool)
    achieved[:50, [0, 2]] = False
    assert budget_point(Spending(cost, achieved, 100), 50, 0.1) == 1
    assert budget_point(Spending(cost, achieved, 100), 100, 0.1) == 1
    assert budget_point(Spending(cost, achieved, 100), 9, 0.1) is None


def test_the_largest_possible_cost_as_a_budget_is_proved_by_a_smaller_cost_alone() -> None:
    """A question costs less than that in expectation where it may cost less at all."""
    right = np.ones((40, 1), bool)
    always, seldom = np.full((40, 1), 100), np.full((40, 1), 100)
    seldom[7] = 99
    assert budget_point(Spending(always, right, 100), 100, 0.1) is None
    assert budget_point(Spending(seldom, right, 100), 100, 0.1) == 0
    assert budget_point(Spending(always, right, 100), 101, 0.1) == 0


def test_what_cannot_be_a_cost_is_refused() -> None:
    right = np.ones((2, 1), bool)
    with pytest.raises(CalibrationError, match=r"was given, \$0.000000005: give a larger --most"):
        Spending(np.array([[1], [6]]), right, 5)
    with pytest.raises(CalibrationError, match=r"costs are −\$0.000000001 to \$0.000000006"):
        Spending(np.array([[-1], [6]]), right, 6)
    with pytest.raises(CalibrationError, match="one row a question"):
        Spending(np.ones((2, 2), int), right, 5)
    with pytest.raises(CalibrationError, match=r"the budget is \$0 a question; .* --budget"):
        budget_point(Spending(np.ones((2, 1), int), right, 5), 0, 0.1)
