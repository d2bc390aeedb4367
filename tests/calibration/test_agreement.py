"""Agreement: the exact binomial test, against scipy, and kept as often as promised."""

import numpy as np
import pytest
from scipy import stats

from farthing.calibration.guarantees.agreement import (
    Agreeing,
    agreement_p_values,
    agreement_point,
)
from farthing.errors import CalibrationError

RUNS, N, EPSILON, DELTA = 2_000, 200, 0.05, 0.1
DIFFER = np.array([0.12, 0.05, 0.02, 0.0])
"""Operating points from the cheapest; the second is the edge, the last the reference itself."""


def draw(rng: np.random.Generator) -> Agreeing:
    """Points that depend on each other: one number a question decides them all."""
    same = rng.random((N, 1)) >= DIFFER
    return Agreeing(np.tile([10, 20, 30, 40], (N, 1)), same, "gpt-4o")


def test_a_point_that_differs_too_often_is_as_rare_as_promised() -> None:
    rng = np.random.default_rng(0)
    chosen = [agreement_point(draw(rng), EPSILON, DELTA) for _ in range(RUNS)]
    failures = sum(found in {0, 1} for found in chosen)
    assert stats.binomtest(failures, RUNS, DELTA, alternative="greater").pvalue > 1e-4
    assert failures > 0.03 * RUNS  # and not because nothing is ever proved
    assert sum(found == 2 for found in chosen) > 0.7 * RUNS
    assert None not in chosen


def test_its_p_values_are_those_of_scipy() -> None:
    agreeing = draw(np.random.default_rng(1))
    expected = [
        stats.binomtest(int(number), N, EPSILON, alternative="less").pvalue
        for number in (~agreeing.same).sum(axis=0)
    ]
    assert np.allclose(agreement_p_values(agreeing, EPSILON), expected, rtol=1e-9)


def test_testing_begins_at_the_dearest_and_ends_at_the_first_failure() -> None:
    same = np.ones((100, 3), dtype=bool)
    cost = np.tile([10, 20, 30], (100, 1))
    assert agreement_point(Agreeing(cost, same, "a"), EPSILON, DELTA) == 0
    same[:, 1] = False
    assert agreement_point(Agreeing(cost, same, "a"), EPSILON, DELTA) == 2
    same[:, 2] = False
    assert agreement_point(Agreeing(cost, same, "a"), EPSILON, DELTA) is None


def test_evidence_of_other_shapes_is_refused() -> None:
    same = np.ones((10, 2), dtype=bool)
    with pytest.raises(CalibrationError, match="one row a question"):
        Agreeing(np.ones((10, 3), dtype=np.int64), same, "a")
    with pytest.raises(CalibrationError, match="array of bool"):
        Agreeing(np.ones((10, 2), dtype=np.int64), same * 1, "a")
