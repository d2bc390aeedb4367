"""A learner trains on one core, whatever the machine has and whatever was imported since."""

import sys
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from made_up_pool import pool
from threadpoolctl import threadpool_info, threadpool_limits

from farthing.methods.base import Fitted, Progress, Silent
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.recommendation.fitting import fit
from farthing.traces.arrays import TraceArrays


def threads() -> list[int]:
    """Return how many threads each library of this process may use."""
    return [library["num_threads"] for library in threadpool_info()]


class Counting:
    """Notes how many threads there are while it is trained."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        self.seen += threads()
        return Fitted(FixedDepthPolicy(1))


def test_each_training_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the second one, and one after an import; afterwards all is as it was."""
    assert np.ones((2, 2)).dot(np.ones(2)).tolist() == [2, 2]  # loads a library with threads
    learner = Counting()
    with threadpool_limits(limits=2):
        before = threads()
        assert max(before) == 2
        for name in ("first", "second"):
            fit(learner, pool(20), Fraction(1, 10), 0, Silent())
            fit(learner, pool(20), Fraction(1, 10), 0, Silent())
            monkeypatch.setitem(sys.modules, f"farthing_test_{name}", ModuleType(name))
        assert threads() == before
    assert set(learner.seen) == {1}
    assert len(learner.seen) == 4 * len(before)
