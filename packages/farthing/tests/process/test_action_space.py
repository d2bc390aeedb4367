"""What may be bought when, against plain loops over questions, lines and items."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError
from farthing.process.action_space import (
    ActionSpace,
    SpaceName,
    action_space,
    arrange,
    items_of,
    recorded_space,
)
from farthing.process.replay import EMPTY_SETS, outcome, paths
from farthing.traces.arrays import NO_ANSWER, BoolArray, TraceArrays

SHAPES = [(4, 2), (1, 5), (5, 1), (2, 3), (1, 1)]
"""Rounds and roles: a base and a guide, a pool, a cascade, a mixture, a single call."""
SPACES: tuple[SpaceName, ...] = ("rounds", "calls")
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


def calls(space: ActionSpace, line: int, item: int, roles: int) -> list[tuple[int, int]]:
    """Round and role of each call of an item."""
    return [divmod(int(cell), roles) for cell in space.cells[line, item]]


def any_order(space: ActionSpace, offered: BoolArray, rng: np.random.Generator) -> list[int]:
    """Buy at random for one question until nothing is on offer."""
    bought = [0] * space.lines
    order: list[int] = []
    while True:
        can = [f for f in range(space.lines) if offered[f, bought[f] : bought[f] + 1].any()]
        if not can:
            return order + [-1] * (space.steps - len(order))
        order.append(int(rng.choice(can)))
        bought[order[-1]] += 1


def test_lines_of_each_action_space() -> None:
    rounds, single = action_space("rounds", 3, 2), action_space("calls", 3, 2)
    assert rounds.cells.tolist() == [[[0, 1], [2, 3], [4, 5]]]
    assert single.cells.tolist() == [[[0], [2], [4]], [[1], [3], [5]]]
    assert action_space("calls", 1, 3).cells.tolist() == [[[0]], [[1]], [[2]]]
    assert action_space("calls", 3, 1).cells.tolist() == [[[0]], [[1]], [[2]]]
    assert action_space("rounds", 3, 1).cells.tolist() == [[[0], [1], [2]]]
    assert (single.lines, single.items, single.width, single.steps) == (2, 3, 1, 6)
    assert (rounds.name, single.name) == ("rounds", "calls")


def test_recorded_questions_have_the_space_of_their_shape() -> None:
    traces = make_traces(0, 3, 2)
    for name in SPACES:
        found = recorded_space(name, traces)
        assert found.cells.tolist() == action_space(name, 3, 2).cells.tolist()


def test_calls_that_saw_others_cannot_be_skipped() -> None:
    traces = make_traces(0, 3, 2)
    some = replace(traces, independent=np.arange(12) > 1)
    with pytest.raises(InputError, match="2 of 12 questions have calls that saw earlier ones"):
        recorded_space("calls", some)
    assert recorded_space("rounds", some).lines == 1


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("shape", SHAPES)
@given(seed=SEEDS)
@settings(deadline=None, max_examples=25)
def test_prices_and_what_is_seen_call_by_call(
    name: SpaceName, shape: tuple[int, int], seed: int
) -> None:
    traces = make_traces(seed, *shape)
    space, roles = recorded_space(name, traces), shape[1]
    items = items_of(traces, space)
    for q in range(len(traces)):
        for line in range(space.lines):
            there = True
            for item in range(space.items):
                cells = calls(space, line, item, roles)
                cost = sum(int(traces.cost_nano[q, t, r]) for t, r in cells)
                assert items.cost_nano[q, line, item] == cost
                right = any(traces.correct[q, t, r] for t, r in cells)
                assert items.correct[q, line, item] == right
                there &= any(bool(traces.made[q, t, r]) for t, r in cells)
                assert items.offered[q, line, item] == there
    rng = np.random.default_rng(seed)
    bought = rng.integers(0, space.items + 1, (9, space.lines))
    known = space.known(bought)
    for case in range(9):
        found = {
            t * roles + r
            for line in range(space.lines)
            for item in range(bought[case, line])
            for t, r in calls(space, line, item, roles)
        }
        assert set(np.flatnonzero(known[case]).tolist()) == found


@pytest.mark.parametrize("name", SPACES)
def test_a_call_that_was_not_made_ends_its_line(name: SpaceName) -> None:
    """What was recorded after a hole cannot be bought: nobody would come to it."""
    traces = make_traces(1, 4, 2)
    made = np.ones((12, 4, 2), dtype=bool)
    made[3, 1] = made[5, 2, 0] = made[7, 0, 1] = False
    traces = replace(traces, recorded=np.full(12, 4, np.int16), made=made)
    offered = items_of(traces, recorded_space(name, traces)).offered.tolist()
    whole = [True] * 4
    if name == "rounds":  # one call of a round will do
        assert (offered[3], offered[5], offered[7]) == ([[True] + [False] * 3], [whole], [whole])
    else:
        assert offered[3] == [[True] + [False] * 3] * 2
        assert offered[5] == [[True, True, False, False], whole]
        assert offered[7] == [whole, [False] * 4]
    assert all(offered[q] == [whole] * len(offered[q]) for q in range(12) if q not in {3, 5, 7})


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("shape", SHAPES)
@given(seed=SEEDS)
@settings(deadline=None, max_examples=25)
def test_an_order_is_laid_out_purchase_by_purchase(
    name: SpaceName, shape: tuple[int, int], seed: int
) -> None:
    traces = make_traces(seed, *shape)
    traces = replace(traces, largest_cost_nano=traces.cost_nano + 1)
    space, rng = recorded_space(name, traces), np.random.default_rng(seed)
    offered = items_of(traces, space).offered
    order = np.array([any_order(space, offered[q], rng) for q in range(len(traces))])
    laid = arrange(traces, space, order)
    assert laid.answer.shape == (len(traces), space.steps, space.cells.shape[2])
    for q in range(len(traces)):
        bought = [0] * space.lines
        for step, line in enumerate(order[q]):
            if line < 0:
                assert (laid.answer[q, step] == NO_ANSWER).all()
                assert not laid.cost_nano[q, step].any()
                assert not laid.largest_cost_nano[q, step].any()
                assert not laid.correct[q, step].any()
                continue
            cells = calls(space, line, bought[line], shape[1])
            bought[line] += 1
            assert laid.answer[q, step].tolist() == [traces.answer[q, t, r] for t, r in cells]
            assert laid.correct[q, step].tolist() == [traces.correct[q, t, r] for t, r in cells]
            assert laid.cost_nano[q, step].tolist() == [traces.cost_nano[q, t, r] for t, r in cells]
            assert (laid.largest_cost_nano[q, step] == laid.cost_nano[q, step] + 1).all()


@pytest.mark.parametrize("empty", EMPTY_SETS)
@given(seed=SEEDS)
@settings(deadline=None, max_examples=50)
def test_the_order_of_rounds_is_their_replay(empty: str, seed: int) -> None:
    """Each round bought in turn: cost, sets, coverage and lengths are the very same."""
    traces = make_traces(seed, 4, 2)
    space, rng = recorded_space("rounds", traces), np.random.default_rng(seed)
    offered = items_of(traces, space).offered[:, 0]
    laid = arrange(traces, space, np.where(offered, 0, -1))
    # a round that was not recorded holds nothing; one that holds nothing ends the line
    kept = np.where(offered[:, :, None], traces.answer, NO_ANSWER)
    same = replace(traces, answer=kept, correct=traces.correct & offered[:, :, None])
    same = replace(same, cost_nano=np.where(offered[:, :, None], traces.cost_nano, 0))
    scores = rng.random((len(traces), 4, 3))
    for kappa in (0.0, 0.3, 0.7, 1.0):
        expected = outcome(paths(scores, same, empty), same, kappa)
        found = outcome(paths(scores, laid, empty), laid, kappa)
        for name in expected.__dataclass_fields__:
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_where_every_round_was_recorded_nothing_is_left_out() -> None:
    traces = make_traces(3, 4, 2)
    traces = replace(traces, recorded=np.full(12, 4, np.int16))
    laid = arrange(traces, recorded_space("rounds", traces), np.zeros((12, 4), dtype=int))
    for name in ("answer", "correct", "cost_nano"):
        np.testing.assert_array_equal(getattr(laid, name), getattr(traces, name))
    assert (laid.roles, laid.models) == (traces.roles, traces.models)
