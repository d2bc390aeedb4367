from fractions import Fraction

import numpy as np
import pytest

from farthing.money import significant
from farthing.recommendation.base import Comparison, Row
from farthing_lab.comparison import rows


def row_with(values: list[float]) -> Row:
    return Row("p", "P", Fraction(1, 10), "split", {"cost_usd": values, "coverage": values})


def test_mean_and_standard_error_by_hand() -> None:
    row = row_with([1.0, 2.0, 3.0, 6.0])
    assert rows.mean_of(row, "cost_usd") == 3.0
    # deviations 2, 1, 0, 3: variance 14/3, over four splits
    assert rows.standard_error_of(row, "cost_usd") == pytest.approx((14 / 3 / 4) ** 0.5)


def test_splits_without_the_metric_are_left_out() -> None:
    row = row_with([1.0, float("nan"), 3.0])
    assert rows.mean_of(row, "coverage") == 2.0
    assert rows.standard_error_of(row, "coverage") == pytest.approx(1.0)


def test_nothing_to_average() -> None:
    assert np.isnan(rows.mean_of(row_with([]), "coverage"))
    assert np.isnan(rows.standard_error_of(row_with([1.0]), "coverage"))
    assert not rows.ran(row_with([]))


def test_rows_without_a_promise_come_first(comparison: Comparison) -> None:
    kinds = [row.calibration for row in rows.rows_at(comparison, Fraction(1, 10))]
    assert kinds == sorted(kinds, key=["none", "online", "split"].index)


def test_cheapest_counts_only_exact_promises(comparison: Comparison) -> None:
    found = rows.cheapest_promised(comparison, Fraction(1, 10))
    assert found[0].policy == "stopping"  # fixed-depth-1 and cpo cost less and promise nothing
    assert {row.calibration for row in found} == {"split"}
    costs = [rows.mean_of(row, "cost_usd") for row in found]
    assert costs == sorted(costs)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (1e-9, "0.00000000100"),
        (999.6, "1,000"),
        (0.0358, "0.0358"),
        (float("inf"), "–"),
    ],
)
def test_significant_digits(value: float, written: str) -> None:
    assert significant(value) == written
