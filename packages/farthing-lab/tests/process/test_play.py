"""Questions played turn by turn, with nothing in sight that is not bought, as a replay says.

What a policy does live is what `play` does; what is promised of it is what `replay` says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
import pytest
from examples import EXAMPLES, SHAPES, example, random_traces
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.process.base import NOTHING, Budget, InRounds, Policy
from farthing.process.batch_replay import Priced, followed, replay
from farthing.process.play import (
    PlayedQuestions,
    begin,
    initial_state,
    outcome_of,
    play,
    sample_actions,
)
from farthing.process.replay import EMPTY_SETS, paths, sample
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.baselines.rounds import OptimumPolicy

SEEDS = st.integers(0, 2**32 - 1)
OPTIMUM = "optimum"
CASES = [*((name, shape) for name in EXAMPLES for shape in SHAPES), (OPTIMUM, "generated")]


@cache
def policy_of(name: str, shape: str) -> Policy:
    config = preset("hotpotqa-llama2-7b").config
    return OptimumPolicy(config) if name == OPTIMUM else example(name, shape)


def questions(seed: int, shape: str, n: int) -> TraceArrays:
    """Some of whose calls were not recorded: in a pool any, else all rounds from one on."""
    if shape == "generated":
        return generate(preset("hotpotqa-llama2-7b").config, n, np.random.default_rng(seed))
    traces = random_traces(seed, *SHAPES[shape], n=n)
    rng = np.random.default_rng(seed)
    seconds = np.random.default_rng(seed).integers(0, 64, traces.answer.shape) / 8  # sums are exact
    traces = replace(traces, signals={**traces.signals, "latency_s": seconds.astype(np.float32)})
    made = rng.random(traces.answer.shape) < 0.8
    recorded = traces.recorded
    if traces.horizon > 1:
        recorded = rng.integers(1, traces.horizon + 1, n).astype(np.int16)
        recorded[: n // 2] = traces.horizon
        made = np.arange(traces.horizon)[:, None] < recorded[:, None, None]
        made = np.broadcast_to(made, traces.answer.shape)
    return without(replace(traces, recorded=recorded), made)


def without(traces: TraceArrays, made: BoolArray) -> TraceArrays:
    """Return questions as if some of their calls, [n, T, L], had never been made."""
    whole = made.all(axis=2)
    return replace(
        traces,
        answer=np.where(made, traces.answer, np.int16(NO_ANSWER)),
        correct=traces.correct & made,
        cost_nano=np.where(made, traces.cost_nano, 0),
        signals={name: np.where(made, v, np.float32("nan")) for name, v in traces.signals.items()},
        replies={
            role: replace(
                reply,
                action=np.where(whole, reply.action, np.int8(-1)),
                cost_nano=np.where(whole, reply.cost_nano, 0),
            )
            for role, reply in traces.replies.items()
        },
    )


def some_budget(traces: TraceArrays, rng: np.random.Generator) -> Budget:
    """Bounds are never below what a call costs, and some of them far above."""
    cost = traces.cost_nano.reshape(len(traces), -1)
    largest = cost + rng.integers(0, cost.max() + 1, cost.shape) * (rng.random(cost.shape) < 0.5)
    return Budget(int(rng.integers(0, largest.sum(axis=1).max() + 1)), largest)


def own_scores(policy: Policy, traces: TraceArrays, budget: Budget | None = None) -> FloatArray:
    """Return every score of a decision that can come up, rising, and 0 and 1."""
    along = followed(policy, traces, budget)
    scores = along.scores[along.bought]
    return np.unique(np.append(scores[scores >= 0], [0.0, 1.0]))


def some_thresholds(policy: Policy, traces: TraceArrays, rng: np.random.Generator) -> list[float]:
    """Return thresholds where much changes: scores themselves, and the ends."""
    inner = own_scores(policy, traces)
    return [0.0, 1.0, 1.5, *rng.choice(inner, 3).tolist()]


@dataclass(frozen=True)
class Said:
    """What a replay says is done at a threshold, call by call."""

    known: BoolArray
    """[n, C] which calls are bought."""
    returned: BoolArray
    """[n, C] whose answers are in the set."""
    best: IntArray
    """[n] the call of the best answer; -1 for none."""


def said(
    policy: Policy, traces: TraceArrays, kappa: float, empty: str, budget: Budget | None
) -> Said:
    along = followed(policy, traces, budget)
    bought = None if budget is None else along.bought
    then = paths(along.scores, along.traces, empty, bought)
    n, calls = len(traces), traces.answer[0].size
    known, returned = np.zeros((n, calls), bool), np.zeros((n, calls), bool)
    best, at = np.full(n, -1), min(kappa, 1.0)
    for q in range(n):
        highest = -np.inf
        for step, cells in enumerate(along.calls[q]):
            if not along.bought[q, step] or then.reach[q, step] < at:
                continue
            known[q, cells] = True
            for unit, cell in enumerate(cells):
                if then.leaf[q, step, unit] >= at:
                    returned[q, cell] = True
                    if along.scores[q, step, unit] >= highest:
                        highest, best[q] = along.scores[q, step, unit], cell
    return Said(known, returned, best)


def check(
    policy: Policy, traces: TraceArrays, kappas: Sequence[float], empty: str, budget: Budget | None
) -> None:
    """Hold playing to replaying at some thresholds: calls, set, best answer and what they cost."""
    replayed = replay(policy, traces, empty, budget)
    for kappa in kappas:
        played, expected = play(policy, traces, kappa, empty, budget), replayed.act(kappa)
        one = said(policy, traces, kappa, empty, budget)
        np.testing.assert_array_equal(played.state.known, one.known)
        np.testing.assert_array_equal(played.returned, one.returned)
        np.testing.assert_array_equal(played.best, one.best)
        found = outcome_of(played)
        found = replace(found, cost_nano=found.cost_nano + asking(policy, played))
        for field in fields(found):
            if field.name == "latency_s" and isinstance(policy, Priced):
                continue  # how long deciding took was not recorded
            np.testing.assert_array_equal(
                getattr(found, field.name), getattr(expected, field.name), field.name
            )


def asking(policy: Policy, played: PlayedQuestions) -> IntArray:
    """Return what deciding cost, [n]: once after each round that was bought."""
    if not isinstance(policy, Priced):
        return np.zeros(len(played.best), dtype=np.int64)
    rounds = (played.state.history != NOTHING).sum(axis=1)
    cost = policy.decision_cost_nano(played.state.recorded)
    if cost is None:
        return np.zeros(len(played.best), dtype=np.int64)
    paid: IntArray = np.where(np.arange(cost.shape[1]) < rounds[:, None], cost, 0).sum(axis=1)
    return paid


@pytest.mark.parametrize(("name", "shape"), CASES)
@given(empty=st.sampled_from(EMPTY_SETS), seed=SEEDS, limited=st.booleans())
@settings(deadline=None, max_examples=4)
def test_what_is_played_is_what_a_replay_says(
    name: str, shape: str, empty: str, seed: int, limited: bool
) -> None:
    policy, traces = policy_of(name, shape), questions(seed, shape, 7)
    rng = np.random.default_rng(seed)
    budget = some_budget(traces, rng) if limited else None
    check(policy, traces, some_thresholds(policy, traces, rng), empty, budget)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape"), CASES)
@given(seed=SEEDS, limited=st.booleans())
@settings(deadline=None, max_examples=2)
def test_a_question_alone_is_decided_to_the_bit_as_among_many(
    name: str, shape: str, seed: int, limited: bool
) -> None:
    policy, traces = policy_of(name, shape), questions(seed, shape, 60)
    budget = some_budget(traces, np.random.default_rng(seed)) if limited else None
    many = play(policy, traces, 1e-9, "argmax", budget)
    for q in (0, 31, 59):
        row = np.array([q])
        own = None if budget is None else budget.take(row)
        alone = play(policy, traces.take(row), 1e-9, "argmax", own)
        turns = alone.state.turn
        np.testing.assert_array_equal(alone.state.history[0], many.state.history[q, :turns])
        np.testing.assert_array_equal(alone.score[0], many.score[q])
        np.testing.assert_array_equal(alone.best[0], many.best[q])
        along, by_itself = followed(policy, traces, budget), followed(policy, traces.take(row), own)
        np.testing.assert_array_equal(by_itself.bought[0], along.bought[q])
        bought = along.bought[q]
        np.testing.assert_array_equal(by_itself.scores[0, bought], along.scores[q, bought])


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_the_critical_threshold_is_the_largest_at_which_playing_covers_once(
    name: str, shape: str
) -> None:
    covers_from_the_critical_threshold_on(name, shape, "argmax", 5, limited=True)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape"), CASES)
@given(empty=st.sampled_from(EMPTY_SETS), seed=SEEDS, limited=st.booleans())
@settings(deadline=None, max_examples=3)
def test_the_critical_threshold_is_the_largest_at_which_playing_covers(
    name: str, shape: str, empty: str, seed: int, limited: bool
) -> None:
    covers_from_the_critical_threshold_on(name, shape, empty, seed, limited=limited)


def covers_from_the_critical_threshold_on(
    name: str, shape: str, empty: str, seed: int, *, limited: bool
) -> None:
    policy, traces = policy_of(name, shape), questions(seed, shape, 3)
    budget = some_budget(traces, np.random.default_rng(seed)) if limited else None
    replayed = replay(policy, traces, empty, budget)
    tried = own_scores(policy, traces, budget)
    covered = np.stack(
        [outcome_of(play(policy, traces, kappa, empty, budget)).in_set for kappa in tried]
    )
    assert (covered[1:] <= covered[:-1]).all()  # the smaller a threshold, the more it covers
    largest = np.where(covered, tried[:, None], -np.inf).max(axis=0)
    largest[~traces.solvable] = np.inf
    np.testing.assert_array_equal(np.minimum(replayed.critical, 1), np.minimum(largest, 1))


@pytest.mark.parametrize("name", ["uala", "lookahead", "lookahead, call by call", "selective"])
def test_right_answers_that_cannot_be_afforded_are_lost_at_every_threshold(name: str) -> None:
    policy, traces = policy_of(name, "talk"), questions(3, "talk", 40)
    bounds = traces.cost_nano.reshape(40, -1)
    nothing = Budget(0, np.ones_like(bounds))
    critical = replay(policy, traces, "argmax", nothing).critical
    assert np.isneginf(critical[traces.solvable]).all()
    assert np.isposinf(critical[~traces.solvable]).all()
    assert not play(policy, traces, 0.0, "argmax", nothing).state.history.shape[1]
    enough = Budget(int(bounds.sum(axis=1).max()), bounds)
    np.testing.assert_array_equal(
        replay(policy, traces, "argmax", enough).critical, replay(policy, traces).critical
    )


@pytest.mark.parametrize("name", EXAMPLES)
@given(seed=SEEDS)
@settings(deadline=None, max_examples=4)
def test_no_budget_is_ever_overspent(name: str, seed: int) -> None:
    """However little the bounds exceed the prices, the first step included."""
    policy, traces = policy_of(name, "talk"), questions(seed, "talk", 20)
    budget = some_budget(traces, np.random.default_rng(seed))
    assert (play(policy, traces, 0.0, "allow", budget).state.spent_nano <= budget.nano).all()


@dataclass(frozen=True)
class Peeking(InRounds):
    """Looks at the next round's answer before it decides to pay for it."""

    stochastic: bool = False

    def scores(self, traces: TraceArrays) -> FloatArray:
        scores = np.ones((len(traces), traces.horizon, traces.n_roles + 1))
        scores[:, :-1, -1] = np.where(traces.answer[:, 1:, 0] == 0, 0.9, 0.1)
        return scores


