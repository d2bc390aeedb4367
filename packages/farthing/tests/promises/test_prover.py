"""Proving on many splits, by counts of losses and wins, proves what one exact proof does."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.promises.base import Promise
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.budget import Budget
from farthing.promises.kinds.parity import Parity
from farthing.promises.kinds.selective import Selective
from farthing.promises.observed import Facts, PlayedPoints

ABOUT: Any = {"fingerprint": "", "question_budget_nano": None}


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        Parity("large", "0.05", "0.1"),
        Parity("large", "0.1", "0.3", share=Fraction(1, 2)),
        Parity("large", "-0.02", "0.2"),
        Parity("large", "0", "0.2"),
        Agreement("large", "0.2", "0.1"),
        Agreement("large", "0.3", "0.2", share=Fraction(1, 3)),
        Selective("0.8", "0.2"),
        Budget("0.00000008", "0.0000001", "0.2"),
    ],
    ids=str,
)
@given(
    n=st.integers(1, 80),
    often=st.lists(st.floats(0.5, 1), min_size=1, max_size=5),
    seed=st.integers(0, 2**32 - 1),
    alone=st.booleans(),
)
@settings(deadline=None, max_examples=40)
def test_many_splits_prove_what_one_proof_does(
    asked: Promise, n: int, often: list[float], seed: int, alone: bool
) -> None:
    rng = np.random.default_rng(seed)
    shape = (2 * n, len(often))
    points = PlayedPoints(
        correct=rng.random(shape) < np.sort(often),
        answered=np.ones(shape, dtype=bool),
        covered=rng.random(shape) < np.sort(often),
        cost_nano=np.cumsum(rng.integers(1, 20, shape), axis=1),
    )
    paid = rng.integers(20, 60, 2 * n) if alone else None
    known = Facts("large", rng.random(2 * n) < 0.9, paid)
    proved = asked.prover(points, known, n)
    for _ in range(3):
        rows = rng.permutation(2 * n)[:n]
        assert known.right is not None
        here = Facts("large", known.right[rows], None if paid is None else paid[rows])
        if isinstance(asked, Selective):  # in a comparison cost decides nothing
            here = Facts()
        only = PlayedPoints(points.correct[rows], points.answered[rows], points.covered[rows])
        some = only if isinstance(asked, Selective) else points.take(rows)
        certificate = asked.prove(asked.evidence(some, here), **ABOUT)
        assert proved(rows) == certificate.promise.point  # type: ignore[attr-defined]
