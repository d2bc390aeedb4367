"""How many questions would probably do: by simulation, brute force and hand."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from farthing.promises.agreeing import Agreeing
from farthing.promises.answers import Answers
from farthing.promises.kinds.pac import pac_rank
from farthing.promises.paired import Paired
from farthing.promises.statistics.paired_test import loss_p_value
from farthing.promises.statistics.power import (
    MOST,
    Compared,
    Rates,
    Wrong,
    coverage_questions,
    level_provable,
    questions_needed,
)

DELTA = 0.1


def simulated(losses: float, wins: float, n: int, level: float, repeats: int) -> int:
    """Return how many of so many calibrations prove the level."""
    rng = np.random.default_rng([n, round(1_000 * losses), round(1_000 * wins)])
    drawn = rng.multinomial(n, [losses, wins, 1 - losses - wins], size=repeats)
    return sum(loss_p_value(int(b), int(c), n, level) <= DELTA for b, c, _ in drawn)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("losses", "wins", "n", "level"),
    [
        (0.05, 0.05, 280, 0.03),
        (0.03, 0.0, 100, 0.05),
        (0.01, 0.02, 150, 0.02),
        (0.1, 0.08, 300, 0.05),
        (0.05, 0.05, 600, 0.03),
    ],
)
def test_the_chance_is_that_of_simulated_calibrations(
    losses: float, wins: float, n: int, level: float
) -> None:
    """It is an estimate: six points to either side are allowed for."""
    chance = Compared(losses, wins).chance(n, level, DELTA)
    hits = simulated(losses, wins, n, level, 400)
    low, high = max(chance - 0.06, 0.0), min(chance + 0.06, 1.0)
    assert stats.binomtest(hits, 400, low, alternative="less").pvalue > 0.01
    assert stats.binomtest(hits, 400, high, alternative="greater").pvalue > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("losses", "wins", "level"), [(0.03, 0.03, 0.03), (0.02, 0.03, 0.02)])
def test_so_many_questions_probably_prove_it_and_far_fewer_do_not(
    losses: float, wins: float, level: float
) -> None:
    needed = questions_needed(Compared(losses, wins), level, DELTA, 50)
    assert needed is not None
    enough = simulated(losses, wins, needed, level, 400)
    few = simulated(losses, wins, needed // 2, level, 400)
    assert stats.binomtest(enough, 400, 0.75, alternative="less").pvalue > 0.01
    assert stats.binomtest(few, 400, 0.75, alternative="less").pvalue < 0.01


@pytest.mark.slow
def test_so_many_questions_probably_prove_that_level_and_none_far_below() -> None:
    rates = Compared(0.04, 0.04)
    level = level_provable(rates, 280, DELTA)
    assert level is not None
    assert level % Fraction(1, 200) == 0
    assert rates.chance(280, float(level), DELTA) >= 0.8
    assert rates.chance(280, float(level) - 0.005, DELTA) < 0.8
    hits = simulated(0.04, 0.04, 280, float(level), 400)
    assert stats.binomtest(hits, 400, 0.74, alternative="less").pvalue > 0.01


def test_where_nothing_is_lost_or_won_it_is_no_estimate() -> None:
    """Without a loss, n questions prove epsilon once (1 - epsilon) ** n is small enough."""
    same = Compared(0.0, 0.0)
    needed = questions_needed(same, "0.05", DELTA, 10)
    assert needed is not None
    assert loss_p_value(0, 0, needed, 0.05) <= DELTA
    assert loss_p_value(0, 0, needed - 3, 0.05) > DELTA
    assert same.chance(needed, 0.05, DELTA) == 1.0


def test_wrong_answers_against_brute_force() -> None:
    """Sum the binomial over all counts that the exact test proves."""
    for wrong, counted, n, level in ((0.05, 1.0, 120, 0.1), (0.08, 0.5, 300, 0.12)):
        number = round(n * counted)
        counts = np.arange(number + 1)
        proved = stats.binom.cdf(counts, number, level) <= DELTA
        expected = stats.binom.pmf(counts, number, wrong)[proved].sum()
        assert Wrong(wrong, counted).chance(n, level, DELTA) == pytest.approx(expected)
    assert Wrong(0.0).chance(22, 0.1, DELTA) == 1.0  # 0.9 ** 22 < 0.1 < 0.9 ** 21
    assert Wrong(0.0).chance(21, 0.1, DELTA) == 0.0
    assert Wrong(0.1, 0.0).chance(100, 0.2, DELTA) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("rates", [Compared(0.07, 0.01), Wrong(0.06), Compared(0.05, 0.0)])
def test_what_was_lost_as_often_as_is_ruled_out_is_never_proved(rates: Rates) -> None:
    assert questions_needed(rates, "0.05", DELTA, 100) is None
    level = level_provable(rates, 300, DELTA)
    assert level is not None
    assert level > rates.loss


def test_nobody_looks_beyond_a_limit() -> None:
    needed = questions_needed(Compared(0.1, 0.066), "0.05", DELTA, 100)
    assert needed is not None
    assert 2_000 < needed <= MOST == 5_000
    assert questions_needed(Compared(0.1, 0.059), "0.045", DELTA, 100) is None
    assert questions_needed(Wrong(0.099), "0.1", DELTA, 100) is None
    assert level_provable(Wrong(0.49), 20, DELTA) is None


def test_the_rates_are_those_of_the_point_that_is_tested_first() -> None:
    """Parity begins at the dearest point, selective accuracy at the most cautious one."""
    reference = np.array([True, True, False, False])
    dearest = np.array([True, False, True, False])
    correct = np.stack([~reference, dearest], axis=1)
    assert Compared.of(Paired(np.ones((4, 2), int), correct, reference)) == Compared(0.25, 0.25)
    same = np.array([[False, True], [False, True], [True, True], [True, False]])
    assert Wrong.of_agreement(Agreeing(np.ones((4, 2), int), same, "large")) == Wrong(0.25)
    answered = np.array([[True, True], [True, True], [False, True], [False, True]])
    right = np.array([[True, False], [False, False], [True, False], [True, False]])
    assert Wrong.of_answers(Answers(answered, right)) == Wrong(0.5, 0.5)


@pytest.mark.parametrize(("alpha", "delta"), [("0.1", "0.05"), ("0.02", "0.1"), ("1/3", "0.2")])
def test_coverage_takes_what_its_rank_takes(alpha: str, delta: str) -> None:
    n = coverage_questions(alpha, delta)
    assert pac_rank(n, Fraction(alpha), Fraction(delta)) == 1
    assert pac_rank(n - 1, Fraction(alpha), Fraction(delta)) == 0
