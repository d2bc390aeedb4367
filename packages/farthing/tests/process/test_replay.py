"""The arithmetic of replay against plain recursion and plain enumeration, question by question."""

from dataclasses import dataclass
from itertools import chain, combinations, product

import numpy as np
import pytest
from scipy import stats

from farthing.process.replay import EMPTY_SETS, outcome, paths, sample
from farthing.traces.arrays import NO_ANSWER, FloatArray, IntArray, TraceArrays

Scores = list[list[float]]
"""[T][L + 1] scores of one question."""


def make_traces(n: int, horizon: int, roles: int, rng: np.random.Generator) -> TraceArrays:
    answer = rng.integers(NO_ANSWER, 3, (n, horizon, roles)).astype(np.int16)
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=tuple(f"role{i}" for i in range(roles)),
        models=("",) * roles,
        answer=answer,
        correct=answer == rng.integers(0, 4, (n, 1, 1)),
        cost_nano=rng.integers(0, 1_000, (n, horizon, roles)),
        signals={},
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=np.full(n, horizon, np.int16),
        independent=np.zeros(n, bool),
    )


def available(t: int, scores: Scores) -> range:
    """The actions of a round; the last round has no `next`."""
    return range(len(scores[t]) - (t == len(scores) - 1))


def raised(scores: Scores, empty: str) -> Scores:
    """Scores in which the likeliest action counts as 1 where sets may not be empty."""
    if empty == "allow":
        return scores
    copy = [list(row) for row in scores]
    for t, row in enumerate(copy):
        actions = available(t, scores)
        best = max(row[a] for a in actions)
        row[next(a for a in actions if row[a] == best)] = 1.0
    return copy


@dataclass
class Episode:
    """What one question did: its rounds, and its answers as (path, round, role)."""

    rounds: int
    leaves: list[tuple[float, int, int]]


def follow(
    answers: list[list[int]], scores: Scores, kappa: float, t: int = 0, reach: float = 1.0
) -> Episode:
    """Run C(o) = {a : score >= min(kappa, 1)} from round t on, by recursion."""
    chosen = {a for a in available(t, scores) if scores[t][a] >= min(kappa, 1.0)}
    go_on = len(answers[t])
    leaves = [
        (min(reach, scores[t][a]), t, a)
        for a in sorted(chosen - {go_on})
        if answers[t][a] != NO_ANSWER
    ]
    if go_on not in chosen:
        return Episode(t + 1, leaves)
    rest = follow(answers, scores, kappa, t + 1, min(reach, scores[t][go_on]))
    return Episode(rest.rounds, leaves + rest.leaves)


SHAPES = [(1, 1), (1, 3), (2, 2), (3, 2), (4, 2), (3, 3)]


@pytest.mark.parametrize("empty", EMPTY_SETS)
@pytest.mark.parametrize(("horizon", "roles"), SHAPES)
def test_every_threshold_against_recursion(empty: str, horizon: int, roles: int) -> None:
    rng = np.random.default_rng([horizon, roles])
    traces = make_traces(40, horizon, roles, rng)
    scores = rng.integers(0, 9, (40, horizon, roles + 1)) / 8
    scores[0], scores[1] = 0.0, 1.0
    asked: IntArray = rng.integers(0, 50, (40, horizon))
    followed = paths(scores, traces, empty)
    values = np.unique(scores)
    kappas = [*values, *(values[1:] + values[:-1]) / 2, 1.5, np.inf]
    covering = np.full(40, -np.inf)
    for kappa in sorted(kappas):
        found = outcome(followed, traces, kappa, asked)
        for q in range(40):
            expected = raised(scores[q].tolist(), empty)
            episode = follow(traces.answer[q].tolist(), expected, kappa)
            leaves = episode.leaves
            right = [bool(traces.correct[q, t, a]) for _, t, a in leaves]
            cost = int(traces.cost_nano[q, : episode.rounds].sum())
            assert found.length[q] == episode.rounds
            assert found.cost_nano[q] == cost + asked[q, : episode.rounds].sum()
            assert found.set_size_leaves[q] == len(leaves)
            assert found.set_size[q] == len({int(traces.answer[q, t, a]) for _, t, a in leaves})
            assert found.in_set[q] == any(right)
            assert found.covered[q] == (any(right) or not traces.correct[q].any())
            best = max(((scores[q, t, a], t, a) for _, t, a in leaves), default=None)
            assert found.best_correct[q] == (best is not None and traces.correct[q][best[1:]])
            assert found.covered[q] == (followed.critical[q] >= min(kappa, 1.0))
            if any(right):
                covering[q] = max(covering[q], min(kappa, 1.0))
    np.testing.assert_array_equal(followed.critical, np.where(traces.solvable, covering, np.inf))


