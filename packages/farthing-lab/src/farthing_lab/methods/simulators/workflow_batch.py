"""Executing a workflow many times at once, as array arithmetic.

The same process as `Workflow.step`, row by row: B executions go from event to event together. It
is here because a plan needs a thousand executions for each decision; a test holds it to the steps.

The usual way, which executions follow, gives each part an even share: of the money by the number of
parts not begun, of the time by the number of parts on the longest way to the end. Of the choices
that fit both on average it takes the one that is likeliest right. Where none fits it takes, of
those that can be paid, the fastest. That is ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.methods.planners.base import Remaining
from farthing_lab.methods.simulators.workflow_parts import (
    PartChoice,
    WorkflowPart,
    WorkflowState,
    ahead_of,
    drawn,
    still_running,
)

ROUNDS = 10_000
"""Events after which an execution has failed."""


@dataclass(frozen=True)
class _ChoiceFigures:
    """Of a part's choices, [K]."""

    largest: IntArray
    expected: IntArray
    seconds: FloatArray
    right: FloatArray
    order: IntArray
    """Likeliest right first; of equals the cheaper, then the faster."""


@lru_cache(maxsize=256)
def _figures(choices: tuple[PartChoice, ...]) -> _ChoiceFigures:
    largest = np.array([one.largest_nano for one in choices], dtype=np.int64)
    expected = np.array([one.expected_nano for one in choices], dtype=np.int64)
    seconds = np.array([one.mean_s for one in choices])
    right = np.array([one.any_right for one in choices])
    return _ChoiceFigures(
        largest, expected, seconds, right, np.lexsort((seconds, expected, -right))
    )


