"""What may be bought when, against plain loops over questions, lines and items."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError
from farthing.process.action_space import Protocol, arrange, lazy, paper, priced, protocol
from farthing.process.replay import EMPTY_SETS, outcome, paths
from farthing.traces.arrays import NO_ANSWER, BoolArray, TraceArrays

SHAPES = [(4, 2), (1, 5), (5, 1), (2, 3), (1, 1)]
"""Rounds and roles: the paper's protocol, a pool, a cascade, a mixture, a single call."""
SEEDS = st.integers(0, 2**32 - 1)


def make_traces(seed: int, horizon: int, roles: int, n: int = 12) -> TraceArrays:
    """Any questions at all; of some, calls are missing: at the end of rounds, or here and there."""
    rng = np.random.default_rng(seed)
    shape = (n, horizon, roles)
    made = rng.random(shape) < rng.choice([0.5, 0.9, 1.0])
    recorded = np.where(rng.random(n) < 0.5, horizon, rng.integers(1, horizon + 1, n))
    if horizon > 1:
        made &= np.arange(horizon)[:, None] < recorded[:, None, None]
    answer = np.where(made, rng.integers(NO_ANSWER, 3, shape), NO_ANSWER).astype(np.int16)
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=tuple(f"role{i}" for i in range(roles)),
        models=("",) * roles,
        answer=answer,
        correct=answer == 0,
        cost_nano=np.where(made, rng.integers(0, 1_000, shape), 0),
        signals={},
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=recorded.astype(np.int16),
        independent=np.ones(n, bool),
    )


def calls(rules: Protocol, line: int, item: int, roles: int) -> list[tuple[int, int]]:
    """Round and role of each call of an item."""
    return [divmod(int(cell), roles) for cell in rules.cells[line, item]]


def any_order(rules: Protocol, on_offer: BoolArray, rng: np.random.Generator) -> list[int]:
    """Buy at random for one question until nothing is on offer."""
    bought = [0] * rules.lines
    order: list[int] = []
    while True:
        can = [f for f in range(rules.lines) if on_offer[f, bought[f] : bought[f] + 1].any()]
        if not can:
            return order + [-1] * (rules.steps - len(order))
        order.append(int(rng.choice(can)))
        bought[order[-1]] += 1


def test_lines_of_each_protocol() -> None:
    rounds = make_traces(0, 3, 2)
    assert paper(rounds).cells.tolist() == [[[0, 1], [2, 3], [4, 5]]]
    assert lazy(rounds).cells.tolist() == [[[0], [2], [4]], [[1], [3], [5]]]
    assert lazy(make_traces(0, 1, 3)).cells.tolist() == [[[0]], [[1]], [[2]]]
    assert lazy(make_traces(0, 3, 1)).cells.tolist() == [[[0]], [[1]], [[2]]]
    assert (lazy(rounds).lines, lazy(rounds).items, lazy(rounds).steps) == (2, 3, 6)
    assert protocol("paper", rounds).name == "paper"
    assert protocol("lazy", rounds).name == "lazy"


def test_calls_that_saw_others_cannot_be_skipped() -> None:
    traces = make_traces(0, 3, 2)
    some = replace(traces, independent=np.arange(12) > 1)
    with pytest.raises(InputError, match="2 of 12 questions have calls that saw earlier ones"):
        lazy(some)
    assert paper(some).lines == 1


@pytest.mark.parametrize("name", ["paper", "lazy"])
@pytest.mark.parametrize("shape", SHAPES)
@given(seed=SEEDS)
@settings(deadline=None, max_examples=25)
def test_prices_and_what_is_seen_call_by_call(name: str, shape: tuple[int, int], seed: int) -> None:
    traces = make_traces(seed, *shape)
    rules, roles = protocol(name, traces), shape[1]
    shelf = priced(traces, rules)
    whole = traces.recorded == shape[0]
    for q in range(len(traces)):
        for line in range(rules.lines):
            there = True
            for item in range(rules.items):
                cells = calls(rules, line, item, roles)
                cost = sum(int(traces.cost_nano[q, t, r]) for t, r in cells)
                assert shelf.cost_nano[q, line, item] == cost
                right = any(traces.correct[q, t, r] for t, r in cells)
                assert shelf.correct[q, line, item] == right
                said = any(traces.answer[q, t, r] != NO_ANSWER for t, r in cells)
                there &= said or cost > 0 or bool(roles > 1 and whole[q])
                assert shelf.on_offer[q, line, item] == there
    rng = np.random.default_rng(seed)
    bought = rng.integers(0, rules.items + 1, (9, rules.lines))
    known = rules.seen(bought)
    for case in range(9):
        found = {
            t * roles + r
            for line in range(rules.lines)
            for item in range(bought[case, line])
            for t, r in calls(rules, line, item, roles)
        }
        assert set(np.flatnonzero(known[case]).tolist()) == found


