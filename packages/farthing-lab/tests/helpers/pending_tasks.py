"""Random tasks that change when they are worked on, few enough to be solved together."""

from itertools import product

import numpy as np

from farthing_lab.methods.allocators.sequoia import PendingTasks


def random_tasks(seed: int, n: int = 3, rounds: int = 4) -> PendingTasks:
    """Return tasks of three states: to wait may lose ground, to work may gain it, at two prices."""
    rng = np.random.default_rng(seed)
    chance = np.zeros((n, 3, 3, 3))
    for task, state, action in product(range(n), range(3), range(3)):
        up = (0.0, 0.35, 0.7)[action] * rng.uniform(0.5, 1.3)
        down = (0.15, 0.05, 0.0)[action] * rng.uniform(0.0, 1.0)
        chance[task, state, action, min(2, state + 1)] += up
        chance[task, state, action, max(0, state - 1)] += down
        chance[task, state, action, state] += 1.0 - up - down
    worth = np.sort(rng.random((n, 3)), axis=1) * rng.uniform(0.3, 1.0, size=(n, 1))
    worth[:, 1] = worth[:, 0]  # half done is worth nothing more
    cost = np.stack([np.zeros(n), rng.integers(1, 4, n), rng.integers(4, 8, n)], 1).astype(np.int64)
    return PendingTasks(chance, cost, worth, 7, rounds)
