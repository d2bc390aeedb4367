"""Tell whether a training has collapsed, and name the cause in plain words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from farthing.money import dollars, significant
from farthing.traces.arrays import FloatArray

Cause = Literal["diverged", "no-calls", "kl", "entropy", "reward"]


@dataclass(frozen=True)
class Curves:
    """What was logged of each update, [U] each, the latest last."""

    reward: FloatArray
    """Mean reward of the update's episodes."""
    call_ratio: FloatArray
    """Share of its episodes that called an expert, in [0, 1]."""
    entropy: FloatArray
    """Mean entropy of a controller token, in nats."""
    kl: FloatArray
    """Mean KL divergence of a controller token from the reference, in nats."""


@dataclass(frozen=True)
class CallPrices:
    """What calls cost and modes allow, so that a message can say whether they meet."""

    cheapest_call_nano: int
    """The least that a call costs, without the controller's writing, in nano-dollars."""
    budgets_nano: Mapping[str, int]
    """B of each mode that episodes are played in, in nano-dollars."""


@dataclass(frozen=True)
class CollapseLimits:
    """What counts as collapsed; all are ours."""

    updates: int = 20
    """Means are taken over the last so many updates; before that nothing is decided."""
    no_reward: float = 1e-3
    """A mean reward up to this counts as 0."""
    no_entropy: float = 1e-3
    """A mean entropy up to this counts as 0, in nats a token."""
    kept: float = 0.9
    """Without entropy, a reward above this share of its best is convergence, not collapse."""
    kl: float = 1.0
    """A mean KL divergence above this has run away, in nats a token."""


@dataclass(frozen=True)
class Collapse:
    """Why a training should stop."""

    cause: Cause
    message: str
    """What was seen, why it happens, and what to change."""


def collapse(
    curves: Curves, prices: CallPrices | None = None, limits: CollapseLimits | None = None
) -> Collapse | None:
    """Return why the training has collapsed, or None while it has not.

    In this order, over the last N updates:

    1. *diverged*: a logged number is not finite;
    2. *no-calls*: the reward is 0 and no episode called an expert; where budgets lie below the
       price of any call, they are named;
    3. *kl*: the divergence from the reference is above its limit;
    4. *entropy*: the entropy is 0, and the reward is below what it once was. A policy that has lost
       its entropy and kept its reward has converged;
    5. *reward*: the reward is 0, whether it fell to that or never rose.

    Prices are for the message; None: not known.

    >>> dead = np.zeros(20)
    >>> seen = Curves(reward=dead, call_ratio=dead, entropy=dead + 1, kl=dead)
    >>> print(collapse(seen, CallPrices(5_000_000, {"low": 1_000_000})).message)
    No episode called an expert in the last 20 updates, and the reward is 0: the budget of mode \
low ($0.001) is below the price of any call ($0.005). Raise it, or choose cheaper experts.
    >>> collapse(Curves(reward=dead + 0.5, call_ratio=dead, entropy=dead + 1, kl=dead)) is None
    True
    """
    limits = limits or CollapseLimits()
    series = {
        "reward": curves.reward,
        "call ratio": curves.call_ratio,
        "entropy": curves.entropy,
        "KL divergence": curves.kl,
    }
    for name, values in series.items():
        if not np.isfinite(values).all():
            update = int(np.isfinite(values).argmin()) + 1
            return Collapse(
                "diverged",
                f"The {name} of update {update} is {values[update - 1]}: the training has diverged."
                " Go back to an earlier checkpoint with a lower learning rate.",
            )
    n = limits.updates
    if len(curves.reward) < n:
        return None
    means = np.lib.stride_tricks.sliding_window_view(curves.reward, n).mean(axis=1)
    reward, most = float(means[-1]), float(means.max())
    kl, entropy = float(curves.kl[-n:].mean()), float(curves.entropy[-n:].mean())
    nothing = reward <= limits.no_reward
    fall = (
        f"the reward fell to {_number(reward)} from {_number(most)} at update "
        f"{int(means.argmax()) + n}"
    )
    cause: Cause
    if nothing and not curves.call_ratio[-n:].any():
        cause, message = (
            "no-calls",
            (
                f"No episode called an expert in the last {n} updates, and the reward is "
                f"{_number(reward)}: {_why_no_calls(bool(curves.call_ratio.any()), prices)}"
            ),
        )
    elif kl > limits.kl:
        cause, message = (
            "kl",
            (
                f"The policy is {_number(kl)} nats a token away from the reference, over the last "
                f"{n} updates; the limit is {_number(limits.kl)}. "
                "Raise the KL coefficient, or lower the learning rate."
            ),
        )
    elif entropy <= limits.no_entropy and (nothing or reward < limits.kept * most):
        cause, message = (
            "entropy",
            (
                f"The entropy fell to {_number(entropy)} nats a token, so that nothing new is "
                f"tried, and {fall}. Raise the entropy coefficient, or lower the learning rate."
            ),
        )
    elif nothing and most > limits.no_reward:
        cause, message = (
            "reward",
            (
                f"{fall[0].upper()}{fall[1:]}, though experts are called. "
                "Go back to the checkpoint of that time, with a lower learning rate."
            ),
        )
    elif nothing:
        cause, message = (
            "reward",
            (
                f"The reward has been {_number(reward)} or less from the first update. "
                "Raise the budgets, ask easier questions, or improve the warm start."
            ),
        )
    else:
        return None
    return Collapse(cause, message)


def _why_no_calls(called_before: bool, prices: CallPrices | None) -> str:  # noqa: FBT001
    budgets, price = (prices.budgets_nano, prices.cheapest_call_nano) if prices else ({}, 0)
    low = [f"{mode} ({dollars(budget)})" for mode, budget in budgets.items() if budget < price]
    able = [mode for mode, budget in budgets.items() if budget >= price]
    below = f"below the price of any call ({dollars(price)})"
    rest = f" Mode {' and '.join(able)} could pay, and did not call." if able else ""
    if len(low) > 1:
        return (
            f"the budgets of modes {' and '.join(low)} are {below}. "
            f"Raise them, or choose cheaper experts.{rest}"
        )
    if low:
        return f"the budget of mode {low[0]} is {below}. Raise it, or choose cheaper experts.{rest}"
    if called_before:
        return (
            "it called before, and gave that up. What calls cost may take the reward of right "
            "answers away: raise the budgets, or the entropy coefficient."
        )
    return (
        "it has never called. The prompt may forbid calls, or the warm start may have shown none: "
        "state budget and prices in the prompt, and show some calls first."
    )


def _number(value: float) -> str:
    sign = "−" if value < 0 else ""
    return f"{sign}{significant(abs(value))}"
