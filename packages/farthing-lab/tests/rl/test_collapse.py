"""A training that has collapsed is told from one that has not, and by its cause."""

from dataclasses import replace

import numpy as np
import pytest

from farthing.traces.arrays import FloatArray
from farthing_lab.rl.collapse import CallPrices, CollapseLimits, Curves, collapse

N = 30
SHORT = CollapseLimits(updates=10)


def healthy() -> Curves:
    rng = np.random.default_rng(0)
    return Curves(
        reward=np.linspace(0.1, 0.8, N) + rng.normal(scale=0.02, size=N),
        call_ratio=np.full(N, 0.4),
        entropy=np.linspace(1.5, 0.2, N),
        kl=np.linspace(0.0, 0.1, N),
    )


def late(value: float, curve: FloatArray) -> FloatArray:
    """Return the curve with its last ten updates at a value."""
    return np.where(np.arange(N) < N - 10, curve, value)


DEAD = replace(healthy(), reward=late(0.0, healthy().reward), call_ratio=late(0.0, np.ones(N)))


def message(curves: Curves, prices: CallPrices | None = None) -> str:
    found = collapse(curves, prices, SHORT)
    assert found is not None
    return found.message


def test_a_training_that_improves_goes_on() -> None:
    assert collapse(healthy(), limits=SHORT) is None


def test_a_controller_that_needs_no_expert_has_not_collapsed() -> None:
    assert collapse(replace(healthy(), call_ratio=np.zeros(N)), limits=SHORT) is None


def test_one_call_in_the_last_updates_is_a_call() -> None:
    calls = DEAD.call_ratio.copy()
    calls[-10] = 0.01
    found = collapse(replace(DEAD, call_ratio=calls), limits=SHORT)
    assert found is not None
    assert found.cause == "reward"


@pytest.mark.parametrize("cut", [0, 1, 9])
def test_nothing_is_decided_before_there_is_a_window(cut: int) -> None:
    dead = Curves(*(np.zeros(cut) for _ in range(4)))
    assert collapse(dead, limits=SHORT) is None


def test_no_calls_and_no_reward_names_the_modes_that_cannot_pay() -> None:
    found = collapse(DEAD, CallPrices(5_000_000, {"low": 1_000_000}), SHORT)
    assert found is not None
    assert found.cause == "no-calls"
    assert found.message == (
        "No episode called an expert in the last 10 updates, and the reward is 0: the budget of "
        "mode low ($0.001) is below the price of any call ($0.005). Raise it, or choose cheaper "
        "experts."
    )
    several = CallPrices(5_000_000, {"low": 1_000_000, "medium": 2_000_000, "high": 5_000_000})
    assert message(DEAD, several).endswith(
        "the budgets of modes low ($0.001) and medium ($0.002) are below the price of any call "
        "($0.005). Raise them, or choose cheaper experts. Mode high could pay, and did not call."
    )


def test_where_every_mode_could_pay_budgets_are_not_blamed() -> None:
    able = CallPrices(5_000_000, {"low": 5_000_000})
    assert "it called before, and gave that up" in message(DEAD, able)
    never = replace(DEAD, call_ratio=np.zeros(N))
    assert "it has never called. The prompt may forbid calls" in message(never, able)
    assert message(never) == message(never, able)


def test_kl_that_runs_away() -> None:
    found = collapse(replace(healthy(), kl=late(3.5, healthy().kl)), limits=SHORT)
    assert found is not None
    assert found.cause == "kl"
    assert "3.50 nats a token away from the reference" in found.message
    assert "Raise the KL coefficient" in found.message


def test_entropy_that_is_gone_together_with_reward() -> None:
    gone = replace(healthy(), entropy=late(0.0, healthy().entropy))
    assert collapse(gone, limits=SHORT) is None  # converged
    found = collapse(replace(gone, reward=late(0.2, gone.reward)), limits=SHORT)
    assert found is not None
    assert found.cause == "entropy"
    assert "The entropy fell to 0 nats a token" in found.message
    assert "the reward fell to 0.200 from" in found.message


def test_reward_that_fell_to_zero_although_experts_are_called() -> None:
    found = collapse(replace(healthy(), reward=late(0.0, np.full(N, 0.5))), limits=SHORT)
    assert found is not None
    assert found.cause == "reward"
    assert found.message.startswith("The reward fell to 0 from 0.500 at update 10, though experts")


def test_reward_that_never_rose() -> None:
    said = message(replace(healthy(), reward=np.full(N, -1.0)))
    assert said.startswith("The reward has been −1.00 or less from the first update.")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_told_at_once(value: float) -> None:
    curves = Curves(np.zeros(3), np.zeros(3), np.ones(3), np.array([0.1, value, 0.2]))
    found = collapse(curves)
    assert found is not None
    assert found.cause == "diverged"
    assert found.message.startswith(f"The KL divergence of update 2 is {value}")
