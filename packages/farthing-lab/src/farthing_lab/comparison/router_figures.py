"""What benchmarks of LLM routers print of a router, so that ours can be laid beside theirs.

A router is a curve here: the mean cost and the accuracy of each of its operating points. Three of
the figures choose a point after the answers are known, so they flatter; what a row saves and gains
at the point that calibration chose is `saved` and `gained`. Costs are US dollars a question.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import log2

import numpy as np

from farthing.methods.pool import frontier
from farthing.recommendation.base import Row
from farthing.recommendation.savings import SingleModels
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.comparison.names import (
    AIQ,
    ARENA_SCORE,
    GAIN_AT_EQUAL_COST,
    SAVING_AT_EQUAL_ACCURACY,
)

ARENA_BETA = 0.1
"""What cost weighs beside accuracy."""
ARENA_RANGE_USD = (0.0044, 200.0)
"""The costs of 1,000 questions between which the arena's score lies between 0 and 1."""


def gain_at_equal_cost(
    cost_usd: FloatArray, accuracy: FloatArray, most_usd: float, theirs: float
) -> float:
    """Return by how much the best point that costs no more is more accurate than a single model.

    LLMRouterBench prints the gain of a router's most accurate point over the best single model as
    PerfGain, whatever it costs (arXiv:2601.07206, README of `ynulihao/LLMRouterBench`); here the
    point may not cost more. The difference is one of accuracies, not their ratio.

    Args:
        cost_usd: [G] of each operating point.
        accuracy: [G]
        most_usd: what the single model costs.
        theirs: its accuracy.

    Returns:
        The difference; NaN where every point costs more.

    >>> gain_at_equal_cost(np.array([1.0, 3.0, 9.0]), np.array([0.5, 0.75, 0.9]), 4.0, 0.625)
    0.125
    """
    within = cost_usd <= most_usd
    return float(accuracy[within].max() - theirs) if within.any() else float("nan")


def saving_at_equal_accuracy(
    cost_usd: FloatArray, accuracy: FloatArray, paid_usd: float, least: float
) -> float:
    """Return how much of a single model's cost the cheapest point saves that is as accurate.

    1 - min {cost: accuracy >= that of the model} / cost of the model; below 0 where it costs more.

    Args:
        cost_usd: [G] of each operating point.
        accuracy: [G]
        paid_usd: what the single model costs, above 0.
        least: its accuracy.

    Returns:
        The share; NaN where no point is as accurate, or where the model costs nothing.

    Source: CostSave of LLMRouterBench, "maximal cost reduction while maintaining Best Single's
    accuracy" (arXiv:2601.07206, README of `ynulihao/LLMRouterBench`).

    >>> saving_at_equal_accuracy(np.array([1.0, 3.0, 9.0]), np.array([0.5, 0.75, 0.9]), 4.0, 0.625)
    0.25
    """
    enough = accuracy >= least
    return float(1 - cost_usd[enough].min() / paid_usd) if enough.any() and paid_usd else np.nan


