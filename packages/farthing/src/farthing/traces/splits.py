"""Who trains, who calibrates, who tests: copies of one question do the same.

Questions are drawn by chance from a seed and their ids alone: who draws again gets the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from farthing.errors import TooFewTracesError
from farthing.traces.arrays import SPLITS, BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.copies import CopyGroups, agreed_marks

SHARES = (60, 20, 20)
"""Percent of the questions to `train`, `calibrate` and `test` where nothing else is said."""


@dataclass(frozen=True)
class Parts:
    """One division of the questions, as row numbers in ascending order, without overlap."""

    train: IntArray
    calibrate: IntArray
    test: IntArray


@dataclass(frozen=True)
class Division:
    """A fixed training part, and a pool to draw calibration and test from, again and again."""

    train: IntArray
    """Rows to train on, in ascending order, with all copies."""
    rest: IntArray
    """Distinct questions to draw from, in ascending order; none of them is in `train`."""
    n_calibrate: int
    n_test: int
    together: CopyGroups
    """All complete questions."""
    incomplete: int = 0
    """Questions left out because rounds of them were never recorded."""

    @property
    def sizes(self) -> dict[str, int]:
        """Distinct questions in each part."""
        n_train = int(np.isin(self.together.distinct, self.train).sum())
        return dict(zip(SPLITS, (n_train, self.n_calibrate, self.n_test), strict=True))

    def redraw(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw distinct questions to calibrate and to test, without overlap."""
        drawn = rng.permutation(self.rest)[: self.n_calibrate + self.n_test]
        return np.sort(drawn[: self.n_calibrate]), np.sort(drawn[self.n_calibrate :])

    def __str__(self) -> str:
        sizes = ", ".join(f"{size:,} to {part}" for part, size in self.sizes.items())
        left_out = f"; {self.incomplete:,} incomplete left out" if self.incomplete else ""
        some = self.together.said
        return f"{sizes}{left_out}{f' ({some})' if some else ''}"


def divide(
    arrays: TraceArrays,
    rng: np.random.Generator,
    *,
    train: int | None = None,
    calibrate: int | None = None,
    test: int | None = None,
) -> Division:
    """Set a training part aside and say how large calibration and test are to be.

    Where the file marks a `train` part, that part trains and everything else is the rest; otherwise
    the training part is drawn from all questions. A size that is not given is its share, 60 / 20 /
    20, of what the given ones leave over. The same generator state gives the same training part.
    Questions with rounds that were never recorded are left out. Sizes count distinct questions: all
    copies of one go where it goes.

    Args:
        arrays: the questions.
        rng: the only source of randomness.
        train: how many questions are to train.
        calibrate: how many are to calibrate.
        test: how many are to test.
    """
    together = CopyGroups.of(arrays.content, np.flatnonzero(arrays.complete))
    complete = together.distinct
    marked = complete[agreed_marks(arrays.split, arrays.content)[complete] == SPLITS.index("train")]
    if marked.size:
        pool, rest = rng.permutation(marked), np.setdiff1d(complete, marked)
        n_train = marked.size if train is None else train
        _, n_calibrate, n_test = _share(rest.size, (0, calibrate, test))
    else:
        pool = rng.permutation(complete)
        n_train, n_calibrate, n_test = _share(complete.size, (train, calibrate, test))
        rest = np.sort(pool[max(n_train, 0) :])
    incomplete = len(arrays) - together.rows.size
    asked = (n_train, n_calibrate, n_test)
    if min(asked) < 1 or n_train > pool.size or n_calibrate + n_test > rest.size:
        parts = " and ".join(
            f"{size:,} to {part}" for part, size in zip(SPLITS, asked, strict=True)
        )
        own = f", {marked.size:,} of them marked to train" if marked.size else ""
        left_out = f" ({incomplete:,} incomplete left out)" if incomplete else ""
        there = together.said or f"{len(together.rows):,} complete questions"
        raise TooFewTracesError(
            f"asked for {parts}, at least 1 each; there are {there}{own}"
            f"{left_out}: ask for fewer or record more"
        )
    train_rows = together.all_of(pool[:n_train])
    return Division(train_rows, rest, n_calibrate, n_test, together, incomplete)


