"""PPO's losses against a slow reference in NumPy; masked tokens have no gradient at all."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from farthing.traces.arrays import BoolArray, FloatArray
from farthing_lab.rl.ppo import (
    approximate_kl,
    clip_fraction,
    entropy,
    kl_loss,
    kl_penalty,
    masked_mean,
    policy_loss,
    token_log_probabilities,
    value_loss,
    whiten,
)

B, T, V = 3, 5, 4
CLIP = 0.2


def batch(seed: int) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Return new and old numbers, a third, and a mask with at least one token."""
    rng = np.random.default_rng(seed)
    new = rng.normal(scale=0.5, size=(B, T))
    mask = rng.random((B, T)) < 0.5
    mask[0, 0] = True
    return new, new + rng.normal(scale=0.3, size=(B, T)), rng.normal(size=(B, T)), mask


def mean_over(mask: BoolArray, one: Callable[[int, int], float]) -> float:
    """Average a number over unmasked tokens, one by one."""
    values = [one(b, t) for b in range(B) for t in range(T) if mask[b, t]]
    return math.fsum(values) / len(values)


def slow_policy(new: FloatArray, old: FloatArray, third: FloatArray, mask: BoolArray) -> float:
    def one(b: int, t: int) -> float:
        ratio, advantage = math.exp(new[b, t] - old[b, t]), third[b, t]
        # min(w A, clip(w) A), case by case
        if advantage >= 0:
            return float(-min(ratio, 1 + CLIP) * advantage)
        return float(-max(ratio, 1 - CLIP) * advantage)

    return mean_over(mask, one)


def slow_value(new: FloatArray, old: FloatArray, third: FloatArray, mask: BoolArray) -> float:
    def one(b: int, t: int) -> float:
        v, before, target = new[b, t], old[b, t], third[b, t]
        near = min(max(v, before - CLIP), before + CLIP)
        return float(max((v - target) ** 2, (near - target) ** 2) / 2)

    return mean_over(mask, one)


def slow_k3(new: FloatArray, old: FloatArray, third: FloatArray, mask: BoolArray) -> float:
    return mean_over(
        mask, lambda b, t: math.exp(old[b, t] - new[b, t]) - 1 - (old[b, t] - new[b, t])
    )


def slow_approximate(new: FloatArray, old: FloatArray, third: FloatArray, mask: BoolArray) -> float:
    return mean_over(
        mask, lambda b, t: math.exp(new[b, t] - old[b, t]) - 1 - (new[b, t] - old[b, t])
    )


def slow_clipped(new: FloatArray, old: FloatArray, third: FloatArray, mask: BoolArray) -> float:
    def one(b: int, t: int) -> float:
        return float(not 1 - CLIP <= math.exp(new[b, t] - old[b, t]) <= 1 + CLIP)

    return mean_over(mask, one)


Loss = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
LOSSES: dict[str, tuple[Loss, Callable[..., float]]] = {
    "policy": (lambda n, o, a, m: policy_loss(n, o, a, m, CLIP), slow_policy),
    "value": (lambda n, o, r, m: value_loss(n, o, r, m, CLIP), slow_value),
    "kl": (lambda n, o, _, m: kl_loss(n, o, m), slow_k3),
    "approximate kl": (lambda n, o, _, m: approximate_kl(n, o, m), slow_approximate),
    "clip fraction": (lambda n, o, _, m: clip_fraction(n, o, m, CLIP), slow_clipped),
}


