"""The two bandits against their formulas, and the record against values that are known."""

from dataclasses import replace

import numpy as np
import pytest
from bandit_arms import ARMS, MEANS, best_mixture
from scipy.optimize import linprog

from farthing.errors import InputError
from farthing.promises.statistics.binomial import binomial_upper
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.methods.bandits.base import (
    DIMENSIONS,
    Arm,
    ArmChoice,
    Bandit,
    BanditContext,
    GradedDraw,
    begin,
    choose,
    features_of,
    settle,
)
from farthing_lab.methods.bandits.knapsack import KNAPSACK, eta, tsallis
from farthing_lab.methods.bandits.off_policy import OffPolicyValue, PropensityLog, value_of
from farthing_lab.methods.bandits.squarecb import (
    FEWEST,
    SQUARECB,
    Regressions,
    inverse_gaps,
    refitted,
)


def lesson(features: FloatArray, arm: int, grade: float, arms: int = 2) -> GradedDraw:
    seen = BanditContext(features, np.ones(arms, dtype=bool), np.zeros(arms))
    return GradedDraw(seen, arm, np.full(arms, 1 / arms), grade)


@pytest.mark.parametrize("each", [50.0, 150.0, 700.0, 1_500.0, 9_000.0])
def test_the_best_mixture_is_the_linear_programs(each: float) -> None:
    cost = [arm.expected_nano for arm in ARMS]
    found = linprog(-MEANS, A_ub=[cost, np.ones(3)], b_ub=[each, 1.0], bounds=(0, None))
    assert found.fun is not None
    assert best_mixture(int(each * 1_000), 1_000) == pytest.approx(-found.fun)


@pytest.mark.parametrize("seed", range(30))
def test_tsallis_is_its_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loss, step = (
        rng.random(int(rng.integers(1, 9))) * 10.0 ** rng.integers(-2, 5),
        rng.random() + 0.01,
    )
    p = tsallis(loss, step)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    x = loss - 2.0 / (step * np.sqrt(p))  # the same x for each
    assert x == pytest.approx(np.full(len(loss), x[0]), rel=1e-6, abs=1e-6)
    assert (p[np.argsort(loss)] == np.sort(p)[::-1]).all()


def test_losses_are_estimated_without_bias() -> None:
    """Over the draw of the arm, the mean of the estimate is the loss and the toll."""
    chances, grades = np.array([0.7, 0.25, 0.05]), np.array([0.2, 0.9, 0.6])
    toll = np.array([0.01, 0.2, 9.0])
    seen = BanditContext(np.ones(1), np.ones(3, dtype=bool), toll)
    for lessons in (20, 70, 1_000):
        start = type(KNAPSACK.begin(3, 1))(np.zeros(3), lessons)
        after = [
            KNAPSACK.learn(start, GradedDraw(seen, arm, chances, float(grades[arm]))).loss
            for arm in range(3)
        ]
        gaps = np.array([loss - loss[0] for loss in after])
        expected = 1.0 - grades + np.minimum(toll, 2.0)
        assert chances @ gaps == pytest.approx(expected - expected[0])
        assert eta(lessons) == pytest.approx(4 / (lessons + 1) ** 0.5)


@pytest.mark.parametrize("seed", range(20))
def test_weights_are_inverse_gaps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    worth, gamma = rng.random(int(rng.integers(1, 9))), float(rng.random() * 100)
    p, best = inverse_gaps(worth, gamma), int(worth.argmax())
    assert p.sum() == pytest.approx(1.0)
    assert p[best] >= 1 / len(worth) - 1e-12
    for arm in set(range(len(worth))) - {best}:
        assert p[arm] == pytest.approx(1 / (len(worth) + gamma * (worth[best] - worth[arm])))


