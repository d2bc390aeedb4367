"""What each question does: in a recommendation, and at each step of work on one bundle."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.errors import InputError, TooFewTracesError
from farthing.promises.base import Promise
from farthing.traces.arrays import NO_SPLIT, SPLITS, IntArray, TraceArrays
from farthing.traces.copies import Content, CopyGroups, agreed_marks, n_distinct
from farthing.traces.splits import Parts, fixed_parts
from farthing.traces.system import as_asked, roles_asked

TRAIN, MOST_TRAIN = 0.3, 300
"""Share of the questions that train at first, and the most of them."""
REPORT, MOST_REPORT = 0.2, 500
"""Share of the others that only measure, where some have to choose, and the most of them."""
CHOOSE, MOST_CHOOSE = 0.3, 400
"""Share of the rest that chooses, where some have to; what is left proves."""
MANY, HELD_OUT = 2_000, 0.1
"""Where none has to choose: questions from which a share only measures, at most `MOST_REPORT`;
with fewer, figures are of questions that also proved."""
MORE_TRAIN, MOST_OF_ALL = 0.3, 1_500
"""Share of the questions outside training that may train as well where there are `MANY` of them,
and the most that train in all."""
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


@dataclass(frozen=True)
class Roles:
    """What some questions have to do beside training and proving."""

    choose: bool = True
    """Whether some choose among methods. A proof of several candidates needs none."""
    measure: bool = True
    """Whether some only measure whatever their number, as intervals of those that prove are not
    known; where some choose, some measure."""
    holdout: int | None = None
    """How many distinct questions only measure; None: a share of them."""


def split_four_ways(traces: TraceArrays, seed: int, roles: Roles = Roles()) -> FourWaySplit:
    """Decide what each complete question does.

    Questions that the file marks to train do nothing else, as they may be unlike the others. Where
    it marks all three parts, those to calibrate choose and prove, those to test measure, and what
    it does not mark does nothing. Copies of one question do the same; sizes are of distinct ones.

    Args:
        traces: the questions.
        seed: of the division.
        roles: what some have to do beside training and proving.
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
        if roles.holdout is not None:
            raise InputError(
                f"the file marks {len(own[2]):,} questions to test, which are those that only "
                "measure; leave the holdout out, or the marks"
            )
        _, rest, report = own
    else:
        report, rest = np.split(rest, [_measuring(len(order), rest, roles)])
    chosen = _share(rest, CHOOSE, MOST_CHOOSE) if roles.choose else 0
    choose, prove = np.split(rest, [chosen])
    found = FourWaySplit(*(together.all_of(part) for part in (train, choose, prove, report)))
    distinct = found.distinct(traces.content)
    needed = {name for name, size in distinct.items() if size} | {"train", "prove"}
    if min(distinct[name] for name in needed) < FEWEST:
        sizes = ", ".join(f"{distinct[name]:,} to {name}" for name in distinct if name in needed)
        raise TooFewTracesError(
            f"what the file marks leaves {sizes}, and {FEWEST} of each are the least; mark fewer "
            "or record more"
        )
    return found


def _measuring(n: int, rest: IntArray, roles: Roles) -> int:
    """Return how many of the questions outside training only measure, of n in all."""
    holdout = roles.holdout
    if holdout is not None:
        if not holdout and (roles.choose or roles.measure):
            raise InputError(
                "figures of such a promise, or of questions drawn with different probabilities, "
                "are of questions that only measure; hold out "
                f"{FEWEST} or more, or leave holdout out"
            )
        if holdout and not FEWEST <= holdout <= len(rest) - FEWEST:
            raise InputError(
                f"{holdout:,} questions are to be held out of {len(rest):,} that do not train; "
                f"hold out 0, or from {FEWEST} to {max(len(rest) - FEWEST, FEWEST):,}"
            )
        return holdout
    if roles.choose or (roles.measure and n < MANY):
        return _share(rest, REPORT, MOST_REPORT)
    return min(int(HELD_OUT * n), MOST_REPORT) if n >= MANY else 0


def more_training(parts: FourWaySplit, traces: TraceArrays, seed: int) -> FourWaySplit | None:
    """Let as many proving questions train as do already; None where no more may.

    What the file marks to calibrate goes on proving. Copies of one question move together.
    """
    marks = agreed_marks(traces.split, traces.content)
    free = CopyGroups.of(traces.content, parts.prove[marks[parts.prove] == NO_SPLIT])
    trained, proving = (n_distinct(traces.content[rows]) for rows in (parts.train, parts.prove))
    most = min(MOST_OF_ALL, MOST_TRAIN + int(MORE_TRAIN * (trained + proving - MOST_TRAIN)))
    more = min(trained, most - trained, len(free.distinct))
    if trained + proving - MOST_TRAIN < MANY or more < FEWEST:
        return None
    moved = np.random.default_rng([seed, trained]).permutation(free.distinct)[:more]
    rows = free.all_of(moved)
    train, prove = np.union1d(parts.train, rows), np.setdiff1d(parts.prove, rows)
    return replace(parts, train=train, prove=prove)


def _share(rows: IntArray, share: float, most: int) -> int:
    return max(FEWEST, min(int(share * len(rows)), most))


def complete_questions(traces: TraceArrays, does: str) -> CopyGroups:
    """Return the complete questions, of which copies stay together, or refuse so few.

    A question that nobody could answer is one of them: that it cannot be answered is known.
    """
    complete = CopyGroups.of(traces.content, np.flatnonzero(traces.complete))
    if len(complete.distinct) < LEAST:
        some = complete.said or f"{len(complete.rows):,} complete questions"
        raise TooFewTracesError(
            f"there are {some}, and {LEAST} are the least that can {does}; record more"
        )
    return complete


@dataclass(frozen=True)
class Split:
    """How questions are divided: the same at every step, so that none is used twice."""

    seed: int = 0
    """Of the division, of the training, and of whatever a step draws."""
    sizes: Sizes = field(default_factory=dict)


DEFAULT = Split()


def split_bundle_questions(arrays: TraceArrays, split: Split) -> Parts:
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
