"""Surrogates estimated from episodes, against all episodes enumerated."""

import numpy as np
import pytest
import torch
from torch import Tensor

from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.methods.ccpo.learner import leaf_count, set_charge
from farthing_lab.rl.actor_critic import (
    ActorCritic,
    Critics,
    Episodes,
    Questions,
    QuestionStream,
    RollOut,
    SampledSurrogate,
    draw,
    vtrace,
)
from farthing_lab.rl.soft_set import policy_probabilities, soft_mask_log, soft_set_policy

T, L = 3, 2
NEXT = L


def every_episode() -> list[tuple[int, ...]]:
    """List the actions of every episode: go on some rounds, then answer."""
    return [(NEXT,) * t + (a,) for t in range(T) for a in range(L)]


def enumerated(right: BoolArray) -> Episodes:
    """Return all episodes of one question, drawn from policies that leave no choice."""
    certain = np.zeros((T * L, T, L + 1))
    for i, actions in enumerate(every_episode()):
        certain[i, np.arange(T), [*actions, *[0] * (T - len(actions))]] = 1.0
    episodes = draw(certain, np.repeat(right[None], T * L, axis=0), np.random.default_rng(0))
    for i, actions in enumerate(every_episode()):
        assert tuple(episodes.action[i, : len(actions)]) == actions
        assert episodes.taken[i].sum() == len(actions)
    return episodes


def policy(seed: int, scale: float = 1.0) -> Tensor:
    """Return [1, T, L + 1] probabilities."""
    logits = np.random.default_rng(seed).normal(size=(1, T, L + 1)) * scale
    return policy_probabilities(torch.from_numpy(logits))


def chance(episodes: Episodes, pi: Tensor) -> FloatArray:
    everyone = pi.numpy().repeat(T * L, axis=0)
    return episodes.product(episodes.of_action(everyone))


def right_answers(seed: int) -> BoolArray:
    return np.random.default_rng(seed).random((T, L)) < 0.5


def test_chances_of_all_episodes_sum_to_one() -> None:
    assert chance(enumerated(right_answers(0)), policy(0)).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.1])
@pytest.mark.parametrize("seed", range(6))
def test_leaf_count_expects_the_number_of_right_leaves(seed: int, epsilon: float) -> None:
    """Under S itself, and under pi with each episode weighted by the ratio of the two."""
    right, kappa, pi = right_answers(seed), 0.3, policy(seed)
    episodes = enumerated(right)
    log_mask = soft_mask_log(pi, kappa, epsilon)
    mask = log_mask.exp().numpy()
    leaves = leaf_count(episodes, mask.repeat(T * L, axis=0))
    on_path = [
        mask[0, :t, NEXT].prod() * mask[0, t, a] * right[t, a] for t in range(T) for a in range(L)
    ]
    under_s, under_pi = chance(episodes, soft_set_policy(log_mask)), chance(episodes, pi)
    assert (under_s * leaves).sum() == pytest.approx(sum(on_path))
    weight = under_s / under_pi
    assert (under_pi * weight * leaves).sum() == pytest.approx(sum(on_path))


def test_leaf_count_with_a_narrow_mask_counts_the_right_leaves_of_the_set() -> None:
    right = np.array([[True, True], [True, False], [True, True]])
    pi = torch.full((1, T, L + 1), 1 / 3, dtype=torch.float64)
    pi[:, -1] = torch.tensor([0.5, 0.5, 0.0])
    log_mask = soft_mask_log(pi, 0.3, 1e-6)
    episodes = enumerated(right)
    leaves = leaf_count(episodes, log_mask.exp().numpy().repeat(T * L, axis=0))
    expected = (chance(episodes, soft_set_policy(log_mask)) * leaves).sum()
    assert expected == pytest.approx(right.sum())


def test_products_end_with_the_episode() -> None:
    episodes = enumerated(right_answers(0))
    factors = np.full((T * L, T), 2.0)
    want = [2.0 ** len(actions) for actions in every_episode()]
    np.testing.assert_array_equal(episodes.product(factors), want)


def on_policy_gradient(seed: int, reward: FloatArray, *, cost: bool) -> tuple[Tensor, Tensor]:
    """Return the surrogate's expected gradient and the gradient of the expected return.

    `reward`, [T, L + 1], is by round and action.
    """
    logits = torch.from_numpy(np.random.default_rng(seed).normal(size=(1, T, L + 1)))
    logits.requires_grad_()
    pi = policy_probabilities(logits)
    episodes = enumerated(right_answers(seed))
    reward = episodes.of_action(reward[None].repeat(T * L, axis=0))
    weight = chance(episodes, pi.detach())
    behaviour = episodes.of_action(pi.detach().numpy().repeat(T * L, axis=0))
    values = np.random.default_rng(seed + 1).normal(size=(T * L, T))
    values[:] = values[0]  # a critic sees the round, not the future: any baseline will do
    _, advantage = vtrace(reward, values, np.ones((T * L, T)), episodes.taken)
    advantage *= (weight * len(weight))[:, None]  # the mean over episodes becomes an expectation
    surrogate = SampledSurrogate(episodes, behaviour, behaviour, advantage, advantage, 0.0)
    estimate = surrogate.cost if cost else surrogate.coverage
    (found,) = torch.autograd.grad(estimate(pi.expand(T * L, -1, -1)), logits, retain_graph=True)
    chosen = episodes.tensor_of_action(pi.expand(T * L, -1, -1))
    taken = torch.from_numpy(episodes.taken)
    chances = torch.where(taken, chosen, torch.ones_like(chosen)).prod(dim=1)
    total = torch.from_numpy((reward * episodes.taken).sum(axis=1))
    (want,) = torch.autograd.grad((chances * total).sum(), logits)
    return found, want


