"""What each question of a recommendation does: it trains, chooses, proves or measures."""

import numpy as np

from farthing.errors import TooFewTracesError
from farthing.recommendation.record import FourWaySplit
from farthing.traces.arrays import NO_ANSWER, SPLITS, BoolArray, IntArray, TraceArrays
from farthing.traces.copies import Together, agreed_marks
from farthing.traces.pool import is_pool

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


def split_four_ways(traces: TraceArrays, seed: int) -> FourWaySplit:
    """Decide what each complete question does.

    Questions that the file marks to train do nothing else, as they may be unlike the others. Where
    it marks all three parts, those to calibrate choose and prove, those to test measure, and what
    it does not mark does nothing. Copies of one question do the same; sizes are of distinct ones.

    Raises:
        TooFewTracesError: there are fewer than forty complete questions, or the marks leave too few
            for one of these.
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


def complete_questions(traces: TraceArrays, does: str) -> Together:
    """Return the complete questions, of which copies stay together, or refuse so few."""
    found = traces.complete
    if is_pool(traces):  # where all failed nobody can be compared
        found = found & _answered(traces)
    complete = Together.of(traces.content, np.flatnonzero(found))
    if len(complete.distinct) < LEAST:
        some = complete.said or f"{len(complete.rows):,} complete questions"
        raise TooFewTracesError(
            f"there are {some}, and {LEAST} are the least that can {does}; record more"
        )
    return complete


def _answered(pool: TraceArrays) -> BoolArray:
    found: BoolArray = np.any(pool.answer != NO_ANSWER, axis=(1, 2))
    return found
