"""V-trace against the naive sum and against exact backward induction on enumerated episodes."""

import itertools

import numpy as np
import pytest

from farthing.traces.arrays import FloatArray
from farthing_lab.rl.actor_critic import importance, vtrace


def naive(rewards: FloatArray, values: FloatArray, rho: FloatArray, length: int) -> FloatArray:
    """Write the definition out (IMPALA, equation 1, gamma = 1, c = rho): O(T^2) products."""
    following = [*values[1:length], 0.0]
    targets = []
    for s in range(length):
        total = values[s]
        for t in range(s, length):
            product = np.prod(rho[s:t])
            total += product * rho[t] * (rewards[t] + following[t] - values[t])
        targets.append(total)
    return np.array(targets)


def test_targets_equal_the_naive_sum() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        rounds, length = 6, int(rng.integers(1, 7))
        rewards, values = rng.normal(size=(2, 1, rounds))
        target, behaviour = rng.uniform(0.05, 1, size=(2, 1, rounds))
        rho = importance(target, behaviour, clip=1.0)
        taken = (np.arange(rounds) < length)[None]
        targets, advantages = vtrace(rewards, values, rho, taken)
        want = naive(rewards[0], values[0], rho[0], length)
        np.testing.assert_allclose(targets[0, :length], want)
        following = np.append(want[1:], 0.0)
        np.testing.assert_allclose(
            advantages[0, :length], rewards[0, :length] + following - values[0, :length]
        )
        assert not targets[0, length:].any()
        assert not advantages[0, length:].any()


@pytest.mark.parametrize("clip", [1.0, 1e9])
def test_fixed_point_is_the_value_of_the_truncated_policy(clip: float) -> None:
    """Episodes are enumerated, so the expected target is exact.

    With exact values as the critic, the expected V-trace target is that value again: the value of
    the policy that V-trace evaluates, min(clip * behaviour, target) renormalised.
    """
    rng = np.random.default_rng(3)
    rounds = 3
    behaviour = rng.dirichlet(np.ones(2), size=rounds)
    target = rng.dirichlet(np.ones(2), size=rounds)
    behaviour[-1] = target[-1] = [1.0, 0.0]
    reward = rng.normal(size=(rounds, 2))  # by round and action: stop, go on
    evaluated = np.minimum(clip * behaviour, target)
    evaluated /= evaluated.sum(axis=1, keepdims=True)
    value = np.zeros(rounds + 1)
    for t in reversed(range(rounds)):
        stop, go_on = evaluated[t]
        value[t] = stop * reward[t, 0] + go_on * (reward[t, 1] + value[t + 1])
    expected = 0.0
    weight = 0.0
    for actions in itertools.product([0, 1], repeat=rounds):
        length = actions.index(0) + 1 if 0 in actions else rounds
        if any(actions[length:]) or actions[rounds - 1] == 1:
            continue
        chance = np.prod([behaviour[t, actions[t]] for t in range(length)])
        taken = (np.arange(rounds) < length)[None]
        picked = (np.arange(rounds), np.array(actions))
        rho = importance(target[picked], behaviour[picked], clip)[None]
        targets, _ = vtrace(reward[picked][None], value[None, :rounds], rho, taken)
        expected += chance * targets[0, 0]
        weight += chance
    np.testing.assert_allclose(weight, 1.0)
    np.testing.assert_allclose(expected, value[0])
