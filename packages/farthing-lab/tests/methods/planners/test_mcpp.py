"""MCPP against exact dynamic programming; executions as arrays against executions step by step."""

from itertools import pairwise

import numpy as np
import pytest
from planner_worlds import random_workflow
from workflow_optimum import exact, instances

from farthing.errors import InputError
from farthing_lab.methods.planners.base import UNPLANNED, Remaining, Transition, play
from farthing_lab.methods.planners.mcpp import MCPP, Portfolio, executed
from farthing_lab.methods.simulators.workflow import (
    PartChoice,
    Workflow,
    WorkflowPart,
    WorkflowState,
    _Rows,
    follow,
)


def mean(workflow: Workflow, left: Remaining, runs: int, planner: Portfolio = MCPP) -> np.ndarray:
    return np.array(
        [
            play(planner, workflow, workflow.begin, left, np.random.default_rng([5, i])).value
            for i in range(runs)
        ]
    )


@pytest.mark.slow
def test_it_is_near_the_exact_optimum_and_never_beyond_it() -> None:
    runs = 300
    gaps: list[float] = []
    gains: list[float] = []
    for flow, left, best in instances(6, 2):
        got = mean(flow, left, runs)
        error = np.sqrt(best * (1 - best) / runs)
        assert got.mean() <= best + 4 * error
        gaps.append(best - got.mean())
        unplanned = [
            play(UNPLANNED, flow, flow.begin, left, np.random.default_rng([6, i])).value
            for i in range(runs)
        ]
        gains.append(got.mean() - np.mean(unplanned))
    assert np.mean(gaps) < 0.045  # 0.016 with a standard error of 0.009
    assert np.mean(gains) > -0.045  # -0.008, 0.012


def test_one_part_that_can_be_tried_once_gets_the_best_choice() -> None:
    part = WorkflowPart(
        "only",
        (
            PartChoice("small", 0.5, (10, 10), 1, token_nano=1),
            PartChoice("small", 0.5, (10, 10), 3, token_nano=1),
            PartChoice("large", 0.8, (10, 10), 1, token_nano=3),
        ),
    )
    flow = Workflow((part,))
    exact_best = {9: 0, 29: 0, 30: 1, 100: 1}  # 0.875 of three beats 0.8
    for nano, wanted in list(exact_best.items())[2:]:
        left = Remaining(nano, 0.15)
        chosen = {
            Portfolio(2_000).act(flow, flow.begin, left, np.random.default_rng(i)) for i in range(5)
        }
        assert chosen == {wanted}
        assert exact(flow, nano, 0.15) == pytest.approx(0.875)


