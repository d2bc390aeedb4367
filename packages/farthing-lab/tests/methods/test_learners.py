"""CCPO and CPO as learners: deterministic, interruptible, and they do learn."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from farthing.methods.base import Fitted, Learner, Silent
from farthing.process.batch_replay import followed
from farthing.process.replay import ReplayOutcome, outcome, paths, sample
from farthing.promises.kinds.split import split_threshold
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.generator.config import CallPrice, GeneratorConfig, Level, Uncertainty
from farthing_lab.generator.generate import generate
from farthing_lab.methods.ccpo.learner import (
    PUBLISHED,
    CcpoConfig,
    CcpoLearner,
    CpoConfig,
    CpoLearner,
    _CcpoTraining,
    _SoftSetObjective,
)
from farthing_lab.methods.ccpo.policy import NetworkPolicy
from farthing_lab.rl.actor_critic import Questions, SampledSurrogate, draw
from farthing_lab.rl.soft_set import (
    policy_probabilities,
    soft_cost,
    soft_mask_log,
    soft_paths,
    soft_set_size,
)
from farthing_lab.rl.trust_region import TrustRegion

ALPHA = Fraction(1, 10)
PRICE = CallPrice(100, 10, input_nano=100, output_nano=400, spread=20)
EASY_OR_HARD = GeneratorConfig(
    (
        Level(0.6, 0.95, 0.95, 0.95, yes_if_right=0.97, yes_if_wrong=0.03),
        Level(0.4, 0.10, 0.60, 0.15, yes_if_right=0.60, yes_if_wrong=0.10),
    ),
    PRICE,
    PRICE,
    rounds=3,
    base_persistence=0.0,
    guide_persistence=0.0,
    uncertainty=Uncertainty(bins=2, noise=0.3),
)
"""Easy questions are right at once and agreed on; hard ones are worth another round."""
VARIANTS: dict[str, Learner] = {
    "ccpo": CcpoLearner(CcpoConfig(updates=30)),
    "ccpo with a price": CcpoLearner(CcpoConfig(updates=30, set_size_price=0.3)),
    "ccpo leaf by leaf": CcpoLearner(
        CcpoConfig(updates=30, set_size_price=0.3, set_size_credit="leaf")
    ),
    "as published": CcpoLearner(replace(PUBLISHED, updates=30)),
    "cpo": CpoLearner(CpoConfig(updates=30)),
}


def questions(n: int, seed: int = 0) -> TraceArrays:
    return generate(EASY_OR_HARD, n, np.random.default_rng(seed))


def content(fitted: Fitted) -> bytes:
    assert isinstance(fitted.policy, NetworkPolicy)
    arrays, _ = fitted.policy.to_state()
    return b"".join(arrays[name].tobytes() for name in sorted(arrays))


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_the_seed_alone_decides_every_bit(name: str) -> None:
    learner, train = VARIANTS[name], questions(60)
    first = learner.fit(train, ALPHA, 0, Silent())
    torch.manual_seed(123)
    again = learner.fit(train, ALPHA, 0, Silent())
    other = learner.fit(train, ALPHA, 1, Silent())
    assert content(first) == content(again)
    assert first.kappa == again.kappa
    assert content(first) != content(other)


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_there_is_a_curve_of_every_figure(name: str) -> None:
    curves = VARIANTS[name].fit(questions(60), ALPHA, 0, Silent()).curves
    wanted = {"cost", "coverage", "violation", "length"}
    if name != "cpo":
        wanted |= {"kappa", "set_size"}
    assert set(curves) == wanted
    for curve in curves.values():
        assert curve.shape == (30,)
        assert np.isfinite(curve).all()
    assert (curves["cost"] > 0).all()
    assert ((curves["coverage"] >= 0) & (curves["coverage"] <= 1)).all()
    assert ((curves["length"] >= 1) & (curves["length"] <= 3)).all()


class Interrupt:
    """Presses Ctrl-C at the second report."""

    def __init__(self) -> None:
        self.reports: list[int] = []

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        self.reports.append(done)
        assert total == 200
        assert figures["cost"] > 0
        if len(self.reports) == 2:
            raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize(
    ("whole", "part"),
    [
        (CcpoLearner(CcpoConfig(updates=200)), CcpoLearner(CcpoConfig(updates=50))),
        (CpoLearner(CpoConfig(updates=200)), CpoLearner(CpoConfig(updates=50))),
    ],
)
def test_ctrl_c_keeps_what_was_reached(whole: Learner, part: Learner) -> None:
    train, progress = questions(60), Interrupt()
    stopped = whole.fit(train, ALPHA, 0, progress)
    complete = part.fit(train, ALPHA, 0, Silent())
    assert stopped.stopped_early
    assert not complete.stopped_early
    assert progress.reports == [25, 50]
    assert content(stopped) == content(complete)
    for name, curve in complete.curves.items():
        np.testing.assert_array_equal(stopped.curves[name], curve)


def test_ctrl_c_within_an_update_keeps_the_policy_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train, done = questions(60), 0
    update = _CcpoTraining.update

    def interrupted(self: _CcpoTraining) -> dict[str, float]:
        nonlocal done
        done += 1
        if done == 6:  # in the midst of the line search
            monkeypatch.setattr(
                "farthing_lab.rl.trust_region._acceptable",
                lambda *_: (_ for _ in ()).throw(KeyboardInterrupt),
            )
        return update(self)

    before = CcpoLearner(CcpoConfig(updates=5)).fit(train, ALPHA, 0, Silent())
    monkeypatch.setattr(_CcpoTraining, "update", interrupted)
    stopped = CcpoLearner(CcpoConfig(updates=9)).fit(train, ALPHA, 0, Silent())
    assert stopped.stopped_early
    assert len(stopped.curves["cost"]) == 5
    assert content(stopped) == content(before)
    assert stopped.kappa == before.kappa


def batch_and_surrogate(seed: int) -> tuple[Questions, FloatArray, SampledSurrogate]:
    rng = np.random.default_rng(seed)
    right = rng.random((5, 3, 2)) < 0.5
    answer = np.where(rng.random((5, 3, 2)) < 0.9, 0, -1)
    right &= answer >= 0
    batch = Questions(
        rng.normal(size=(5, 3, 2)),
        rng.uniform(0.5, 1.5, size=(5, 3)),
        right,
        answer,
        np.asarray(right.any(axis=(1, 2))),
    )
    pi = policy_probabilities(torch.from_numpy(rng.normal(size=(5, 3, 3)))).numpy()
    episodes = draw(pi, right, rng)
    drawn = episodes.of_action(pi)
    cost, coverage = rng.normal(size=(2, 5, 3))
    return batch, pi, SampledSurrogate(episodes, drawn, drawn, cost, coverage, level=0.5)


@pytest.mark.parametrize("price", [0.0, 0.7])
def test_exact_cost_adds_what_the_set_itself_pays(price: float) -> None:
    batch, pi, sampled = batch_and_surrogate(0)
    probabilities, kappa = torch.from_numpy(pi), 0.3
    config = CcpoConfig(set_size_price=price)
    exact = _SoftSetObjective(config, batch, kappa, sampled)(probabilities)
    other = _SoftSetObjective(replace(config, cost="sampled"), batch, kappa, sampled)(probabilities)
    reach, path = soft_paths(probabilities)
    pays = soft_cost(reach, torch.from_numpy(batch.cost), kappa, config.epsilon)
    pays = pays + price * soft_set_size(
        path, torch.from_numpy(batch.answered), kappa, config.epsilon
    )
    assert (exact.cost - other.cost).item() == pytest.approx(pays.item())
    target = exact.distributions[1]
    assert other.cost.item() == pytest.approx(sampled.cost(target).item())


def test_unsolvable_questions_are_covered_in_the_leaf_count_too() -> None:
    batch, pi, _ = batch_and_surrogate(2)
    nothing_right = replace(
        batch, correct=np.zeros_like(batch.correct), solvable=np.zeros_like(batch.solvable)
    )
    training = _CcpoTraining(PUBLISHED, nothing_right, ALPHA, seed=0)
    log_mask = soft_mask_log(torch.from_numpy(pi), 0.3, 0.01)
    assert training._roll_out(nothing_right, torch.from_numpy(pi), log_mask, 0.3).level == 1.0


def test_ccpo_as_published_is_frozen() -> None:
    region = TrustRegion(radius=0.01, damping=0.1, backtrack=0.8, attempts=15)
    assert replace(PUBLISHED, updates=1) == CcpoConfig(
        updates=1,
        batch=10,
        constraint="leaf-count",
        cost="sampled",
        set_size_price=0.0,
        set_size_credit="end",
        epsilon=0.01,
        region=region,
    )


def test_the_constraint_is_exact_or_the_sampled_leaf_count() -> None:
    batch, pi, sampled = batch_and_surrogate(1)
    probabilities, kappa = torch.from_numpy(pi), 0.3
    exact = _SoftSetObjective(CcpoConfig(), batch, kappa, sampled)(probabilities)
    counted = _SoftSetObjective(PUBLISHED, batch, kappa, sampled)(probabilities)
    leaf = np.minimum(np.ones((5, 3, 1)), pi[:, :, :2])
    leaf[:, 1:] = np.minimum(leaf[:, 1:], np.minimum.accumulate(pi[:, :-1, 2:], axis=1))
    critical = np.where(batch.correct, leaf, -np.inf).max(axis=(1, 2))
    soft = np.where(batch.solvable, 1 / (1 + np.exp(-(critical - kappa) / 0.01)), 1.0)
    assert exact.coverage.item() == pytest.approx(soft.mean())
    assert counted.coverage.item() == pytest.approx(sampled.coverage(counted.distributions[1]))


@pytest.mark.slow
def test_ccpo_learns_to_pay_less_than_a_lottery_over_depths_of_the_same_coverage() -> None:
    learned = CcpoLearner(CcpoConfig(updates=150)).fit(questions(400), ALPHA, 0, Silent())
    held_out, test = questions(2_000, 5), questions(4_000, 6)
    critical = paths(followed(learned.policy, held_out).scores, held_out).critical
    kappa = split_threshold(critical, ALPHA).kappa
    got = outcome(paths(followed(learned.policy, test).scores, test), test, kappa)
    right = np.logical_or.accumulate(test.correct.any(axis=2), axis=1) | ~test.solvable[:, None]
    paid = test.round_cost_nano.cumsum(axis=1)
    blind = np.interp(got.covered.mean(), right.mean(axis=0), paid.mean(axis=0))
    assert abs(got.covered.mean() - 0.9) < 0.03
    assert got.cost_nano.mean() < 0.85 * blind


@pytest.mark.slow
def test_cpo_learns_to_be_right_more_often_for_less_money() -> None:
    train, test = questions(400), questions(4_000, 6)

    def after(updates: int) -> ReplayOutcome:
        fitted = CpoLearner(CpoConfig(updates=updates)).fit(train, ALPHA, 0, Silent())
        return sample(followed(fitted.policy, test).scores, test, np.random.default_rng(0))

    first, last = after(1), after(150)
    assert last.covered.mean() > first.covered.mean() + 0.05
    assert last.cost_nano.mean() < 0.95 * first.cost_nano.mean()
