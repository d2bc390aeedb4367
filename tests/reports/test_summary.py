from dataclasses import replace
from fractions import Fraction

from farthing.experiments.base import Comparison
from farthing.reports import summary

ALPHA = Fraction(1, 10)


def test_the_cheapest_promise_is_held_against_the_next(comparison: Comparison) -> None:
    found = summary.finding(comparison, ALPHA)
    assert found
    assert found.other
    assert (found.cheapest.policy, found.other.policy) == ("stopping", "ccpo")
    # recorded as ccpo less stopping: +2e-5 [1.2e-5, 2.8e-5]; turned round here
    assert found.difference
    assert (found.difference.mean, found.difference.low, found.difference.high) == (
        -2e-5,
        -2.8e-5,
        -1.2e-5,
    )


def test_the_sentence_gives_the_saving_and_its_interval(comparison: Comparison) -> None:
    text = summary.sentence(comparison, ALPHA)
    assert "Supervised stopping is the cheapest policy with a promise" in text
    assert "95 % interval $0.0120 to $0.0280" in text
    assert "includes none" not in text
    assert "times the known optimum" in text


def test_an_interval_around_zero_is_called_so(comparison: Comparison) -> None:
    wide = replace(comparison.differences[0], low=-1e-5)
    text = summary.sentence(replace(comparison, differences=[wide]), ALPHA)
    assert "which includes none at all" in text


def test_without_a_promise_nothing_is_claimed(comparison: Comparison) -> None:
    rows = [row for row in comparison.rows if row.calibration != "split"]
    assert "no policy with an exact promise" in summary.sentence(
        replace(comparison, rows=rows), ALPHA
    )


def test_doubts_depend_on_what_was_done(comparison: Comparison) -> None:
    one = " ".join(summary.doubts(comparison))
    many = " ".join(summary.doubts(replace(comparison, seeds=[0, 1, 2], optimum=[])))
    assert "One training seed" in one
    assert "One training seed" not in many
    assert "generator" in one
    assert "splits share questions" in many
    assert "made by hand" in many