@pytest.mark.slow
def test_more_money_and_more_time_are_not_worse() -> None:
    for flow, left, _ in instances(1, 2):
        best = [exact(flow, nano, left.seconds) for nano in range(0, 300, 30)]
        assert best == sorted(best)
        best = [exact(flow, left.nano, seconds) for seconds in np.arange(0.0, 30.0, 3.0).tolist()]
        assert best == sorted(best)
        for grid in (
            [Remaining(left.nano // 2), left, Remaining(2 * left.nano, left.seconds)],
            [Remaining(left.nano, left.seconds / 2), left, Remaining(left.nano, 2 * left.seconds)],
        ):
            grid[0] = Remaining(grid[0].nano, min(grid[0].seconds, left.seconds))
            got = [mean(flow, one, 25) for one in grid]
            for less, more in pairwise(got):
                lead = more - less
                assert lead.mean() > -2.5 * lead.std(ddof=1) / np.sqrt(len(lead)) - 0.01


class OneByOne:
    """A workflow without its executions as arrays."""

    def __init__(self, flow: Workflow) -> None:
        self.actions, self.step, self.value, self.usual = (
            flow.actions,
            flow.step,
            flow.value,
            flow.usual,
        )


@pytest.mark.slow
def test_executions_as_arrays_are_those_step_by_step() -> None:
    rng = np.random.default_rng(8)
    scores: list[float] = []
    for _ in range(12):
        flow = random_workflow(rng)
        left = Remaining(int(rng.integers(50, 500)), float(rng.integers(8, 60)))
        state = flow.begin
        for _ in range(int(rng.integers(0, 4))):  # somewhere on the way, with parts under way
            at = flow.usual(state, left)
            if at is not None and flow.actions(state):
                step = flow.step(state, at, rng)
                state, left = step.state, left.after(step)
        can = [i for i, one in enumerate(flow.actions(state)) if one.largest_nano <= left.nano]
        if not can or left.seconds < 0:
            continue
        fast = executed(flow, state, can[:2], left, 4_000, rng)
        slow = executed(OneByOne(flow), state, can[:2], left, 300, rng)
        spread = np.sqrt(fast.var(axis=1) / 4_000 + slow.var(axis=1) / 300) + 1e-3
        scores.extend((fast.mean(axis=1) - slow.mean(axis=1)) / spread)
    assert len(scores) >= 12
    assert np.abs(scores).max() < 4.0
    assert abs(np.mean(scores)) < 1.0


def test_executions_never_spend_more_than_is_left() -> None:
    rng = np.random.default_rng(9)
    for _ in range(100):
        flow = random_workflow(rng)
        left = Remaining(int(rng.integers(0, 300)), 40.0)
        rows = _Rows(flow.parts, 50, flow.begin, left)
        shape = 50, len(flow.parts), 2, 2
        while rows.going.any():
            rows.usual(rows.going, rng.random(shape))
            assert (rows.nano >= 0).all()
            rows.advance(rows.going)
            assert (rows.nano <= left.nano).all()
            assert (rows.nano >= 0).all()


def test_all_actions_are_executed_with_the_same_numbers() -> None:
    choices = (
        PartChoice("a", 0.5, (5, 9), token_nano=1),
        PartChoice("b", 0.5, (5, 9), token_nano=1),
    )
    flow = Workflow((WorkflowPart("only", choices),))
    both = follow(
        flow.parts, flow.begin, [(0, 0), (0, 1)], Remaining(9, 60.0), 500, np.random.default_rng(0)
    )
    assert (both[0] == both[1]).all()
    assert 0.3 < both.mean() < 0.7


def test_what_is_under_way_stays_unknown_and_what_was_not_used_comes_back() -> None:
    choice = PartChoice(
        "a", 1.0, (10, 20), 2, input_nano=5, token_nano=3, latency_s=1.0, tokens_per_s=10
    )
    assert (choice.largest_nano, choice.expected_nano) == (130, 100)
    flow = Workflow((WorkflowPart("one", (choice,)), WorkflowPart("two", (choice,), after=(0,))))
    rng = np.random.default_rng(0)
    begun = flow.step(flow.begin, 0, rng)
    assert begun.cost_nano == 130
    assert [one.name for one in flow.actions(begun.state)] == ["wait"]
    ended = [flow.step(begun.state, 0, rng) for _ in range(200)]
    assert {one.state.done for one in ended} == {(True, False)}
    assert {130 + one.cost_nano for one in ended} <= set(range(70, 131))
    assert all(2.0 <= one.seconds <= 3.0 for one in ended)  # the first of two right ones
    late = WorkflowState((False, False), (begun.state.under_way[0].__class__(0, 0, 2.8),))
    assert all(flow.step(late, 0, rng).seconds <= 0.2 + 1e-9 for _ in range(50))


def test_what_is_no_workflow_is_refused() -> None:
    choice = PartChoice("a", 0.5, (1, 2))
    with pytest.raises(InputError, match="no parts"):
        Workflow(())
    with pytest.raises(InputError, match="no model"):
        Workflow((WorkflowPart("one", ()),))
    with pytest.raises(InputError, match="itself or a later part"):
        Workflow((WorkflowPart("one", (choice,), after=(0,)),))
    for wrong in ({"success": 1.5}, {"tokens": (0, 2)}, {"samples": 0}, {"token_nano": -1}):
        with pytest.raises(InputError):
            PartChoice(**{"model": "a", "success": 0.5, "tokens": (1, 2)} | wrong)  # type: ignore[arg-type]


def test_a_step_gives_what_is_left() -> None:
    assert Remaining(10, 5.0).after(Transition("a", -3, 2.0)) == Remaining(13, 3.0)


def test_the_shortest_time_is_that_of_the_longest_way() -> None:
    """Two parts side by side, then one more; each by its quickest model."""
    slow = PartChoice("slow", 0.5, (100, 300), tokens_per_s=10.0)
    quick = PartChoice("quick", 0.5, (100, 300), tokens_per_s=50.0, latency_s=1.0)
    parts = (
        WorkflowPart("a", (slow, quick)),
        WorkflowPart("b", (slow,)),
        WorkflowPart("c", (quick,), after=(0, 1)),
    )
    assert Workflow(parts).shortest_s == 10.0 + 3.0


@pytest.mark.parametrize(
    ("money", "seconds", "usual"),
    [(100, 20.0, 1), (100, 15.9, 0), (16, 20.0, 1), (15, 20.0, 0), (5, 1.0, 0), (1, 20.0, None)],
)
def test_the_usual_way_gives_each_part_an_even_share(
    money: int, seconds: float, usual: int | None
) -> None:
    """Two parts in a row: a quick model takes 2 s for 2, a careful one, oftener right, 8 s for 8.

    The careful one fits where half of the time is 8 s and half of the money 8. Where neither fits
    it is the fastest that can be paid, and nobody for 1.
    """
    quick = PartChoice("quick", 0.5, (2, 2), token_nano=1, tokens_per_s=1.0)
    careful = PartChoice("careful", 0.9, (8, 8), token_nano=1, tokens_per_s=1.0)
    parts = WorkflowPart("draft", (quick, careful)), WorkflowPart("check", (quick, careful), (0,))
    workflow = Workflow(parts)
    assert workflow.usual(workflow.begin, Remaining(money, seconds)) == usual
