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
from threadpoolctl import threadpool_limits

from farthing.errors import InputError
from farthing.methods.base import SystemCard
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing_lab.features.question import QuestionFeatures, groups_of, seen_of
from farthing_lab.methods.estimators.base import OutcomeHistory, log_loss, refuse_rounds

STEPS = 30
"""Of Newton's method, at most."""
ENOUGH = 1e-9
EDGE = 1e-6
"""No probability is nearer to 0 or 1."""
TRIED = ((1, 30.0), (1, 100.0), (1, 300.0), (3, 100.0), (3, 300.0))
"""Directions beside the constant, and strength of the penalty on W; that on abilities is 1."""
ROUNDS = 3
"""Of expectation and maximisation."""
ITERATIONS = 40
"""Of L-BFGS in each round."""
SHRINK = 0.5
LEAST = 0.05
"""Variance that each coordinate of ability has at least."""
Shapes = tuple[tuple[int, int], tuple[int, int], tuple[int]]


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

    def ability(self, history: OutcomeHistory) -> Ability:
        z, (offset, own) = self.directions.coordinates(history.asked), self._own(history.asked)
        return ability(z, offset, flattened(own), history.right, self.directions)

    def success(self, history: OutcomeHistory, asked: QuestionFeatures) -> FloatArray:
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


@dataclass(frozen=True)
class V0Estimator:
    """Learns from a pool."""

    tried: tuple[tuple[int, float], ...] = TRIED

    def fit(self, train: TraceArrays, seed: int) -> ItemResponse:
        refuse_rounds(train)
        if train.question is None or not any(train.question):
            raise InputError("these questions have no text; an estimator by text needs `question`")
        graded, right = train.made[:, 0] & ~train.ungraded[:, 0], train.correct[:, 0]
        lacking = [name for name, n in zip(train.roles, graded.sum(axis=0), strict=True) if n < 1]
        if lacking:
            raise InputError(f"no answer of {lacking[0]} is graded; record `gold` or `correct`")
        asked = QuestionFeatures.of(train)
        groups = groups_of(asked.group)
        lesson = GradedOutcomes(seen_of(asked, groups), graded, right)
        with threadpool_limits(limits=1):  # products are small; threads only wait for each other
            chosen = self._chosen(lesson, groups, seed)
            directions, _, offset, variance = fitted_to(lesson, groups, *chosen)
        known = {
            text: (float(b), float(v))
            for text, b, v in zip(asked.text, offset, variance, strict=True)
        }
        found = ItemResponse(directions, train.roles, (), known)
        abilities = [found.ability(OutcomeHistory.of(train, m)) for m in range(train.n_roles)]
        return ItemResponse(directions, train.roles, tuple(abilities), known)

    def _chosen(
        self, lesson: "GradedOutcomes", groups: tuple[str, ...], seed: int
    ) -> tuple[int, float]:
        rows = np.random.default_rng(seed).permutation(len(lesson.seen))
        cut = len(rows) // 4
        if len(self.tried) == 1 or cut < 2:
            return self.tried[0]
        learned, held = lesson.take(rows[cut:]), lesson.take(rows[:cut])
        lost = [_lost(held, *fitted_to(learned, groups, *one)[:2]) for one in self.tried]
        return self.tried[int(np.argmin(lost))]


@dataclass(frozen=True)
class GradedOutcomes:
    """Outcomes of L models on n questions."""

    seen: FloatArray
    """[n, F]"""
    graded: BoolArray
    """[n, L]"""
    right: BoolArray
    """[n, L]"""

    def take(self, rows: IntArray) -> "GradedOutcomes":
        return GradedOutcomes(*(part[rows] for part in vars(self).values()))


def fitted_to(
    lesson: GradedOutcomes, groups: tuple[str, ...], directions: int, strength: float
) -> tuple[Directions, FloatArray, FloatArray, FloatArray]:
    """Return what was learned: directions, abilities, and mode and variance of each b.

    Abilities are [L, K], modes and variances [n].
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - only where it learns

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
    return learned, ability, offset, variance


def _lost(held: GradedOutcomes, directions: Directions, abilities: FloatArray) -> float:
    z = np.concatenate([np.ones((len(held.seen), 1)), held.seen @ directions.weight], axis=1)
    none = np.zeros((z.shape[1], z.shape[1]))
    each = [chance(z, Ability(a, none), 0.0, directions.own) for a in abilities]
    return log_loss(np.stack(each, axis=1)[held.graded], held.right[held.graded])


def _start(lesson: GradedOutcomes, shapes: Shapes) -> FloatArray:
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
    at: FloatArray, lesson: GradedOutcomes, shapes: Shapes, strength: float, own: float
) -> tuple[float, FloatArray]:
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

CARD = SystemCard(
    name="v0",
    label="V_0",
    meaning="Reads a model's ability from a few outcomes, on directions that others' showed",
    kind="estimator",
    make=V0,
    paper="2602.03584",
    page="docs/research/estimators.md",
    place=10,
)
