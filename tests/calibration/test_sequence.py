import numpy as np
import pytest
from scipy import stats

from farthing.calibration.sequence import proven
from farthing.errors import CalibrationError


def test_it_stops_at_the_first_failure() -> None:
    assert proven(np.array([0.05, 0.01, 0.051, 0.0]), 0.05).tolist() == [True, True, False, False]
    assert proven(np.array([0.06, 0.0]), 0.05).tolist() == [False, False]
    assert proven(np.array([]), 0.05).tolist() == []


def test_shares_of_delta_are_handed_on_where_a_proof_succeeds() -> None:
    shares = (0.5, 0.25, 0.25)
    assert proven(np.array([0.05, 0.075, 0.1]), 0.1, shares).all()
    assert proven(np.array([0.06, 0.025, 0.05]), 0.1, shares).tolist() == [False, True, True]
    assert proven(np.array([0.0, 0.08, 0.025]), 0.1, shares).tolist() == [True, False, True]
    assert not proven(np.array([0.5, 0.0]), 0.1, (1, 0))[1]


@pytest.mark.parametrize("weights", [(), (0.4, 0.3, 0.2, 0.1)])
@pytest.mark.parametrize("dependent", [False, True])
def test_a_false_proof_is_as_rare_as_promised(weights: tuple[float, ...], dependent: bool) -> None:
    """Hypotheses 2 and 4 are true: their p-values are uniform; 1 and 3 are surely false."""
    rng = np.random.default_rng(0)
    runs, delta = 4_000, 0.1
    p_values = np.zeros((runs, 4))
    p_values[:, [1, 3]] = rng.random((runs, 1)) if dependent else rng.random((runs, 2))
    wrong = sum(bool(proven(p, delta, weights)[[1, 3]].any()) for p in p_values)
    assert stats.binomtest(wrong, runs, delta, alternative="greater").pvalue > 1e-4


@pytest.mark.parametrize("weights", [(1.0,), (0.7, 0.7), (-0.1, 0.5)])
def test_shares_that_promise_too_much_are_refused(weights: tuple[float, ...]) -> None:
    with pytest.raises(CalibrationError, match="weights must be"):
        proven(np.array([0.1, 0.1]), 0.1, weights)
