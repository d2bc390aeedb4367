"""Several calls by one decision: what a set is worth, when it waits, and how near the best it is.

The order that is bought in, and its thresholds, are held to enumeration in `test_lookahead`.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from farthing.methods.base import Silent
from farthing.methods.lookahead.learner import (
    LAZY,
    LAZY_LEARNER,
    Cases,
    LookaheadLearner,
    _LookaheadTraining,
)
from farthing.methods.lookahead.policy import LookaheadPolicy
from farthing.process.base import Budget
from farthing.process.batch_replay import NestedReplay, followed, replay
from farthing.process.play import begin, outcome_of, play
from farthing.traces.arrays import TraceArrays
from farthing_lab.methods.lookahead.sequence import SEQUENCE_LEARNER

TENTH = Fraction(1, 10)
ROUNDS, ROLES = 2, ("a", "b")
SETS = [one for size in (1, 2, 3) for one in combinations_with_replacement((0, 1), size)]
SETS = [one for one in SETS if max(one.count(0), one.count(1)) <= ROUNDS]
"""Of two lines of two calls, the lines of each set."""


def arrays(answer: np.ndarray, cost: np.ndarray, seconds: np.ndarray | None = None) -> TraceArrays:
    """Return questions whose right answer is 0, all of whose calls were made, [n, 2, 2]."""
    n = len(answer)
    signals = {} if seconds is None else {"latency_s": seconds.astype(np.float32)}
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=ROLES,
        models=("", ""),
        answer=answer.astype(np.int16),
        correct=answer == 0,
        cost_nano=np.broadcast_to(cost, answer.shape).astype(np.int64),
        signals=signals,
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=np.full(n, ROUNDS, np.int16),
        independent=np.ones(n, bool),
    )


def some(seed: int, n: int, *, timed: bool = True) -> TraceArrays:
    rng = np.random.default_rng(seed)
    shape = (n, ROUNDS, len(ROLES))
    seconds = np.where(rng.random(shape) < 0.1, np.nan, 0.5 + rng.random(shape))
    answer, cost = rng.integers(0, 4, shape), rng.integers(100, 1_000, shape)
    return arrays(answer, cost, seconds if timed else None)


def fitted(learner: LookaheadLearner, train: TraceArrays) -> LookaheadPolicy:
    policy = learner.fit(train, TENTH, 0, Silent()).policy
    assert isinstance(policy, LookaheadPolicy)
    return policy


def nested(
    policy: LookaheadPolicy, traces: TraceArrays, budget: Budget | None = None
) -> NestedReplay:
    played = replay(policy, traces, budget=budget)
    assert isinstance(played, NestedReplay)
    return played


@pytest.mark.parametrize("timed", [True, False])
def test_a_set_is_worth_what_its_calls_bring_and_cost_and_its_slowest_call_takes(
    timed: bool,
) -> None:
    """A loop over questions, states and sets; a call of unknown time counts as an average one."""
    traces = some(1, 30, timed=timed)
    config = replace(LAZY, trees=3, together=3, wait_price=2.5)
    training = _LookaheadTraining(config, traces, TENTH, 0)
    bought = np.array(list(product(range(ROUNDS + 1), repeat=2)))
    cases = Cases(np.repeat(np.arange(30), len(bought)), np.tile(bought, (30, 1)))
    lesson = training._taught(cases, None, 0.0)
    seconds = traces.signals["latency_s"].astype(float) if timed else np.full((30, 2, 2), np.nan)
    average = np.nanmean(seconds) if timed else 1.0
    mean_cost = traces.cost_nano.mean()
    tried = 0
    for case, (place, lines) in product(range(len(cases.row)), enumerate(SETS)):
        q, have = int(cases.row[case]), cases.bought[case].tolist()
        fits = all(have[k] + lines.count(k) <= ROUNDS for k in (0, 1))
        assert lesson.possible[case, place] == fits
        if not fits:
            continue
        calls = [(have[k] + j, k) for k in (0, 1) for j in range(lines.count(k))]
        already = any(traces.correct[q, t, k] for k in (0, 1) for t in range(have[k]))
        brings = any(traces.correct[q, t, k] for t, k in calls)
        waits = [seconds[q, t, k] / average for t, k in calls]
        wait = max(1.0 if np.isnan(one) else one for one in waits)
        cost = sum(int(traces.cost_nano[q, t, k]) for t, k in calls) + 2.5 * mean_cost * wait
        assert lesson.gain[case, place] == (brings and not already)
        assert lesson.cost[case, place] == pytest.approx(cost, rel=1e-9)
        tried += 1
    assert tried > 300


def test_of_one_call_and_without_a_price_of_waiting_it_is_lazy() -> None:
    train, new = some(2, 120), some(3, 60)
    config = replace(SEQUENCE_LEARNER.config, together=1, wait_price=0.0)
    mine, lazy = (fitted(one, train) for one in (LookaheadLearner(config), LAZY_LEARNER))
    assert mine.price_nano == lazy.price_nano
    one, other = followed(mine, new), followed(lazy, new)
    np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_array_equal(one.calls, other.calls)
    assert one.waits is not None
    assert one.waits.all()
    together = followed(fitted(SEQUENCE_LEARNER, train), new).waits
    assert together is not None
    assert not together.all()


def test_what_is_decided_together_is_waited_for_once() -> None:
    """Turn by turn and all at once; and the time is the sum over sets of their slowest calls."""
    policy, new = fitted(SEQUENCE_LEARNER, some(4, 120)), some(5, 40)
    new = replace(new, signals={"latency_s": np.nan_to_num(new.signals["latency_s"], nan=1.0)})
    quick, along = nested(policy, new), followed(policy, new)
    assert along.waits is not None
    seconds = new.signals["latency_s"].reshape(len(new), -1).astype(float)
    for kappa in (0.0, *np.quantile(along.scores[:, :-1, -1], (0.2, 0.5, 0.8)), 1.0):
        found = quick.act(float(kappa))
        slow = play(policy, new, float(kappa))
        np.testing.assert_array_equal(outcome_of(slow).cost_nano, found.cost_nano)
        seconds_too = outcome_of(slow).latency_s
        assert found.latency_s is not None
        assert seconds_too is not None
        np.testing.assert_allclose(seconds_too, found.latency_s, rtol=1e-12)
        for q in range(len(new)):
            trips: list[list[float]] = []
            for step in range(int(found.length[q])):
                if along.waits[q, step]:
                    trips.append([])
                trips[-1].append(seconds[q, along.calls[q, step, 0]])
            assert found.latency_s[q] == pytest.approx(sum(map(max, trips)))


def test_a_set_is_bought_only_where_all_of_it_fits_what_is_left() -> None:
    policy, new = fitted(SEQUENCE_LEARNER, some(6, 120)), some(7, 30)
    largest = (new.cost_nano * 1.2).astype(np.int64).reshape(30, -1)
    cells = [[0, 2], [1, 3]]  # of each line
    sets = np.array([[one.count(0), one.count(1)] for one in SETS])
    short = 0
    for nano in (0, 700, 1_500, 2_500, 10_000):
        state = begin(new, policy, Budget(nano, largest))
        for line in (0, 1):
            can = state.can_buy_sets(sets)
            left = nano - state.spent_nano
            for q, (place, one) in product(range(30), enumerate(SETS)):
                have = state.bought[q]
                fits = all(have[k] + one.count(k) <= ROUNDS for k in (0, 1))
                calls = [c for k in (0, 1) for c in cells[k][have[k] : have[k] + one.count(k)]]
                assert can[q, place] == (fits and sum(largest[q, c] for c in calls) <= left[q])
                short += fits and not can[q, place]
            state = state.buying(np.full(30, line))
        played = play(policy, new, 0.0, budget=Budget(nano, largest))
        np.testing.assert_array_equal(
            outcome_of(played).cost_nano,
            nested(policy, new, Budget(nano, largest)).act(0.0).cost_nano,
        )
        assert (played.state.spent_nano <= nano).all()
    assert short > 100


# ---- A world that can be enumerated

SKILL = np.array([[0.85, 0.95], [0.45, 0.75], [0.1, 0.35]])
"""How often each line is right, of easy, middling and hard questions."""
WEIGHT = np.array([0.5, 0.3, 0.2])
WRONG = 3
"""Wrong answers, equally likely."""
COST = np.array([1_000, 4_000])
"""Nano-dollars of a call of each line."""
WAIT = 2_500.0
"""What a round trip is worth: the mean cost of a call."""
CALLS = [(t, k) for t in range(ROUNDS) for k in (0, 1)]
WORLD = np.array(list(product(range(WRONG + 1), repeat=len(CALLS))))
"""All that the four calls may say, 0 for the right answer."""


def chances() -> np.ndarray:
    """[W] how likely each outcome is: calls are independent given the hidden difficulty."""
    skill = np.tile(SKILL, ROUNDS)[:, None]
    each = np.where(WORLD == 0, skill, (1 - skill) / WRONG)
    found: np.ndarray = WEIGHT @ each.prod(axis=2)
    return found


CHANCE = chances()


def pattern(bought: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Of each outcome, what is seen of it: answers numbered as they first come."""
    seen = [c for c, (t, k) in enumerate(CALLS) if t < bought[k]]
    return [
        tuple(list(dict.fromkeys(row)).index(a) for a in row) for row in WORLD[:, seen].tolist()
    ]


