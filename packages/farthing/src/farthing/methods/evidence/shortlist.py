"""Which models are worth asking before a reference, where not every row of them can be tried."""

import numpy as np

from farthing.traces.arrays import FloatArray

SHORTLIST, DEAREST = 6, 1.5
"""Models on it, and the most that one may cost in multiples of the reference."""
CHEAPNESS = 0.02
"""Accuracy that a model may lack for being e times cheaper."""


def shortlist(price: FloatArray, accuracy: FloatArray, reference: int) -> list[int]:
    """Return the places of the models that add most for their price, cheapest first.

    Args:
        price: [L] mean cost of each, in multiples of the reference's.
        accuracy: [L] share of the questions that each has right.
        reference: its place.

    >>> price, accuracy = np.array([0.01, 0.02, 2.0, 1.0]), np.array([0.6, 0.5, 0.9, 0.8])
    >>> shortlist(price, accuracy, 3)
    [0, 1]
    """
    others = [model for model in range(len(price)) if model != reference and price[model] < DEAREST]

    def merit(model: int) -> float:
        cheaper = [accuracy[other] for other in others if price[other] < price[model]]
        ahead = accuracy[model] - max(cheaper, default=0.0)
        return float(ahead - CHEAPNESS * np.log(max(price[model], 1e-6)))

    best = sorted(others, key=merit, reverse=True)[:SHORTLIST]
    return sorted(best, key=lambda model: price[model])
