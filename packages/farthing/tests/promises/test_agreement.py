"""Agreement: the exact binomial test, against scipy, and kept as often as promised."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.agreeing import (
    Agreeing,
    Checks,
    JudgeShare,
    agreement_p_values,
    agreement_point,
)
from farthing.promises.kinds.agreement import certify
from farthing.promises.statistics.binomial import binomial_upper

RUNS, N, EPSILON, DELTA = 2_000, 200, 0.05, 0.1
DIFFER = np.array([0.12, 0.05, 0.02, 0.0])
"""Operating points from the cheapest; the second is the edge, the last the reference itself."""


def draw(rng: np.random.Generator) -> Agreeing:
    """Points that depend on each other: one number a question decides them all."""
    same = rng.random((N, 1)) >= DIFFER
    return Agreeing(np.tile([10, 20, 30, 40], (N, 1)), same, "gpt-4o")


def test_a_point_that_differs_too_often_is_as_rare_as_promised() -> None:
    rng = np.random.default_rng(0)
    chosen = [agreement_point(draw(rng), EPSILON, DELTA) for _ in range(RUNS)]
    failures = sum(found in {0, 1} for found in chosen)
    assert stats.binomtest(failures, RUNS, DELTA, alternative="greater").pvalue > 1e-4
    assert failures > 0.03 * RUNS  # and not because nothing is ever proved
    assert sum(found == 2 for found in chosen) > 0.7 * RUNS
    assert None not in chosen


def test_its_p_values_are_those_of_scipy() -> None:
    agreeing = draw(np.random.default_rng(1))
    expected = [
        stats.binomtest(int(number), N, EPSILON, alternative="less").pvalue
        for number in (~agreeing.same).sum(axis=0)
    ]
    assert np.allclose(agreement_p_values(agreeing, EPSILON), expected, rtol=1e-9)


def test_testing_begins_at_the_dearest_and_ends_at_the_first_failure() -> None:
    same = np.ones((100, 3), dtype=bool)
    cost = np.tile([10, 20, 30], (100, 1))
    assert agreement_point(Agreeing(cost, same, "a"), EPSILON, DELTA) == 0
    same[:, 1] = False
    assert agreement_point(Agreeing(cost, same, "a"), EPSILON, DELTA) == 2
    same[:, 2] = False
    assert agreement_point(Agreeing(cost, same, "a"), EPSILON, DELTA) is None


def test_evidence_of_other_shapes_is_refused() -> None:
    same = np.ones((10, 2), dtype=bool)
    with pytest.raises(CalibrationError, match="one row a question"):
        Agreeing(np.ones((10, 3), dtype=np.int64), same, "a")
    with pytest.raises(CalibrationError, match="array of bool"):
        Agreeing(np.ones((10, 2), dtype=np.int64), same * 1, "a")


SHARE = JudgeShare(epsilon=Fraction("0.025"), delta=Fraction("0.05"))


def test_119_checked_pairs_without_an_error_are_needed_for_a_fortieth_at_95_percent() -> None:
    assert SHARE.pairs == 119
    assert (1 - SHARE.epsilon) ** 119 <= SHARE.delta < (1 - SHARE.epsilon) ** 118
    for errors, checked in ((0, 119), (0, 118), (1, 119), (1, 200)):
        upper = stats.binomtest(errors, checked).proportion_ci(0.9, "exact").high
        assert binomial_upper(errors, checked, 0.05) == pytest.approx(upper, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("false_same", [0.025, 0.035])
def test_a_judge_and_a_policy_that_err_too_often_together_are_as_rare_as_promised(
    false_same: float,
) -> None:
    """The judge at the edge of its share or above it, the policy at the edge of what it leaves."""
    rng = np.random.default_rng(3)
    epsilon, delta, n, checked = 0.05, 0.1, 300, 200
    failures = proved = 0
    for _ in range(RUNS):
        luck = rng.random((n, 1))
        same = luck >= 0.05 - false_same + 1e-9  # by the judge, who is wrong on `false_same` more
        errors = int(rng.binomial(checked, false_same))
        agreeing = Agreeing(
            np.ones((n, 1), np.int64), same, "gpt-4o", checks=Checks("j", checked, errors)
        )
        made = certify(agreeing, epsilon, delta, fingerprint="", share=SHARE)
        failures += made.promises
        good = replace(agreeing, same=luck >= 0.001, checks=Checks("j", checked, 0))
        proved += certify(good, epsilon, delta, fingerprint="", share=SHARE).promises
    assert stats.binomtest(failures, RUNS, delta, alternative="greater").pvalue > 1e-4
    assert proved > 0.9 * RUNS


def test_the_split_is_in_the_open_and_what_is_left_is_the_policy_s() -> None:
    same = np.arange(400)[:, None] >= 4
    agreeing = Agreeing(np.ones((400, 1), np.int64), same, "gpt-4o", checks=Checks("mini", 119, 0))
    made = certify(agreeing, "0.05", "0.1", fingerprint="", share=SHARE)
    assert made.promises
    assert made.sentence().endswith(
        "What is the same mini says as well: of epsilon 0.025 and of delta 0.05 are spent on its "
        "errors, of which 119 checked questions show 0; that the accuracy is close to the "
        "reference's does not follow."
    )
    alone = agreement_point(replace(agreeing, checks=None), "0.025", "0.05")
    assert alone == 0
    fewer = replace(agreeing, checks=Checks("mini", 118, 0))
    one = replace(agreeing, checks=Checks("mini", 119, 1))
    for unproved in (fewer, one):
        found = certify(unproved, "0.05", "0.1", fingerprint="", share=SHARE)
        assert not found.promises
        assert "119 checked questions show 1" in found.sentence() or unproved is fewer


def test_a_certificate_is_computed_again_at_the_share_of_its_judge() -> None:
    same = np.arange(400)[:, None] >= 4
    agreeing = Agreeing(np.ones((400, 1), np.int64), same, "gpt-4o", checks=Checks("mini", 119, 0))
    made = certify(agreeing, "0.05", "0.1", fingerprint="", share=SHARE)
    assert made.promise.recompute(agreeing, made) == made


@pytest.mark.parametrize(
    "share", [None, JudgeShare(epsilon=Fraction("0.05"), delta=Fraction("0.05"))]
)
def test_a_judge_takes_a_share_that_leaves_something(share: JudgeShare | None) -> None:
    same = np.ones((10, 1), dtype=bool)
    agreeing = Agreeing(np.ones((10, 1), np.int64), same, "a", checks=Checks("mini", 119, 0))
    with pytest.raises(CalibrationError, match="less than the whole"):
        certify(agreeing, "0.05", "0.1", fingerprint="", share=share)
