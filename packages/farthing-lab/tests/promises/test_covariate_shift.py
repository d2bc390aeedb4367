from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.certificate import FloatArray
from farthing_lab.promises.target_mix import Observed, covariate_shift_p_values


def test_p_values_against_every_way_to_label() -> None:
    """By enumeration of the 35 ways to call three of seven the target, each with its odds."""
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=(7, 2)), np.array([0.2, 3.0, 1.0, 0.5, 2.0, 0.1, 4.0])
    ways = [list(way) for way in combinations(range(7), 3)]
    chance = np.array([weights[way].prod() for way in ways])
    chance /= chance.sum()
    sums = np.array([values[way].sum(axis=0) for way in ways])
    mean = chance @ sums
    apart = np.abs(sums - mean) / np.sqrt(chance @ (sums - mean) ** 2)
    seen = apart[ways.index([4, 5, 6])]
    exact = np.array([chance[apart.max(axis=1) >= z - 1e-9].sum() for z in seen])
    draws = 20_000
    old, new = Observed(values[:4], weights[:4]), Observed(values[4:], weights[4:])
    ours = covariate_shift_p_values(old, new, np.random.default_rng(1), draws)
    np.testing.assert_allclose(ours, exact, atol=4 * np.sqrt(0.25 / draws))
    assert 0.05 < exact.min() < 0.95


def shifted(n: int, m: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """What weights are made of, with means 0 and 1, so that the ratio is exp(x - 1/2)."""
    return rng.normal(0, 1, n), rng.normal(1, 1, m)


def observed(x: FloatArray, rng: np.random.Generator, *, hidden: float = 0.0) -> Observed:
    """Eight statistics that depend on x, one of them on what is hidden as well; some have ties."""
    values = x[:, None] / 2 + rng.normal(size=(len(x), 8))
    values[:, 3] += hidden
    values[:, 4:] = np.round(values[:, 4:])
    return Observed(values, np.exp(x - 0.5))


@pytest.mark.slow
def test_refusals_are_as_rare_as_stated_under_covariate_shift() -> None:
    rng = np.random.default_rng(2)
    runs, refused, ignoring = 500, 0, 0
    for _ in range(runs):
        old, new = (observed(x, rng) for x in shifted(40, 30, rng))
        refused += covariate_shift_p_values(old, new, rng, draws=39).min() <= 0.05
        old, new = (Observed(of.statistics, np.ones(len(of.weights))) for of in (old, new))
        ignoring += covariate_shift_p_values(old, new, rng, draws=39).min() <= 0.05
    assert stats.binomtest(refused, runs, 0.05).pvalue > 1e-4
    assert ignoring > 0.5 * runs


def test_what_weights_do_not_account_for_is_found_and_named() -> None:
    rng = np.random.default_rng(3)
    x, new_x = shifted(150, 150, rng)
    old, new = observed(x, rng), observed(new_x, rng, hidden=1.5)
    p_values = covariate_shift_p_values(old, new, rng)
    assert p_values.argmin() == 3
    assert p_values[3] == 0.001
    assert np.delete(p_values, 3).min() > 0.05


def test_a_constant_and_extreme_weights_do_no_harm() -> None:
    rng = np.random.default_rng(4)
    same, next_to = np.full((30, 1), 0.1), np.full((20, 1), np.nextafter(0.1, 1))
    for others in (same[:20], next_to):
        new = Observed(others, np.ones(20))
        assert covariate_shift_p_values(Observed(same, np.ones(30)), new, rng) == [1.0]
    told_apart = Observed(rng.random((30, 2)), np.full(30, 1e-200))
    certain = Observed(rng.random((20, 2)) + 9, np.full(20, 1e200))
    assert covariate_shift_p_values(told_apart, certain, rng).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("values", "weights", "says"),
    [
        (np.zeros((2, 1)), np.ones(3), "give a row and a weight"),
        (np.zeros(2), np.ones(2), "give a row and a weight"),
        (np.zeros((0, 1)), np.ones(0), "at least one question"),
        (np.full((2, 1), np.nan), np.ones(2), "finite statistics"),
        (np.zeros((2, 1)), np.array([1.0, 0.0]), "above 0"),
        (np.zeros((2, 1)), np.array([1.0, np.inf]), "finite and above 0"),
    ],
)
def test_samples_that_cannot_be_compared(
    values: FloatArray, weights: FloatArray, says: str
) -> None:
    with pytest.raises(CalibrationError, match=says):
        Observed(values, weights)
    rng = np.random.default_rng(0)
    one, two = (Observed(np.zeros((2, k)), np.ones(2)) for k in (1, 2))
    with pytest.raises(CalibrationError, match="same statistics"):
        covariate_shift_p_values(one, two, rng)


def test_the_scale_of_one_statistic_is_nothing_to_another() -> None:
    rng = np.random.default_rng(8)
    old, new = rng.normal(0, 1, (60, 2)), rng.normal([1, 0], 1, (60, 2))

    def p_values(scale: float) -> list[float]:
        ours, theirs = (Observed(x * [1.0, scale], np.ones(60)) for x in (old, new))
        found = covariate_shift_p_values(ours, theirs, np.random.default_rng(1), 199)
        return [float(p) for p in found]

    assert p_values(1.0) == p_values(1e20) == p_values(1e-20)
    assert p_values(1.0)[0] < 0.02