@pytest.mark.parametrize("name", ["paper", "lazy"])
@pytest.mark.parametrize("shape", SHAPES)
@given(seed=SEEDS)
@settings(deadline=None, max_examples=25)
def test_an_order_is_laid_out_purchase_by_purchase(
    name: str, shape: tuple[int, int], seed: int
) -> None:
    traces = make_traces(seed, *shape)
    traces = replace(traces, largest_cost_nano=traces.cost_nano + 1)
    rules, rng = protocol(name, traces), np.random.default_rng(seed)
    on_offer = priced(traces, rules).on_offer
    order = np.array([any_order(rules, on_offer[q], rng) for q in range(len(traces))])
    laid = arrange(traces, rules, order)
    assert laid.answer.shape == (len(traces), rules.steps, rules.cells.shape[2])
    for q in range(len(traces)):
        bought = [0] * rules.lines
        for step, line in enumerate(order[q]):
            if line < 0:
                assert (laid.answer[q, step] == NO_ANSWER).all()
                assert not laid.cost_nano[q, step].any()
                assert not laid.largest_cost_nano[q, step].any()
                assert not laid.correct[q, step].any()
                continue
            cells = calls(rules, line, bought[line], shape[1])
            bought[line] += 1
            assert laid.answer[q, step].tolist() == [traces.answer[q, t, r] for t, r in cells]
            assert laid.correct[q, step].tolist() == [traces.correct[q, t, r] for t, r in cells]
            assert laid.cost_nano[q, step].tolist() == [traces.cost_nano[q, t, r] for t, r in cells]
            assert (laid.largest_cost_nano[q, step] == laid.cost_nano[q, step] + 1).all()


@pytest.mark.parametrize("empty", EMPTY_SETS)
@given(seed=SEEDS)
@settings(deadline=None, max_examples=50)
def test_the_order_of_rounds_is_the_replay_of_the_paper(empty: str, seed: int) -> None:
    """Each round bought in turn: cost, sets, coverage and lengths are the very same."""
    traces = make_traces(seed, 4, 2)
    rules, rng = paper(traces), np.random.default_rng(seed)
    on_offer = priced(traces, rules).on_offer[:, 0]
    laid = arrange(traces, rules, np.where(on_offer, 0, -1))
    # a round that was not recorded holds nothing; one that holds nothing ends the line
    kept = np.where(on_offer[:, :, None], traces.answer, NO_ANSWER)
    same = replace(traces, answer=kept, correct=traces.correct & on_offer[:, :, None])
    same = replace(same, cost_nano=np.where(on_offer[:, :, None], traces.cost_nano, 0))
    scores = rng.random((len(traces), 4, 3))
    for kappa in (0.0, 0.3, 0.7, 1.0):
        expected = outcome(paths(scores, same, empty), same, kappa)
        found = outcome(paths(scores, laid, empty), laid, kappa)
        for name in expected.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_where_every_round_was_recorded_nothing_is_left_out() -> None:
    traces = make_traces(3, 4, 2)
    traces = replace(traces, recorded=np.full(12, 4, np.int16))
    laid = arrange(traces, paper(traces), np.zeros((12, 4), dtype=int))
    for name in ("answer", "correct", "cost_nano"):
        np.testing.assert_array_equal(getattr(laid, name), getattr(traces, name))
    assert (laid.roles, laid.models) == (traces.roles, traces.models)