@pytest.mark.parametrize("name", LOSSES)
def test_each_loss_equals_the_slow_reference(name: str) -> None:
    fast, slow = LOSSES[name]
    for seed in range(100):
        arrays = batch(seed)
        found = fast(*(torch.from_numpy(x) for x in arrays))
        assert found.item() == pytest.approx(slow(*arrays), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", ["policy", "value", "kl"])
def test_each_gradient_equals_finite_differences(name: str) -> None:
    fast, slow = LOSSES[name]
    for seed in range(10):
        new, *others = batch(seed)
        variable = torch.from_numpy(new).requires_grad_()
        rest = [torch.from_numpy(x) for x in others]
        (gradient,) = torch.autograd.grad(fast(variable, rest[0], rest[1], rest[2]), variable)
        for place in np.ndindex(B, T):
            step = np.zeros((B, T))
            step[place] = 1e-6
            want = (slow(new + step, *others) - slow(new - step, *others)) / 2e-6
            assert gradient[place].item() == pytest.approx(want, abs=1e-7)


@pytest.mark.parametrize("poison", [0.0, 1e300, torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize("name", ["policy", "value", "kl", "approximate kl"])
def test_the_gradient_of_a_masked_token_is_exactly_zero(name: str, poison: float) -> None:
    fast, _ = LOSSES[name]
    *arrays, mask = (torch.from_numpy(x) for x in batch(3))
    clean = fast(arrays[0], arrays[1], arrays[2], mask)
    poisoned = [torch.where(mask, x, poison).requires_grad_() for x in arrays]
    loss = fast(poisoned[0], poisoned[1], poisoned[2], mask)
    assert loss.item() == clean.item()
    loss.backward()  # type: ignore[no-untyped-call]
    for x in poisoned:
        if x.grad is not None:
            assert x.grad.isfinite().all()
            assert (x.grad[~mask] == 0.0).all()
    assert poisoned[0].grad is not None
    assert (poisoned[0].grad[mask] != 0.0).any()


@pytest.mark.parametrize("poison", [0.0, torch.inf, -torch.inf, torch.nan])
def test_masked_logits_have_no_gradient_whatever_they_are(poison: float) -> None:
    rng = np.random.default_rng(0)
    mask = torch.from_numpy(batch(0)[3])
    clean = torch.from_numpy(rng.normal(size=(B, T, V)))
    tokens = torch.from_numpy(rng.integers(V, size=(B, T)))
    logits = torch.where(mask[..., None], clean, poison).requires_grad_()
    found = token_log_probabilities(logits, tokens, mask)
    loss = found.sum() + entropy(logits, mask)
    loss.backward()  # type: ignore[no-untyped-call]
    assert (found[~mask] == 0.0).all()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert (logits.grad[~mask] == 0.0).all()
    assert (logits.grad[mask] != 0.0).any()


@pytest.mark.parametrize("kind", [torch.bool, torch.int64])
def test_log_probabilities_and_entropy_equal_the_definition(kind: torch.dtype) -> None:
    rng = np.random.default_rng(1)
    mask = batch(1)[3]
    logits, tokens = rng.normal(size=(B, T, V)), rng.integers(V, size=(B, T))
    logits[0, 0, 1], tokens[0, 0] = -np.inf, 2  # a symbol that is not allowed
    p = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    tensors = torch.from_numpy(logits).requires_grad_(), torch.from_numpy(mask).to(kind)
    found = token_log_probabilities(tensors[0], torch.from_numpy(tokens), tensors[1])
    for b, t in np.ndindex(B, T):
        want = math.log(p[b, t, tokens[b, t]]) if mask[b, t] else 0.0
        assert found[b, t].item() == pytest.approx(want)
    mean = entropy(*tensors)
    assert mean.item() == pytest.approx(
        mean_over(mask, lambda b, t: -sum(q * math.log(q) for q in p[b, t] if q > 0))
    )
    (gradient,) = torch.autograd.grad(mean + found.sum(), tensors[0])
    assert gradient.isfinite().all()
    assert gradient[0, 0, 1] == 0.0


def test_whitened_advantages_have_mean_0_and_variance_1_over_unmasked_tokens() -> None:
    _, _, advantages, mask = batch(5)
    poisoned = np.where(mask, advantages, np.nan)
    found = whiten(torch.from_numpy(poisoned), torch.from_numpy(mask)).numpy()
    assert found[mask].mean() == pytest.approx(0.0, abs=1e-12)
    assert found[mask].std() == pytest.approx(1.0, rel=1e-6)
    assert not found[~mask].any()
    assert np.corrcoef(found[mask], advantages[mask])[0, 1] == pytest.approx(1.0)


def test_one_token_whitens_to_0_and_none_at_all_costs_nothing() -> None:
    one, none = torch.tensor([[True, False]]), torch.tensor([[False, False]])
    assert whiten(torch.tensor([[5.0, 1.0]]), one).tolist() == [[0.0, 0.0]]
    logits = torch.full((1, 2, 3), torch.nan, requires_grad=True)
    log_pi = token_log_probabilities(logits, torch.zeros(1, 2, dtype=torch.int64), none)
    loss = policy_loss(log_pi, log_pi, torch.ones(1, 2), none) + entropy(logits, none)
    assert loss.item() == 0.0
    loss.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert not logits.grad.any()


def test_a_ratio_beyond_all_bounds_stays_finite() -> None:
    new = torch.tensor([[0.0, -900.0]], requires_grad=True)
    old, advantages = torch.tensor([[-900.0, 0.0]]), torch.tensor([[1.0, -1.0]])
    mask = torch.ones(1, 2).bool()
    for loss in (policy_loss(new, old, advantages, mask), kl_loss(new, old, mask)):
        (gradient,) = torch.autograd.grad(loss, new)
        assert loss.isfinite()
        assert gradient.isfinite().all()


def test_estimators_of_the_divergence_average_to_it() -> None:
    """By enumeration: the mean over pi is a sum. The gradient of k3 is that of the other KL."""
    rng = np.random.default_rng(2)
    logits = torch.from_numpy(rng.normal(size=V)).requires_grad_()
    reference = torch.from_numpy(rng.normal(size=V)).log_softmax(0)
    log_pi = logits.log_softmax(0)
    pi = log_pi.detach().exp()
    forward = (log_pi.exp() * (log_pi - reference)).sum().item()
    backward = (reference.exp() * (reference - log_pi)).sum()
    token, always = log_pi[None, :], torch.ones(1, V).bool()
    k1 = (pi * kl_penalty(token, reference[None], always)[0]).sum()
    k3 = sum(
        pi[v] * kl_loss(token[:, v : v + 1], reference[None, v : v + 1], always[:, :1])
        for v in range(V)
    )
    assert isinstance(k3, Tensor)
    assert k1.item() == pytest.approx(forward)
    assert k3.item() == pytest.approx(forward)
    (descent,) = torch.autograd.grad(k3, logits, retain_graph=True)
    (want,) = torch.autograd.grad(backward, logits)
    torch.testing.assert_close(descent, want)


def test_the_penalty_is_zero_where_masked() -> None:
    log_pi, reference = torch.tensor([[-1.0, torch.nan]]), torch.tensor([[-2.0, -torch.inf]])
    assert kl_penalty(log_pi, reference, torch.tensor([[True, False]])).tolist() == [[1.0, 0.0]]


def test_a_mean_counts_tokens_and_not_episodes() -> None:
    mask = torch.tensor([[True, True, True], [True, False, False]])
    values = torch.tensor([[0.0, 0.0, 0.0], [4.0, 9.0, 9.0]])
    assert masked_mean(values, mask).item() == 1.0
