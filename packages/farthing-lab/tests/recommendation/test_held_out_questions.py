"""A certificate's menu, order and weights come from elsewhere than the calibration questions.

Calibration questions are replaced by others that differ in every grade, cost and score: what was
chosen before they are looked at stays as it was.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest
from question_parts import proof_of
from sure_policy import Sure, bundled, covariate_shifted, drawn

from farthing.process.batch_replay import NestedReplay, Replayed, replay
from farthing.process.operating_points import OperatingPoints
from farthing.promises.base import Promise
from farthing.promises.certificate import Certificate
from farthing.promises.kinds.budget import Budget, BudgetPromise
from farthing.promises.kinds.parity import Parity, ParityPromise
from farthing.promises.kinds.selective import Selective, SelectivePromise
from farthing.promises.levels import Level
from farthing.recommendation import played, prove, prove_selective
from farthing.recommendation.played import PlayedPolicy, Questions, grid, operating_points_of
from farthing.recommendation.prove import Proof
from farthing.recommendation.start_point import beginning
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.promises import weighted as weighing
from farthing_lab.promises.weighted import Shift, Weighted

DELTA = Fraction(1, 5)
SELECTIVE = Selective(Fraction(2, 3), DELTA)
PARITY = Parity(epsilon=Fraction(1, 5), delta=DELTA)
Chosen = SelectivePromise | ParityPromise | BudgetPromise
"""Promises that choose an operating point of a menu."""
BUDGET = Budget("0.0009", "0.01", DELTA)


def turned(part: Questions) -> Questions:
    """Return questions whose every grade, cost and sureness is another one."""
    traces = part.played
    sure = traces.signals["uncertainty"]
    other = replace(
        traces,
        correct=~traces.correct & (traces.answer >= 0),
        cost_nano=traces.cost_nano[::-1] // 2,
        signals={**traces.signals, "uncertainty": (0.9 - 0.7 * sure).clip(0.05, 0.95)},
    )
    return Questions(other, other)


TRAIN, HELD = drawn(300, 0), drawn(200, 1)
OTHERS = turned(HELD)
TARGET = covariate_shifted(drawn(5_000, 2).played, 150, np.random.default_rng(2))


@dataclass
class Spy:
    """Looks on as menus are played and weights are handed over."""

    kappas: list[FloatArray] = field(default_factory=list)
    """The thresholds of every menu; the last one is played on calibration questions."""
    weighted: list[Weighted] = field(default_factory=list)

    def points_of(self, replayed: Replayed, kappas: FloatArray) -> OperatingPoints:
        self.kappas.append(kappas)
        return operating_points_of(replayed, kappas)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    found = Spy()

    certify = weighing.certify

    def weighted(
        sample: Weighted, alpha: Level, *, fingerprint: str, question_budget_nano: int | None = None
    ) -> Certificate:
        found.weighted.append(sample)
        return certify(
            sample, alpha, fingerprint=fingerprint, question_budget_nano=question_budget_nano
        )

    for room in (played, prove, prove_selective):
        monkeypatch.setattr(room, "operating_points_of", found.points_of)
    monkeypatch.setattr(weighing, "certify", weighted)
    return found


def chosen(certificate: Certificate) -> Chosen:
    assert isinstance(certificate.promise, Chosen)
    return certificate.promise


def made(asked: Promise, held: Questions, train: Questions = TRAIN) -> Proof:
    return proof_of(asked, bundled(Sure(), train), train, held, None)


def test_the_other_questions_are_others_in_every_respect() -> None:
    """Or what follows would show nothing."""
    mine, other = (replay(Sure(), part.played, "argmax") for part in (HELD, OTHERS))
    assert not np.array_equal(grid(mine), grid(other))


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked", [SELECTIVE, PARITY, BUDGET], ids=lambda asked: type(asked).__name__
)
def test_the_menu_and_its_order_are_those_of_the_training_questions(
    asked: Promise, spy: Spy
) -> None:
    menus = []
    for train, held in ((TRAIN, HELD), (TRAIN, OTHERS), (drawn(300, 5), HELD)):
        spy.kappas.clear()
        certificate = made(asked, held, train).certificate
        several = isinstance(asked, Selective)  # a menu of each candidate, one after the other
        menus.append(np.concatenate(spy.kappas) if several else spy.kappas[-1])
        found = chosen(certificate)
        assert found.points == len(menus[-1]) > 3
        assert found.point is None or certificate.kappa == menus[-1][found.point]
    np.testing.assert_array_equal(menus[0], menus[1])
    assert not np.array_equal(menus[0], menus[2])


@pytest.mark.slow
def test_grades_alone_move_neither_where_parity_begins_nor_whom_it_is_held_to(spy: Spy) -> None:
    """Where it begins training questions say, whatever the grades of the others are."""
    right = replace(HELD.played, correct=OTHERS.played.correct)
    found = [made(PARITY, held).certificate.promise for held in (HELD, Questions(right, right))]
    first, second = (one for one in found if isinstance(one, ParityPromise))
    assert first.reference == second.reference == "guide"
    assert first.points == second.points
    row = beginning(
        PARITY, PlayedPolicy(Sure(), "argmax", None), TRAIN, "guide", len(HELD.played)
    ).row
    for kappas in spy.kappas:
        np.testing.assert_array_equal(kappas, row)
    assert len(spy.kappas) == 2


@pytest.mark.slow
def test_how_sure_a_selective_policy_is_was_learned_before_calibration() -> None:
    fresh = drawn(50, 3).played
    first, second = (
        replay(made(SELECTIVE, held).policy, fresh, "allow") for held in (HELD, OTHERS)
    )
    assert isinstance(first, NestedReplay)
    assert isinstance(second, NestedReplay)
    np.testing.assert_array_equal(first.followed.leaf, second.followed.leaf)
    np.testing.assert_array_equal(first.followed.reach, second.followed.reach)


# ---- Another mix of questions

SHIFT = Shift(Fraction(3, 4), TARGET)


def gappy(traces: TraceArrays, seed: int) -> TraceArrays:
    """Return questions some of whose numbers were not recorded: a mean stands in for them."""
    rng = np.random.default_rng(seed)
    signals = {
        name: np.where(rng.random(len(traces))[:, None, None] < 0.3, np.nan, values).astype("f4")
        for name, values in traces.signals.items()
    }
    return replace(traces, signals=signals)


@pytest.mark.slow
def test_a_question_weighs_the_same_whoever_else_is_calibrated_on(spy: Spy) -> None:
    train, held = gappy(TRAIN.played, 0), gappy(HELD.played, 1)
    asked = replace(SHIFT, target=gappy(TARGET, 2))
    parts = [np.arange(len(held)), np.arange(0, len(held), 2), np.arange(20)]
    for rows in parts:
        some = held.take(rows)
        made(asked, Questions(some, some), Questions(train, train))
    everybody = spy.weighted[0].weights
    assert everybody.std() > 0.05
    for rows, sample in zip(parts, spy.weighted, strict=True):
        np.testing.assert_allclose(sample.weights, everybody[rows], rtol=1e-9)


@pytest.mark.slow
def test_weights_depend_on_training_questions_and_the_target_mix(spy: Spy) -> None:
    made(SHIFT, HELD)
    made(SHIFT, HELD, drawn(300, 6))
    made(replace(SHIFT, target=drawn(150, 7).played), HELD)
    first, *others = (sample.weights for sample in spy.weighted)
    assert not any(np.allclose(first, other, rtol=1e-3) for other in others)


@pytest.mark.slow
def test_no_grade_moves_a_weight(spy: Spy) -> None:
    """Neither of training, nor of the target, nor of the calibration questions."""
    none = [replace(part, correct=np.zeros_like(part.correct)) for part in (TARGET, HELD.played)]
    ungraded = replace(TRAIN.played, correct=np.zeros_like(TRAIN.played.correct))
    first = made(SHIFT, HELD).certificate
    assert made(replace(SHIFT, target=none[0]), HELD).certificate == first
    made(SHIFT, Questions(none[1], none[1]), Questions(ungraded, ungraded))
    for sample in spy.weighted[1:]:
        np.testing.assert_array_equal(sample.weights, spy.weighted[0].weights)
        assert sample.largest == spy.weighted[0].largest


@pytest.mark.slow
def test_the_largest_weight_allows_for_the_questions_of_the_target(spy: Spy) -> None:
    """The target's own weights are those that it has when it is calibrated on."""
    few = HELD.played.take(np.arange(40))
    made(SHIFT, Questions(few, few))
    made(SHIFT, Questions(TARGET, TARGET))
    mine, theirs = spy.weighted
    assert theirs.weights.max() > mine.weights.max()
    assert mine.largest == pytest.approx(float(theirs.weights.max()))
