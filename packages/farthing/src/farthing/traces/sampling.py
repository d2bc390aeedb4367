"""Draw questions by chance, from a seed and their ids alone: who draws again gets the same."""

from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from farthing.traces.arrays import BoolArray, FloatArray, IntArray


def sample_ids(ids: NDArray[np.str_], seed: int, probability: float | FloatArray) -> BoolArray:
    """Return which questions are drawn, [n], each with the probability given, or with its own.

    >>> names = np.array([f"q{i}" for i in range(1_000)])
    >>> int(sample_ids(names, 0, 0.2).sum())
    195
    """
    found: BoolArray = _lots("drawn", ids, seed) < probability
    return found


def order(ids: NDArray[np.str_], seed: int) -> IntArray:
    """Return the questions in an order that chance alone makes, [n]."""
    found: IntArray = np.argsort(_lots("order", ids, seed), kind="stable")
    return found


def _lots(purpose: str, ids: NDArray[np.str_], seed: int) -> FloatArray:
    """Return a number in [0, 1) for each question, uniform and independent of all others."""
    return np.array([chance(purpose, name, seed) for name in ids.tolist()])


def chance(purpose: str, name: str, seed: int) -> float:
    """Return a number in [0, 1) for a question, uniform, and independent for each purpose.

    >>> round(chance("drawn", "q1", 0), 3), round(chance("order", "q1", 0), 3)
    (0.746, 0.698)
    """
    digest = sha256(f"{purpose}\x1f{seed}\x1f{name}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
