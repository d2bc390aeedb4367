"""A certificate's menu, order and weights come from elsewhere than the calibration questions.

Calibration questions are replaced by others that differ in every grade, cost and score: what was
chosen before they are looked at stays as it was.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest
from farthing.calibration.certificate import certify_weighted
from farthing.calibration.weighted import Weighted

from farthing.calibration.base import Certificate
from farthing.experiments import promises
from farthing.experiments.evaluate import Replayed, replay
from farthing.experiments.promises import (
    Asked,
    Budget,
    Parity,
    Part,
    Promised,
    Selective,
    Shift,
    grid,
    menu_of,
    promise,
)
from farthing.process.generator.generate import generate
from farthing.process.generator.presets import preset
from farthing.process.operating_points import Menu
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays

CONFIG = preset("hotpotqa-llama2-7b").config
DELTA = Fraction(1, 5)
MOST = 10_000_000
SELECTIVE = Selective(Fraction(1, 3), DELTA)
PARITY = Parity(Fraction(1, 5), DELTA)
BUDGET = Budget(900_000, MOST, DELTA)


class Sure:
    """Scores answers by how sure the guide is, and going on by how unsure."""

    stochastic = False

    def scores(self, traces: TraceArrays) -> FloatArray:
        sure = 1 - np.nan_to_num(traces.signals["uncertainty"][:, :, 1].astype(np.float64), nan=0.5)
        scores = np.zeros((len(traces), traces.horizon, traces.n_roles + 1))
        scores[:, :, 1] = np.clip(sure, 0.001, 1)
        scores[:, :-1, -1] = 1 - np.clip(sure, 0.001, 1)[:, :-1]
        return scores

    def decision_cost_nano(self, traces: TraceArrays) -> IntArray | None:
        return None


def drawn(n: int, seed: int) -> Part:
    traces = generate(CONFIG, n, np.random.default_rng(seed))
    return Part(traces, traces)


def turned(part: Part) -> Part:
    """Return questions whose every grade, cost and sureness is another one."""
    traces = part.played
    sure = traces.signals["uncertainty"]
    other = replace(
        traces,
        correct=~traces.correct & (traces.answer >= 0),
        cost_nano=traces.cost_nano[::-1] // 2,
        signals={**traces.signals, "uncertainty": (0.9 - 0.7 * sure).clip(0.05, 0.95)},
    )
    return Part(other, other)


TRAIN, HELD = drawn(300, 0), drawn(200, 1)
OTHERS = turned(HELD)
TARGET = generate(preset("hotpotqa-llama3.2-3b").config, 150, np.random.default_rng(2))


@dataclass
class Spy:
    """Looks on as menus are played and weights are handed over."""

    kappas: list[FloatArray] = field(default_factory=list)
    """The thresholds of every menu; the last one is played on calibration questions."""
    weighted: list[Weighted] = field(default_factory=list)

    def menu_of(self, replayed: Replayed, kappas: FloatArray) -> Menu:
        self.kappas.append(kappas)
        return menu_of(replayed, kappas)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    found = Spy()

    def weighted(sample: Weighted, alpha: Fraction, *, fingerprint: str) -> Certificate:
        found.weighted.append(sample)
        return certify_weighted(sample, alpha, fingerprint=fingerprint)

    monkeypatch.setattr(promises, "menu_of", found.menu_of)
    monkeypatch.setattr(promises, "certify_weighted", weighted)
    return found


def made(asked: Asked, held: Part, train: Part = TRAIN) -> Promised:
    return promise(asked, Sure(), train, held, "argmax")


def test_the_other_questions_are_others_in_every_respect() -> None:
    """Or what follows would show nothing."""
    mine, other = (replay(Sure(), part.played, "argmax") for part in (HELD, OTHERS))
    assert not np.array_equal(grid(mine), grid(other))
    assert promises.strongest(HELD.recorded) != promises.strongest(OTHERS.recorded)
    assert promises.strongest(TRAIN.recorded) == promises.strongest(HELD.recorded)


@pytest.mark.parametrize(
    "asked", [SELECTIVE, PARITY, BUDGET], ids=lambda asked: type(asked).__name__
)
def test_the_menu_and_its_order_are_those_of_the_training_questions(asked: Asked, spy: Spy) -> None:
    menus = []
    for train, held in ((TRAIN, HELD), (TRAIN, OTHERS), (drawn(300, 5), HELD)):
        found = made(asked, held, train).certificate
        menus.append(spy.kappas[-1])
        assert found.settings == len(menus[-1]) > 3
        assert found.setting is None or found.kappa == menus[-1][found.setting]
    np.testing.assert_array_equal(menus[0], menus[1])
    assert not np.array_equal(menus[0], menus[2])


def test_grades_alone_move_neither_where_parity_begins_nor_whom_it_is_held_to(spy: Spy) -> None:
    """Where it begins is the setting most often right: in training, whatever the others say."""
    right = replace(HELD.played, correct=OTHERS.played.correct)
    certificates = [made(PARITY, held).certificate for held in (HELD, Part(right, right))]
    assert certificates[0].reference == certificates[1].reference == "guide"
    assert certificates[0].settings == certificates[1].settings
    assert len(np.unique([len(kappas) for kappas in spy.kappas[1::2]])) == 1
    trained = menu_of(replay(Sure(), TRAIN.played, "argmax"), spy.kappas[0])
    best = trained.correct.sum(axis=0)
    assert best[certificates[0].settings - 1] == best.max() > best[certificates[0].settings :].max()


def test_how_sure_a_selective_policy_is_was_learned_before_calibration() -> None:
    fresh = drawn(50, 3).played
    first, second = (
        replay(made(SELECTIVE, held).policy, fresh, "allow").followed for held in (HELD, OTHERS)
    )
    np.testing.assert_array_equal(first.leaf, second.leaf)
    np.testing.assert_array_equal(first.reach, second.reach)


# ---- Another mix of questions

SHIFT = Shift(Fraction(1, 4), TARGET)


def gappy(traces: TraceArrays, seed: int) -> TraceArrays:
    """Return questions some of whose numbers were not recorded: a mean stands in for them."""
    rng = np.random.default_rng(seed)
    signals = {
        name: np.where(rng.random(len(traces))[:, None, None] < 0.3, np.nan, values).astype("f4")
        for name, values in traces.signals.items()
    }
    return replace(traces, signals=signals)


def test_a_question_weighs_the_same_whoever_else_is_calibrated_on(spy: Spy) -> None:
    train, held = gappy(TRAIN.played, 0), gappy(HELD.played, 1)
    asked = replace(SHIFT, target=gappy(TARGET, 2))
    parts = [np.arange(len(held)), np.arange(0, len(held), 2), np.arange(20)]
    for rows in parts:
        some = held.take(rows)
        made(asked, Part(some, some), Part(train, train))
    everybody = spy.weighted[0].weights
    assert everybody.std() > 0.05
    for rows, sample in zip(parts, spy.weighted, strict=True):
        np.testing.assert_allclose(sample.weights, everybody[rows], rtol=1e-9)


def test_weights_depend_on_training_questions_and_the_target_mix(spy: Spy) -> None:
    made(SHIFT, HELD)
    made(SHIFT, HELD, drawn(300, 6))
    made(replace(SHIFT, target=drawn(150, 7).played), HELD)
    first, *others = (sample.weights for sample in spy.weighted)
    assert not any(np.allclose(first, other, rtol=1e-3) for other in others)


def test_no_grade_moves_a_weight(spy: Spy) -> None:
    """Neither of training, nor of the target, nor of the calibration questions."""
    none = [replace(part, correct=np.zeros_like(part.correct)) for part in (TARGET, HELD.played)]
    ungraded = replace(TRAIN.played, correct=np.zeros_like(TRAIN.played.correct))
    first = made(SHIFT, HELD).certificate
    assert made(replace(SHIFT, target=none[0]), HELD).certificate == first
    made(SHIFT, Part(none[1], none[1]), Part(ungraded, ungraded))
    for sample in spy.weighted[1:]:
        np.testing.assert_array_equal(sample.weights, spy.weighted[0].weights)
        assert sample.largest == spy.weighted[0].largest


def test_the_largest_weight_allows_for_the_questions_of_the_target(spy: Spy) -> None:
    """The target's own weights are those that it has when it is calibrated on."""
    made(SHIFT, HELD)
    made(SHIFT, Part(TARGET, TARGET))
    mine, theirs = spy.weighted
    assert theirs.weights.max() > mine.weights.max()
    assert mine.largest == pytest.approx(float(theirs.weights.max()))
