"""Three arms of known chances, and the best mixture of them."""

import numpy as np

from farthing_lab.methods.allocators.lagrangian import optimum
from farthing_lab.methods.bandits.base import Arm

ARMS = (Arm("small", 100, 200), Arm("medium", 300, 600), Arm("large", 2_000, 4_000))
MEANS = np.array([0.5, 0.7, 0.9])


def best_mixture(budget: int, n: int) -> float:
    """The linear program's value a question: the hindsight of n questions that are all alike."""
    cost = np.array([[arm.expected_nano for arm in ARMS]], dtype=float)
    return optimum(MEANS[None], cost, budget / n)
