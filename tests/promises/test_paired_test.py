import numpy as np
import pytest
from scipy import stats

from farthing.promises.certificate import BoolArray
from farthing.promises.statistics.paired_test import OUTSIDE, SLACK, _region, loss_p_value


def outcomes(n: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Every (lost, won, neither) of n questions."""
    return np.array([(b, c, n - b - c) for b in range(n + 1) for c in range(n + 1 - b)])


def null_points(epsilon: float) -> list[tuple[float, float]]:
    """Chances (b, c) with b - c >= epsilon, most of them on the edge."""
    least = max(abs(epsilon), 1e-3)
    discordant = np.concatenate([np.geomspace(least, 1, 25), [least * 1.001, 0.999]])
    edge = [((s + epsilon) / 2, (s - epsilon) / 2) for s in discordant]
    return [*edge, (abs(epsilon) + 0.1, 0.1 - epsilon / 2), (0.5, 0.2), (1 - 1e-9, 0.0)]


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
    reach = _region(lost, won, n, epsilon)
    inside: BoolArray = table[:, 0] <= reach[table[:, 0] + table[:, 1]]
    low, high = stats.binomtest(lost + won, n).proportion_ci(1 - OUTSIDE)

    def chance(s: float) -> float:
        point = [(s + epsilon) / 2, (s - epsilon) / 2, 1 - s]
        return float(stats.multinomial.pmf(table[inside], n, point).sum())

    most = max(chance(s) for s in np.linspace(max(low, abs(epsilon)), high, 300))
    found = loss_p_value(lost, won, n, epsilon) - OUTSIDE
    assert most <= found <= most * (1 + SLACK) ** 2 + 1e-9


def test_it_rises_with_losses_and_falls_with_wins() -> None:
    table = np.array([[loss_p_value(b, c, 120, 0.03) for c in range(8)] for b in range(8)])
    assert (np.diff(table, axis=0) >= -2 * SLACK * table[1:]).all()
    assert (np.diff(table, axis=1) <= 2 * SLACK * table[:, :-1]).all()
    assert table[0, -1] < 0.02
    assert table[-1, 0] > 0.5


@pytest.mark.parametrize(
    ("n", "epsilon"), [(12, 0.2), (40, 0.02), (30, 0.001), (30, 0.4), (30, 0.0), (40, -0.1)]
)
def test_regions_are_nested_and_fewer_losses_or_more_wins_never_leave_them(
    n: int, epsilon: float
) -> None:
    reaches = []
    for lost, won, _ in outcomes(n):
        reach = _region(int(lost), int(won), n, epsilon)
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
    assert loss_p_value(0, 50, 50, 0.1) == pytest.approx(OUTSIDE, abs=1e-9)
    assert loss_p_value(0, 0, 5_000, 0.02) == pytest.approx(OUTSIDE, abs=1e-9)