PATTERNS = {b: pattern(b) for b in product(range(ROUNDS + 1), repeat=2)}
COVERED = {
    b: np.any([WORLD[:, c] == 0 for c, (t, k) in enumerate(CALLS) if t < b[k]], axis=0)
    if any(b)
    else np.zeros(len(WORLD), bool)
    for b in PATTERNS
}


def best_value(price: float, wait: float, most: int) -> float:
    """The greatest mean of price * covered - money - waits of all policies, by recursion.

    What was seen of some calls tells what was seen of fewer, so that a state is all its history.
    """

    @cache
    def value(bought: tuple[int, int], seen: tuple[int, ...]) -> float:
        rows = np.array([one == seen for one in PATTERNS[bought]])
        reached = float(CHANCE[rows].sum())
        best = price * float(CHANCE[rows] @ COVERED[bought][rows]) if any(bought) else -np.inf
        for more in product(range(ROUNDS + 1), repeat=2):
            after = (bought[0] + more[0], bought[1] + more[1])
            if 1 <= sum(more) <= most and max(after) <= ROUNDS:
                then = {one for one, inside in zip(PATTERNS[after], rows, strict=True) if inside}
                cost = float(COST @ more) + wait
                best = max(best, sum(value(after, one) for one in then) - cost * reached)
        return best

    return value((0, 0), ())


