"""Agreement cascade: ask two or three cheap models, answer where enough of them agree.

Where they cannot agree any more, the strong model is asked at once. No confidences are needed. The
parameter says which models are asked, and how many of them must agree.

Source: Kolawole et al. 2024, arXiv:2407.02348, agreement-based cascading.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from farthing.methods.base import Method
from farthing.methods.pool import (
    SETTINGS,
    PoolLearner,
    PoolPolicy,
    everyone,
    frontier,
    strongest,
    tables,
)
from farthing.process.base import NOTHING, State
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

MEMBERS = 3
"""Cheap models that are asked, at most."""
NOBODY = -1
WIN = 0.25
"""What a win over the strong model is worth in losses; training may be unlike what is to come."""
Group = tuple[int, tuple[int, ...], int]
"""The strong model, the members, and how many of them must agree."""


@dataclass(frozen=True)
class AgreementCascadePolicy(PoolPolicy):
    """Who is asked at each operating point, and how many must agree."""

    strong: int
    """The model that is asked where they do not."""
    members: IntArray
    """[G, 3] models in the order of asking; -1 where there are fewer. With none, the strong model
    answers everything."""
    votes: IntArray
    """[G] answers that must be the same."""
    values: FloatArray
    """[G] mean cost in training, in dollars."""

    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        """Ask the next member while enough may agree, then the strong model."""
        line, single = self._step(state.seen, state.known, state.can_buy, point)
        return line, line != NOTHING, single

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Follow every point to its end, on all questions at once."""
        n, settings = len(traces), len(self.values)
        made = np.zeros((n, settings, traces.n_roles), dtype=bool)
        given = np.full((n, settings), NOBODY)
        rows, can = np.arange(n), np.ones((n, traces.n_roles), dtype=bool)
        for point in range(settings):
            known = made[:, point]
            for _ in range(MEMBERS + 2):
                line, given[:, point] = self._step(traces, known, can, point)
                asks = line != NOTHING
                known[rows[asks], line[asks]] = True
        return of_calls(traces, self.values, made, given)

    def _step(
        self, traces: TraceArrays, known: BoolArray, can_buy: BoolArray, point: int
    ) -> tuple[IntArray, IntArray]:
        """Return who is asked next, [n], and who gives the answer if nobody is, [n].

        A model that cannot be asked counts as one that said nothing.

        Args:
            traces: the questions; only known answers are read.
            known: [n, L] who was asked.
            can_buy: [n, L] who can be asked.
            point: the operating point.
        """
        members = [int(m) for m in self.members[point] if m != NOBODY]
        needed = int(self.votes[point])
        answer = np.where(known, traces.answer[:, 0, :], NO_ANSWER)
        leader, most = _leader(answer[:, members])
        waiting = can_buy[:, members] & ~known[:, members]
        agreed = np.full(len(answer), bool(members)) & (most >= needed)
        possible = ~known[:, self.strong] & (most + waiting.sum(axis=1) >= needed) & ~agreed
        line = everyone(traces, NOTHING)
        for place in range(len(members) - 1, -1, -1):
            line = np.where(possible & waiting[:, place], members[place], line)
        asks_strong = (line == NOTHING) & ~agreed & ~known[:, self.strong]
        line = np.where(asks_strong & can_buy[:, self.strong], self.strong, line)
        given = np.array([*members, NOBODY])[leader]
        said = answer[:, self.strong] != NO_ANSWER
        return line, np.where(~agreed & (said | known[:, self.strong]), self.strong, given)


def _leader(answer: IntArray) -> tuple[IntArray, IntArray]:
    """Return whose answer most others give, [n], and how many give it, [n].

    Of equals the first; the place after the last one, and 0, where nobody answers.

    Args:
        answer: [n, K] codes, -1 for none.
    """
    said = answer != NO_ANSWER
    votes = ((answer[:, :, None] == answer[:, None, :]) & said[:, None, :]).sum(axis=2) * said
    nobody = np.zeros((len(answer), 1), dtype=np.int64)
    counted = np.concatenate([votes, nobody], axis=1)
    leader = np.where(said.any(axis=1), counted.argmax(axis=1), answer.shape[1])
    return leader, counted[np.arange(len(answer)), leader]


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
    lost, won = reference & ~points.correct, ~reference & points.correct
    kept: FloatArray = WIN * won.mean(axis=0) - lost.mean(axis=0)
    return points.cost_nano.mean(axis=0) / 1e9, kept


AGREEMENT_CASCADE = Method(
    name="agreement-cascade",
    label="Agreement cascade",
    meaning="Asks two or three cheap models and answers where they agree, else asks the strong one",
    paper="2407.02348",
    policy=AgreementCascadePolicy,
    learner=AgreementCascadeLearner(),
    action_spaces=("pool",),
    needs=("pool",),
    varies_with=frozenset(),
    tried_for=frozenset({"one"}),
    place=83,
)
