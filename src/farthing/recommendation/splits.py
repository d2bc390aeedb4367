"""What each question does: in a recommendation, and at each step of work on one bundle."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.errors import InputError, TooFewTracesError
from farthing.promises.base import Promise
from farthing.traces.arrays import NO_ANSWER, SPLITS, BoolArray, IntArray, TraceArrays
from farthing.traces.copies import Content, CopyGroups, agreed_marks, n_distinct
from farthing.traces.origin import as_asked, roles_asked
from farthing.traces.pool import is_pool
from farthing.traces.splits import Divisible, Parts, fixed_parts

TRAIN, MOST_TRAIN = 0.3, 300
"""Share of the questions that train, and the most of them: learning curves are flat from there."""
REPORT, MOST_REPORT = 0.2, 500
"""Share of the others that only measure, and the most of them."""
CHOOSE, MOST_CHOOSE = 0.3, 400
"""Share of the rest that chooses; what is left proves."""
LEAST = 40
"""Questions below which nothing can be recommended."""
FEWEST = 5
"""Questions below which none of the parts does what it is for."""

Sizes = Mapping[str, int | None]
"""Questions to `train`, `calibrate` and `test`; what is not given is its share."""


@dataclass(frozen=True)
class FourWaySplit:
    """What each question does, as row numbers in ascending order, without overlap."""

    train: IntArray
    choose: IntArray
    prove: IntArray
    report: IntArray

    def distinct(self, content: Content) -> dict[str, int]:
        """Return the number of distinct questions in each part."""
        return {name: n_distinct(content[rows]) for name, rows in vars(self).items()}

    def among(self, rows: IntArray) -> "FourWaySplit":
        """Return what of each part is among some questions."""
        return FourWaySplit(*(np.intersect1d(part, rows) for part in vars(self).values()))


def split_four_ways(traces: TraceArrays, seed: int) -> FourWaySplit:
    """Decide what each complete question does.

    Questions that the file marks to train do nothing else, as they may be unlike the others. Where
    it marks all three parts, those to calibrate choose and prove, those to test measure, and what
    it does not mark does nothing. Copies of one question do the same; sizes are of distinct ones.
    """
    together = complete_questions(traces, "train, choose, prove and measure")
    order = np.random.default_rng(seed).permutation(together.distinct)
    split = agreed_marks(traces.split, traces.content)[order]
    own = [order[split == place] for place in range(len(SPLITS))]
    train = own[0]
    rest = order[split != 0]
    if not train.size:
        train, rest = np.split(order, [min(int(TRAIN * len(order)), MOST_TRAIN)])
    if all(part.size for part in own):
        _, rest, report = own
    else:
        report, rest = np.split(rest, [_share(rest, REPORT, MOST_REPORT)])
    choose, prove = np.split(rest, [_share(rest, CHOOSE, MOST_CHOOSE)])
    found = FourWaySplit(*(together.all_of(part) for part in (train, choose, prove, report)))
    distinct = found.distinct(traces.content)
    if min(distinct.values()) < FEWEST:
        sizes = ", ".join(f"{size:,} to {name}" for name, size in distinct.items())
        raise TooFewTracesError(
            f"what the file marks leaves {sizes}, and {FEWEST} of each are the least; mark fewer "
            "or record more"
        )
    return found


def _share(rows: IntArray, share: float, most: int) -> int:
    return max(FEWEST, min(int(share * len(rows)), most))


def complete_questions(traces: TraceArrays, does: str) -> CopyGroups:
    """Return the complete questions, of which copies stay together, or refuse so few."""
    found = traces.complete
    if is_pool(traces):  # where all failed nobody can be compared
        found = found & _answered(traces)
    complete = CopyGroups.of(traces.content, np.flatnonzero(found))
    if len(complete.distinct) < LEAST:
        some = complete.said or f"{len(complete.rows):,} complete questions"
        raise TooFewTracesError(
            f"there are {some}, and {LEAST} are the least that can {does}; record more"
        )
    return complete


def _answered(pool: TraceArrays) -> BoolArray:
    found: BoolArray = np.any(pool.answer != NO_ANSWER, axis=(1, 2))
    return found


@dataclass(frozen=True)
class Split:
    """How questions are divided: the same at every step, so that none is used twice."""

    seed: int = 0
    """Of the division, of the training, and of whatever a step draws."""
    sizes: Sizes = field(default_factory=dict)


DEFAULT = Split()


def split_bundle_questions(arrays: Divisible, split: Split) -> Parts:
    """Return the parts that every step works on."""
    return fixed_parts(arrays, np.random.default_rng(split.seed), **split.sizes)


def sizes_of(parts: Parts) -> dict[str, int]:
    """Return how many questions each part has."""
    return {"train": len(parts.train), "calibrate": len(parts.calibrate), "test": len(parts.test)}


def open_bundle(
    folder: str | Path, traces: TraceArrays, split: Split
) -> tuple[Bundle, TraceArrays, Parts]:
    """Load a bundle and lay the traces out for it."""
    bundle = bundles.load(folder)
    arrays = as_played(folder, bundle, traces)
    return bundle, arrays, split_bundle_questions(arrays, split)


def as_played(folder: str | Path, bundle: Bundle, traces: TraceArrays) -> TraceArrays:
    """Return traces as the bundle plays them; raise InputError where it cannot."""
    arrays = as_asked(traces, bundle.origin)
    check_kind(folder, bundle, arrays)
    return arrays


def models_of(bundle: Bundle, asked: Promise | None, traces: TraceArrays) -> tuple[str, ...]:
    """Return the roles that a proof about a bundle needs: whom it may ask; last, the reference."""
    asks = roles_asked(traces, bundle.origin)
    named = None if asked is None else asked.reference or asked.passes_to
    reference = named or bundle.origin.reference
    if reference not in traces.roles:
        return asks
    return (*(role for role in asks if role != reference), reference)


def check_kind(folder: str | Path, bundle: Bundle, arrays: TraceArrays) -> None:
    """Refuse traces, as they are played, of other roles or rounds than a bundle's."""
    theirs, ours = bundle.origin, (arrays.roles, arrays.horizon)
    if (theirs.roles, theirs.horizon) != ours:
        raise InputError(
            f"{folder}: the policy was trained for {_kind(theirs.roles, theirs.horizon)}, these "
            f"traces have {_kind(*ours)}; use traces of the same kind, or train on these"
        )


def _kind(roles: tuple[str, ...], horizon: int) -> str:
    return f"{horizon} rounds of {' and '.join(roles)}"
