"""V_0.5's baseline: its weight is the best one, and its error is below a plain mean's."""

import numpy as np
import pytest
import torch

from farthing.traces.arrays import FloatArray
from farthing_lab.rl.group_advantage import shrunk_advantage, shrunk_baseline, weight

TORCH = torch.from_numpy


def errors(bias: float, k: int, seed: int, prompts: int = 64) -> FloatArray:
    """Return the mean squared error of plain means, of the expectation, and of the baseline."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(1.5, 1.5, prompts)
    prior = truth + bias * rng.normal(size=prompts)
    rewards = (rng.random((prompts, k)) < truth[:, None]).astype(np.float64)
    group = np.repeat(np.arange(prompts), k)
    shrunk = shrunk_baseline(TORCH(rewards.ravel()), TORCH(group), TORCH(prior.repeat(k)))
    each = shrunk.numpy().reshape(prompts, k)
    np.testing.assert_allclose(each, each[:, :1].repeat(k, 1))
    guesses = rewards.mean(axis=1), prior, each[:, 0]
    return np.array([((guess - truth) ** 2).mean() for guess in guesses])


@pytest.mark.parametrize("bias", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("k", [2, 4, 8])
def test_its_error_is_below_that_of_plain_means(bias: float, k: int) -> None:
    """Over 400 updates of 64 prompts: the lead is beyond four standard errors."""
    found = np.array([errors(bias, k, seed) for seed in range(400)])
    lead = found[:, 0] - found[:, 2]
    assert lead.mean() > 4 * lead.std(ddof=1) / np.sqrt(len(lead))
    if bias == 0.2 and k > 2:
        assert found[:, 2].mean() < found[:, 1].mean(), "and below the expectation's"


def test_a_useless_expectation_costs_next_to_nothing() -> None:
    found = np.array([errors(1.0, 4, seed) for seed in range(200)]).mean(axis=0)
    assert found[2] < 1.01 * found[0]


def test_the_weight_is_that_of_the_least_error() -> None:
    """Where spread and bias are known, w = D / (D + 1/k) is where the error is least."""
    spread2, bias2, k = 0.21, 0.03, 4
    share = np.linspace(0, 1, 100_001)
    error = share**2 * spread2 / k + (1 - share) ** 2 * bias2
    ratio = bias2 / spread2
    assert share[error.argmin()] == pytest.approx(ratio / (ratio + 1 / k), abs=1e-5)


def test_the_estimated_weight_comes_near_to_it() -> None:
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.2, 0.8, 40_000)
    prior = truth + 0.2 * rng.normal(size=len(truth))
    rewards = (rng.random((len(truth), 4)) < truth[:, None]).astype(np.float64)
    group = TORCH(np.repeat(np.arange(len(truth)), 4))
    ratio = 0.04 / float((truth * (1 - truth)).mean())
    found = weight(TORCH(rewards.ravel()), group, TORCH(prior.repeat(4)))
    assert float(found[0]) == pytest.approx(ratio / (ratio + 0.25), rel=0.03)


def test_groups_may_differ_in_size_and_order() -> None:
    rng = np.random.default_rng(1)
    group = TORCH(rng.permutation(np.repeat(np.arange(5), [1, 2, 3, 4, 9])))
    rewards, prior = TORCH(rng.random(19)), TORCH(rng.random(5))[group]
    found = weight(rewards, group, prior)
    share = found / (1 - found)  # D k
    for number in range(5):
        rows = group == number
        assert share[rows].numpy() == pytest.approx(float(share[group == 0][0]) * int(rows.sum()))


def test_one_episode_each_leaves_the_expectation_alone() -> None:
    rewards, prior = torch.tensor([1.0, 0.0, 1.0]), torch.tensor([0.9, 0.2, 0.4])
    assert shrunk_baseline(rewards, torch.arange(3), prior).tolist() == prior.tolist()
    found = shrunk_advantage(rewards, torch.arange(3), prior)
    assert (found * (rewards - prior) > 0).all()
    assert float((found**2).mean()) == pytest.approx(1.0, abs=1e-4)


def test_rewards_that_never_differ_within_a_prompt_are_taken_as_they_are() -> None:
    rewards, group = torch.tensor([1.0, 1.0, 0.0, 0.0]), torch.tensor([0, 0, 1, 1])
    prior = torch.full((4,), 0.5)
    assert shrunk_advantage(rewards, group, prior).tolist() == [0.0] * 4
    assert shrunk_advantage(rewards[:0], group[:0], prior[:0]).tolist() == []


@pytest.mark.parametrize("size", [3, 7, 13])
def test_rounding_teaches_nothing(size: int) -> None:
    """A mean of equal rewards is not quite they; divided by next to nothing that would be much."""
    rewards, group = torch.tensor([0.1, 0.7]).repeat_interleave(size), torch.arange(2)
    each = group.repeat_interleave(size)
    assert not shrunk_advantage(rewards, each, torch.full((2 * size,), 0.5)).any()


def test_a_surprise_teaches_where_group_means_say_nothing() -> None:
    """A prompt that always fails, among open ones: the last one was expected to succeed."""
    rewards = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    group = torch.tensor([0, 0, 1, 1, 2, 2])
    prior = torch.tensor([0.5, 0.5, 0.5, 0.5, 0.9, 0.9])
    assert (shrunk_advantage(rewards, group, prior)[-2:] < -0.1).all()
