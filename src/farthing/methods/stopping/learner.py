"""Supervised stopping: estimate what the rounds to come would gain, by logistic regression.

With answers free to add, spending least at a given coverage is optimal stopping, and the score to
threshold is the gain of going on. Its label is in the traces: replaying needs no exploration.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from sklearn.linear_model import LogisticRegression

from farthing.features.rounds import FeatureSet
from farthing.methods.base import Fitted, Progress
from farthing.methods.stopping.policy import StoppingPolicy
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Inverse strengths of the L2 penalty that cross-validation chooses from."""
FOLDS = 5


@dataclass(frozen=True)
class StoppingLearner:
    """Fits P(a later round is right and nothing so far is | o_t), a row of weights a round.

    The weights of a round are shared weights plus a deviation of its own, both under one L2
    penalty: rounds that have little data lean on the others. It does not depend on alpha: the
    threshold does.
    """

    extra_features: tuple[str, ...] = ()

    def fit(
        self,
        train: TraceArrays,
        alpha: Fraction,
        seed: int,
        progress: Progress,
    ) -> Fitted:
        """Train on recorded questions; the penalty is cross-validated over whole questions."""
        features = FeatureSet.fit(train, self.extra_features)
        gains = still_to_gain(train)
        seen = features.transform(train)[:, :-1]
        strength = _best_strength(seen, gains, seed, progress)
        weights = _fit(seen, gains, strength)
        return Fitted(StoppingPolicy(features, weights[:, :-1], weights[:, -1]))


def still_to_gain(traces: TraceArrays) -> BoolArray:
    """Return whether nothing so far is right and something later is, [n, T - 1].

    >>> from farthing.process.generator.generate import generate
    >>> from farthing.process.generator.presets import preset
    >>> traces = generate(preset("mmlu-llama2-7b").config, 100, np.random.default_rng(0))
    >>> bool((still_to_gain(traces) & traces.correct.any(axis=2)[:, :-1]).any())
    False
    """
    right = traces.correct.any(axis=2)
    so_far = np.logical_or.accumulate(right, axis=1)[:, :-1]
    return ~so_far & traces.solvable[:, None]


def _best_strength(seen: FloatArray, gains: BoolArray, seed: int, progress: Progress) -> float:
    """Return the strength with the least held-out log loss, summed over folds of questions."""
    n = len(seen)
    fold = np.random.default_rng(seed).permutation(n) % FOLDS
    losses = []
    for done, strength in enumerate(STRENGTHS):
        losses.append(sum(_held_out_loss(seen, gains, fold == k, strength) for k in range(FOLDS)))
        progress.update(done + 1, len(STRENGTHS), {"log_loss": losses[-1] / max(gains.size, 1)})
    return STRENGTHS[int(np.argmin(losses))]


def _held_out_loss(seen: FloatArray, gains: BoolArray, out: BoolArray, strength: float) -> float:
    weights = _fit(seen[~out], gains[~out], strength)
    logit = (seen[out] * weights[:, :-1]).sum(axis=2) + weights[:, -1]
    return float(np.logaddexp(0.0, np.where(gains[out], -logit, logit)).sum())


def _fit(seen: FloatArray, gains: BoolArray, strength: float) -> FloatArray:
    """Return the weights of the features and, last, the intercept, [T - 1, F + 1].

    Args:
        seen: [n, T - 1, F] features.
        gains: [n, T - 1] labels; where all are alike only the intercept is not 0.
        strength: inverse of the L2 penalty.
    """
    rounds, width = seen.shape[1:]
    if gains.all() or not gains.any():
        odds = (gains.sum() + 0.5) / (gains.size - gains.sum() + 0.5)
        return np.broadcast_to([0.0] * width + [np.log(odds)], (rounds, width + 1)).copy()
    model = LogisticRegression(C=strength, solver="newton-cholesky", max_iter=100)
    model.fit(_with_deviations(seen), gains.reshape(-1))
    parts = model.coef_.reshape(rounds + 1, width + 1)
    weights: FloatArray = parts[0] + parts[1:]
    weights[:, -1] += model.intercept_
    return weights


def _with_deviations(seen: FloatArray) -> FloatArray:
    """Repeat the features of each round in columns that only that round uses.

    Args:
        seen: [n, T - 1, F].

    Returns:
        [n (T - 1), T (F + 1)]: shared columns first, then each round's own; a constant ends each.
    """
    n, rounds, width = seen.shape
    one = np.concatenate([seen, np.ones((n, rounds, 1))], axis=2)
    wide = np.zeros((n, rounds, rounds + 1, width + 1))
    wide[:, :, 0] = one
    every = np.arange(rounds)
    wide[:, every, every + 1] = one
    return wide.reshape(n * rounds, -1)


STOPPING = StoppingLearner()
