import numpy as np
import pytest
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.answers import (
    Answers,
    answers_above,
    candidate_thresholds,
    selective_point,
)

RUNS, ALPHA, DELTA = 2_000, 0.1, 0.1


def risk(threshold: float) -> float:
    """Share of wrong answers at or above a uniform confidence that is right by 1/2 + c/2."""
    return (1 - threshold) / 4


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    confidence = rng.random(n)
    return confidence, rng.random(n) < (1 + confidence) / 2


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 800])
def test_answers_are_as_right_as_promised_in_enough_calibrations(n: int) -> None:
    rng = np.random.default_rng(n)
    grid = candidate_thresholds(*draw(rng, 2_000), ALPHA, most=20)
    failures, shares = 0, []
    for _ in range(RUNS):
        found = selective_point(answers_above(*draw(rng, n), grid), ALPHA, DELTA)
        failures += found is not None and risk(grid[found]) > ALPHA
        shares.append(0 if found is None else 1 - grid[found])
    assert stats.binomtest(failures, RUNS, DELTA, alternative="greater").pvalue > 1e-4
    assert np.mean(shares) > {200: 0.06, 800: 0.2}[n]  # at most 0.4 can be answered


def test_a_point_at_the_edge_is_proved_as_often_as_the_binomial_says() -> None:
    """One point whose answers are wrong just as often as is allowed, all questions answered."""
    rng = np.random.default_rng(5)
    n = 200
    wrong = rng.random((RUNS, n, 1)) < ALPHA
    everyone = np.ones((n, 1), bool)
    failures = sum(selective_point(Answers(everyone, ~w), ALPHA, DELTA) == 0 for w in wrong)
    bearable = max(k for k in range(n) if stats.binom.cdf(k, n, ALPHA) <= DELTA)
    exact = stats.binom.cdf(bearable, n, ALPHA)
    assert stats.binomtest(failures, RUNS, exact).pvalue > 1e-4


def test_it_stops_at_the_first_failure_and_takes_what_answers_most() -> None:
    answered = np.ones((100, 4), bool)
    answered[50:, 0] = answered[90:, 1] = False
    correct = np.ones((100, 4), bool)
    correct[:40, 2] = False
    assert selective_point(Answers(answered, correct), 0.1, 0.05) == 1
    correct[:5, 0] = False  # 5 of 50 proves nothing
    assert selective_point(Answers(answered, correct), 0.1, 0.05) is None


def test_wrong_answers_are_counted_among_the_answers_and_nothing_else() -> None:
    """Against scipy; where nothing is answered, anything may be called right or wrong."""
    rng = np.random.default_rng(6)
    proofs = 0
    for _ in range(200):
        answered, correct = rng.random((60, 1)) < 0.5, rng.random((60, 1)) < 0.95
        wrong = (answered & ~correct).sum()
        proves = stats.binom.cdf(wrong, answered.sum(), ALPHA) <= 0.3
        assert selective_point(Answers(answered, correct), ALPHA, 0.3) == (0 if proves else None)
        proofs += proves
    assert 50 < proofs < 150


def test_answers_begin_at_the_threshold_itself() -> None:
    answers = answers_above(
        np.array([0.2, 0.5, 0.9]), np.array([False, True, True]), np.array([0.9, 0.5])
    )
    assert answers.answered.T.tolist() == [[False, False, True], [False, True, True]]


def test_candidates_fall_from_the_clearest_case_to_everything() -> None:
    rng = np.random.default_rng(0)
    confidence, correct = draw(rng, 5_000)
    grid = candidate_thresholds(confidence, correct, 0.1)
    assert (np.diff(grid) < 0).all()
    assert grid[-1] == confidence.min()
    assert 0.8 < grid[0] < 0.92  # (0.1 - risk) sqrt(share answered) is largest at 0.867
    assert len(candidate_thresholds(np.zeros(9), correct[:9], 0.1)) == 1


def test_what_cannot_be_read_is_refused() -> None:
    one, right = np.array([0.5]), np.array([True])
    with pytest.raises(CalibrationError, match="must not rise"):
        answers_above(one, right, np.array([0.1, 0.2]))
    with pytest.raises(CalibrationError, match="must be finite"):
        answers_above(one, right, np.array([np.inf]))
    with pytest.raises(CalibrationError, match="a confidence is NaN"):
        answers_above(np.array([np.nan]), right, one)
    with pytest.raises(CalibrationError, match="one number a question"):
        answers_above(one, np.array([True, True]), one)
    with pytest.raises(CalibrationError, match="one row a question"):
        Answers(np.ones((2, 1), bool), np.ones((2, 2), bool))
    with pytest.raises(CalibrationError, match="must be arrays of bool"):
        Answers(np.ones((2, 1), bool), np.ones((2, 1)))  # type: ignore[arg-type]
    with pytest.raises(CalibrationError, match="no training questions"):
        candidate_thresholds(np.array([]), np.array([], bool), 0.1)


def test_the_cheapest_is_taken_of_those_that_answer_about_as_many_as_the_best() -> None:
    """A standard error of 160 of 200 is 5.7: 155 are about as many, and 60 are not."""
    answered = np.arange(200)[:, None] < np.array([60, 155, 160])
    cost = np.tile([1, 5, 9], (200, 1))
    right = np.ones_like(answered)
    assert selective_point(Answers(answered, right, cost_nano=cost), "0.1", "0.1") == 1
    apart = np.arange(200)[:, None] < np.array([60, 154, 160])
    assert selective_point(Answers(apart, right, cost_nano=cost), "0.1", "0.1") == 2
