"""The figures of bars, scales and budgets, by hand."""

from datetime import timedelta

import pytest

from farthing_gateway.admin.charts import Bars, bars, floor_of, scale
from farthing_gateway.admin.figures import Slot
from farthing_gateway.admin.overview import budget
from farthing_gateway.storage.database import moment
from farthing_gateway.storage.ledger.base import AccountBalance, Amount, Limit


def balance(spent: int, gone: float) -> AccountBalance:
    start = moment(0)
    return AccountBalance(
        "all", "day", Amount(spent), Amount(0), 0, start, start + timedelta(days=1)
    )


@pytest.mark.parametrize(
    ("spent", "gone", "ends"), [(500, 0.25, 2_000), (0, 0.5, 0), (500, 0.01, None), (9, 1.0, 9)]
)
def test_a_pace_is_what_was_spent_by_the_time_that_is_gone(
    spent: int, gone: float, ends: float | None
) -> None:
    at = moment(0) + timedelta(days=gone)
    found = budget(Limit("all", "usd", "day", 1_000), [balance(spent, gone)], at)
    assert found.ends_at == (None if ends is None else pytest.approx(ends))
    assert found.share == min(1.0, spent / 1_000)


def test_bars_are_as_high_as_the_dearer_of_what_was_and_would_be_paid() -> None:
    slots = [Slot(moment(0), 30, 70, 40), Slot(moment(0), 80, -20, 80), Slot(moment(0))]
    for compared, wholes in ((True, (100, 80, 0)), (False, (40, 80, 0))):
        drawn = bars(slots, compared=compared)
        heights_are(drawn, wholes)
        assert any(bar.rest_height for bar in drawn.bars) == compared


def heights_are(drawn: Bars, wholes: tuple[int, ...]) -> None:
    top = drawn.ticks[-1].value
    for bar, whole in zip(drawn.bars, wholes, strict=True):
        assert bar.paid_height + bar.rest_height == pytest.approx(100 * whole / top)
        assert bar.rest_y + bar.rest_height == pytest.approx(bar.paid_y)
        assert bar.paid_y + bar.paid_height == pytest.approx(100)
    assert drawn.bars[-1].x + drawn.bars[-1].width <= 100


def test_scales_have_round_ends_beyond_the_most() -> None:
    for most in (1e-9, 0.3, 1.0, 99.9, 100.0, 1.2e12):
        values, top = scale(most)
        assert values[0] == 0
        assert top >= most * (1 - 1e-9)
        assert 3 <= len(values) <= 7
    assert all(floor_of([share]) < share for share in (0.001, 0.3, 0.901, 1.0))