def least_cost(coverage: float, wait: float, most: int) -> float:
    """No policy reaches a coverage for less: the dual of the mean over questions."""
    prices = np.geomspace(500, 500_000, 60)
    return max(float(p) * coverage - best_value(float(p), wait, most) for p in prices.tolist())


def spending(policy: LookaheadPolicy, coverage: float) -> tuple[float, float]:
    """Return the mean of money and waits, and of right answers, where a coverage is reached."""
    world = arrays(WORLD.reshape(-1, ROUNDS, 2), COST)
    played, waits = nested(policy, world), followed(policy, world).waits
    assert waits is not None
    reached = (
        one for one in played.thresholds()[::-1] if CHANCE @ played.act(one).covered >= coverage
    )
    found = played.act(next(reached, 0.0))
    trips = (waits & (np.arange(waits.shape[1]) < found.length[:, None])).sum(axis=1)
    return float(CHANCE @ (found.cost_nano + WAIT * trips)), float(CHANCE @ found.in_set)


def test_without_a_price_of_waiting_no_set_is_of_use_and_with_one_it_is() -> None:
    for price in (3_000.0, 20_000.0, 200_000.0):
        assert best_value(price, 0.0, 3) == pytest.approx(best_value(price, 0.0, 1))
    assert best_value(100_000.0, WAIT, 3) > best_value(100_000.0, WAIT, 1) + 100


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "most"), [("0.1", 1.01), ("0.05", 1.01), ("0.02", 1.01)])
def test_it_costs_little_more_than_the_best_of_all_policies(alpha: str, most: float) -> None:
    """And less than the best that buys one call at a time; `lazy` costs 1.4 times the best."""
    rng = np.random.default_rng(0)
    train = arrays(WORLD[rng.choice(len(WORLD), 3_000, p=CHANCE)].reshape(-1, ROUNDS, 2), COST)
    for learner, lowest, highest in ((SEQUENCE_LEARNER, 1 - 1e-9, most), (LAZY_LEARNER, 1.35, 2)):
        policy = learner.fit(train, Fraction(alpha), 0, Silent()).policy
        assert isinstance(policy, LookaheadPolicy)
        spent, right = spending(policy, float(1 - Fraction(alpha)) - 1e-9)
        assert lowest < spent / least_cost(right, WAIT, 3) < highest
        assert (spent < least_cost(right, WAIT, 1)) == (learner is SEQUENCE_LEARNER)
