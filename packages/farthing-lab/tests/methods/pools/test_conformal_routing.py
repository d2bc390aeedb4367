"""Conformal LLM routing against SciPy's beta distribution, a loop over thresholds, and by hand."""

import numpy as np
import pytest
from scipy.stats import beta
from small_pool import paid, small_pool, taught

from farthing.traces.arrays import IntArray
from farthing_lab.methods.routers.conformal_routing import (
    ConformalRoutingLearner,
    ConformalRoutingPolicy,
    tolerated,
)

RIGHT, WRONG = 0, 1


@pytest.mark.parametrize("seed", range(4))
def test_each_tolerance_routes_as_many_as_its_bound_allows(seed: int) -> None:
    """The bound of each threshold, and then the choice, one after another."""
    rng = np.random.default_rng(seed)
    score = rng.choice(np.linspace(0.05, 0.95, 19), 80)
    violated = rng.random(80) < score / 2
    thresholds, tolerances = tolerated(score, violated, 0.1)
    bound = {}
    for cut in [*np.unique(score)[1:].tolist(), np.inf]:
        routed = [i for i in range(80) if score[i] < cut]
        lost = sum(bool(violated[i]) for i in routed)
        bound[len(routed)] = float(beta.ppf(0.9, lost + 1, len(routed) - lost))
    for alpha in np.linspace(0.01, 0.99, 50):
        expected = max((n for n, upper in bound.items() if upper <= alpha), default=0)
        chosen = thresholds[np.flatnonzero(tolerances <= alpha)[0]]
        assert (score < chosen).sum() == expected
    assert (np.diff(tolerances) < 0).all()
    assert (score < thresholds[-1]).sum() == 0


def test_all_violated_leaves_the_strong_model_alone_below_a_tolerance_of_one() -> None:
    thresholds, tolerances = tolerated(np.linspace(0, 1, 9), np.ones(9, dtype=bool), 0.1)
    assert tolerances.tolist() == [1.0, 0.0]
    assert thresholds.tolist() == [np.inf, -np.inf]


def test_a_question_that_both_models_miss_is_no_violation() -> None:
    """Model a is wrong on theorems and capitals; b is wrong on capitals too, which go to a."""
    answers = [[WRONG, RIGHT]] * 40 + [[WRONG, WRONG]] * 40 + [[RIGHT, RIGHT]] * 40
    texts = ["prove the theorem"] * 40 + ["name a capital"] * 40 + ["spell some river"] * 40
    policy = taught(ConformalRoutingLearner(), small_pool(answers, [1, 10], question=texts))
    assert isinstance(policy, ConformalRoutingPolicy)
    assert (policy.weak, policy.strong) == (0, 1)
    new = small_pool([[RIGHT, WRONG]] * 3, [1, 10], question=[texts[0], texts[40], texts[80]])
    routed = [paid(policy.points(new), at) for at in range(len(policy.values))]
    assert routed == [[1.0, 1.0, 1.0], [10.0, 1.0, 1.0], *routed[2:]]
    assert routed[-1] == [10.0, 10.0, 10.0]
    # of 60 questions that the gate was not fitted to, none of those routed is lost: 0.1^(1 / n)
    kept = np.random.default_rng(0).permutation(120) >= 60
    n = int(kept[40:].sum())
    assert policy.values[1] == pytest.approx(1 - 0.1 ** (1 / n))


def test_the_gate_is_fitted_to_one_half_and_its_bounds_are_of_the_other() -> None:
    """What the models say to either half decides its own, and nothing of the other one's."""
    rng = np.random.default_rng(1)
    texts = [f"{('prove', 'name', 'spell')[i % 3]} word{i % 7} thing{i % 11}" for i in range(160)]
    weak, other = (np.where(rng.random(160) < 0.4, WRONG, RIGHT) for _ in range(2))
    gate = np.random.default_rng(0).permutation(160) < 80

    def learned(answers: IntArray) -> ConformalRoutingPolicy:
        pool = small_pool([[one, RIGHT] for one in answers.tolist()], [1, 10], question=texts)
        policy = taught(ConformalRoutingLearner(), pool)
        assert isinstance(policy, ConformalRoutingPolicy)
        return policy

    first = learned(weak)
    bounded = learned(np.where(gate, weak, other))
    fitted = learned(np.where(gate, other, weak))
    assert first.weights.tolist() == bounded.weights.tolist() != fitted.weights.tolist()
    held = small_pool([[one, RIGHT] for one in weak.tolist()], [1, 10], question=texts).take(~gate)
    thresholds, tolerances = tolerated(first.rounded(held), weak[~gate] == WRONG, 0.1)
    assert first.thresholds.tolist() == thresholds.tolist()
    assert first.values.tolist() == tolerances.tolist() != bounded.values.tolist()
