"""Fit what `LookaheadPolicy` follows: a forest and a linear model of gains and costs.

Both are handed over as plain arrays; scikit-learn stays behind.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from farthing.methods.forest import LEAF, Forest, joined
from farthing.methods.logistic import logistic
from farthing.methods.lookahead.policy import GainEstimate
from farthing.traces.arrays import BoolArray, FloatArray, IntArray

MIXING_STEPS = 100
"""Steps of expectation and maximisation for one share."""
LEAST_LIKELY = 1e-12
"""No model is taken to hold anything for less likely."""


def together(parts: Sequence[GainEstimate]) -> GainEstimate:
    """Return the mean of estimates that were fitted without one part of the questions each."""
    return GainEstimate(
        joined([part.forest for part in parts]),
        np.mean([part.gain_weights for part in parts], axis=0),
        np.mean([part.cost_weights for part in parts], axis=0),
        parts[0].unit_nano,
        parts[0].share,
    )


def best_share(first: FloatArray, second: FloatArray) -> float:
    """Return the share of the first in the likeliest mixture of two models; 1/2 without a case.

    Args:
        first: [R] probability that the first gives to what happened in cases new to it.
        second: [R] likewise.

    >>> round(best_share(np.array([0.9, 0.9, 0.1]), np.array([0.1, 0.1, 0.9])), 2)
    0.71
    """
    first, second = np.maximum(first, LEAST_LIKELY), np.maximum(second, LEAST_LIKELY)
    share = 0.5
    for _ in range(MIXING_STEPS if first.size else 0):
        weight = share * first
        share = float((weight / (weight + (1 - share) * second)).mean())
    return share


def grown(seen: FloatArray, target: FloatArray, known: BoolArray, model: Any) -> Forest:
    """Grow one forest for several targets, of which some cases do not know some.

    Args:
        seen: [R, F] features.
        target: [R, O]
        known: [R, O] where the target is known. Elsewhere its mean stands in while trees grow, and
            what a leaf predicts is the mean over the cases that know it.
        model: not fitted yet.
    """
    mean = mean_where(target, known)
    model.fit(seen, np.where(known, target, mean).reshape(target.shape))
    for tree, leaf in zip(model.estimators_, model.apply(seen).T, strict=True):
        value = tree.tree_.value[:, :, 0]
        for k, counts in enumerate(known.T):
            cases = np.bincount(leaf, counts, len(value))
            total = np.bincount(leaf, counts * target[:, k], len(value))
            value[:, k] = np.where(cases > 0, total / np.maximum(cases, 1), mean[k])
    return exported(model)


def mean_where(values: FloatArray, known: BoolArray) -> FloatArray:
    """Return the mean of each column over the rows where it is known; 0 where it never is."""
    mean: FloatArray = (values * known).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return mean


def linear_weights(
    seen: FloatArray, step: IntArray, steps: int, target: FloatArray, strength: float
) -> FloatArray:
    """Fit log-odds of the gain, and the cost, with a row of weights a step, [2, steps, G + 1].

    Weights of a step are shared ones plus its own deviation, both under one L2 penalty: steps that
    have little data lean on the others. Without a case all weights are 0: even odds, no cost.

    Args:
        seen: [R, G] what it looks at.
        step: [R] number of purchases that were made, at most `steps` - 1.
        steps: number of rows.
        target: [2, R] gain, 0 or 1, and cost.
        strength: inverse strength of the penalty.
    """
    from sklearn.linear_model import Ridge  # noqa: PLC0415 - training alone

    if not len(seen):
        return np.zeros((2, steps, seen.shape[1] + 1))
    gain, cost = target
    mean, scale = seen.mean(axis=0), np.maximum(seen.std(axis=0), 1e-6)
    one = np.concatenate([(seen - mean) / scale, np.ones((len(seen), 1))], axis=1)
    own = (step[:, None] == np.arange(steps))[:, :, None] * one[:, None, :]
    wide = np.concatenate([one, own.reshape(len(seen), -1)], axis=1)
    spent = Ridge(1.0 / strength).fit(wide, cost)
    found = np.stack([np.zeros_like(spent.coef_), spent.coef_])
    constant = np.array([np.log((gain.sum() + 0.5) / (gain.size - gain.sum() + 0.5)), 0.0])
    constant[1] = spent.intercept_
    if 0 < gain.sum() < gain.size:
        odds = logistic(wide, gain > 0, strength)
        found[0], constant[0] = odds.coef_[0], odds.intercept_[0]
    parts = found.reshape(2, steps + 1, -1)
    weights: FloatArray = parts[:, :1] + parts[:, 1:]
    weights[:, :, :-1] /= scale
    weights[:, :, -1] += constant[:, None] - weights[:, :, :-1] @ mean
    return weights


def exported(model: Any) -> Forest:
    """Copy a fitted forest into plain arrays, children beside each other."""
    parts, roots, depth, total = [], [], 0, 0
    for tree in model.estimators_:
        parts.append(_laid_out(tree.tree_, total))
        roots.append(total)
        total += tree.tree_.node_count
        depth = max(depth, tree.tree_.max_depth)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    feature, threshold, left, value = columns
    return Forest(
        feature.astype(np.int32),
        threshold.astype(np.float32),
        left.astype(np.int32),
        value,
        np.array(roots, dtype=np.int32),
        depth,
    )


def _laid_out(tree: Any, start: int) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
    """Number a tree's nodes anew, level by level, so that a right child follows its left one."""
    place = [0]
    for node in place:
        if tree.children_left[node] >= 0:
            place += [tree.children_left[node], tree.children_right[node]]
    order = np.array(place)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    leaf = tree.children_left[order] < 0
    left = np.where(leaf, np.arange(len(order)), number[tree.children_left[order]])
    return (
        np.where(leaf, LEAF, tree.feature[order]),
        # a float32 case is compared with a float64 threshold: round down so that "at most" stays
        _not_above(tree.threshold[order]),
        left + start,
        tree.value[order][:, :, 0],
    )


def _not_above(threshold: FloatArray) -> FloatArray:
    rounded = threshold.astype(np.float32)
    above = rounded.astype(np.float64) > threshold
    return np.where(above, np.nextafter(rounded, np.float32(-np.inf)), rounded)
