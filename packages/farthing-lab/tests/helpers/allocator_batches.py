"""Random batches, and their optimum by enumeration."""

from itertools import product

import numpy as np

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.allocators.base import ItemBatch


def random_batch(rng: np.random.Generator, n: int, k: int) -> ItemBatch:
    """Return values and costs of any kind, some of them equal, some options lacking."""
    high = int(rng.choice([3, 30, 10**6]))
    expected = rng.integers(0, high, (n, k))
    value = rng.random((n, k)) if rng.random() < 0.7 else rng.integers(0, 3, (n, k)) / 2
    offered = rng.random((n, k)) < 0.9
    offered[:, rng.integers(k)] = True
    return ItemBatch(value, expected, expected + rng.integers(0, high, (n, k)), offered)


def random_budget(rng: np.random.Generator, batch: ItemBatch) -> int:
    """Return a budget that pays for the cheapest options at least, and sometimes for all."""
    most = int(np.where(batch.offered, batch.expected_nano, 0).max(axis=1).sum())
    return int(rng.integers(batch.least_nano, most + 2))


def saturating(rng: np.random.Generator, n: int, k: int) -> ItemBatch:
    """Return options whose value rises ever more slowly with their cost, all costs alike."""
    shrink, most = rng.uniform(0.2, 0.9, (n, 1)), rng.uniform(0.2, 1.0, (n, 1))
    value = most * (1.0 - shrink ** np.arange(1, k + 1))
    cost = np.broadcast_to(100 * np.arange(1, k + 1), (n, k)).copy()
    return ItemBatch(value, cost, cost)


def models(rng: np.random.Generator, n: int, k: int) -> ItemBatch:
    """Return questions of unknown difficulty before models of rising skill and price."""
    usd = np.geomspace(1e-5, 6e-4, k)
    cost = np.ceil(1e9 * usd * rng.lognormal(0.0, 0.4, (n, k))).astype(np.int64)
    odds = np.linspace(-0.5, 2.0, k) - rng.normal(0, 2, (n, 1)) + rng.normal(0, 0.7, (n, k))
    return ItemBatch(1.0 / (1.0 + np.exp(-odds)), cost, 2 * cost)


def worths(batch: ItemBatch, budget: int, worth: FloatArray) -> list[float]:
    """Return what every assignment within the budget is worth, by enumeration."""
    return [
        float(sum(worth[i, k] for i, k in enumerate(options)))
        for options in product(range(batch.value.shape[1]), repeat=len(batch))
        if all(batch.offered[i, k] for i, k in enumerate(options))
        and sum(int(batch.expected_nano[i, k]) for i, k in enumerate(options)) <= budget
    ]
