"""Pool methods side by side: the same training questions, calibration draws and test questions.

Each keeps the promise by the cheapest operating point that calibration proves; where it proves none
it falls back to what needs no proof, and pays for that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from farthing.methods.base import Learner, load
from farthing.methods.cards import cards
from farthing.methods.pool import SETTINGS, tables
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.promises.levels import Level, exact_level, exact_margin
from farthing.promises.paired import Paired, parity_point
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

PER_THOUSAND = 1e-6
"""Nano-dollars a question as dollars per 1,000 questions."""
NEVER = 2**62
"""A price that nothing is worth."""


def methods_of(strong: str | None) -> Mapping[str, Learner]:
    """Return the learner of every pool method, by the label of its card.

    Args:
        strong: the model that rows of models end in, where a method leaves that open; None: each
            picks its own.
    """
    found = {card.label: load(card.learner) for card in cards() if card.space == "pool"}
    return {label: _ending_in(learner, strong) for label, learner in found.items()}


def _ending_in(learner: Any, strong: str | None) -> Any:
    return replace(learner, strong=strong) if hasattr(learner, "strong") else learner


@dataclass(frozen=True)
class Outcome:
    """What one method did on one split."""

    cost: float
    """Dollars per 1,000 test questions."""
    margin: float
    """What was promised, as realised on the test questions, above what was asked for."""
    fell_back: bool
    """Whether nothing was proved."""


@dataclass(frozen=True)
class Fallback:
    """What needs no proof."""

    cost_nano: IntArray
    """[n]"""
    right: BoolArray
    """[n]"""


def reference_model(traces: TraceArrays, name: str) -> Fallback:
    """Return what always asking one model costs and gets right."""
    place = traces.roles.index(name)
    return Fallback(traces.cost_nano[:, 0, place], traces.correct[:, 0, place])


def everything(traces: TraceArrays) -> Fallback:
    """Return what asking every model costs, and whether any of them is right."""
    return Fallback(traces.cost_nano.sum(axis=(1, 2)), traces.solvable)


def parity(
    points: OperatingPoints,
    reference: Fallback,
    rows: tuple[IntArray, IntArray],
    *,
    epsilon: Level,
    delta: Level,
) -> Outcome:
    """Prove parity with the reference on calibration questions and realise it on test questions.

    Args:
        points: every point on all questions, [n, G].
        reference: the model to be on a par with, which is also what is fallen back on.
        rows: the calibration and the test questions.
        epsilon: accuracy that may be lost.
        delta: chance that the proof is wrong.
    """
    calibrate, test = rows
    proof = points.take(calibrate)
    paired = Paired(proof.cost_nano, proof.correct, reference.right[calibrate])
    point = parity_point(paired, epsilon, delta)
    cost, right = _realised(points, reference, point, test)
    goal = float(reference.right[test].mean()) - float(exact_margin(epsilon))
    return Outcome(cost.mean() * PER_THOUSAND, float(right.mean()) - goal, point is None)


def coverage(
    points: OperatingPoints, fallback: Fallback, rows: tuple[IntArray, IntArray], *, alpha: Level
) -> Outcome:
    """Promise coverage of the solvable questions, with every answer paid for in the set.

    A point counts as missing a question if it or any dearer one does, so that misses only fall
    along the points; then the cheapest one whose misses conformal risk control allows is valid.

    Args:
        points: every point on all questions, [n, G].
        fallback: every model, which covers all solvable questions.
        rows: the calibration and the test questions.
        alpha: share of the solvable questions that may be missed.

    Source: Angelopoulos et al. 2024, conformal risk control, theorem 1.
    """
    level = exact_level(alpha)
    calibrate, test = (part[fallback.right[part]] for part in rows)
    missed = np.logical_or.accumulate(~points.covered[calibrate][:, ::-1], axis=1)[:, ::-1]
    allowed = np.flatnonzero(missed.sum(axis=0) + 1 <= int(level * (len(calibrate) + 1)))
    point = int(allowed[0]) if allowed.size else None
    covered = _realised(points.as_sets(), fallback, point, test)[1]
    cost = _realised(points, fallback, point, rows[1])[0]
    margin = float(covered.mean()) - float(1 - level)
    return Outcome(cost.mean() * PER_THOUSAND, margin, point is None)


def _realised(
    points: OperatingPoints, fallback: Fallback, point: int | None, rows: IntArray
) -> tuple[IntArray, BoolArray]:
    if point is None:
        return fallback.cost_nano[rows], fallback.right[rows]
    return points.cost_nano[rows, point], points.correct[rows, point]


@dataclass(frozen=True)
class Summary:
    """Means over splits."""

    cost: float
    cost_error: float
    """Standard error of the mean over splits."""
    margin: float
    margin_error: float
    kept: float
    """Share of splits whose test questions kept what was promised."""
    fell_back: float
    """Share of splits in which nothing was proved."""


def summary(outcomes: list[Outcome]) -> Summary:
    """Average outcomes over splits."""
    cost = np.array([o.cost for o in outcomes])
    margin = np.array([o.margin for o in outcomes])
    return Summary(
        *_mean_and_error(cost),
        *_mean_and_error(margin),
        kept=float((margin >= 0).mean()),
        fell_back=float(np.mean([o.fell_back for o in outcomes])),
    )


def _mean_and_error(values: FloatArray) -> tuple[float, float]:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(values.mean()), float(error)


def dearer(theirs: list[Outcome], ours: list[Outcome]) -> tuple[float, float]:
    """Return by how much they cost more on the same splits, and its standard error."""
    pairs = zip(theirs, ours, strict=True)
    return _mean_and_error(np.array([their.cost - our.cost for their, our in pairs]))


def foresight(train: TraceArrays, traces: TraceArrays) -> OperatingPoints:
    """Buy the cheapest right answer where it costs at most a price, learnt from training questions.

    It sees calls before they are made, so it is no policy but the limit that no policy passes.
    Both arguments are pools; the prices are those of right answers in `train`.
    """
    price = _cheapest_right(train)
    paid = price[price < NEVER]
    levels = np.quantile(paid, np.linspace(0, 1, SETTINGS - 1)) if paid.size else paid
    values = np.append(np.unique(levels), NEVER / 2)
    price = _cheapest_right(traces)
    model = np.where(traces.correct[:, 0, :], traces.cost_nano[:, 0, :], NEVER).argmin(axis=1)
    chosen = np.where(price[:, None] <= values, model[:, None], -1)
    made = chosen[:, :, None] == np.arange(traces.n_roles)
    return of_calls(traces, values, made, chosen)


def _cheapest_right(traces: TraceArrays) -> IntArray:
    tables(traces)
    cost: IntArray = np.where(traces.correct, traces.cost_nano, NEVER).min(axis=(1, 2))
    return cost