def test_it_learns_which_question_is_for_whom() -> None:
    """One arm is right where a feature is 1, the other where it is -1."""
    rng = np.random.default_rng(1)
    session = begin(SQUARECB, [Arm("a", 1, 1), Arm("b", 1, 1)], 10_000, 1_000, 2)
    right = []
    for _ in range(1_000):
        sign = float(rng.choice([-1.0, 1.0]))
        choice = choose(SQUARECB, session, np.array([1.0, sign]), rng)
        assert choice is not None
        right.append(float((sign > 0) == (choice.arm == 0)))
        session = settle(SQUARECB, choice.session, choice, right[-1], 1)
    assert np.mean(right[-300:]) > 0.9
    learned: Regressions = session.learned
    assert learned.promoted >= 2


def test_the_regression_is_ridge_and_waits_for_the_guard() -> None:
    rng = np.random.default_rng(2)
    every = [
        lesson(np.array([1.0, rng.normal()]), int(rng.integers(2)), float(rng.random()))
        for _ in range(2 * FEWEST)
    ]
    learned = SQUARECB.begin(2, 2)
    for one in every[:FEWEST]:
        learned = SQUARECB.learn(learned, one)
    assert not learned.weight.any(), "nothing to promote: no batch before the first"
    for one in every[FEWEST:]:
        learned = SQUARECB.learn(learned, one)
    assert learned.promoted + learned.refused == 2
    mine = [one for one in every if one.arm == 1]
    x = np.array([one.seen.features for one in mine])
    y = np.array([one.grade for one in mine]) - 0.5
    fitted = np.linalg.solve(x.T @ x + np.diag([0.5, 3.0]), x.T @ y)
    assert np.linalg.solve(learned.square[1], learned.product[1]) == pytest.approx(fitted)


def test_the_guard_holds_back_what_predicts_fresh_grades_worse() -> None:
    """The arm was wrong in every batch before; the regression in use says so of the last one."""
    learned, x = SQUARECB.begin(1, 1), np.array([1.0])
    useful = np.array([[0.5]])
    wrong = Regressions(
        useful, learned.square + 50.0, learned.product - 25.0, 50, (lesson(x, 0, 1.0, 1),) * 20
    )
    after = refitted(wrong)
    assert (after.refused, after.promoted) == (1, 0)
    assert after.weight == pytest.approx(useful)
    right = Regressions(-useful, wrong.square, -wrong.product, 50, wrong.batch)
    assert refitted(right).promoted == 1


def test_features_are_few_and_of_one_length() -> None:
    one, same, other = (features_of(t, "g") for t in ("What is 4 + 3?", "what IS 4 + 3", "Rhine"))
    assert one.shape == (DIMENSIONS,)
    assert one == pytest.approx(same)
    assert not np.allclose(one, other)
    assert (one**2).sum() <= 3.0 + 1e-9
    assert features_of("").shape == (DIMENSIONS,)


def log_of(bandit: Bandit, n: int, seed: int, budget: int = 10**9) -> PropensityLog:
    """The record of a stream of questions of two kinds."""
    return stream(bandit, n, seed, budget)[0]


def stream(
    bandit: Bandit, n: int, seed: int, budget: int = 10**9
) -> tuple[PropensityLog, IntArray]:
    """Questions of two kinds, on which arms are right with known chances; and their kinds."""
    rng = np.random.default_rng(seed)
    arms = [Arm("a", 10, 10), Arm("b", 50, 50)]
    session, choices, grades = begin(bandit, arms, budget, n, 2, 0.1), list[ArmChoice](), []
    kinds = (rng.random(n) < 0.5).astype(np.int64)
    for kind in kinds.tolist():
        choice = choose(bandit, session, np.array([1.0, kind]), rng)
        if choice is None:
            break
        grades.append(float(rng.random() < CHANCE[kind, choice.arm]))
        choices.append(choice)
        session = settle(bandit, choice.session, choice, grades[-1], arms[choice.arm].expected_nano)
    return PropensityLog.of(choices, grades), kinds[: len(choices)]


