"""Which questions lay thresholds out, choose a reference and prove, where a policy is calibrated.

From Python, in a comparison, and where a bundle is calibrated anew: training questions say what is
tested and in which order, and questions that prove say nothing but whether it holds. So they are
planted against each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from told_pool import COST_USD, both, paid, records, traces

import farthing as ft
from farthing.errors import InputError
from farthing.features.rounds import FeatureSet
from farthing.recommendation import pipeline
from farthing.recommendation.recalibrate import Recalibrated, divided, recalibrate
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.fingerprint import question_hashes
from farthing_lab.api.functions import compare

N = 200


def wrong_on(n: int, **shares: float) -> dict[str, list[bool]]:
    """Return who is right on n questions: all models, but each for its share of the first ones."""
    return {role: [i >= shares.get(role, 0) * n for i in range(n)] for role in COST_USD}


RISING = wrong_on(120, small=0.2)
"""Held against large, small loses too much, and medium nothing: testing is to begin at medium."""
WITH_LARGE = ft.Parity("large", "0.1")


def proves(policy: ft.Policy, held_out: ft.Traces, asked: object) -> bool:
    try:
        certificate = policy.calibrate(held_out, asked).certificate  # type: ignore[arg-type]
    except InputError:
        return False
    return certificate is not None and certificate.promises


# What is tested, and in which order


def test_testing_begins_where_training_expects_to_pay_least_after_the_proof() -> None:
    """That is medium, which is wrong on half of the questions that prove: nobody looks at small."""
    policy = ft.fit("best-single", traces(records("train", RISING)))
    assert proves(policy, traces(records("held", wrong_on(N))), WITH_LARGE)
    assert not proves(policy, traces(records("held", wrong_on(N, medium=0.5))), WITH_LARGE)


@pytest.mark.slow
@pytest.mark.parametrize("asked", [ft.Parity("large", "0.1"), ft.Agreement("large", "0.1")])
def test_nothing_is_tested_beyond_the_point_that_is_best_in_training(
    asked: ft.Parity | ft.Agreement,
) -> None:
    """Small alone is never wrong there, so that it alone is tested, whatever medium does later."""
    train = traces(records("train", wrong_on(120, medium=0.2, large=0.2)))
    policy = ft.fit("best-single", train)
    assert proves(policy, traces(records("held", wrong_on(N, medium=0.5))), asked)


def sure(name: str, n: int, levels: tuple[float, float], share: float) -> ft.Traces:
    """Return questions on which all are right where small is as sure as the upper level."""
    right = [i >= share * n for i in range(n)]
    who = {"small": right, "large": right}
    return traces(records(name, who, sure=[levels[int(one)] for one in right]))


@pytest.mark.slow
def test_thresholds_of_a_selective_promise_are_those_that_training_tells_apart() -> None:
    """Training parts 0.5 and 0.9, so that all held-out questions are answered, or none.

    Whoever looked at those would part 0.6, which is wrong, from 0.7, which is right.
    """
    policy = ft.fit("always-small", sure("train", 120, (0.5, 0.9), 1 / 3))
    asked = ft.Selective("0.8", "0.1")
    assert proves(policy, sure("held", N, (0.5, 0.9), 0.5), asked)
    assert not proves(policy, sure("held", N, (0.6, 0.7), 0.5), asked)


POINTS: dict[str, ft.Parity | ft.Agreement | ft.Budget] = {
    "parity": ft.Parity("large", "0.5"),
    "agreement": ft.Agreement("large", "0.9"),
    "budget": ft.Budget("0.0015", "0.002"),
}


@pytest.mark.parametrize("kind", POINTS)
def test_there_are_as_many_points_as_training_tells_apart(kind: str) -> None:
    """Training knows two confidences, the questions that prove have two hundred."""
    known = [0.5, 0.9] * 60
    train = traces(records("train", both(120, lost=20), sure=known))
    many = np.linspace(0.3, 0.95, N).tolist()
    held = traces(records("held", both(N, lost=20), sure=many))
    certificate = ft.fit("lazy", train).calibrate(held, POINTS[kind]).certificate
    assert certificate is not None
    assert 1 <= certificate.promise.points <= 6  # type: ignore[attr-defined]


def test_what_a_policy_is_worth_is_counted_on_the_questions_that_prove() -> None:
    policy = ft.fit("always-small", traces(records("train", both(120, lost=24))))
    asked = ft.Parity("large", "0.1")
    value = policy.calibrate(traces(records("held", both(N, lost=3))), asked).value
    assert value is not None
    assert (value.yours.questions, value.yours.right) == (N, N - 3)
    assert value.gained == -3 / N


# Who is the reference


def paid_for_in(part: str, known: Sequence[str]) -> list[list[dict[str, Any]]]:
    """Return parts: most is paid for small in one of them, for large in all others.

    Medium is right most often in all of them, and is the reference of none.
    """
    right = wrong_on(N, small=0.3, large=0.3)
    return [
        paid(records(name, right, split=name), {"small": 0.01} if name == part else {})
        for name in known
    ]


ALL = ("train", "calibrate", "test")


@pytest.mark.parametrize("part", ALL)
def test_parity_without_a_name_is_with_whom_most_was_paid_for_in_training(
    tmp_path: Path, part: str
) -> None:
    expected = "small" if part == "train" else "large"
    whole = traces(*paid_for_in(part, ALL))
    pipeline.train(whole.dataset, "always-small", Fraction(1, 10), tmp_path / "b")
    done = pipeline.calibrate(tmp_path / "b", whole.arrays, ft.Parity(None, "0.5"))
    assert done.certificate.promise.reference == expected  # type: ignore[attr-defined]


# A comparison


def compared(
    parts: Mapping[str, Mapping[str, list[bool]]], method: str, asked: ft.Parity
) -> dict[str, object]:
    """Return the row of a method where a file marks who trains; others calibrate and test."""
    known = traces(*(records(name, right, split=name) for name, right in parts.items()))
    (row,) = compare(known, [method], promise=asked, splits=4).rows
    return row


@pytest.mark.slow
def test_a_comparison_tests_what_training_laid_out() -> None:
    fine = {"train": RISING, "calibrate": wrong_on(2 * N)}
    assert compared(fine, "best-single", WITH_LARGE)["fell_back"] == 0
    spoilt = fine | {"calibrate": wrong_on(2 * N, medium=0.5)}
    assert compared(spoilt, "best-single", WITH_LARGE)["fell_back"] == 1


@pytest.mark.parametrize("part", ["train", "calibrate"])
def test_a_comparison_is_beside_whom_most_was_paid_for_in_training(part: str) -> None:
    whole = traces(*paid_for_in(part, ("train", "calibrate")))
    found = ft.compare(whole, ["always-small"], promise=ft.Parity(None, "0.5"), splits=2)
    expected = "small" if part == "train" else "large"
    assert found.comparison.promise == ft.Parity(expected, "0.5")
    assert found.comparison.reference == expected
    of_sets = ft.compare(whole, ["lazy"], splits=2)
    assert of_sets.comparison.reference == expected


# Calibrated anew


def anew(laid: Mapping[str, float], proving: Mapping[str, float]) -> Recalibrated:
    """Calibrate best-single anew; models are wrong on shares of what lays out and what proves."""
    policy = ft.fit("best-single", traces(records("train", RISING)))
    first = policy.calibrate(traces(records("held", wrong_on(N))), WITH_LARGE)
    lay, rows = divided(np.zeros(3 * N, dtype=np.uint64), WITH_LARGE, 0)
    right = {role: np.ones(3 * N, dtype=bool) for role in COST_USD}
    for some, shares in ((lay, laid), (rows, proving)):
        for role, share in shares.items():
            right[role][some[: int(share * len(some))]] = False
    later = traces(records("later", {role: one.tolist() for role, one in right.items()}))
    return recalibrate("b", first.bundle, later.arrays)


@pytest.mark.slow
def test_a_hundred_at_most_lay_out_and_the_rest_proves() -> None:
    fine = anew({}, {})
    assert (fine.laid_out, fine.proving, fine.certificate.n) == (100, 500, 500)
    assert fine.proved
    some = anew({"small": 0.5}, {"small": 0.02})
    assert (some.new.good, some.new.cost_nano) == (0.98, 100_000)
    lay, _ = divided(np.zeros(3 * N, dtype=np.uint64), WITH_LARGE, 0)
    assert lay.tolist() != list(range(100))
    assert not anew({}, {"small": 0.5, "medium": 0.5}).proved
    # Small is as good as large where thresholds are laid out, so that nobody looks at medium.
    assert anew({"medium": 0.5}, {"medium": 0.5}).proved
    # Medium alone is as good there, and fails first.
    assert not anew({"small": 0.5}, {"medium": 0.5}).proved


def test_questions_that_chose_do_not_even_lay_thresholds_out_anew() -> None:
    policy = ft.fit("best-single", traces(records("train", RISING)))
    held = traces(records("held", wrong_on(N)))
    first = policy.calibrate(held, WITH_LARGE).bundle
    later = traces(records("later", wrong_on(N))).arrays
    lay, _ = divided(later.content, WITH_LARGE, 0)
    chose = structs.replace(
        first, questions={**first.questions, "choose": question_hashes(later.take(lay))}
    )
    with pytest.raises(InputError, match="50 of the 200 questions"):
        recalibrate("b", chose, later)
    assert recalibrate("b", first, later).proved


def logged(questions: ft.Traces) -> ft.Traces:
    """Return generated questions as logged ones: nobody knows what they were asked with."""
    return ft.Traces(replace(questions.dataset, generator=None))


@pytest.mark.slow
def test_a_budget_a_question_is_kept_when_it_is_calibrated_anew() -> None:
    train, held, later = ft.generate("hotpotqa-llama2-7b", 900, seed=1).split(0.4, 0.3, 0.3)
    largest = dict.fromkeys(train.arrays.roles, 0.002)
    first = ft.fit("stopping", train).calibrate(
        held, ft.Coverage("0.6"), budget_usd=0.006, largest_usd=largest
    )
    again = recalibrate("b", first.bundle, later.arrays)
    assert again.certificate.question_budget_nano == 6_000_000
    by_hand = ft.fit("stopping", train).calibrate(
        logged(later), ft.Coverage("0.6"), budget_usd=0.006, largest_usd=largest
    )
    assert again.certificate == by_hand.certificate
    assert again.bundle.origin.largest_nano == first.bundle.origin.largest_nano


@pytest.mark.slow
def test_coverage_anew_is_of_sets_and_within_each_group_where_it_was() -> None:
    many = ft.generate("hotpotqa-llama2-7b", 900, seed=1)
    group = (np.arange(900) % 2).astype(np.int32)
    arrays = replace(many.arrays, group=group, group_names=("law", "art"))
    train, held, later = ft.Traces(replace(many.dataset, traces=arrays)).split(0.4, 0.3, 0.3)
    policy, asked = ft.fit("stopping", train), ft.Coverage("0.7", within_groups=True)
    again = recalibrate("b", policy.calibrate(held, asked).bundle, later.arrays)
    by_hand = policy.calibrate(logged(later), asked)
    assert again.certificate == by_hand.certificate
    assert again.new.good == by_hand.evaluate(later).metrics["coverage"]
    assert again.new.good > by_hand.evaluate(later).metrics["accuracy"]


@pytest.mark.slow
def test_eight_questions_are_enough_to_be_asked() -> None:
    policy = ft.fit("always-small", traces(records("train", both(120))))
    first = policy.calibrate(traces(records("held", both(N))), ft.Parity("large", "0.1")).bundle
    few = recalibrate("b", first, traces(records("later", both(8))).arrays)
    assert (few.laid_out, few.proving, few.proved) == (2, 6, False)


# Another mix


def unsure(arrays: TraceArrays) -> FloatArray:
    found: FloatArray = arrays.signals["uncertainty"][:, 0, 1].astype(np.float64)
    return found


@pytest.mark.slow
def test_the_heaviest_question_of_the_target_counts_though_none_that_proves_is_as_heavy() -> None:
    """One question of four hundred differs; a new one like it needs all answers, and gets them."""
    many = ft.generate("hotpotqa-llama2-7b", 13_000, seed=7)
    cut = np.quantile(unsure(many.arrays), 0.4)
    low = many.take(unsure(many.arrays) < cut)
    train, held, rest = low.split(0.04, 0.04, 0.92)
    features = FeatureSet.fit(train.arrays)
    shown = features.transform(rest.arrays)[:, 0, features.names.index("uncertainty[guide]")]
    weight = np.exp(2 * shown)
    drawn = np.random.default_rng(1).choice(len(rest), 400, replace=False, p=weight / weight.sum())
    target = rest.take(drawn).arrays
    signal = target.signals["uncertainty"].copy()
    signal[0, 0, 1] = unsure(many.arrays).max()
    one_more = replace(target, signals={**target.signals, "uncertainty": signal})
    policy = ft.fit("stopping", train)
    assert proves(policy, held, ft.Shift("0.7", target))
    assert not proves(policy, held, ft.Shift("0.7", one_more))


@pytest.mark.slow
def test_weights_are_of_training_and_target_not_of_the_questions_that_prove() -> None:
    """Those that prove are as the target is, and training is not; fitted on them they were flat."""
    many = ft.generate("hotpotqa-llama2-7b", 1_500, seed=7)
    low = unsure(many.arrays) < np.quantile(unsure(many.arrays), 0.7)
    rows = np.arange(len(many))
    train, held = many.take(low & (rows < 600)), many.take((rows >= 600) & (rows < 1_000))
    target = many.take(rows >= 1_000)
    promise = ft.fit("stopping", train).calibrate(held, ft.Shift("0.7", target)).certificate
    assert promise is not None
    assert promise.promise.effective_n < 0.9 * len(held)  # type: ignore[attr-defined]


# What may cost more than the reference


@pytest.mark.slow
def test_only_who_asks_for_more_accuracy_may_pay_more_than_the_reference_costs() -> None:
    """Large is always right and small on four fifths; to lose nothing small itself will do."""
    train = traces(records("train", both(120, lost=24)))
    held = traces(records("held", both(N, lost=40)))
    large = ft.fit("always-large", train)
    assert not proves(large, held, ft.Parity("small", "0.01"))
    assert not proves(large, held, ft.Parity("small", 0))
    assert proves(large, held, ft.Parity("small", "-0.01"))
    same = traces(records("same", both(N)))
    assert not proves(large, same, ft.Agreement("small"))
    for asked in (ft.Agreement("large"), ft.Parity("large")):  # the same, for as much
        assert not proves(large, same, asked)
    assert proves(ft.fit("always-small", train), same, ft.Agreement("large"))
