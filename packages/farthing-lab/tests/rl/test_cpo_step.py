"""The step is checked against exact solutions of the same small problem."""

from collections.abc import Callable

import numpy as np
import pytest

from farthing.traces.arrays import FloatArray
from farthing_lab.rl.trust_region import conjugate_gradient, solve_dual, step


def exact(h: FloatArray, g: FloatArray, b: FloatArray, c: float, delta: float) -> FloatArray:
    """Solve the problem geometrically: in y = L'x the trust region is a ball and c + b'x a plane.

    The optimum is where -g leaves the ball, or else on the rim of the plane's cut through it. An
    infeasible problem asks for the largest decrease of the constraint.
    """
    lower = np.linalg.cholesky(h)
    gy, by = np.linalg.solve(lower, g), np.linalg.solve(lower, b)
    radius = np.sqrt(2 * delta)
    free = -radius * gy / np.linalg.norm(gy)
    if c > 0 and c / np.linalg.norm(by) > radius:
        y = -radius * by / np.linalg.norm(by)
    elif c + by @ free <= 0:
        y = free
    else:
        foot = -c * by / (by @ by)
        along = gy - (gy @ by) / (by @ by) * by
        rim = np.sqrt(max(radius**2 - foot @ foot, 0.0))
        y = foot - rim * along / np.linalg.norm(along)
    return np.linalg.solve(lower.T, y)


def times(h: FloatArray) -> Callable[[FloatArray], FloatArray]:
    return lambda rows: rows @ h


def positive_definite(rng: np.random.Generator, size: int) -> FloatArray:
    root = rng.normal(size=(size, size))
    return root @ root.T + 0.1 * np.eye(size)


@pytest.mark.slow
def test_step_equals_the_exact_solution_on_thousands_of_problems() -> None:
    rng = np.random.default_rng(0)
    seen = {"unconstrained": 0, "recovery": 0, "constrained": 0, "touching": 0}
    slack = binding = 0
    for _ in range(4_000):
        size = int(rng.integers(2, 7))
        h = positive_definite(rng, size)
        g, b = rng.normal(size=(2, size)) * np.exp(rng.normal(size=(2, 1)))
        c, delta = (
            float(rng.normal() * rng.choice([0.01, 0.3, 3.0])),
            float(np.exp(rng.normal() - 3)),
        )
        x, dual = step(times(h), g, b, c, delta)
        seen[dual.case] += 1
        slack += dual.case == "constrained" and dual.nu == 0
        binding += dual.case == "constrained" and dual.nu > 0
        want = exact(h, g, b, c, delta)
        assert x @ h @ x <= 2 * delta * (1 + 1e-6)
        np.testing.assert_allclose(x, want, rtol=1e-4, atol=1e-6 * float(np.linalg.norm(want)))
    assert min(seen["unconstrained"], seen["recovery"], slack, binding) > 100


@pytest.mark.parametrize("c", [-0.3, 0.0, 0.05])
def test_parallel_gradients_go_up_to_the_constraint(c: float) -> None:
    b = np.array([1.0, 2.0, -1.0])
    x, dual = step(times(np.eye(3)), -3.0 * b, b, c, delta=1.0)
    assert dual.case == "touching"
    np.testing.assert_allclose(c + b @ x, 0.0, atol=1e-9)


def test_no_constraint_gradient_means_a_plain_trust_region_step() -> None:
    g = np.array([3.0, 4.0])
    x, dual = step(times(np.eye(2)), g, np.zeros(2), c=0.5, delta=0.5)
    assert (dual.case, dual.nu) == ("unconstrained", 0.0)
    np.testing.assert_allclose(x, [-0.6, -0.8])


def test_multipliers_are_never_negative() -> None:
    rng = np.random.default_rng(1)
    for _ in range(5_000):
        q, s = np.exp(rng.normal(size=2) * 3)
        r = rng.uniform(-1, 1) * np.sqrt(q * s)
        dual = solve_dual(q, r, s, float(rng.normal()), 0.01)
        assert dual.lam > 0
        assert dual.nu >= 0


def test_conjugate_gradient_equals_a_direct_solve() -> None:
    rng = np.random.default_rng(2)
    for size in (1, 3, 20):
        h = positive_definite(rng, size)
        right = rng.normal(size=(2, size))
        x = conjugate_gradient(times(h), right, iterations=10 * size, tolerance=1e-24)
        np.testing.assert_allclose(x, np.linalg.solve(h, right.T).T, rtol=1e-6, atol=1e-8)


def test_conjugate_gradient_of_a_zero_right_side_is_zero() -> None:
    x = conjugate_gradient(times(np.eye(4)), np.zeros((1, 4)))
    np.testing.assert_array_equal(x, 0.0)
