"""Soft assignments of one expected cost: a smooth surface in the space of logits.

Item i has option k with probability p_ik = exp(z_ik) / sum_l exp(z_il). With costs c_ik and their
mean c_i = sum_k p_ik c_ik the expected cost is C(z) = sum_i c_i, and

    dC/dz_ik      = p_ik (c_ik - c_i)                  the normal N of the surface C(z) = B
    dC(z + t c)/dt = sum_i Var_p(c_i) >= 0             cost rises along the cost vector

so that whatever left the surface comes back to it along the cost vector by one number t.

All arrays are [n, K]; an option that an item lacks has the logit minus infinity and the cost 0.

Source: "Riemannian Constrained Optimization" (arXiv 2605.00649), as its abstract says it; the
formulas follow from the softmax, the bracket and the Newton steps inside it are ours.
"""

import numpy as np

from farthing.traces.arrays import FloatArray

FAR = 1e9
"""Where the search for t gives up: beyond it every item has its cheapest or dearest option."""
ENOUGH = 1e-10
"""Error of the expected cost at which the search ends, as a share of it."""


def softmax(logits: FloatArray) -> FloatArray:
    """Return the probabilities, [n, K].

    >>> softmax(np.array([[0.0, 0.0, -np.inf]]))
    array([[0.5, 0.5, 0. ]])
    """
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    probability: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    return probability


def pulled_back(probability: FloatArray, gradient: FloatArray) -> FloatArray:
    """Return the gradient with respect to logits of what has this one with respect to p, [n, K]."""
    mean = np.einsum("nk,nk->n", probability, gradient)
    back: FloatArray = probability * (gradient - mean[:, None])
    return back


def tangent(direction: FloatArray, normal: FloatArray) -> FloatArray:
    """Return what of a direction lies in the surface: the part along the normal is taken out.

    >>> tangent(np.array([[1.0, 1.0]]), np.array([[0.0, 2.0]]))
    array([[1., 0.]])
    """
    length = float(np.einsum("nk,nk->", normal, normal))
    if length == 0.0:
        return direction
    return direction - float(np.einsum("nk,nk->", direction, normal)) / length * normal


def retract(logits: FloatArray, cost: FloatArray, budget: float) -> FloatArray:
    """Move logits along the cost vector until they cost the budget: z + t c with C(z + t c) = B.

    A bracket around t is halved where a Newton step would leave it. A budget below the cheapest
    options, or above the dearest, is come as close to as floats allow.
    """
    low, high, at = -np.inf, np.inf, 0.0
    for _ in range(200):
        moved = logits + at * cost
        probability = softmax(moved)
        mean = np.einsum("nk,nk->n", probability, cost)
        short = budget - float(mean.sum())
        if abs(short) <= ENOUGH * max(budget, 1.0) or abs(at) > FAR or high - low < 1e-12:
            return moved
        low, high = (at, high) if short > 0.0 else (low, at)
        slope = float(np.einsum("nk,nk->", pulled_back(probability, cost), cost))
        newton = at + short / slope if slope > 0.0 else np.inf * short
        at = (
            newton
            if low < newton < high and abs(newton) < 1e3 * (1.0 + abs(at))
            else _between(low, high)
        )
    return logits + at * cost


def _between(low: float, high: float) -> float:
    """Return the middle of a bracket; twice as far out where it is open."""
    if not np.isfinite(low):
        return 2.0 * high - 1.0
    if not np.isfinite(high):
        return 2.0 * low + 1.0
    return (low + high) / 2.0
