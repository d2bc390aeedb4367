"""What training reports, and when."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from farthing.methods.base import Silent
from farthing.methods.baselines.fixed import FixedLearner
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.baselines.rounds import RandomPolicy
from farthing_lab.methods.baselines.uala import UalaLearner, UalaPolicy
from farthing_lab.methods.ccpo.learner import REPORT_EVERY, recorded


class Notes:
    def __init__(self) -> None:
        self.taken: list[tuple[int, int, Mapping[str, float]]] = []

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        self.taken.append((done, total, figures))


def test_reports_are_means_of_the_latest_updates() -> None:
    notes, values = Notes(), iter(range(60))
    curves, stopped = recorded(lambda: {"cost": float(next(values))}, 60, notes)
    assert not stopped
    latest = [np.arange(done - REPORT_EVERY, done).mean() for done in (25, 50, 60)]
    assert notes.taken == [
        (done, 60, {"cost": mean}) for done, mean in zip((25, 50, 60), latest, strict=True)
    ]
    np.testing.assert_array_equal(curves["cost"], np.arange(60))


def test_no_update_leaves_no_curve() -> None:
    assert recorded(dict, 0, Silent()) == ({}, False)


def test_policies_that_need_no_training_are_handed_back() -> None:
    train = generate(preset("mmlu-llama2-7b").config, 20, np.random.default_rng(0))
    policy, notes = RandomPolicy(), Notes()
    assert FixedLearner(policy).fit(train, Fraction(1, 10), 0, notes).policy is policy
    uala = UalaLearner().fit(train, Fraction(1, 10), 0, notes).policy
    assert isinstance(uala, UalaPolicy)
    assert [(done, total) for done, total, _ in notes.taken] == [(1, 1), (1, 1)]
