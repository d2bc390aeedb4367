"""SquareCB: inverse-gap weighting of what a regression expects.

With y_a what asking arm a is expected to bring on this question, its grade less its toll, and b the
best arm,

    p_a = 1 / (K + gamma (y_b - y_a))   for a other than b,       p_b = 1 - sum of the others

so that an arm is drawn the less often the further it seems behind. gamma grows as sqrt(K t).

Grades are predicted by one ridge regression an arm, refitted in batches. A new regression is
promoted by a guard: fitted on all batches but the last, it replaces the one in use unless it
predicted the last batch worse by more than one standard error. For data that a policy gathers
changes with the policy, and so a later regression may be a worse one.

Source: "Contextual Bandits in Payment Processing: Non-uniform Exploration and Supervised Learning
at Adyen" (arXiv 2412.00569), which saw regressions get worse as policies improved; the weighting is
that of Foster and Rakhlin 2020, "Beyond UCB". The ridge, gamma's constant, the size of batches, the
guard and the toll are ours.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from farthing.methods.base import SystemCard
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.bandits.base import BanditContext, GradedDraw

EVEN = 0.5
"""A grade before anything is known, towards which regressions shrink."""
CONSTANT, OTHERS = 0.5, 3.0
"""Lessons that the pull towards that weighs: on the constant feature and on each other; ours."""
FEWEST, MOST, SHARE = 10, 100, 10
"""Lessons of a batch: a tenth of those before, within these bounds; ours."""


@dataclass(frozen=True)
class Regressions:
    """What was learned: K regressions in use, and the sums that the next ones are fitted on."""

    weight: FloatArray
    """[K, d] in use."""
    square: FloatArray
    """[K, d, d] of all batches but the one under way."""
    product: FloatArray
    """[K, d]"""
    lessons: int = 0
    """How many are in the sums."""
    batch: tuple[GradedDraw, ...] = field(default=())
    promoted: int = 0
    refused: int = 0
    """How many new regressions the guard let pass, and held back."""

    def expected(self, features: FloatArray) -> FloatArray:
        """Return [K] the grade that each arm is expected to get."""
        found: FloatArray = np.clip(EVEN + self.weight @ features, 0.0, 1.0)
        return found


@dataclass(frozen=True)
class SquareCb:
    """Inverse-gap weighting over ridge regressions. The first feature is a constant 1."""

    gamma: float = 4.0
    """gamma / sqrt(K t)."""
    reads_questions: bool = True

    def begin(self, arms: int, dimensions: int) -> Regressions:
        pull = np.diag([CONSTANT, *[OTHERS] * (dimensions - 1)])
        nothing = np.zeros((arms, dimensions))
        return Regressions(nothing, np.tile(pull, (arms, 1, 1)), nothing)

    def propensities(self, learned: Regressions, seen: BanditContext, /) -> FloatArray:
        some = seen.offered
        worth = learned.expected(seen.features)[some] - seen.toll[some]
        t = learned.lessons + len(learned.batch)
        found = np.zeros(len(some))
        found[some] = inverse_gaps(worth, self.gamma * float(np.sqrt(len(worth) * (t + 1))))
        return found

    def learn(self, learned: Regressions, lesson: GradedDraw, /) -> Regressions:
        after = replace(learned, batch=(*learned.batch, lesson))
        full = min(MOST, max(FEWEST, learned.lessons // SHARE))
        return refitted(after) if len(after.batch) >= full else after


def inverse_gaps(worth: FloatArray, gamma: float) -> FloatArray:
    """Return p = 1 / (K + gamma gap) of each arm but the best, which has the rest.

    >>> inverse_gaps(np.array([0.5, 0.3]), 10.0).tolist()
    [0.75, 0.25]
    """
    best = int(worth.argmax())
    chance: FloatArray = 1.0 / (len(worth) + gamma * (worth[best] - worth))
    chance[best] = 0.0
    chance[best] = 1.0 - chance.sum()
    return chance


def refitted(learned: Regressions) -> Regressions:
    """Fit on all batches but the last, let the guard judge it by the last, and add that one."""
    fresh = learned.batch
    solved = np.linalg.solve(learned.square, learned.product[:, :, None])[:, :, 0]
    candidate = np.asarray(solved, dtype=np.float64)
    passes = not worse(candidate, learned.weight, fresh)
    square, product = learned.square.copy(), learned.product.copy()
    for one in fresh:
        square[one.arm] += np.outer(one.seen.features, one.seen.features)
        product[one.arm] += one.seen.features * (one.grade - EVEN)
    return Regressions(
        candidate if passes else learned.weight,
        square,
        product,
        learned.lessons + len(fresh),
        (),
        learned.promoted + passes,
        learned.refused + (not passes),
    )


def worse(candidate: FloatArray, present: FloatArray, fresh: tuple[GradedDraw, ...]) -> bool:
    """Return whether it predicted fresh grades worse, by more than one standard error."""
    features = np.array([one.seen.features for one in fresh])
    arms = np.array([one.arm for one in fresh])
    grades = np.array([one.grade for one in fresh])

    def error(weight: FloatArray) -> FloatArray:
        expected = np.clip(EVEN + np.einsum("nd,nd->n", features, weight[arms]), 0.0, 1.0)
        return np.asarray((expected - grades) ** 2)

    more = error(candidate) - error(present)
    spread = float(more.std(ddof=1)) / len(more) ** 0.5 if len(more) > 1 else 0.0
    return float(more.mean()) > spread


SQUARECB = SquareCb()
"""The bandit `squarecb`."""

CARD = SystemCard(
    name="squarecb",
    label="SquareCB",
    meaning="Learns which model is worth its price on which question, by its words and group",
    kind="bandit",
    make=SQUARECB,
    paper="2412.00569",
    page="docs/research/cold-start.md",
    place=20,
)
