"""Plain candidates for a selective promise: rows of calls, and simple measures of sureness."""

from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from farthing.methods.selective.confidence import CONFIDENCE, AnswerAgreement, OwnConfidence
from farthing.methods.selective.learner import (
    Buying,
    Fit,
    SelectiveFit,
    by_votes,
    confident,
    learn,
    most_answered,
)
from farthing.methods.selective.policy import AS_TRAINED, FixedRow, cheapest_first
from farthing.process.action_space import action_space
from farthing.process.base import Policy
from farthing.process.budget import CASCADE
from farthing.traces.arrays import TraceArrays

Values = TypeVar("Values", bound=NDArray[Any])

KNOWN = 0.5
"""The share of a model's training calls that must have a confidence for the model to be asked by
it."""
FEW = (2, 3)
"""How many of the cheapest calls are asked for their agreement."""


def considered(
    policy: Policy, train: TraceArrays, empty: str, alpha: Fraction
) -> tuple[SelectiveFit, ...]:
    """Return everything that could be sure of its answers, the policy as trained first.

    The policy goes by all evidence and by a mixture; each model with recorded confidences, asked
    alone, by its own; the cheapest two and three by their agreement and by a mixture; and each of
    those models together with the one that does best alone, by a mixture, the cheaper one first and
    the other only where that is not sure enough. Where calls see one another none can be asked
    alone, so that only the policy is left. `train` are the questions as the policy plays them,
    alpha the share of wrong answers that is to be promised.
    """
    found = [confident(policy, train, empty, alpha)]
    found.append(
        learn(Buying(policy, empty), train, alpha, by_votes, f"{AS_TRAINED}, by a mixture")
    )
    if not train.independent.all():
        return tuple(found)

    def of(row: tuple[int, ...], fit: Fit, how: str) -> SelectiveFit:
        asked = " and ".join(names[line] for line in row)
        buying = Buying(policy, empty, FixedRow("calls", row))
        return learn(buying, train, alpha, fit, f"{asked}, by {how}")

    names, cheapest = names_of(train), cheapest_first(of_lines(train.cost_nano, train))
    alone = {
        line: of((line,), lambda *_: OwnConfidence(), "its confidence")
        for line in sure_of_themselves(train)
    }
    found += alone.values()
    for few in FEW:
        if few <= len(cheapest):
            row = tuple(cheapest[:few])
            found += [
                of(row, lambda *_: AnswerAgreement(), "agreement"),
                of(row, by_votes, "a mixture"),
            ]
    best = max(alone, key=lambda line: most_answered(alone[line], alpha), default=None)
    pairs = [tuple(line for line in cheapest if line in {other, best}) for other in alone]
    tried = tuple(cheapest[:2])
    found += [of(row, by_votes, "a mixture") for row in pairs if len(row) == 2 and row != tried]
    return tuple(found)


def of_lines(values: Values, train: TraceArrays) -> Values:
    """Return what stands at the first call of each line, [n, F], of values [n, T, L]."""
    space = action_space("calls", train.horizon, train.n_roles)
    return values.reshape(len(train), -1)[:, space.cells[:, 0, 0]]  # type: ignore[return-value]


def names_of(train: TraceArrays) -> list[str]:
    """Return who answers in each line: a role or, in a cascade, a model."""
    in_turn = train.models[0].split(" -> ")
    return in_turn if train.roles == CASCADE and train.horizon > 1 else list(train.roles)


def sure_of_themselves(train: TraceArrays) -> list[int]:
    """Return the lines whose calls mostly have a confidence, and not always the same."""
    if CONFIDENCE not in train.signals:
        return []
    confidence = of_lines(train.signals[CONFIDENCE], train)
    known = ~np.isnan(confidence)
    return [
        line
        for line in range(confidence.shape[1])
        if known[:, line].mean() >= KNOWN and np.ptp(confidence[known[:, line], line]) > 0
    ]