def subsets(actions: range) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(actions, k) for k in range(len(actions) + 1)))


@pytest.mark.parametrize("empty", EMPTY_SETS)
@pytest.mark.parametrize(("horizon", "roles"), [(1, 3), (2, 2), (3, 2), (2, 3)])
def test_kappa_star_over_every_action_subset(empty: str, horizon: int, roles: int) -> None:
    """kappa* = max over all choices of an action subset in each round that cover the question, of
    the smallest score among the chosen actions."""
    rng = np.random.default_rng([7, horizon, roles])
    traces = make_traces(12, horizon, roles, rng)
    scores = rng.random((12, horizon, roles + 1))
    critical = paths(scores, traces, empty).critical
    for q in range(12):
        values = raised(scores[q].tolist(), empty)
        answers = traces.answer[q].tolist()
        best = -np.inf if traces.solvable[q] else np.inf
        for chosen in product(*(subsets(available(t, values)) for t in range(horizon))):
            indicator = [
                [1.0 if a in chosen[t] else 0.0 for a in range(roles + 1)] for t in range(horizon)
            ]
            leaves = follow(answers, indicator, kappa=0.5).leaves
            if any(traces.correct[q, t, a] for _, t, a in leaves):
                best = max(best, min(values[t][a] for t in range(horizon) for a in chosen[t]))
        assert critical[q] == best


def leaf_probabilities(pi: FloatArray) -> FloatArray:
    """[T, L] probability that the episode ends with that role's answer in that round."""
    reached = np.concatenate([[1.0], np.cumprod(pi[:-1, -1])])
    product_: FloatArray = reached[:, None] * pi[:, :-1]
    return product_


@pytest.mark.parametrize("seed", range(4))
def test_sampling_has_the_exact_probabilities(seed: int) -> None:
    """40,000 episodes of one question; round and role of the answer by a chi-square test."""
    runs, horizon = 40_000, 3
    rng = np.random.default_rng([seed, 99])
    pi = rng.dirichlet(np.ones(3), horizon)
    pi[-1] = [*(pi[-1, :2] / pi[-1, :2].sum()), 0.0]
    one = make_traces(1, horizon, 2, rng)
    one.answer[:] = [0, 1]
    one.correct[:] = [True, False]  # which tells the roles apart
    traces = one.take(np.zeros(runs, np.int64))
    asked = np.tile(np.array([5, 7, 11]), (runs, 1))
    found = sample(np.tile(pi, (runs, 1, 1)), traces, rng, asked)
    counts = np.zeros((horizon, 2))
    np.add.at(counts, (found.length - 1, np.where(found.in_set, 0, 1)), 1)
    assert stats.chisquare(counts.ravel(), runs * leaf_probabilities(pi).ravel()).pvalue > 1e-4
    spent = np.cumsum(one.round_cost_nano[0] + asked[0])
    np.testing.assert_array_equal(found.cost_nano, spent[found.length - 1])
    np.testing.assert_array_equal(found.set_size, 1)
    np.testing.assert_array_equal(found.best_correct, found.in_set)


def test_sampling_an_answer_that_is_none_leaves_an_empty_set() -> None:
    rng = np.random.default_rng(0)
    traces = make_traces(50, 1, 2, rng)
    traces.answer[:] = NO_ANSWER
    traces.correct[:] = False
    found = sample(np.tile([0.5, 0.5, 0.0], (50, 1, 1)), traces, rng)
    assert not found.set_size.any()
    assert not found.in_set.any()
    assert found.covered.all()
