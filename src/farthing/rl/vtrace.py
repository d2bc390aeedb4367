"""V-trace: off-policy value targets (Espeholt et al. 2018; CCPO equation 4).

With gamma = 1, c_bar = rho_bar and value 0 after the last step of an episode.
"""

import numpy as np

from farthing.traces.arrays import BoolArray, FloatArray


def importance(target: FloatArray, behaviour: FloatArray, clip: float = np.inf) -> FloatArray:
    """Return the truncated importance weights min(clip, target / behaviour).

    >>> importance(np.array([0.5, 0.1]), np.array([0.1, 0.5]), clip=1.0)
    array([1. , 0.2])
    """
    return np.minimum(clip, target / behaviour)


def vtrace(
    rewards: FloatArray, values: FloatArray, rho: FloatArray, taken: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Compute V-trace targets and advantages of a batch of episodes.

    v_t = V_t + rho_t (r_t + V_{t+1} - V_t) + rho_t (v_{t+1} - V_{t+1}), and the advantage of
    IMPALA's policy gradient is r_t + v_{t+1} - V_t (equation 6).

    Args:
        rewards: [B, T] reward, cost or constraint value of each step.
        values: [B, T] the critic's V(o_t).
        rho: [B, T] importance weights, truncated as the caller sees fit.
        taken: [B, T] whether the step was taken; an episode is a prefix of its row.

    Returns:
        Targets and advantages, [B, T] each; 0 where no step was taken.
    """
    next_value = np.zeros(len(values))
    next_target = np.zeros(len(values))
    targets, advantages = np.zeros_like(values), np.zeros_like(values)
    for t in reversed(range(values.shape[1])):
        value = np.where(taken[:, t], values[:, t], 0.0)
        advantage = np.where(taken[:, t], rewards[:, t] + next_target - value, 0.0)
        delta = rho[:, t] * (rewards[:, t] + next_value - value)
        target = value + delta + rho[:, t] * (next_target - next_value)
        targets[:, t] = np.where(taken[:, t], target, 0.0)
        advantages[:, t] = advantage
        next_value, next_target = value, targets[:, t]
    return targets, advantages