def named_parts(arrays: TraceArrays) -> Parts | None:
    """Return the complete questions of each part, where the file marks all three; else None."""
    split = np.where(arrays.complete, agreed_marks(arrays.split, arrays.content), -1)
    rows = [np.flatnonzero(split == part) for part in range(len(SPLITS))]
    return Parts(*rows) if all(part.size for part in rows) else None


def fixed_parts(
    arrays: TraceArrays,
    rng: np.random.Generator,
    *,
    train: int | None = None,
    calibrate: int | None = None,
    test: int | None = None,
) -> Parts:
    """Return one division for good: what `train`, `calibrate` and `evaluate` work on in turn.

    It is the file's own where that marks all three parts and no size is asked for; otherwise the
    training part of `divide` and one draw from its rest. The same generator state gives the same.
    """
    named = named_parts(arrays)
    if named is not None and train is None and calibrate is None and test is None:
        return named
    division = divide(arrays, rng, train=train, calibrate=calibrate, test=test)
    return Parts(division.train, *map(division.together.all_of, division.redraw(rng)))


def by_shares(
    arrays: TraceArrays, shares: Sequence[Fraction], rng: np.random.Generator
) -> list[IntArray]:
    """Return a part of the questions for each share of them, drawn at random; it may be empty.

    Questions that the file marks `train` are the first part, whatever its share, and nothing else
    is in it; the others share the rest in proportion. Where the file marks all three parts and
    three shares are asked for, the parts are the marked ones.

    Args:
        arrays: the questions.
        shares: of at most 1 in all.
        rng: the only source of randomness.

    Returns:
        Row numbers in ascending order, without overlap; shares are of distinct questions, whose
        copies go where they go.

    """
    split, together = (
        agreed_marks(arrays.split, arrays.content),
        CopyGroups.of(arrays.content, np.arange(len(arrays))),
    )
    marked = [np.flatnonzero(split == part) for part in range(len(SPLITS))]
    if len(shares) == len(SPLITS) and all(part.size for part in marked):
        return marked
    train, *_ = marked
    rest = np.setdiff1d(together.distinct, train)
    if train.size:
        shares = [share / (1 - shares[0]) for share in shares[1:]]
    ends = [int(sum(shares[: i + 1]) * len(rest)) for i in range(len(shares))]
    parts = np.split(rng.permutation(rest), ends)[: len(shares)]
    drawn = [together.all_of(part) for part in parts]
    return [train, *drawn] if train.size else drawn


def _share(total: int, asked: tuple[int | None, int | None, int | None]) -> list[int]:
    """Fill in the sizes that were not asked for; the last of them takes what rounding leaves.

    >>> _share(1169, (None, None, None)), _share(1169, (None, 200, 200)), _share(10, (0, None, 4))
    ([701, 234, 234], [769, 200, 200], [0, 6, 4])
    """
    left = max(total - sum(size for size in asked if size is not None), 0)
    weight = sum(share for share, size in zip(SHARES, asked, strict=True) if size is None)
    sizes = []
    for share, size in zip(SHARES, asked, strict=True):
        if size is None:
            size = left * share // weight  # noqa: PLW2901
            left, weight = left - size, weight - share
        sizes.append(size)
    return sizes


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
    return np.array([chance(purpose, name, seed) for name in ids.tolist()])


def chance(purpose: str, name: str, seed: int) -> float:
    """Return a number in [0, 1) for a question, uniform, and independent for each purpose.

    >>> round(chance("drawn", "q1", 0), 3), round(chance("order", "q1", 0), 3)
    (0.746, 0.698)
    """
    digest = sha256(f"{purpose}\x1f{seed}\x1f{name}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
