"""V_0's question, answered by item response: a model's ability, read from a few outcomes.

A question q has K coordinates z(q) = (1, x(q)' W): a constant and, for each of K - 1 directions, a
weighted sum of its words and group. Beyond them it has a difficulty of its own, b(q), normal with
variance tau^2. A model with ability a is right with probability

    sigma(a' z(q) + b(q)),     a ~ N(mu, Sigma).

W, b, mu, Sigma and tau^2 are learned once, on models with many outcomes. The ability of a model
that joins is the mode of its posterior given its history: a concave maximum in K unknowns, found by
Newton's method in a millisecond. What remains uncertain, of the ability and of a new question,
flattens the probability: sigma(m / sqrt(1 + pi v / 8)) for a logit of mean m and variance v.

Source: V_0 (arXiv 2602.03584) asks for success from a history of prompts and outcomes, without
retraining; its abstract leaves the estimator open, and this one is ours. The flattening: MacKay
1992, "The evidence framework applied to classification networks", equation 10.
"""

from dataclasses import dataclass, field

import numpy as np

from farthing.features.question import QuestionFeatures, seen_of
from farthing.methods.estimators.base import History
from farthing.traces.arrays import BoolArray, FloatArray

STEPS = 30
"""Of Newton's method, at most."""
ENOUGH = 1e-9
EDGE = 1e-6
"""No probability is nearer to 0 or 1."""


@dataclass(frozen=True)
class Directions:
    """What questions have in common, and how abilities are spread."""

    weight: FloatArray
    """[F, K - 1] W: words, then groups."""
    groups: tuple[str, ...]
    mean: FloatArray
    """[K] mu."""
    spread: FloatArray
    """[K, K] Sigma."""
    own: float
    """tau^2, the variance of what a question has beyond its words."""

    def coordinates(self, asked: QuestionFeatures) -> FloatArray:
        """Return z(q), [n, K]."""
        along = np.round(seen_of(asked, self.groups) @ self.weight, 9)
        return np.concatenate([np.ones((len(asked), 1)), along], axis=1)


@dataclass(frozen=True)
class Ability:
    """A model's ability: the mode of its posterior, and the covariance around it."""

    mode: FloatArray
    """[K]"""
    spread: FloatArray
    """[K, K]"""


@dataclass(frozen=True)
class ItemResponse:
    """An estimator of success that has learned."""

    directions: Directions
    models: tuple[str, ...]
    abilities: tuple[Ability, ...]
    """Of the models that it learned from."""
    known: dict[str, tuple[float, float]] = field(repr=False)
    """Text of a question to mean and variance of b, where outcomes of it were learned from."""

    def ability(self, history: History) -> Ability:
        """Return the ability of a model with this history."""
        z, (offset, own) = self.directions.coordinates(history.asked), self._own(history.asked)
        return ability(z, offset, flattened(own), history.right, self.directions)

    def success(self, history: History, asked: QuestionFeatures) -> FloatArray:
        """Return the probability that the model with this history is right on each, [n]."""
        z, (offset, own) = self.directions.coordinates(asked), self._own(asked)
        return chance(z, self.ability(history), offset, own)

    def accuracy(self, found: Ability, asked: QuestionFeatures, draws: FloatArray) -> FloatArray:
        """Return the share of these questions that it would have right, for each draw, [D].

        Args:
            found: what is known of its ability.
            asked: the questions.
            draws: [D, K] standard normal.
        """
        z, (offset, own) = self.directions.coordinates(asked), self._own(asked)
        root = np.linalg.cholesky(found.spread)
        drawn = found.mode + draws @ root.T
        logit = (drawn @ z.T + offset) * flattened(own)
        share: FloatArray = sigmoid(logit).mean(axis=1)
        return share

    def _own(self, asked: QuestionFeatures) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of what each question has of its own, [n] each."""
        unknown = 0.0, self.directions.own
        pairs = np.array([self.known.get(text, unknown) for text in asked.text]).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]


def chance(
    z: FloatArray, found: Ability, offset: FloatArray | float, own: FloatArray | float
) -> FloatArray:
    """Return how likely a model of some ability is right, [n].

    Args:
        z: [n, K] coordinates of the questions.
        found: the ability.
        offset: [n] mean of what each question has of its own.
        own: [n] its variance.
    """
    logit = (z * found.mode).sum(axis=1) + offset
    variance = ((z[:, :, None] * found.spread).sum(axis=1) * z).sum(axis=1) + own
    return np.clip(np.round(sigmoid(logit * flattened(variance)), 9), EDGE, 1.0 - EDGE)


def ability(
    z: FloatArray, offset: FloatArray, scale: FloatArray, right: BoolArray, known: Directions
) -> Ability:
    """Return the mode of log p(a) + sum log p(outcome | a), and minus the inverse of its curvature.

    Args:
        z: [h, K] coordinates of the history's questions.
        offset: [h] mean of what each has of its own.
        scale: [h] by how much its variance flattens the logit.
        right: [h] the outcomes.
        known: the prior.
    """
    precision: FloatArray = np.asarray(np.linalg.inv(known.spread), dtype=np.float64)

    def height(at: FloatArray) -> float:
        logit, away = scale * (z @ at + offset), at - known.mean
        lost = np.logaddexp(0.0, np.where(right, -logit, logit)).sum()
        return -float(lost + 0.5 * away @ precision @ away)

    at, reached = known.mean.copy(), height(known.mean)
    for _ in range(STEPS):
        p = sigmoid(scale * (z @ at + offset))
        slope = z.T @ (scale * (right - p)) - precision @ (at - known.mean)
        step = np.linalg.solve(_curvature(z, scale, p, precision), slope)
        while height(at + step) < reached and float(np.abs(step).max()) > ENOUGH:
            step = step / 2.0  # a whole step may leap over the mode
        at, reached = at + step, height(at + step)
        if float(np.abs(step).max()) < ENOUGH:
            break
    p = sigmoid(scale * (z @ at + offset))
    spread: FloatArray = np.asarray(
        np.linalg.inv(_curvature(z, scale, p, precision)), dtype=np.float64
    )
    return Ability(at, spread)


def _curvature(
    z: FloatArray, scale: FloatArray, p: FloatArray, precision: FloatArray
) -> FloatArray:
    """Return minus the second derivative of the log posterior, [K, K]."""
    curvature: FloatArray = precision + (z * (scale**2 * p * (1.0 - p))[:, None]).T @ z
    return curvature


def flattened(variance: FloatArray | float) -> FloatArray:
    """Return what a logit of this variance is multiplied by, so that its sigmoid is the mean one.

    >>> flattened(np.array([0.0, 8 / np.pi])).round(4).tolist()
    [1.0, 0.7071]
    """
    return np.asarray(1.0 / np.sqrt(1.0 + np.pi * np.asarray(variance) / 8.0))


def sigmoid(logit: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-logit)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * logit)))