class PeekingAtWhatIsRecorded(Peeking):
    """Reads grades, which no state shows."""

    def scores(self, traces: TraceArrays) -> FloatArray:
        scores = super().scores(traces)
        scores[:, :-1, -1] = np.where(traces.solvable[:, None], 0.9, 0.1)
        return scores


@pytest.mark.parametrize("cheat", [Peeking(), PeekingAtWhatIsRecorded()])
def test_a_policy_that_peeks_is_noticed(cheat: Policy) -> None:
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        check(cheat, questions(0, "talk", 30), [0.5], "argmax", None)


def test_what_is_shown_is_what_was_bought_and_no_grade() -> None:
    traces = questions(1, "talk", 9)
    state = begin(traces, policy_of("lookahead, call by call", "talk"))
    state = state.buying(np.arange(9) % 2).buying(np.ones(9, int))
    shown = initial_state(state).recorded
    calls = [{0, 1} if q % 2 == 0 else {1, 3} for q in range(9)]
    for q, known in enumerate(calls):
        hidden = [cell for cell in range(8) if cell not in known]
        assert (shown.answer[q].ravel()[hidden] == NO_ANSWER).all()
        assert not shown.cost_nano[q].ravel()[hidden].any()
        assert all(np.isnan(v[q].ravel()[hidden]).all() for v in shown.signals.values())
        bought = sorted(known)
        for name in ("answer", "cost_nano"):
            np.testing.assert_array_equal(
                getattr(shown, name)[q].ravel()[bought], getattr(traces, name)[q].ravel()[bought]
            )
    assert not shown.correct.any()


