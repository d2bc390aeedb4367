"""Choose which models must agree: the groups that training finds no cheaper and safer ones than."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from farthing.methods.cascades.agreement.policy import MEMBERS, NOBODY, AgreementCascadePolicy
from farthing.methods.pool import SETTINGS, frontier, strongest, tables
from farthing.methods.pool_learner import PoolLearner
from farthing.methods.pool_policy import PoolPolicy
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays

WIN = 0.25
"""What a win over the strong model is worth in losses; training may be unlike what is to come."""


@dataclass(frozen=True)
class AgreementCascadeLearner(PoolLearner):
    """Keeps the groups on the training frontier of cost and losses against the strong model."""

    strong: str | None = None
    """The model that is asked where they do not agree; None: the most accurate in training."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Try every group of two or three cheaper models; the strong model alone is the dearest."""
        del seed
        strong = strongest(train, self.strong)
        cost = tables(train).cost.mean(axis=0)
        cheaper = [m for m in np.argsort(cost, kind="stable").tolist() if cost[m] < cost[strong]]
        groups = [(strong, (), 1), *((strong, *each) for each in _groups(cheaper))]
        every = _policy(strong, groups, np.zeros(len(groups)))
        mean, kept = _judged(every, train)
        best = frontier(mean, kept)
        best = best[(mean[best] < mean[0]) & (best != 0)]
        most = min(len(best), SETTINGS - 1)
        best = best[np.linspace(0, len(best) - 1, most).round().astype(int)]
        chosen = np.append(best, 0).astype(np.int64)
        return _policy(strong, [groups[i] for i in chosen], mean[chosen])


Group = tuple[int, tuple[int, ...], int]
"""The strong model, the members, and how many of them must agree."""


def _groups(cheaper: list[int]) -> Iterator[tuple[tuple[int, ...], int]]:
    for pair in combinations(cheaper, 2):
        yield pair, 2
    for three in combinations(cheaper, MEMBERS):
        yield three, 2
        yield three, MEMBERS


def _policy(strong: int, groups: list[Group], values: FloatArray) -> AgreementCascadePolicy:
    padded = [(*members, *[NOBODY] * (MEMBERS - len(members))) for _, members, _ in groups]
    votes = np.array([needed for *_, needed in groups], dtype=np.int64)
    return AgreementCascadePolicy(strong, np.array(padded, dtype=np.int64), votes, values)


def _judged(policy: AgreementCascadePolicy, train: TraceArrays) -> tuple[FloatArray, FloatArray]:
    """Return the mean cost of each group in dollars, [G], and what it does not lose, [G]."""
    points = policy.points(train)
    reference = train.correct[:, 0, policy.strong][:, None]
    lost, won = _mean(reference & ~points.correct), _mean(~reference & points.correct)
    return points.cost_nano.mean(axis=0) / 1e9, WIN * won - lost


def _mean(values: IntArray | np.ndarray) -> FloatArray:
    mean: FloatArray = values.mean(axis=0)
    return mean


AGREEMENT_CASCADE = AgreementCascadeLearner()
