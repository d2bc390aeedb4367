"""Optimal stopping by estimated gain: go on while the rounds to come are worth their price.

Adding an answer to the set is free, so the only paid decision is `next`. The gain of going on is
P(a later round is right and nothing so far is | o_t); thresholded exactly, a calibrated estimate of
it is close to the cheapest policy there is (`docs/research/ccpo.md`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from farthing.features.rounds import FeatureSet
from farthing.methods.base import Fitted, Method, Progress
from farthing.methods.logistic import logistic
from farthing.process.base import InRounds
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays

STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Inverse strengths of the L2 penalty that cross-validation chooses from."""
FOLDS = 5


@dataclass(frozen=True)
class StoppingPolicy(InRounds):
    """Returns every answer reached; `next` scores a logistic model's estimate of the gain."""

    features: FeatureSet
    """What it sees of a round."""
    coefficients: FloatArray
    """[T - 1, F] weights of the features, a row for each round but the last."""
    intercepts: FloatArray
    """[T - 1]"""
    stochastic: bool = False

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for each role and the estimated gain, in (0, 1), for `next`."""
        scores = np.ones((len(traces), traces.horizon, traces.n_roles + 1))
        scores[:, -1, -1] = 0.0
        scores[:, :-1, -1] = self.gains(traces)
        return scores

    def gains(self, traces: TraceArrays) -> FloatArray:
        """Return the estimated probability of a gain after each round but the last, [n, T - 1]."""
        paid = traces.horizon - 1
        seen = self.features.transform(traces)[:, :-1]
        logit = (seen * self.coefficients[:paid]).sum(axis=2) + self.intercepts[:paid]
        gains: FloatArray = 1.0 / (1.0 + np.exp(-logit))
        return gains

    def to_state(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        arrays = {"coefficients": self.coefficients, "intercepts": self.intercepts}
        return arrays, {"features": self.features.to_json()}

    @classmethod
    def from_state(cls, arrays: Mapping[str, FloatArray], settings: Mapping[str, Any]) -> Self:
        features = FeatureSet.from_json(settings["features"])
        return cls(features, arrays["coefficients"], arrays["intercepts"])


@dataclass(frozen=True)
class StoppingLearner:
    """Fits P(a later round is right and nothing so far is | o_t).

    It does not depend on alpha: the threshold does.
    """

    extra_features: tuple[str, ...] = ()

    def fit(
        self,
        train: TraceArrays,
        alpha: Fraction,
        seed: int,
        progress: Progress,
    ) -> Fitted:
        features = FeatureSet.fit(train, self.extra_features)
        return Fitted(fit_gains(features, train, still_to_gain(train), seed, progress))


def fit_gains(
    features: FeatureSet, train: TraceArrays, gains: BoolArray, seed: int, progress: Progress
) -> StoppingPolicy:
    """Fit the probability of a gain, a row of weights a round.

    The weights of a round are shared weights plus a deviation of its own, both under one L2
    penalty, which is cross-validated over whole questions: rounds that have little data lean on the
    others.

    Args:
        features: what is seen of a round.
        train: recorded questions.
        gains: [n, T - 1] whether going on gains something after each round.
        seed: of the folds.
        progress: is told how many penalties were tried.
    """
    seen = features.transform(train)[:, :-1]
    weights = _fit(seen, gains, _best_strength(seen, gains, seed, progress))
    return StoppingPolicy(features, weights[:, :-1], weights[:, -1])


def still_to_gain(traces: TraceArrays) -> BoolArray:
    """Return whether nothing so far is right and something later is, [n, T - 1].

    >>> from farthing_lab.generator.generate import generate
    >>> from farthing_lab.generator.presets import preset
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
    model = logistic(_with_deviations(seen), gains.reshape(-1), strength)
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


STOPPING = Method(
    name="stopping",
    label="Supervised stopping",
    meaning="A logistic model of what later rounds would gain, thresholded",
    policy=StoppingPolicy,
    learner=StoppingLearner(),
    action_spaces=("rounds", "cascade"),
    imports=("sklearn.linear_model",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one", "set"}),
    place=60,
)
