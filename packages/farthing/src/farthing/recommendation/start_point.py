"""Where the proof of parity or agreement begins: at which of a policy's operating points.

They are tested from there to cheaper ones, until one is not proved. Beginning too cheap proves
nothing: the first one fails. Dearer points lose less, so beginning at one of those costs little. It
is decided by questions that prove nothing.
"""

from dataclasses import dataclass

import numpy as np

from farthing.process.operating_points import OperatingPoints
from farthing.promises.base import Promise
from farthing.promises.certificate import BoolArray
from farthing.promises.statistics.expected_cost import Prospect, expected_cost
from farthing.recommendation.played import PlayedPolicy, Questions, grid, operating_points_of
from farthing.traces.arrays import FloatArray

NEAR = 0.2
"""What may be paid more, in expectation, to begin testing at a dearer point."""


@dataclass(frozen=True)
class Beginning:
    """A policy's operating points on some questions, and where their proof is to begin."""

    points: OperatingPoints
    lost: BoolArray
    """[n, G] whether a point loses the question against the reference."""
    won: BoolArray
    """[n, G] whether it wins it."""
    expected_usd: FloatArray
    """[G] what a question costs after the proof, in expectation, by where testing begins."""
    start: int

    @property
    def row(self) -> FloatArray:
        """The thresholds to test, from the last one on to the first."""
        return self.points.values[: self.start + 1]


def beginning(
    asked: Promise, plays: PlayedPolicy, part: Questions, reference: str, n: int, seed: int = 0
) -> Beginning:
    """Lay operating points out, and begin at the dearest from which not much more is expected.

    The proof is run on questions drawn from these (`expected_cost`). Those that trained the policy
    flatter its cheap points: all of them seem proved then, and testing begins at a dear one.

    Args:
        asked: the promise.
        plays: the policy.
        part: questions that prove nothing.
        reference: the role that answers are held against.
        n: questions that will prove.
        seed: of the draws.
    """
    replayed = part.replay(plays)
    points = operating_points_of(replayed, grid(replayed))
    place, recorded = part.recorded.roles.index(reference), part.recorded
    right = recorded.correct[:, 0, place]
    theirs = asked.bars(right)
    lost, won = theirs[:, None] & ~points.correct, ~theirs[:, None] & points.correct
    alone = bool(recorded.independent.all())  # else its call saw those before it, and costs them
    paid = recorded.cost_nano[:, 0, place if alone else 0 : place + 1].sum(axis=1)
    prospect = Prospect(points.cost_nano / 1e9, lost, won, paid / 1e9)
    rng = np.random.default_rng(seed)
    expected = expected_cost(prospect, n, asked.allows(n), rng)
    useful = prospect.cost.mean(axis=0) < prospect.fallback.mean()
    if not alone or asked.must_gain:
        useful[:] = True  # then a point may cost more
    start = _begin(np.where(useful, expected, np.inf)) if useful.any() else 0
    return Beginning(points, lost, won, expected, start)


def _begin(expected: FloatArray) -> int:
    """Return where testing begins: the dearest point from which not much more is expected.

    >>> _begin(np.array([2.0, 1.0, 1.01, 1.2, 3.0]))
    3
    """
    return int(np.flatnonzero(expected <= expected.min() * (1 + NEAR))[-1])
