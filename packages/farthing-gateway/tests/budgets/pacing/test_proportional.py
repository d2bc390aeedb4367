"""The proportional controller follows the day, whatever it was told of the requests."""

import pytest

from farthing.budgets.pacing.base import Option, PacingState, begin, choose, settle
from farthing_gateway.pacers.proportional import PROPORTIONAL, Proportional

CHEAP, DEAR = Option(0.5, 50, 50), Option(0.9, 200, 200)


def test_the_price_is_its_formula() -> None:
    state = PacingState(budget_nano=1_000, requests=7, spent_nano=600)
    assert Proportional(3.0).price(state, 0.5) == pytest.approx(3.0 * (0.6 - 0.5) / 0.4)
    assert Proportional(3.0).price(state, 0.6) == 0.0
    assert Proportional(3.0).price(state, 0.9) == 0.0


def test_a_budget_that_is_gone_has_a_finite_price() -> None:
    state = PacingState(budget_nano=1_000, requests=7, spent_nano=1_200, price=0.0)
    assert PROPORTIONAL.price(state, 0.5) == pytest.approx(10.0 * 700)


@pytest.mark.parametrize("guessed", [500, 1_000, 2_000])
def test_spending_follows_the_day(guessed: int) -> None:
    n, budget = 1_000, 100_000
    state = begin(PROPORTIONAL, budget, guessed)
    for at in range(n):
        choice = choose(PROPORTIONAL, state, [CHEAP, DEAR], at / n)
        assert choice is not None
        state = settle(
            PROPORTIONAL, choice.state, choice.option, choice.option.expected_nano, at / n
        )
        assert abs(state.spent_nano / budget - at / n) <= 0.06
    assert state.spent_nano > 0.99 * budget
