"""The hindsight optimum equals a general solver's on small cases."""

import numpy as np
import pytest
from scipy.optimize import linprog

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.allocators.lagrangian import optimum


def solved(values: FloatArray, costs: FloatArray, budget: float) -> float:
    t, k = values.shape
    once = np.kron(np.eye(t), np.ones(k))
    found = linprog(
        -values.ravel(),
        A_ub=np.vstack([costs.ravel(), once]),
        b_ub=np.append(budget, np.ones(t)),
        bounds=(0, None),
    )
    assert found.fun is not None
    return -float(found.fun)


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_optimum_of_the_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    t, k = rng.integers(1, 7), rng.integers(1, 6)
    values = rng.random((t, k)).round(1 if seed % 2 else 6)
    costs = rng.integers(0, 8, (t, k)).astype(float)
    budget = float(rng.integers(0, 20))
    assert optimum(values, costs, budget) == pytest.approx(solved(values, costs, budget), abs=1e-9)


def test_without_money_only_what_is_free_is_had() -> None:
    values, costs = np.array([[0.2, 0.9], [0.1, 0.8]]), np.array([[0.0, 1.0], [1.0, 2.0]])
    assert optimum(values, costs, 0.0) == pytest.approx(0.2)
    assert optimum(values, costs, 99.0) == pytest.approx(1.7)