CHANCE = np.array([[0.9, 0.5], [0.3, 0.8]])
"""By kind and arm; so arm a is right 60 % of the time, b 65 %."""


def missed(bandit: Bandit, runs: int, delta: float) -> int:
    """Count the runs in which the interval of either arm was wrong at any of several moments."""
    count = 0
    for seed in range(runs):
        log = log_of(bandit, 400, seed)
        wrong = False
        for at in (50, 150, 400):
            part = PropensityLog(
                *(getattr(log, name)[:at] for name in PropensityLog.__dataclass_fields__)
            )
            for arm, truth in enumerate(CHANCE.mean(axis=0)):
                found = value_of(part, arm, delta / 2)
                wrong |= not found.low <= truth <= found.high
        count += wrong
    return count


@pytest.mark.simulations
@pytest.mark.parametrize("bandit", [KNAPSACK, SQUARECB])
def test_the_value_of_a_fixed_model_is_covered_in_500_runs(bandit: Bandit) -> None:
    """The binomial test would reject a miss rate above delta; it does not, at 1 in 1,000."""
    delta = 0.1
    count = missed(bandit, 500, delta)
    assert 1.0 - binomial_upper(500 - count, 500, 0.001) <= delta


@pytest.mark.slow
def test_without_the_weights_a_value_would_be_wrong() -> None:
    """The bandit asks b where b is good, so that the plain mean of its grades flatters it."""
    logs = [log_of(SQUARECB, 3_000, seed) for seed in range(4)]
    plain = np.mean([log.grade[log.arm == 1].mean() for log in logs])
    weighted = [value_of(log, 1).estimate for log in logs]
    assert plain > 0.70
    assert np.mean([one for one in weighted if one is not None]) == pytest.approx(0.65, abs=0.03)


@pytest.mark.slow
def test_a_policy_that_reads_the_question_has_a_value_too() -> None:
    log = log_of(KNAPSACK, 2_000, 1)
    found: OffPolicyValue = value_of(log, np.where(np.arange(len(log.arm)) % 2, 1, 0))
    assert found.low < 0.625 < found.high
    assert found.high - found.low < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("bandit", [KNAPSACK, SQUARECB])
def test_and_one_whose_arm_tells_the_kind_of_question(bandit: Bandit) -> None:
    """Arm b is drawn the more often, and where it is to be asked, chances are others."""
    streams = [stream(bandit, 3_000, seed) for seed in range(6)]
    found = [value_of(log, kinds) for log, kinds in streams]
    values = [one.estimate for one in found if one.estimate is not None]
    assert np.mean(values) == pytest.approx((0.9 + 0.8) / 2, abs=0.01)
    opposite = [value_of(log, 1 - kinds).estimate for log, kinds in streams]
    assert np.mean([one for one in opposite if one is not None]) == pytest.approx(0.4, abs=0.03)


def test_several_arms_count_until_one_of_them_is_left_out() -> None:
    """Where the draw was of the other arm as well: when it ends is not for the question to say."""
    log, kinds = stream(KNAPSACK, 400, 2, budget=3_030)
    first = int((~log.offered[:, 1]).argmax())
    assert value_of(log, kinds).questions == first < len(log.arm)
    unsaid = replace(log, offered=np.ones_like(log.offered))  # as traces tell it
    assert value_of(unsaid, kinds).questions == first
    assert value_of(unsaid, 0).questions == len(log.arm)


def test_the_record_counts_until_the_budget_leaves_an_arm_out() -> None:
    log = log_of(KNAPSACK, 400, 2, budget=3_030)
    dear, cheap = value_of(log, 1), value_of(log, 0)
    first = int((~log.offered[:, 1]).argmax())
    assert dear.questions == first < cheap.questions == len(log.arm)


def test_no_record_has_no_value() -> None:
    with pytest.raises(InputError, match="nothing was chosen"):
        PropensityLog.of([], [])
