"""Learn V_0's directions and difficulties from the outcomes of a pool's models.

Penalised maximum likelihood of sigma(a_m' z(q) + b(q)) in all abilities a, directions W and own
difficulties b together, by L-BFGS; the variance of b by expectation and maximisation, with b's own
posterior variance from the curvature. How many directions there are and how strongly W is held back
is chosen on a quarter of the questions, out of `TRIED`. The spread of abilities is that of the
pool's models, half of it shrunk to its diagonal. All of this is ours.
"""

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from farthing.errors import InputError, MissingExtraError
from farthing.features.question import QuestionFeatures, groups_of, seen_of
from farthing.methods.estimators.base import History, log_loss, refuse_rounds
from farthing.methods.estimators.v0 import (
    Ability,
    Directions,
    ItemResponse,
    chance,
    sigmoid,
)
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

TRIED = ((1, 30.0), (1, 100.0), (1, 300.0), (3, 100.0), (3, 300.0))
"""Directions beside the constant, and strength of the penalty on W; that on abilities is 1."""
ROUNDS = 3
"""Of expectation and maximisation."""
ITERATIONS = 40
"""Of L-BFGS in each round."""
SHRINK = 0.5
LEAST = 0.05
"""Variance that each coordinate of ability has at least."""


@dataclass(frozen=True)
class V0Estimator:
    """Learns from a pool."""

    tried: tuple[tuple[int, float], ...] = TRIED

    def fit(self, train: TraceArrays, seed: int) -> ItemResponse:
        """Learn from the graded calls of a pool; the same seed gives the same result.

        Raises:
            InputError: the questions are no pool, have no text, or none of a model is graded.
            MissingExtraError: scikit-learn, and with it SciPy, is not installed.
        """
        refuse_rounds(train)
        if train.question is None or not any(train.question):
            raise InputError("these questions have no text; an estimator by text needs `question`")
        graded, right = train.made[:, 0] & ~train.ungraded[:, 0], train.correct[:, 0]
        lacking = [name for name, n in zip(train.roles, graded.sum(axis=0), strict=True) if n < 1]
        if lacking:
            raise InputError(f"no answer of {lacking[0]} is graded; record `gold` or `correct`")
        asked = QuestionFeatures.of(train)
        groups = groups_of(asked.group)
        lesson = Lesson(seen_of(asked, groups), graded, right)
        with threadpool_limits(limits=1):  # products are small; threads only wait for each other
            fitted = fitted_to(lesson, groups, *self._chosen(lesson, groups, seed))
        known = {
            text: (float(b), float(v))
            for text, b, v in zip(asked.text, fitted.offset, fitted.variance, strict=True)
        }
        found = ItemResponse(fitted.directions, train.roles, (), known)
        abilities = [found.ability(History.of(train, m)) for m in range(train.n_roles)]
        return ItemResponse(fitted.directions, train.roles, tuple(abilities), known)

    def _chosen(self, lesson: "Lesson", groups: tuple[str, ...], seed: int) -> tuple[int, float]:
        """Return what has the least log loss on a quarter of the questions."""
        rows = np.random.default_rng(seed).permutation(len(lesson.seen))
        cut = len(rows) // 4
        if len(self.tried) == 1 or cut < 2:
            return self.tried[0]
        learned, held = lesson.take(rows[cut:]), lesson.take(rows[:cut])
        lost = [_lost(fitted_to(learned, groups, *one), held) for one in self.tried]
        return self.tried[int(np.argmin(lost))]


@dataclass(frozen=True)
class Lesson:
    """Outcomes of L models on n questions."""

    seen: FloatArray
    """[n, F]"""
    graded: BoolArray
    """[n, L]"""
    right: BoolArray
    """[n, L]"""

    def take(self, rows: IntArray) -> "Lesson":
        """Return the questions at an index."""
        return Lesson(self.seen[rows], self.graded[rows], self.right[rows])


@dataclass(frozen=True)
class FittedItems:
    """What was learned of models and questions."""

    directions: Directions
    ability: FloatArray
    """[L, K]"""
    offset: FloatArray
    """[n] mode of b."""
    variance: FloatArray
    """[n] of b, around it."""


