"""Thinkers in verl: a custom reward, and advantage estimators under names of their own.

    VERL_USE_EXTERNAL_MODULES=farthing_lab.methods.thinkers.in_verl python -m verl.trainer.main_ppo
        algorithm.adv_estimator=farthing-length-penalty
        +algorithm.farthing_cap=4096
        reward.custom_reward_function.path=pkg://farthing.methods.thinkers.in_verl
        reward.custom_reward_function.name=graded

verl gives an estimator the rewards of tokens, which of them are the model's, and which responses
have the same prompt. So what a thinker may read is length, group, and whether it was right: at its
end, where the reward stands, or at any cut where an agent loop has put whether it would be right.
Thinkers that read the prompt's mode, the first token or a prior have no place here.

Written against verl 0.9: `register_adv_est` and `compute_advantage` of `trainer/ppo`. B responses,
T tokens.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing import plugins
from farthing.errors import InputError
from farthing_lab.methods.thinkers.base import Thinker, Thoughts, part_of
from farthing_lab.methods.thinkers.completions import NOBODY, unknown

if TYPE_CHECKING:
    from torch import Tensor

NAMES = ("right-alone", "length-penalty", "elastic", "brpo")
"""What reads no more than verl hands over."""
CAP = "farthing_cap"
"""Most tokens of a response, in the section `algorithm`: verl fills up to the longest alone."""


def graded(
    *, solution_str: str, ground_truth: str | Sequence[str], task: str = "gsm8k", **_: Any
) -> dict[str, float]:
    """Return whether a response is right, as verl's custom reward.

    `task` is a name of `farthing.tasks`, from `reward.custom_reward_function.reward_kwargs.task`.
    """
    gold = (ground_truth,) if isinstance(ground_truth, str) else tuple(ground_truth)
    right = float(plugins.load("tasks", task).grade(solution_str, gold))
    return {"score": right, "acc": right}


def advantages(
    thinker: Thinker,
    *,
    token_level_rewards: "Tensor",
    response_mask: "Tensor",
    index: Sequence[Any],
    config: Mapping[str, Any] | None = None,
    **_: Any,
) -> "tuple[Tensor, Tensor]":
    """Return the advantage of each token, twice: verl calls the second the returns.

    Args:
        thinker: one of `NAMES`.
        token_level_rewards: [B, T] 1 at the last token of a right response; at any other, whether
            the answer would be right if the thought were cut after it.
        response_mask: [B, T] 1 where the model wrote the token.
        index: [B] the prompt's id.
        config: verl's section `algorithm`; `farthing_cap` is L.

    Raises:
        InputError: there is no `farthing_cap`, or a reward is neither 0 nor 1.
    """
    import torch  # noqa: PLC0415 - an extra

    cap = int((config or {}).get(CAP, 0) or 0)
    if cap < 1:
        raise InputError(f"give +algorithm.{CAP}=N, the most tokens of a response")
    ours = response_mask.cpu().numpy() > 0
    reward = token_level_rewards.double().cpu().numpy()
    if not np.isin(reward[ours], (0.0, 1.0)).all():
        raise InputError("a reward is 0 or 1 here; give algorithm.use_kl_in_reward=False")
    length = np.minimum(ours.sum(axis=1), cap)
    places = (np.array(thinker.cuts) * cap).astype(np.int64)
    stops = np.minimum(ours.sum(axis=1)[:, None], places)
    kept = [row[mask] for row, mask in zip(reward, ours, strict=True)]
    right = np.array(
        [
            [row[stop - 1] if stop else 0.0 for stop in some]
            for row, some in zip(kept, stops.tolist(), strict=True)
        ]
    )
    group = np.unique([str(one) for one in index], return_inverse=True)[1]
    none = np.zeros(len(ours), np.int64)
    found = thinker.advantage(
        Thoughts(length, cap, right, group.astype(np.int64), none, none + NOBODY, unknown)
    )
    place = np.clip(ours.cumsum(axis=1) - 1, 0, cap)
    of_token = np.take_along_axis(found, part_of(thinker.cuts, cap)[place], axis=1) * ours
    given = torch.as_tensor(of_token).to(token_level_rewards)
    return given, given


def register(register_adv_est: Callable[[str], Callable[[Any], Any]]) -> None:
    """Give verl each thinker, as `farthing-NAME`, by its own decorator."""
    for name in NAMES:
        thinker = plugins.load("thinkers", name).make
        register_adv_est(f"farthing-{name}")(partial(advantages, thinker))


if "verl" in sys.modules:  # it imports this module, to have what it registers
    from verl.trainer.ppo.core_algos import register_adv_est

    register(register_adv_est)
