"""A bandit with knapsacks: a primal bandit against dual prices.

Two players meet. The dual one sets the price of money by mirror descent, as pacers do. The primal
one asks models so that right answers less the price of their money become many, without reading
questions. If neither regrets much, the mixture that they come to is the linear program's over
mixtures of models:

    max sum_a p_a r_a    with    sum_a p_a c_a <= B / T,    sum_a p_a <= 1,    p >= 0

The primal player here is Tsallis-INF: with L_a the sum of what asking a would have lost so far,

    p_a = 4 / (eta (L_a - x))^2,      eta = 4 / sqrt(t),      x such that sum_a p_a = 1

which needs no tuning and holds whether prices move or rest. The loss of a wrong answer is known of
the arm that was asked alone, and enters as an unbiased estimate,

    1[a asked] (1 - grade - m_a) / p_a + m_a,      m_a = 1/2 where p_a >= eta^2, else 0

while what an arm costs is known well enough to count for all arms.

Source: Immorlica, Sankararaman, Schapire and Slivkins 2019, LagrangeBwK, as in Slivkins'
"Introduction to Multi-Armed Bandits" (arXiv 1904.07272), chapter 10; Zimmert and Seldin 2021,
"Tsallis-INF", algorithm 1 with reduced variance. Tolls that enter as they are expected are ours.
"""

from dataclasses import dataclass

import numpy as np

from farthing.methods.base import SystemCard
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.bandits.base import BanditContext, GradedDraw

EVEN = 0.5
"""Grade that an arm counts for where it could not be asked; ours."""
MOST_TOLL = 2.0
"""A dearer arm is not worth it at any grade; so much counts, that L comes back from it; ours."""
NEWTON = 50


@dataclass(frozen=True)
class Losses:
    """What was learned: estimated losses."""

    loss: FloatArray
    """[K] L."""
    lessons: int = 0


@dataclass(frozen=True)
class Knapsack:
    """Tsallis-INF on right answers less their toll."""

    reads_questions: bool = False

    def begin(self, arms: int, _dimensions: int) -> Losses:
        return Losses(np.zeros(arms))

    def propensities(self, learned: Losses, seen: BanditContext, /) -> FloatArray:
        found = np.zeros(len(learned.loss))
        found[seen.offered] = tsallis(learned.loss[seen.offered], eta(learned.lessons))
        return found

    def learn(self, learned: Losses, lesson: GradedDraw, /) -> Losses:
        arm, chances = lesson.arm, lesson.propensities
        middle = np.where(chances >= eta(learned.lessons) ** 2, 0.5, 0.0)
        loss = learned.loss + np.minimum(lesson.seen.toll, MOST_TOLL)
        estimate = middle
        estimate[arm] += (1.0 - lesson.grade - middle[arm]) / chances[arm]
        loss += np.where(lesson.seen.offered, estimate, 1.0 - EVEN)
        return Losses(loss - loss.min(), learned.lessons + 1)


def eta(lessons: int) -> float:
    """Return the step after so many lessons."""
    return float(4.0 / np.sqrt(lessons + 1))


def tsallis(loss: FloatArray, step: float) -> FloatArray:
    """Return p = 4 / (eta (L - x))^2 with the x at which they add up to 1, by Newton's method.

    >>> tsallis(np.array([0.0, 0.0]), 1.0).round(6).tolist()
    [0.5, 0.5]
    >>> tsallis(np.array([0.0, 20.0]), 1.0).round(2).tolist()
    [0.99, 0.01]
    """
    least = float(loss.min())
    x = least - 2.0 / step  # here the best arm alone has 1, so that the sum is 1 or more
    for _ in range(NEWTON):
        root = 2.0 / (step * (loss - x))
        excess = float((root**2).sum()) - 1.0
        if excess < 1e-12:
            break
        x -= excess / float((step * root**3).sum())
    chance: FloatArray = (step * (loss - x)) ** -2.0
    return np.asarray(chance / chance.sum())


KNAPSACK = Knapsack()
"""The bandit `knapsack`."""

CARD = SystemCard(
    name="knapsack",
    label="Bandit with knapsacks",
    meaning="Learns from grades which model is worth its price, whatever the question is",
    kind="bandit",
    make=KNAPSACK,
    paper="1904.07272",
    page="docs/research/cold-start.md",
    place=10,
)