class Lots(np.random.Generator):
    """Deals given numbers."""

    def __init__(self, numbers: FloatArray) -> None:
        super().__init__(np.random.PCG64(0))
        self.numbers = numbers

    def random(self, *_: object, **__: object) -> FloatArray:  # type: ignore[override]
        return self.numbers


@pytest.mark.parametrize("name", ["random", "cpo", "llm-policy-guide"])
def test_actions_drawn_turn_by_turn_are_those_of_a_sampled_replay(name: str) -> None:
    policy, traces = policy_of(name, "talk"), questions(5, "talk", 50)
    numbers = np.random.default_rng(6).random((50, 4))
    expected = sample(followed(policy, traces).scores, traces, Lots(numbers))
    state, going = begin(traces, policy), np.ones(50, bool)
    cost, in_set = np.zeros(50, np.int64), np.zeros(50, bool)
    for turn in range(4):
        state = state.buying(np.zeros(50, np.int64))
        action = sample_actions(policy.decide(initial_state(state)), numbers[:, turn])
        cost += traces.round_cost_nano[:, turn] * going
        in_set |= going & (action.joins & traces.correct[:, turn]).any(axis=1)
        going = going & (action.line != NOTHING)
    np.testing.assert_array_equal(cost, expected.cost_nano)
    np.testing.assert_array_equal(in_set, expected.in_set)
    assert not going.any()
