"""The learning-rate schedule against the paper's formula."""

import numpy as np
import pytest

from farthing_lab.rl.schedules import rex


def test_it_is_the_papers_formula() -> None:
    """As it is written, in steps: (1 - t/T) / (1/2 + 1/2 (1 - t/T))."""
    steps = 100
    for t in range(steps + 1):
        left = 1 - t / steps
        assert rex(t / steps) == pytest.approx(left / (1 / 2 + 1 / 2 * left), abs=1e-15)


def test_it_falls_ever_faster_and_stays_above_the_straight_line() -> None:
    z = np.linspace(0, 1, 101)
    rate = np.array([rex(x) for x in z])
    fall = np.diff(rate)
    assert (fall < 0).all()
    assert (np.diff(fall) < 0).all()
    assert (rate[1:-1] > 1 - z[1:-1]).all()


def test_a_warm_up_rises_to_the_schedule_and_leaves_the_rest() -> None:
    z = np.linspace(0, 1, 101)
    plain, warm = (np.array([rex(x, w) for x in z]) for w in (0.0, 0.1))
    np.testing.assert_array_equal(warm[10:], plain[10:])
    np.testing.assert_allclose(warm[:10], plain[:10] * z[:10] / 0.1)
    assert rex(0.0, warm=1.0) == rex(1.0, warm=1.0) == 0.0


@pytest.mark.parametrize("arguments", [(-0.01,), (1.01,), (0.5, -0.1), (0.5, 1.1), (np.nan,)])
def test_what_is_no_share_is_refused(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"must both be in \[0, 1\]"):
        rex(*arguments)
