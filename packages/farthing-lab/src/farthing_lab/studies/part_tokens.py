"""A task in parts, one number of tokens: the cap on what a model may write for each part.

Recorded replies say how long each is. Under a cap, one that is longer is cut off: it takes the cap,
and counts as wrong. Each part goes to the model that is right there most often without a cap. Half
of the recorded tasks choose, the other half measures.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.errors import InputError
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.methods.allocators.base import ItemBatch
from farthing_lab.methods.allocators.lagrangian import LAGRANGIAN
from farthing_lab.methods.allocators.plan_and_budget import (
    SCHEDULES,
    curve,
    efficiency,
    scheduled,
    shares,
    whole,
)
from farthing_lab.studies.part_samples import Ids, PipelinePart, in_rows, logarithmic, shared_ids

EVENLY, CURVES = "even shares", "Plan-and-Budget, by curves"
CREDIT, PACKED = "Plan-and-Budget, by credit", "knapsack on caps"


@dataclass(frozen=True)
class Capped:
    """One way to share the tokens."""

    name: str
    cap: IntArray
    """[m]; together what was given."""
    tokens: float
    """That a task really takes, on average; as the next two of tasks that chose nothing."""
    right: float
    half_interval: float

    @property
    def e3(self) -> float:
        return efficiency(self.right, self.tokens)


@dataclass(frozen=True)
class Caps:
    """All ways, the last one without any cap."""

    parts: tuple[str, ...]
    models: tuple[str, ...]
    """Who does each part."""
    tokens: int
    rows: tuple[Capped, ...]
    tasks: int
    """Measured on."""


@dataclass(frozen=True)
class CappedReplies:
    """Recorded replies to one part, n tasks and K replies each."""

    right: BoolArray
    """[n, K]"""
    length: IntArray
    """[n, K] tokens."""

    def under(self, cap: int) -> tuple[FloatArray, FloatArray]:
        """Return the share of replies that are right under a cap, and what they take, [n] each.

        >>> one = CappedReplies(np.array([[True, True]]), np.array([[3, 9]]))
        >>> one.under(5)
        (array([0.5]), array([4.]))
        """
        kept = self.right & (self.length <= cap)
        return kept.mean(axis=1), np.minimum(self.length, cap).mean(axis=1)

    def take(self, rows: IntArray) -> "CappedReplies":
        return CappedReplies(self.right[rows], self.length[rows])

    def chances(self, caps: IntArray) -> FloatArray:
        """Return the share of replies that are right under each cap, [len(caps)]."""
        return np.array([float(self.under(one)[0].mean()) for one in caps.tolist()])


def cap(parts: Sequence[PipelinePart], tokens: int, *, seed: int = 0) -> Caps:
    """Share tokens among the parts of a task in several ways."""
    ids = shared_ids(parts)
    if not ids.size:
        raise InputError("the parts' traces have different ids; give each task one id in all files")
    if tokens < len(parts):
        raise InputError(f"{tokens} tokens are fewer than one for each of {len(parts)} parts")
    order = np.random.default_rng(seed).permutation(len(ids))
    learned, measured = order[: (len(order) + 1) // 2], order[(len(order) + 1) // 2 :]
    names, ours, others = [], [], []
    for part in parts:
        every = {name: _replies(part, name, ids) for name in part.models}
        best = max(every, key=lambda name: float(every[name].right[learned].mean()))
        names.append(best)
        ours.append(every[best].take(learned))
        others.append(every[best].take(measured))
    credit = np.array([part.credit for part in parts])
    ways = shared(ours, credit, tokens)
    ways["no cap"] = np.array([int(one.length.max()) for one in others])
    rows = tuple(_row(name, caps, others) for name, caps in ways.items())
    return Caps(tuple(part.name for part in parts), tuple(names), tokens, rows, len(measured))


def shared(ours: Sequence[CappedReplies], credit: FloatArray, tokens: int) -> dict[str, IntArray]:
    """Return the caps of each way, [m] each, which add up to the tokens exactly."""
    m, most = len(ours), float(tokens)
    lengths = [part.length[part.length <= tokens - m + 1] for part in ours]
    grids = [np.unique(np.append(length, 1)) for length in lengths]  # where anything changes
    chances = [one.chances(grid) for one, grid in zip(ours, grids, strict=True)]
    fits = [curve(grid.astype(float), got) for grid, got in zip(grids, chances, strict=True)]
    c, beta = np.array(fits).T
    found = {
        EVENLY: whole(np.full(m, most / m), tokens),
        CURVES: whole(shares(c, beta, most, 1.0), tokens),
        CREDIT: whole(shares(credit, np.ones(m), most, 1.0), tokens),
    }
    for name in SCHEDULES:
        found[f"{name} decay"] = whole(most * scheduled(name, credit), tokens)
    width = max(map(len, grids))
    cost, value = np.zeros((m, width), dtype=np.int64), np.zeros((m, width))
    for i, (grid, got) in enumerate(zip(grids, chances, strict=True)):
        cost[i, : len(grid)], value[i, : len(grid)] = grid, got
    batch = logarithmic(ItemBatch(value, cost, cost, cost > 0))
    choice = LAGRANGIAN.allocate(batch, tokens).choice
    caps = cost[np.arange(m), choice]
    found[PACKED] = caps + whole(np.full(m, (tokens - caps.sum()) / m), int(tokens - caps.sum()))
    return found


def _replies(part: PipelinePart, model: str, ids: Ids) -> CappedReplies:
    arrays = in_rows(part, model, ids)
    length = arrays.signals.get("output_tokens")
    if length is None or np.isnan(length[:, :, 0]).any():
        raise InputError(f"{part.name}, {model}: no lengths; record `output_tokens` of each reply")
    return CappedReplies(arrays.correct[:, :, 0], length[:, :, 0].astype(np.int64))


def _row(name: str, caps: IntArray, others: Sequence[CappedReplies]) -> Capped:
    each = [one.under(most) for one, most in zip(others, caps.tolist(), strict=True)]
    right = np.prod([one for one, _ in each], axis=0)
    taken = float(sum(lengths.mean() for _, lengths in each))
    half = 1.96 * float(right.std(ddof=1)) / len(right) ** 0.5
    return Capped(name, caps, taken, float(right.mean()), half)
