"""What is expected after a proof, against loops over draws, points and questions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.promises.statistics.binomial import binomial_cdf
from farthing.promises.statistics.expected_cost import (
    DRAWS,
    Allowed,
    Prospect,
    agreement_allows,
    expected_cost,
    parity_allows,
)
from farthing.promises.statistics.paired_test import loss_p_value


def by_loops(rows: Prospect, n: int, allowed: Allowed, seed: int) -> list[float]:
    """Draw the same, and then follow each test by itself."""
    rng = np.random.default_rng(seed)
    s, g = rows.cost.shape
    weight = rng.dirichlet(np.ones(s), size=DRAWS)
    count = rng.multinomial(n, weight)
    total = [0.0] * g
    for chance, times in zip(weight.tolist(), count.tolist(), strict=True):
        for start in range(g):
            best = None
            for point in range(start, -1, -1):
                lost = sum(times[i] for i in range(s) if rows.lost[i, point])
                won = sum(times[i] for i in range(s) if rows.won[i, point])
                if lost > allowed(won):
                    break
                cost = sum(chance[i] * rows.cost[i, point] for i in range(s))
                best = cost if best is None else min(best, cost)
            if best is None:
                best = sum(chance[i] * rows.fallback[i] for i in range(s))
            total[start] += best / DRAWS
    return total


def some(seed: int, s: int, g: int) -> Prospect:
    rng = np.random.default_rng(seed)
    cost = rng.random((s, g)) + np.linspace(0, 0.3, g)  # on few questions not always in order
    kind = rng.random((s, g))
    rate = np.linspace(0.2, 0.02, g)
    return Prospect(cost, kind < rate, kind > 1 - rate / 2, rng.random(s) + 1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["parity", "agreement"])
def test_it_is_what_loops_come_to(seed: int, kind: str) -> None:
    n = 60
    allows = parity_allows if kind == "parity" else agreement_allows
    allowed = allows(n, 0.08, 0.1)
    rows = some(seed, s=25, g=5)
    found = expected_cost(rows, n, allowed, np.random.default_rng(seed))
    np.testing.assert_allclose(found, by_loops(rows, n, allowed, seed))
    assert len(set(found.tolist())) > 1


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(n=st.integers(1, 60), epsilon=st.floats(0.01, 0.3), delta=st.floats(0.01, 0.3))
def test_what_a_proof_allows_is_what_its_test_allows(n: int, epsilon: float, delta: float) -> None:
    parity, agreement = parity_allows(n, epsilon, delta), agreement_allows(n, epsilon, delta)
    for won in range(0, n + 1, max(n // 4, 1)):
        proved = [x for x in range(n - won + 1) if loss_p_value(x, won, n, epsilon) <= delta]
        assert proved == list(range(parity(won) + 1))
    proved = [x for x in range(n + 1) if binomial_cdf(x, n, epsilon) <= delta]
    assert proved == list(range(agreement(0) + 1))


@pytest.mark.parametrize("n", [301, 1_000, 3_000])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.005, 0.05), (0.02, 0.1), (0.1, 0.1)])
def test_of_many_questions_it_is_a_loss_more_or_less(n: int, epsilon: float, delta: float) -> None:
    allowed = parity_allows(n, epsilon, delta)
    for won in (0, 3, n // 30, n // 10):
        most = allowed(won)
        assert loss_p_value(most + 2, won, n, epsilon) > delta
        assert most < 1 or loss_p_value(most - 1, won, n, epsilon) <= delta


@pytest.mark.parametrize("epsilon", [0.0, -0.02, -0.1])
def test_so_it_is_where_accuracy_must_rise(epsilon: float) -> None:
    allowed = parity_allows(301, epsilon, 0.1)
    for won in (0, 5, 20, 40, 80):
        most = allowed(won)
        assert loss_p_value(most + 2, won, 301, epsilon) > 0.1
        assert most < 1 or loss_p_value(most - 1, won, 301, epsilon) <= 0.1


def test_the_limits() -> None:
    """Where every draw says the same, it is the cheapest point that is proved, or the fallback."""
    s, n, rng = 200, 10_000, np.random.default_rng(0)
    cost = np.tile([1.0, 2.0, 3.0, 4.0], (s, 1))
    lost = np.zeros((s, 4), dtype=bool)
    lost[: s // 2, 0] = True  # half, far more than is allowed
    lost[: s // 2, 2] = True
    rows = Prospect(cost, lost, np.zeros_like(lost), np.full(s, 9.0))
    found = expected_cost(rows, n, agreement_allows(n, 0.05, 0.1), rng)
    # The first is never proved; what is cheaper than a point that is not proved is not tested.
    assert found.tolist() == [9.0, 2.0, 9.0, 4.0]
    nothing = expected_cost(rows, n, lambda won: -1, rng)
    np.testing.assert_allclose(nothing, 9.0)
    everything = expected_cost(rows, n, lambda won: n, rng)
    np.testing.assert_allclose(everything, 1.0)


def test_wins_make_up_for_losses_of_parity_alone() -> None:
    s, n = 100, 2_000
    lost, won = np.zeros((2, s, 1), dtype=bool)
    lost[:10], won[10:40] = True, True
    rows = Prospect(np.ones((s, 1)), lost, won, np.full(s, 9.0))
    for allows, cost in ((parity_allows, 1.0), (agreement_allows, 9.0)):
        found = expected_cost(rows, n, allows(n, 0.02, 0.1), np.random.default_rng(0))
        assert found[0] == pytest.approx(cost, abs=0.1)