def hull(cost_usd: FloatArray, accuracy: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the non-decreasing convex hull of a curve: what mixing two of its points reaches.

    Args:
        cost_usd: [G] of each operating point.
        accuracy: [G]

    Returns:
        Costs and accuracies of its corners, from the cheapest on.

    Source: RouterBench (arXiv:2403.12031); `evaluation/AIQ.py` of `withmartian/routerbench`.

    >>> cost, accuracy = hull(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.2, 0.3, 0.8, 0.7]))
    >>> cost, accuracy
    (array([1., 3.]), array([0.2, 0.8]))
    """
    corners: list[int] = []
    for point in frontier(cost_usd, accuracy).tolist():
        while len(corners) > 1:
            (a, b), (dx, dy) = corners[-2:], (cost_usd[point], accuracy[point])
            below = (accuracy[b] - accuracy[a]) * (dx - cost_usd[a])
            if below > (dy - accuracy[a]) * (cost_usd[b] - cost_usd[a]):
                break
            corners.pop()
        corners.append(point)
    return cost_usd[corners], accuracy[corners]


def aiq(cost_usd: FloatArray, accuracy: FloatArray, low_usd: float, high_usd: float) -> float:
    """Return the average improvement in quality: the mean height of the hull between two costs.

    AIQ = integral of the hull from c_min to c_max, over c_max - c_min. Beyond its dearest corner
    the hull is level; below its cheapest one it falls to (0, 0), as some questions would not be
    answered. The authors' code divides by c_max and leaves out what lies below the cheapest corner.

    Args:
        cost_usd: [G] of each operating point.
        accuracy: [G]
        low_usd: c_min, the same for all that are compared: the cheapest single model.
        high_usd: c_max: the most expensive one. Where both are equal, the height there is returned.

    Source: RouterBench (arXiv:2403.12031) for the integral; what lies beyond the hull is ours.

    >>> aiq(np.array([1.0, 3.0]), np.array([0.25, 0.75]), 1.0, 5.0)
    0.625
    >>> aiq(np.array([2.0]), np.array([0.5]), 1.0, 2.0)
    0.375
    """
    x, y = (np.append(0.0, ends) for ends in hull(cost_usd, accuracy))
    between = x[(x > low_usd) & (x < high_usd)]
    at = np.concatenate([[low_usd], between, [high_usd]])
    height = np.interp(at, x, y)
    if low_usd >= high_usd:
        return float(height[0])
    return float(np.trapezoid(height, at) / (high_usd - low_usd))


def arena_score(cost_usd: float, accuracy: float) -> float:
    """Return RouterArena's score of accuracy and cost.

    S = (1 + beta) A C / (beta A + C), with C = (log2 c_max - log2 c) / (log2 c_max - log2 c_min) of
    the cost c of 1,000 questions, beta 0.1, c_min 0.0044 and c_max 200 dollars. It is not cut off
    beyond these, and compares routers on the arena's own questions alone.

    Args:
        cost_usd: mean cost of a question.
        accuracy: mean accuracy.

    Returns:
        The score; NaN where nothing was paid, of which there is no logarithm.

    Source: RouterArena (arXiv:2510.00202), `router_evaluation/compute_scores.py` of
    `RouteWorks/RouterArena`.

    >>> round(arena_score(0.0044 / 1_000, 0.5), 6), arena_score(0.2, 0.5), arena_score(0.0, 0.5)
    (0.52381, 0.0, nan)
    """
    if not cost_usd > 0:
        return float("nan")
    low, high = ARENA_RANGE_USD
    c = (log2(high) - log2(1_000 * cost_usd)) / (log2(high) - log2(low))
    weighed = ARENA_BETA * accuracy + c
    return (1 + ARENA_BETA) * accuracy * c / weighed if weighed else float("nan")


def with_router_figures(rows: Sequence[Row], judging: TraceArrays) -> list[Row]:
    """Return rows with those figures that exist: without single models the arena's score alone.

    Args:
        rows: of a comparison.
        judging: the questions that judge, on which the single models are looked up.
    """
    singles = SingleModels.of(judging)
    if not singles.alone or not len(judging):
        return [replace(row, router_figures=_finite({ARENA_SCORE: _arena(row)})) for row in rows]
    paid = singles.cost_nano.mean(axis=0) / 1e9
    right = np.where(judging.ungraded.any(axis=(0, 1)), np.nan, singles.right.mean(axis=0))
    best = np.lexsort((paid, -right))[0]  # of equals the cheapest
    theirs = float(paid[best]), float(right[best])
    found = []
    for row in rows:
        figures = {ARENA_SCORE: _arena(row)}
        if row.curve:
            cost, accuracy = np.array(row.curve).T
            figures[AIQ] = aiq(cost, accuracy, float(paid.min()), float(paid.max()))
            if not np.isnan(right).any():
                figures[GAIN_AT_EQUAL_COST] = gain_at_equal_cost(cost, accuracy, *theirs)
                saving = saving_at_equal_accuracy(cost, accuracy, *theirs)
                figures[SAVING_AT_EQUAL_ACCURACY] = saving
        found.append(replace(row, router_figures=_finite(figures)))
    return found


def _arena(row: Row) -> float:
    cost, accuracy = (np.mean(row.per_split.get(m, [np.nan])) for m in ("cost_usd", "accuracy"))
    return arena_score(float(cost), float(accuracy))


def _finite(figures: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if np.isfinite(value)}
