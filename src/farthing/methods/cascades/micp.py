"""Error budgets for each turn (MiCP): stopping in turn t may go wrong on a share alpha_t only.

Turns are models, from the cheapest on. Training questions set a threshold for each turn in turn:
the lowest at which, among all questions, those that stop there wrongly are at most alpha_t. The
parameter is the whole budget, the sum of alpha_t.

Source: Zhou and others 2026, arXiv:2604.01413.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.methods.base import Method
from farthing.methods.cascades.turns import TurnsPolicy
from farthing.methods.pool import (
    PoolLearner,
    PoolPolicy,
    descending_levels,
    ladder,
    strongest,
    tables,
)
from farthing.methods.scorer import fit_scorers
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays


@dataclass(frozen=True)
class MicpLearner(PoolLearner):
    """Splits the budget so that dearer turns get more, in proportion to `share ** turn`."""

    share: Fraction = Fraction(1)
    """1 splits it evenly."""
    strong: str | None = None
    """The model of the last turn; None: the most accurate one in training."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Set the thresholds of every turn for every budget."""
        pool, scorers = tables(train), fit_scorers(train)
        score = scorers.p_right(train)
        turns = ladder(pool, strongest(train, self.strong))
        weights = [self.share**turn for turn in range(len(turns) - 1)]
        budgets = descending_levels(Fraction(1, 2))
        thresholds = [
            _thresholds(
                score[:, turns], pool.right[:, turns], [budget * w / sum(weights) for w in weights]
            )
            for budget in budgets
        ]
        values = np.array(budgets, dtype=np.float64)
        return TurnsPolicy(scorers, turns, values, np.array(thresholds))


def _thresholds(score: FloatArray, right: BoolArray, budget: Sequence[Fraction]) -> FloatArray:
    """Return the lowest threshold of each turn that keeps within its budget, [K - 1].

    Args:
        score: [n, K].
        right: [n, K].
        budget: [K - 1] shares of all questions.
    """
    n = len(score)
    left = np.ones(n, dtype=bool)
    thresholds = np.empty(len(budget))
    for turn, alpha in enumerate(budget):
        wrong = np.sort(score[left & ~right[:, turn], turn])[::-1]
        allowed = int(alpha * (n + 1)) - 1  # the next question may be wrong as well
        if allowed < 0:
            thresholds[turn] = np.inf
        elif allowed >= len(wrong):
            thresholds[turn] = -np.inf
        else:
            thresholds[turn] = np.nextafter(wrong[allowed], np.inf)
        left &= score[:, turn] < thresholds[turn]
    return thresholds


MICP = Method(
    name="micp",
    label="MiCP",
    meaning="Each model in turn may be wrong on its own share of the questions",
    paper="2604.01413",
    policy=TurnsPolicy,
    learner=MicpLearner(),
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    imports=("sklearn.linear_model",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one"}),
    place=85,
)
