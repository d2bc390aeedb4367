import numpy as np
import pytest
from scipy import stats

from farthing.promises.certificate import BoolArray
from farthing.promises.statistics.paired_test import (
    OUTSIDE,
    SLACK,
    _monotone,
    first_loss_p_value,
    loss_p_value,
)

LEAST = OUTSIDE * (1 + SLACK)


def outcomes(n: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Every (lost, won, neither) of n questions."""
    return np.array([(b, c, n - b - c) for b in range(n + 1) for c in range(n + 1 - b)])


def null_points(epsilon: float) -> list[tuple[float, float]]:
    """Chances (b, c) with b - c >= epsilon, most of them on the edge."""
    least = max(abs(epsilon), 1e-3)
    discordant = np.concatenate([np.geomspace(least, 1, 25), [least * 1.001, 0.999]])
    edge = [((s + epsilon) / 2, (s - epsilon) / 2) for s in discordant]
    return [*edge, (abs(epsilon) + 0.1, 0.1 - epsilon / 2), (0.5, 0.2), (1 - 1e-9, 0.0)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon"), [(12, 0.2), (25, 0.1), (40, 0.02), (25, 0.0), (25, -0.05), (30, -0.2)]
)
def test_small_p_values_are_rare_wherever_the_hypothesis_holds(n: int, epsilon: float) -> None:
    """Exactly, by the chance of every outcome: Pr[p <= u] <= u for every u at once."""
    table = outcomes(n)
    p_values = np.array([loss_p_value(int(b), int(c), n, epsilon) for b, c, _ in table])
    order = np.argsort(p_values)
    last_of_ties = np.append(np.diff(p_values[order]) > 0, True)
    sharpest = 0.0
    for b, c in null_points(epsilon):
        chances = stats.multinomial.pmf(table, n, [b, c, max(0.0, 1 - b - c)])
        cumulated = np.cumsum(chances[order])[last_of_ties]
        levels = p_values[order][last_of_ties]
        assert (cumulated <= levels + 1e-9).all()
        sharpest = max(sharpest, float((cumulated / levels)[levels < 0.2].max()))
    assert sharpest > 0.9  # it is not valid by being timid


@pytest.mark.parametrize(
    ("lost", "won", "n", "epsilon"),
    [(3, 2, 40, 0.1), (0, 0, 40, 0.1), (9, 14, 60, 0.05), (3, 9, 40, 0.0), (2, 12, 40, -0.05)],
)
def test_it_is_the_largest_chance_of_its_region(
    lost: int, won: int, n: int, epsilon: float
) -> None:
    table = outcomes(n)
    reach = _monotone(lost, won, n, epsilon)
    inside: BoolArray = table[:, 0] <= reach[table[:, 0] + table[:, 1]]
    low, high = stats.binomtest(lost + won, n).proportion_ci(1 - OUTSIDE)

    def chance(s: float) -> float:
        point = [(s + epsilon) / 2, (s - epsilon) / 2, 1 - s]
        return float(stats.multinomial.pmf(table[inside], n, point).sum())

    most = max(chance(s) for s in np.linspace(max(low, abs(epsilon)), high, 300))
    found = loss_p_value(lost, won, n, epsilon) - OUTSIDE
    assert most <= found <= most * (1 + SLACK) ** 2 + 1e-9


def steps(n: int, epsilon: float) -> tuple[float, float]:
    """How much a loss lowers a p-value at most, and a win raises it, over all outcomes."""
    table = np.full((n + 1, n + 1), np.nan)
    for lost, won, _ in outcomes(n):
        table[lost, won] = loss_p_value(int(lost), int(won), n, epsilon)
    return float(np.nanmin(np.diff(table, axis=0))), float(np.nanmax(np.diff(table, axis=1)))


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 0.9, 0.0, -0.05])
def test_no_loss_lowers_it_and_no_win_raises_it(epsilon: float) -> None:
    """Over all outcomes of a few questions, up to rounding."""
    least, most = steps(7, epsilon)
    assert least >= -1e-11
    assert most <= 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("n", [13, 20, 30])
@pytest.mark.parametrize("epsilon", [0.02, 0.2, 0.5, 0.9, 0.0, -0.05, -0.3])
def test_it_is_monotone_over_all_outcomes_of_more_questions(n: int, epsilon: float) -> None:
    least, most = steps(n, epsilon)
    assert least >= -1e-11
    assert most <= 1e-11


@pytest.mark.parametrize(("n", "epsilon", "lost", "won"), [(20, 0.05, 2, 7), (100, 0.02, 3, 12)])
def test_a_loss_that_lowered_the_first_p_value_lowers_this_one_no_more(
    n: int, epsilon: float, lost: int, won: int
) -> None:
    first = [first_loss_p_value(more, won, n, epsilon) for more in (lost, lost + 1)]
    assert first[1] < first[0] * 0.985
    now = [loss_p_value(more, won, n, epsilon) for more in (lost, lost + 1)]
    assert now[0] <= now[1] == pytest.approx(first[0], rel=SLACK)


def test_it_falls_fast_enough() -> None:
    assert loss_p_value(0, 7, 120, 0.03) < 0.02
    assert loss_p_value(7, 0, 120, 0.03) > 0.5


@pytest.mark.parametrize(
    ("n", "epsilon"), [(12, 0.2), (40, 0.02), (30, 0.001), (30, 0.4), (30, 0.0), (40, -0.1)]
)
def test_regions_are_nested_and_fewer_losses_or_more_wins_never_leave_them(
    n: int, epsilon: float
) -> None:
    reaches = []
    for lost, won, _ in outcomes(n):
        reach = _monotone(int(lost), int(won), n, epsilon)
        assert np.isin(np.diff(reach), [0, 1]).all()
        assert reach[lost + won] >= lost
        reaches.append(reach)
    ordered = np.array(sorted(reaches, key=lambda reach: int(reach.sum())))
    assert (np.diff(ordered, axis=0) >= 0).all()


def test_at_no_loss_and_few_wins_it_is_not_timid() -> None:
    """No question where they differ is no evidence, so that (0, 0) is not as good as (0, 5)."""
    assert loss_p_value(0, 0, 400, 0.0) == 1.0
    assert loss_p_value(0, 5, 400, 0.0) < 0.05


def test_extremes() -> None:
    assert loss_p_value(50, 0, 50, 0.1) == 1.0
    assert loss_p_value(0, 50, 50, 0.1) == pytest.approx(LEAST, abs=1e-9)
    assert loss_p_value(0, 0, 5_000, 0.02) == pytest.approx(LEAST, abs=1e-9)
