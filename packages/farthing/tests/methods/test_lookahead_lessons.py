"""What look-ahead is taught, against plain loops; and that no question judges itself."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from farthing.methods.lookahead import learner as lookahead
from farthing.methods.lookahead.learner import (
    Cases,
    LookaheadConfig,
    Visits,
    _LookaheadTraining,
    visited,
)
from farthing.methods.lookahead.policy import Order, ordered
from farthing.process.action_space import Items, SpaceName
from farthing.process.batch_replay import NestedReplay, replay
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays

TENTH = Fraction(1, 10)
FEW = LookaheadConfig("calls", iterations=1, trees=6, leaf=3)


def make_traces(seed: int, n: int) -> TraceArrays:
    """Two rounds of two independent roles; of some questions the last calls were not recorded."""
    rng = np.random.default_rng(seed)
    answer = rng.integers(0, 3, (n, 2, 2)).astype(np.int16)
    recorded = rng.integers(1, 3, n).astype(np.int16)
    made = np.arange(2)[:, None] < recorded[:, None, None]
    answer = np.where(made, answer, -1).astype(np.int16)
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=("a", "b"),
        models=("", ""),
        answer=answer,
        correct=answer == 0,
        cost_nano=np.where(made, rng.integers(1, 1_000, answer.shape), 0),
        signals={"confidence": np.where(made, rng.random(answer.shape), np.nan).astype(np.float32)},
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=recorded,
        independent=np.ones(n, bool),
    )


class Whim:
    """Takes any purchase for good or bad, by what was bought of which question."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(9)
        self.gain, self.cost = rng.random((2, n, 3, 3, 2))

    def __call__(self, row: IntArray, bought: IntArray) -> tuple[FloatArray, FloatArray]:
        place = row, bought[:, 0], bought[:, 1]
        return self.gain[place], self.cost[place]


def right(traces: TraceArrays, q: int, have: list[int]) -> bool:
    return any(traces.correct[q, : have[line], line].any() for line in range(2))


def follow(traces: TraceArrays, whim: Whim, price: float, q: int, have: list[int]) -> int:
    """Buy on, in place, while the best is worth its money; return what that costs."""
    spent = 0
    while lines := [line for line in range(2) if have[line] < traces.recorded[q]]:
        gain, cost = whim.gain[q, have[0], have[1]], whim.cost[q, have[0], have[1]]
        best = max(lines, key=lambda line: gain[line] / cost[line])
        if gain[best] / cost[best] * price < 1:
            break
        spent += int(traces.cost_nano[q, have[best], best])
        have[best] += 1
    return spent


@pytest.mark.parametrize("price", [None, 0.0, 0.7, 100.0])
def test_a_lesson_is_what_each_purchase_and_what_follows_it_gain_and_cost(
    price: float | None,
) -> None:
    """Without a price, the purchase alone."""
    n = 40
    traces, whim = make_traces(0, n), Whim(n)
    training = _LookaheadTraining(FEW, traces, TENTH, 0)
    bought = np.array([(a, b) for a in range(3) for b in range(3)])
    cases = Cases(np.repeat(np.arange(n), len(bought)), np.tile(bought, (n, 1)))
    lesson = training._taught(cases, None if price is None else whim, price or 0.0)

    looked_at = 0
    for case, line in product(range(len(cases.row)), range(2)):
        q, before = int(cases.row[case]), cases.bought[case].tolist()
        if max(before) > traces.recorded[q]:
            continue  # nobody gets there
        assert lesson.possible[case, line] == (before[line] < traces.recorded[q])
        if lesson.possible[case, line]:
            have = list(before)
            cost = int(traces.cost_nano[q, have[line], line])
            have[line] += 1
            cost += 0 if price is None else follow(traces, whim, price, q, have)
            assert lesson.cost[case, line] == cost
            gains = right(traces, q, have) and not right(traces, q, before)
            assert lesson.gain[case, line] == gains
            looked_at += 1
    assert looked_at > n


@pytest.mark.parametrize("space", ["rounds", "calls"])
def test_no_question_is_judged_by_estimates_that_have_seen_its_grades(
    space: SpaceName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grades of one fold are turned round: its own order of purchases stays, others' change."""
    orders = []

    def watched(items: Items, order: Order) -> Visits:
        orders.append(order)
        return visited(items, order)

    monkeypatch.setattr(lookahead, "visited", watched)
    # one number, how forest and linear model are mixed, is fitted to all questions
    monkeypatch.setattr(lookahead, "best_share", lambda *_: 0.5)
    traces = make_traces(1, 90)
    traces = replace(traces, recorded=np.full(90, 2, np.int16), made=np.ones_like(traces.made))
    config = replace(FEW, space=space)
    mine = _LookaheadTraining(config, traces, TENTH, 0).fold == 0
    turned = np.where(mine[:, None, None], ~traces.correct, traces.correct)
    for correct in (traces.correct, turned):
        _LookaheadTraining(config, replace(traces, correct=correct), TENTH, 0).improve()
    same = [
        (getattr(orders[0], name) == getattr(orders[1], name)).all(axis=1)
        for name in ("line", "worth")
    ]
    assert same[0][mine].all()
    assert same[1][mine].all()
    assert not same[1][~mine].any()


def test_the_first_purchase_is_made_at_every_threshold() -> None:
    """Its worth is infinite, however little the estimates think of it."""
    traces = make_traces(2, 30)
    training = _LookaheadTraining(FEW, traces, TENTH, 0)
    order = ordered(training.items.offered, Whim(30))
    assert np.isposinf(order.worth[:, 0]).all()
    assert np.isfinite(order.worth[:, 1]).all()
    training.improve()
    played = replay(replace(training.policy, price_nano=1e-30), traces)
    assert isinstance(played, NestedReplay)
    first = played.traces.cost_nano[:, 0, 0]
    assert first.all()
    np.testing.assert_array_equal(played.act(1.0).cost_nano, first)
    np.testing.assert_array_equal(played.act(1e-9).cost_nano, first)
