import numpy as np
import pytest
from scipy import stats

from farthing.promises.statistics.fixed_sequence import proven


def test_it_stops_at_the_first_failure() -> None:
    assert proven(np.array([0.05, 0.01, 0.051, 0.0]), 0.05).tolist() == [True, True, False, False]
    assert proven(np.array([0.06, 0.0]), 0.05).tolist() == [False, False]
    assert proven(np.array([]), 0.05).tolist() == []


@pytest.mark.parametrize("dependent", [False, True])
def test_a_false_proof_is_as_rare_as_promised(dependent: bool) -> None:
    """Hypotheses 2 and 4 are true: their p-values are uniform; 1 and 3 are surely false."""
    rng = np.random.default_rng(0)
    runs, delta = 4_000, 0.1
    p_values = np.zeros((runs, 4))
    p_values[:, [1, 3]] = rng.random((runs, 1)) if dependent else rng.random((runs, 2))
    wrong = sum(bool(proven(p, delta)[[1, 3]].any()) for p in p_values)
    assert stats.binomtest(wrong, runs, delta).pvalue > 1e-4