def even_share(
    choices: tuple[PartChoice, ...],
    left_nano: IntArray,
    left_s: FloatArray,
    parts: IntArray,
    ahead: int,
) -> IntArray:
    """Return which choice the usual way starts, [B]; -1 where none can be paid.

    Args:
        choices: of the part.
        left_nano: [B] money that is left.
        left_s: [B] time that is left.
        parts: [B] how many parts are not begun, with this one.
        ahead: parts on the longest way from this one to the end, with itself.
    """
    of = _figures(choices)
    payable = of.largest <= left_nano[:, None]
    fits = payable & (of.expected <= (left_nano // np.maximum(parts, 1))[:, None])
    fits &= of.seconds <= (left_s / ahead)[:, None]
    best = of.order[fits[:, of.order].argmax(axis=1)]
    fastest = np.where(payable, of.seconds, np.inf).argmin(axis=1)
    at: IntArray = np.where(fits.any(axis=1), best, fastest)
    return np.where(payable.any(axis=1), at, -1)


def usual_start(
    parts: tuple[WorkflowPart, ...], place: int, state: WorkflowState, left: Remaining
) -> int | None:
    """Return the choice that the usual way starts a part with; None where none can be paid."""
    at = even_share(
        parts[place].choices,
        np.array([left.nano]),
        np.array([left.seconds]),
        np.array([len(state.done) - sum(state.done) - len(state.under_way)]),
        ahead_of(parts)[place],
    )
    return None if at[0] < 0 else int(at[0])


class _Rows:
    def __init__(
        self, parts: tuple[WorkflowPart, ...], rows: int, state: WorkflowState, left: Remaining
    ) -> None:
        n = len(parts)
        self.parts, self.ahead = parts, ahead_of(parts)
        self.done: BoolArray = np.tile(np.array(state.done), (rows, 1))
        self.ends = np.full((rows, n), np.inf)
        self.right = np.zeros((rows, n), dtype=bool)
        self.back = np.zeros((rows, n), dtype=np.int64)
        self.nano = np.full(rows, left.nano, dtype=np.int64)
        self.clock = np.zeros(rows)
        self.deadline = left.seconds
        self.lost = np.zeros(rows, dtype=bool)

    def running(self, state: WorkflowState, n: int, ways: int, rng: np.random.Generator) -> None:
        """Draw how the parts that are under way will end, n times, the same for each way."""
        for one in state.under_way:
            choice = self.parts[one.part].choices[one.choice]
            found = still_running(choice, one.elapsed_s, n, rng)
            back = choice.largest_nano - found.cost_nano.astype(np.int64)
            self.ends[:, one.part] = np.tile(found.seconds - one.elapsed_s, ways)
            self.right[:, one.part] = np.tile(found.right > 0.0, ways)
            self.back[:, one.part] = np.tile(back, ways)

    def begin(self, rows: IntArray, place: int, at: int, uniform: FloatArray) -> None:
        """Start a part with a choice in some rows; uniform: [len(rows), K, 2]."""
        choice = self.parts[place].choices[at]
        found = drawn(choice, uniform)
        self.nano[rows] -= choice.largest_nano
        self.back[rows, place] = choice.largest_nano - found.cost_nano.astype(np.int64)
        self.ends[rows, place] = self.clock[rows] + found.seconds
        self.right[rows, place] = found.right > 0.0

    def usual(self, going: BoolArray, uniform: FloatArray) -> None:
        """Start all that is ready, in the rows that go on; uniform: [B, N, K, 2]."""
        for place, part in enumerate(self.parts):
            ready = going & ~self.done[:, place] & ~np.isfinite(self.ends[:, place])
            for before in part.after:
                ready &= self.done[:, before]
            rows = np.flatnonzero(ready)
            if not rows.size:
                continue
            begun = self.done[rows] | np.isfinite(self.ends[rows])
            at = even_share(
                part.choices,
                self.nano[rows],
                self.deadline - self.clock[rows],
                (~begun).sum(axis=1),
                self.ahead[place],
            )
            for one in np.unique(at[at >= 0]).tolist():
                chosen = rows[at == one]
                self.begin(chosen, place, one, uniform[chosen, place])

    def advance(self, going: BoolArray) -> None:
        """Go on to each row's next event; rows that wait for nothing have failed."""
        after = self.ends.min(axis=1)
        self.lost |= going & ~np.isfinite(after)
        going = going & np.isfinite(after)
        ended = going[:, None] & (self.ends <= after[:, None])
        self.clock = np.where(going, after, self.clock)
        self.lost |= self.clock > self.deadline
        self.done |= ended & self.right
        self.nano += np.where(ended, self.back, 0).sum(axis=1)
        self.ends = np.where(ended, np.inf, self.ends)

    @property
    def going(self) -> BoolArray:
        """[B] the rows that are neither done nor lost."""
        return ~self.lost & ~self.done.all(axis=1)


def follow(
    parts: tuple[WorkflowPart, ...],
    state: WorkflowState,
    first: Sequence[tuple[int, int] | None],
    left: Remaining,
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return whether n executions are done in time and budget that begin in each way, [A, n].

    Execution m of every way is drawn with the same random numbers, event by event. A way to begin
    is a part with a choice, or None to wait for the next event.
    """
    ways = len(first)
    rows = _Rows(parts, ways * n, state, left)
    most = max(choice.samples for part in parts for choice in part.choices)
    shape = n, len(parts), most, 2

    def uniform() -> FloatArray:
        return np.tile(rng.random(shape), (ways, 1, 1, 1))

    rows.running(state, n, ways, rng)
    numbers, waiting = uniform(), np.zeros(ways * n, dtype=bool)
    for at, begin in enumerate(first):
        block = np.arange(at * n, (at + 1) * n)
        if begin is None:
            waiting[block] = True
        else:
            rows.begin(block, *begin, numbers[block, begin[0]])
    rows.usual(rows.going & ~waiting, numbers)
    for _ in range(ROUNDS):
        rows.advance(rows.going)
        going = rows.going
        if not going.any():
            break
        rows.usual(going, uniform())
    finished: FloatArray = (rows.done.all(axis=1) & ~rows.lost).astype(np.float64)
    return finished.reshape(ways, n)