@pytest.mark.parametrize("cost", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_is_that_of_the_expected_return(seed: int, *, cost: bool) -> None:
    reward = np.random.default_rng(seed + 9).normal(size=(T, L + 1))
    found, want = on_policy_gradient(seed, reward, cost=cost)
    torch.testing.assert_close(found, want)


def one_step(ratio: FloatArray, advantage: FloatArray) -> SampledSurrogate:
    """Return episodes of one round, all answering with the base's answer."""
    n = len(ratio)
    one = np.ones((n, 1), dtype=bool)
    episodes = Episodes(np.zeros((n, 1), dtype=np.int64), one, one, one[:, 0])
    behaviour = np.full((n, 1), 0.4)
    target = behaviour * ratio[:, None]
    return SampledSurrogate(
        episodes, behaviour, target, advantage[:, None], advantage[:, None], level=0.6
    )


def test_weights_are_truncated_for_cost_and_not_for_the_constraint() -> None:
    ratio, advantage = np.array([0.5, 2.0]), np.array([3.0, 5.0])
    sampled = one_step(ratio, advantage)
    new = torch.zeros(2, 1, L + 1, dtype=torch.float64)
    new[:, 0, 0] = torch.from_numpy(sampled.target[:, 0])
    assert sampled.cost(new).item() == pytest.approx(np.mean([0.5 * 3.0, 1.0 * 5.0]))
    assert sampled.coverage(new).item() == pytest.approx(0.6)
    twice = 2 * new
    assert sampled.cost(twice).item() == pytest.approx(2 * np.mean([0.5 * 3.0, 1.0 * 5.0]))
    gained = np.mean([0.5 * 3.0, 2.0 * 5.0])
    assert sampled.coverage(twice).item() == pytest.approx(0.6 + gained)


def questions(n: int = 4) -> Questions:
    rng = np.random.default_rng(0)
    right = rng.random((n, T, L)) < 0.5
    return Questions(
        rng.normal(size=(n, T, 3)),
        np.ones((n, T)),
        right,
        np.zeros((n, T, L), dtype=np.int64),
        np.asarray(right.any(axis=(1, 2))),
    )


def test_criticise_estimates_advantages_from_critics_before_their_update() -> None:
    batch = questions()
    parts = ActorCritic(batch, 4, seed=0)
    pi = policy_probabilities(torch.from_numpy(parts.network.outputs(batch.observations))).numpy()
    episodes = draw(pi, batch.correct, parts.rng)
    reward = episodes.final * episodes.right[:, None].astype(float)
    values = ActorCritic(batch, 4, seed=0)._critics.values(torch.from_numpy(batch.observations))
    sampled = parts.criticise(RollOut(batch, episodes, pi, pi, batch.cost, reward, 0.5))
    cost_value, coverage_value = values.detach().numpy()
    rho = np.ones(batch.cost.shape)
    _, paid = vtrace(batch.cost, cost_value, rho, episodes.taken)
    _, covered = vtrace(reward, coverage_value, rho, episodes.taken)
    np.testing.assert_allclose(sampled.cost_advantage, paid)
    np.testing.assert_allclose(sampled.coverage_advantage, covered)
    moved = parts._critics.values(torch.from_numpy(batch.observations))
    assert not torch.equal(moved, values)


@pytest.mark.slow
def test_critics_descend_to_their_targets_and_ignore_steps_not_taken() -> None:
    rng = np.random.default_rng(0)
    seen = torch.from_numpy(rng.normal(size=(5, T, 3)))
    targets = rng.normal(size=(2, 5, T))
    taken = np.arange(T) < rng.integers(1, T + 1, size=5)[:, None]
    wild = np.where(taken, targets, 1e6)
    critics = Critics(3, seed=0)

    def error() -> FloatArray:
        values: FloatArray = critics.values(seen).detach().numpy()
        worst: FloatArray = np.abs(values - targets)[:, taken].max(axis=1)
        return worst

    before = error()
    for _ in range(1_500):
        critics.fit(critics.values(seen), wild, taken)
    assert (before > 0.5).all()
    assert (error() < 0.05).all()


def test_the_set_is_charged_at_the_end_or_leaf_by_leaf() -> None:
    member = np.array([[True, True], [True, False], [False, True]])[None].repeat(T * L, axis=0)
    episodes = enumerated(right_answers(0))
    at_end = set_charge(episodes, member, "end")
    by_leaf = set_charge(episodes, member, "leaf")
    for i, actions in enumerate(every_episode()):
        want = np.zeros(T)
        want[len(actions) - 1] = 4.0  # all of the set, with the last action
        np.testing.assert_array_equal(at_end[i], want)
        np.testing.assert_array_equal(by_leaf[i], [2.0, 1.0, 1.0])


def test_batches_have_no_question_twice_and_depend_on_the_seed_alone() -> None:
    def batches(seed: int) -> list[IntArray]:
        stream = QuestionStream(20, 10, seed)
        return [next(stream) for _ in range(5)]

    for batch in batches(0):
        assert len(set(batch.tolist())) == 10
    np.testing.assert_array_equal(batches(0), batches(0))
    assert not np.array_equal(batches(0), batches(1))
    assert len(next(QuestionStream(3, 10, 0))) == 3
