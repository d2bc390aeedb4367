"""What is learned from, against plain loops; and that what is learned saves money."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import TooFewTracesError
from farthing.methods.lookahead.learner import (
    LookaheadConfig,
    LookaheadLearner,
    price_of_coverage,
    some_states,
    visited,
)
from farthing.methods.lookahead.policy import LookaheadPolicy, Order
from farthing.process.action_space import SpaceName, action_space, items_of
from farthing.process.batch_replay import followed
from farthing.traces.arrays import TraceArrays
from farthing_lab.comparison.thresholded import at_coverage

QUICK = LookaheadConfig("calls", iterations=1, trees=8, leaf=5)
TENTH = Fraction(1, 10)


class Silent:
    def update(self, done: int, total: int, figures: object) -> None:
        pass


def make_traces(seed: int, n: int, horizon: int = 2, roles: int = 2) -> TraceArrays:
    rng = np.random.default_rng(seed)
    answer = rng.integers(-1, 4, (n, horizon, roles)).astype(np.int16)
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=tuple(f"role{i}" for i in range(roles)),
        models=("",) * roles,
        answer=answer,
        correct=answer == 0,
        cost_nano=rng.integers(1, 1_000, answer.shape),
        signals={"confidence": rng.random(answer.shape).astype(np.float32)},
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=np.full(n, horizon, np.int16),
        independent=np.ones(n, bool),
    )


def planted(seed: int, n: int) -> TraceArrays:
    """A cheap model that suffices for the short half of the questions; a dear one always does."""
    rng = np.random.default_rng(seed)
    short = rng.random(n) < 0.5
    answer = np.zeros((n, 1, 2), np.int16)
    answer[:, 0, 0] = ~short
    cost = np.tile(np.array([1_000, 10_000]), (n, 1, 1))
    words = np.where(short, 5, 50)[:, None, None] + rng.integers(0, 5, (n, 1, 1))
    return replace(
        make_traces(seed, n, 1, 2),
        answer=answer,
        correct=answer == 0,
        cost_nano=cost,
        signals={"question_words": np.broadcast_to(words, answer.shape).astype(np.float32)},
    )


def fitted(config: LookaheadConfig, train: TraceArrays, seed: int = 0) -> LookaheadPolicy:
    policy = LookaheadLearner(config).fit(train, TENTH, seed, Silent()).policy
    assert isinstance(policy, LookaheadPolicy)
    return policy


def test_it_buys_the_cheap_call_where_that_suffices_and_else_the_dear_one_at_once() -> None:
    """A first call is always made, the right one here: 0.5 x 1 + 0.5 x 10 = 5.5, all covered.

    In random order, any number of calls for all alike: 5.5 covers 0.75 and 11 covers 1, so that
    0.9 costs 8.8.
    """
    found = at_coverage(fitted(QUICK, planted(0, 400)), planted(1, 4_000), 0.9)
    assert found["coverage"] >= 0.9
    assert found["cost_usd"] < 1.03 * 5.5e-6


@pytest.mark.parametrize("space", ["rounds", "calls"])
def test_one_seed_gives_the_same_bytes(space: SpaceName) -> None:
    train = make_traces(0, 60)
    config = replace(QUICK, space=space, iterations=2)
    one, again, other = (fitted(config, train, seed).to_state() for seed in (3, 3, 4))
    assert one[1] == again[1]
    assert all(one[0][name].tobytes() == again[0][name].tobytes() for name in one[0])
    assert any(not np.array_equal(one[0][name], other[0][name]) for name in one[0])


@pytest.mark.parametrize("space", ["rounds", "calls"])
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("n", [3, 40])
def test_one_kind_of_questions_only_and_very_few_of_them(
    space: SpaceName, right: bool, n: int
) -> None:
    """All always right, or none ever: nothing to tell apart, and still a policy."""
    train = make_traces(0, n)
    train = replace(train, correct=np.full(train.answer.shape, right))
    policy = fitted(replace(QUICK, space=space, iterations=2), train)
    assert np.isfinite(followed(policy, make_traces(1, 9)).scores).all()
    assert policy.price_nano > 0


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=30)
def test_visits_step_by_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    traces = make_traces(seed, 6, 2, 2)
    items = items_of(traces, action_space("calls", 2, 2))
    line = np.full((6, 4), -1)
    for q in range(6):
        left = [0] * int(items.offered[q, 0].sum()) + [1] * int(items.offered[q, 1].sum())
        line[q, : len(left)] = rng.permutation(left)
    worth = rng.random((6, 4))
    found = visited(items, Order(line, worth))
    for q in range(6):
        bought = [0, 0]
        for step in range(4):
            assert found.cases.row[q * 4 + step] == q
            assert found.cases.bought[q * 4 + step].tolist() == bought
            assert found.reach[q, step] == worth[q, : step + 1].min()
            f = line[q, step]
            if f < 0:
                assert (found.cost_nano[q, step], found.right[q, step]) == (0, False)
                continue
            assert found.cost_nano[q, step] == traces.cost_nano[q, bought[f], f]
            assert found.right[q, step] == traces.correct[q, bought[f], f]
            bought[f] += 1


@given(st.integers(0, 2**32 - 1), st.sampled_from(["0.05", "0.1", "0.25", "0.5"]))
@settings(deadline=None, max_examples=50)
def test_the_price_of_coverage_is_the_last_worth_that_must_be_bought(seed: int, a: str) -> None:
    rng = np.random.default_rng(seed)
    alpha, traces = Fraction(a), make_traces(seed, 17, 2, 2)
    items = items_of(traces, action_space("calls", 2, 2))
    line = np.array([rng.permutation([0, 0, 1, 1]) for _ in range(17)])
    worth = rng.integers(1, 20, (17, 4)).astype(float)
    worth[:, 0] = np.inf
    made = visited(items, Order(line, worth))
    solvable = traces.solvable
    price, figures = price_of_coverage(made, solvable, alpha)

    def at(threshold: float) -> tuple[float, float]:
        cost, covered = 0.0, 0
        for q in range(17):
            steps = [s for s in range(4) if worth[q, : s + 1].min() >= threshold]
            cost += sum(made.cost_nano[q, s] for s in steps)
            covered += not solvable[q] or any(made.right[q, s] for s in steps)
        return cost / 17 / 1e9, covered

    enough = [t for t in (*range(1, 20), np.inf) if at(t)[1] >= 17 - int(alpha * 17)]
    threshold = max(enough)
    bought = max(worth[q, 1 : s + 1].min() for q, s in product(range(17), (1, 2, 3)))
    assert price == pytest.approx(1 / min(threshold, bought))
    assert figures["cost"] == pytest.approx(at(threshold)[0])
    assert figures["coverage"] == pytest.approx(at(threshold)[1] / 17)


def test_few_states_are_all_looked_at() -> None:
    cases = some_states(np.ones((3, 2, 3), bool), np.random.default_rng(0))
    found = [(int(q), *b) for q, b in zip(cases.row, cases.bought.tolist(), strict=True)]
    expected = [(q, a, b) for q, a, b in product(range(3), range(4), range(4)) if (a, b) != (3, 3)]
    assert sorted(found) == expected


def test_of_many_states_some_are_drawn_that_can_be_reached() -> None:
    offered = np.arange(1) < np.ones((50, 9, 1), int)
    offered[:25, 8] = False
    cases = some_states(offered, np.random.default_rng(0))
    assert (np.bincount(cases.row) == 120).all()
    assert (cases.bought <= offered.sum(axis=2)[cases.row]).all()
    whole = cases.bought[cases.row >= 25]
    assert (whole.sum(axis=1) < 9).all()  # something is left to buy
    share = [(whole.sum(axis=1) == k).mean() for k in range(9)]
    np.testing.assert_allclose(share, 1 / 9, atol=0.03)  # all numbers of purchases alike
    np.testing.assert_allclose(whole.mean(axis=0), 4 / 9, atol=0.05)  # and all calls alike


def test_one_question_is_too_few() -> None:
    fitted(QUICK, make_traces(0, 2))
    with pytest.raises(TooFewTracesError, match="1 question to train on"):
        fitted(QUICK, make_traces(0, 1))


@st.composite
def meagre(draw: st.DrawFn) -> TraceArrays:
    """Few questions, of which hardly a call has an answer or costs anything; some stop early."""
    roles = draw(st.sampled_from([("model",), ("small", "large"), ("base", "guide")]))
    n, horizon = draw(st.integers(2, 8)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    given_some, paid_some = (draw(st.sampled_from([0.0, 0.1, 0.9])) for _ in range(2))
    traces = make_traces(0, n, horizon, len(roles))
    shape = traces.answer.shape
    recorded = rng.integers(0, horizon + 1, n) if draw(st.booleans()) else np.full(n, horizon)
    made = (np.arange(horizon) < recorded[:, None])[:, :, None]
    answer = np.where(made & (rng.random(shape) < given_some), rng.integers(0, 3, shape), -1)
    said = np.where(answer >= 0, rng.random(shape), np.nan)
    return replace(
        traces,
        roles=roles,
        answer=answer.astype(np.int16),
        correct=answer == 0,
        cost_nano=np.where(made & (rng.random(shape) < paid_some), rng.integers(1, 9, shape), 0),
        signals={"uncertainty": said.astype(np.float32)},
        recorded=recorded.astype(np.int16),
    )


@pytest.mark.slow
@pytest.mark.parametrize("space", ["rounds", "calls"])
@given(train=meagre(), seed=st.integers(0, 9))
@settings(deadline=None, max_examples=25)
def test_a_pool_in_which_next_to_nothing_was_recorded_gives_a_policy(
    space: SpaceName, train: TraceArrays, seed: int
) -> None:
    policy = fitted(LookaheadConfig(space, iterations=2, trees=3, leaf=2), train, seed)
    assert np.isfinite(followed(policy, train).scores).all()
    assert 0 < policy.price_nano < np.inf


def test_a_fold_without_anything_to_buy_is_no_hindrance() -> None:
    """One question of three has a call: leave its fold out, and there is nothing to learn from."""
    train = make_traces(0, 3, horizon=2, roles=1)
    nothing = np.arange(3)[:, None, None] > 0
    train = replace(
        train,
        answer=np.where(nothing, -1, train.answer).astype(np.int16),
        correct=~nothing & train.correct,
        cost_nano=np.where(nothing, 0, train.cost_nano),
        signals={},
    )
    policy = fitted(replace(QUICK, space="rounds"), train)
    assert np.isfinite(followed(policy, train).scores).all()