def fitted_to(
    lesson: Lesson, groups: tuple[str, ...], directions: int, strength: float
) -> FittedItems:
    """Return the likeliest abilities, directions and difficulties.

    Raises:
        MissingExtraError: SciPy is not installed.
    """
    try:
        from scipy.optimize import minimize  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError("Learning who is right on which question", "train") from error
    (n, width), models = lesson.seen.shape, lesson.graded.shape[1]
    shapes = (models, directions + 1), (width, directions), (n,)
    at, own = _start(lesson, shapes), 1.0
    ability, weight, offset = _parts(at, shapes)
    variance = np.full(n, own)
    for _ in range(ROUNDS):
        at = minimize(
            _penalised,
            at,
            args=(lesson, shapes, strength, own),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": ITERATIONS},
        ).x
        ability, weight, offset = _parts(at, shapes)
        p = sigmoid(_logit(lesson.seen @ weight, ability, offset))
        variance = 1.0 / ((lesson.graded * p * (1.0 - p)).sum(axis=1) + 1.0 / own)
        own = float((offset**2 + variance).mean())
    centre = ability.mean(axis=0)
    spread = np.cov(ability, rowvar=False, ddof=1) if models > 1 else np.eye(directions + 1)
    spread = (1.0 - SHRINK) * spread + SHRINK * np.diag(np.diag(spread))
    spread = (1.0 + 1.0 / models) * spread + LEAST * np.eye(directions + 1)
    learned = Directions(weight, groups, centre, spread, own)
    return FittedItems(learned, ability, offset, variance)


def _lost(fitted: FittedItems, held: Lesson) -> float:
    """Return the log loss of its models on questions that it has not seen."""
    z = np.concatenate([np.ones((len(held.seen), 1)), held.seen @ fitted.directions.weight], axis=1)
    none = np.zeros((z.shape[1], z.shape[1]))
    each = [chance(z, Ability(a, none), 0.0, fitted.directions.own) for a in fitted.ability]
    return log_loss(np.stack(each, axis=1)[held.graded], held.right[held.graded])


Shapes = tuple[tuple[int, int], tuple[int, int], tuple[int]]


def _start(lesson: Lesson, shapes: Shapes) -> FloatArray:
    """Begin at each model's share of right answers, all alike along the first direction."""
    rng = np.random.default_rng(0)
    right = (lesson.graded & lesson.right).sum(axis=0) + 0.5
    wrong = (lesson.graded & ~lesson.right).sum(axis=0) + 0.5
    ability = rng.normal(0.0, 0.3, shapes[0])
    ability[:, 0], ability[:, 1] = np.log(right / wrong), 1.0
    weight = rng.normal(0.0, 0.01, shapes[1])
    return np.concatenate([ability.ravel(), weight.ravel(), np.zeros(shapes[2])])


def _parts(at: FloatArray, shapes: Shapes) -> tuple[FloatArray, FloatArray, FloatArray]:
    first, second = np.cumsum([np.prod(shapes[0]), np.prod(shapes[1])]).tolist()
    return (
        at[:first].reshape(shapes[0]),
        at[first:second].reshape(shapes[1]),
        at[second:],
    )


def _penalised(
    at: FloatArray, lesson: Lesson, shapes: Shapes, strength: float, own: float
) -> tuple[float, FloatArray]:
    """Return minus the penalised log likelihood, and its gradient."""
    ability, weight, offset = _parts(at, shapes)
    along = lesson.seen @ weight
    logit = _logit(along, ability, offset)
    sign = np.where(lesson.right, logit, -logit)
    lost = float((lesson.graded * np.logaddexp(0.0, -sign)).sum())
    pull = lesson.graded * (sigmoid(logit) - lesson.right)
    value = lost + 0.5 * float(
        strength * (weight**2).sum() + (ability[:, 1:] ** 2).sum() + (offset**2).sum() / own
    )
    by_ability = np.concatenate([pull.sum(axis=0)[:, None], pull.T @ along + ability[:, 1:]], 1)
    by_weight = lesson.seen.T @ (pull @ ability[:, 1:]) + strength * weight
    by_offset = pull.sum(axis=1) + offset / own
    return value, np.concatenate([by_ability.ravel(), by_weight.ravel(), by_offset])


def _logit(along: FloatArray, ability: FloatArray, offset: FloatArray) -> FloatArray:
    logit: FloatArray = ability[:, 0] + along @ ability[:, 1:].T + offset[:, None]
    return logit


V0 = V0Estimator()
