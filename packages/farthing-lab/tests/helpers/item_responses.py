"""A world in which item response is the truth: words make questions hard, models differ."""

from dataclasses import dataclass

import numpy as np

from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays
from farthing_lab.features.question import QuestionFeatures
from farthing_lab.methods.estimators.base import OutcomeHistory

WORDS = np.array([f"word{i:02}" for i in range(40)])
LENGTH = 6
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


@dataclass(frozen=True)
class World:
    """What words do, and how much a question has of its own."""

    weight: FloatArray
    """[40, 2] of each word on difficulty and on another direction."""
    own: float = 1.0
    """Standard deviation of what no word says."""

    @classmethod
    def drawn(cls, seed: int) -> "World":
        return cls(np.random.default_rng(seed).normal(0, 0.8, (len(WORDS), 2)))

    def abilities(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return constant, discrimination and taste of n models, [n, 3]."""
        return rng.normal([0.5, 1.0, 0.0], [0.8, 0.2, 0.5], (n, 3))

    def questions(
        self, n: int, rng: np.random.Generator
    ) -> tuple[QuestionFeatures, FloatArray, FloatArray]:
        """Return questions, their true coordinates [n, 3], and what each has of its own [n]."""
        words = rng.integers(0, len(WORDS), (n, LENGTH))
        text = tuple(" ".join(row) for row in WORDS[words])
        z = np.concatenate([np.ones((n, 1)), self.weight[words].mean(axis=1) * 2], axis=1)
        return QuestionFeatures(text, ("",) * n), z, rng.normal(0, self.own, n)

    def truth(self, ability: FloatArray, z: FloatArray) -> FloatArray:
        """Return how likely a model is right where b is not known, [n]; by quadrature."""
        logit = (z @ ability)[:, None] + self.own * NODES
        p: FloatArray = (1 / (1 + np.exp(-logit))) @ WEIGHTS / WEIGHTS.sum()
        return p


def answered(
    abilities: FloatArray, z: FloatArray, own: FloatArray, rng: np.random.Generator
) -> BoolArray:
    """Return who is right, [n, L]."""
    chance = 1 / (1 + np.exp(-(z @ abilities.T + own[:, None])))
    right: BoolArray = rng.random(chance.shape) < chance
    return right


def recorded(asked: QuestionFeatures, right: BoolArray) -> TraceArrays:
    """Return outcomes as a pool whose prices double from model to model."""
    n, models = right.shape
    names = tuple(f"m{k}" for k in range(models))
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=names,
        models=names,
        answer=np.where(right, 0, 1)[:, None].astype(np.int16),
        correct=right[:, None],
        cost_nano=np.tile(10_000 * 2 ** np.arange(models), (n, 1))[:, None],
        signals={},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
        question=np.array(asked.text, dtype=object),
    )


def pool(world: World, n: int, models: int, seed: int) -> TraceArrays:
    """Return recorded outcomes of some models."""
    rng = np.random.default_rng(seed)
    asked, z, own = world.questions(n, rng)
    return recorded(asked, answered(world.abilities(models, rng), z, own, rng))


def joiner(world: World, n: int, rng: np.random.Generator) -> tuple[FloatArray, OutcomeHistory]:
    """Return a new model's ability, and its outcomes on n new questions."""
    ability = world.abilities(1, rng)[0]
    asked, z, own = world.questions(n, rng)
    return ability, OutcomeHistory(asked, answered(ability[None], z, own, rng)[:, 0])
