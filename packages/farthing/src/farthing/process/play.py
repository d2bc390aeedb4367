"""Play questions turn by turn: what a policy decides, a threshold or a lot turns into actions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from farthing.process import latency
from farthing.process.action_space import arrange, cells_of, items_of, recorded_space
from farthing.process.base import NOTHING, Budget, Decision, Policy, State
from farthing.process.operating_points import OperatingPoints, distinct
from farthing.process.replay import ReplayOutcome, at_worst, likeliest_counts_as_one
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class TurnAction:
    """What is done after a turn, about n questions."""

    line: IntArray
    """[n] the line to buy from; `NOTHING` ends the question."""
    joins: BoolArray
    """[n, U] which answers of the latest purchase join the set."""


def threshold_actions(decision: Decision, kappa: float, empty: str) -> TurnAction:
    """Take every action that scores at least min(kappa, 1): C(o) = {a : score(a, o) >= kappa}.

    At kappa = 0 that is everything.

    Args:
        decision: the policy's.
        kappa: the threshold.
        empty: `argmax`: the likeliest action always belongs to the set, so its score counts as 1;
            `allow`: none may.
    """
    scores = with_next(decision)
    if empty == "argmax":
        scores = likeliest_counts_as_one(scores)
    taken = scores >= min(kappa, 1.0)
    return TurnAction(np.where(taken[:, -1], decision.line, NOTHING), taken[:, :-1])


def sample_actions(decision: Decision, uniform: FloatArray) -> TurnAction:
    """Draw one action of each question.

    Args:
        decision: of a policy whose scores are probabilities.
        uniform: [n] numbers drawn from [0, 1).
    """
    scores = np.maximum(with_next(decision), 0.0)
    cumulative = scores.cumsum(axis=1)
    action = (uniform[:, None] * cumulative[:, -1:] >= cumulative[:, :-1]).sum(axis=1)
    joins = action[:, None] == np.arange(scores.shape[1] - 1)
    return TurnAction(np.where(action == scores.shape[1] - 1, decision.line, NOTHING), joins)


def with_next(decision: Decision) -> FloatArray:
    """Return the scores of the answers and, last, of going on, [n, U + 1].

    Where nothing can be bought, going on is no action, and scores -1.
    """
    go_on = np.where(decision.line == NOTHING, -1.0, decision.go_on)
    return np.concatenate([decision.answers, go_on[:, None]], axis=1)


def continued(before: Decision, now: Decision) -> Decision:
    """Return what is decided after a purchase: what was decided together with it, then anew."""
    if before.also is None or now.also is None:
        return now
    more = before.pending
    following = before.also[:, :1].sum(axis=1)
    rest = np.pad(before.also, ((0, 0), (0, 1)), constant_values=NOTHING)[:, 1:]
    return replace(
        now,
        line=np.where(more, following, now.line),
        go_on=np.where(more, before.go_on, now.go_on),
        also=np.where(more[:, None], rest, now.also),
    )


def begin(traces: TraceArrays, policy: Policy, budget: Budget | None = None) -> State:
    """Return the state of recorded questions before anything was bought."""
    space = recorded_space(policy.space, traces)
    offered = items_of(traces, space).offered
    if policy.space == "rounds":
        offered = np.ones_like(offered)  # a round that is yet to come was not recorded
    return State(traces, space, offered, np.zeros((len(traces), 0), dtype=np.int64), budget)


@dataclass(frozen=True)
class PolicyOrder:
    """What a policy decides along its own order, as if it went on for ever."""

    traces: TraceArrays
    """[n, S, U] the questions as rounds of one purchase each, in that order; purchases that cannot
    be made come last, where they were recorded: what they would say tells which are solvable."""
    scores: FloatArray
    """[n, S, U + 1] of each answer when it was bought and, last, of going on."""
    calls: IntArray
    """[n, S, U] which call of its question each answer is, t * L + l."""
    bought: BoolArray
    """[n, S] whether the purchase can be made at all."""
    waits: BoolArray | None = None
    """[n, S] whether it waits for the replies to those before it; None: each does."""

    def known(self, calls: int) -> BoolArray:
        """Return which calls, of so many, are known after each purchase, [n, S, T * L]."""
        n, steps, width = self.calls.shape
        known = np.zeros((n, steps, calls), dtype=bool)
        rows, at = np.arange(n)[:, None], np.arange(steps)[None]
        for unit in range(width):
            known[rows, at, self.calls[:, :, unit]] |= self.bought
        return np.logical_or.accumulate(known, axis=1)


Decide = Callable[[State], Decision]


def follow(
    policy: Policy,
    traces: TraceArrays,
    budget: Budget | None = None,
    decide: Decide | None = None,
) -> PolicyOrder:
    """Buy everything that can be bought, in the order that the policy decides.

    The order does not depend on any threshold, so that sets are nested in it.

    Args:
        policy: one whose decisions are the same at every threshold.
        traces: the questions.
        budget: what each may cost; then some purchases cannot be made.
        decide: the policy's `decide`, if it has a quicker one for these questions.
    """
    decide = decide or policy.decide
    state = begin(traces, policy, budget)
    steps, width = state.space.steps, state.space.width
    scores = np.zeros((len(traces), steps, width + 1))
    order = np.full((len(traces), steps), NOTHING)
    bought = np.zeros(order.shape, dtype=bool)
    waits = np.ones(order.shape, dtype=bool)
    before = decide(state)
    line = before.line
    for step in range(steps):
        bought[:, step] = line != NOTHING
        order[:, step] = line if budget is None else _in_any_order(line, state)
        if (order[:, step] == NOTHING).all():
            break
        state = state.buying(order[:, step])
        decision = continued(before, decide(state))
        scores[:, step] = with_next(decision)
        waits[:, step + 1 : step + 2] = ~before.pending[:, None]
        line = np.where(bought[:, step], decision.line, NOTHING)
        before = decision
    laid = traces if policy.space == "rounds" else arrange(traces, state.space, order)
    return PolicyOrder(laid, scores, cells_of(state.space, order), bought, waits)


def _in_any_order(line: IntArray, state: State) -> IntArray:
    """Return the lines, [n]; where nothing can be paid for, any that would be next without limit.

    Those calls are not bought. But they were recorded, and whether a question is solvable does not
    depend on a budget.
    """
    can = replace(state, budget=None).can_buy
    rest = np.where(can.any(axis=1), can.argmax(axis=1), NOTHING)
    return np.where(line == NOTHING, rest, line)


@dataclass(frozen=True)
class PlayedQuestions:
    """What n questions came to."""

    state: State
    """At the end."""
    returned: BoolArray
    """[n, T * L] the calls whose answers are in the set."""
    score: FloatArray
    """[n, T * L] what the policy thought of each of them."""
    best: IntArray
    """[n] the call that gives the single answer; -1 for none."""
    waits: BoolArray
    """[n, turn] whether each purchase waited for the replies to those before it."""

    @property
    def lost(self) -> BoolArray:
        """[n] whether the way on is unknown: at worst a call was bought that was not made."""
        traces, known = self.state.recorded, self.state.known
        unknown: BoolArray = np.any(known & ~traces.made.reshape(known.shape), axis=1)
        return unknown & traces.at_worst


def play(
    policy: Policy,
    traces: TraceArrays,
    kappa: float,
    empty: str = "argmax",
    budget: Budget | None = None,
) -> PlayedQuestions:
    """Play recorded questions call by call; a decision is shown nothing but the calls made.

    This is what runs live, over recordings. It is slow; `batch_replay.replay` says the same of many
    at once.

    Args:
        policy: any policy that acts through a threshold or a parameter.
        traces: the questions.
        kappa: the threshold or parameter.
        empty: see `threshold_actions`.
        budget: what each question may cost.
    """
    state = replace(begin(traces, policy, budget), parameter=kappa)
    n, calls = len(traces), state.space.cells.size
    returned, score = np.zeros((n, calls), dtype=bool), np.zeros((n, calls))
    best, turn = np.full(n, -1), np.zeros((n, calls), dtype=np.int64)
    before = policy.decide(initial_state(state))
    line, waits = opening(before, state, kappa), [np.ones(n, dtype=bool)]
    while (line != NOTHING).any():
        running = line != NOTHING
        state = state.buying(line)
        decided = continued(before, policy.decide(initial_state(state)))
        decision = all_actions(decided, state, kappa)
        action = threshold_actions(decision, kappa, empty)
        rows, cells = np.flatnonzero(running)[:, None], state.latest[running]
        returned[rows, cells], score[rows, cells] = action.joins[running], decision.answers[running]
        turn[rows, cells] = state.turn
        if decision.single is not None:
            best[running] = decision.single[running]
        line = np.where(running, action.line, NOTHING)
        waits.append(~before.pending)
        before = decided
    returned &= traces.answer.reshape(n, -1) != NO_ANSWER
    if policy.parameters is None:
        best = highest(returned, score, turn)
    return PlayedQuestions(state, returned, score, best, np.stack(waits, axis=1)[:, : state.turn])


def outcome_of(played: PlayedQuestions) -> ReplayOutcome:
    """Price and grade what questions came to."""
    traces, n = played.state.recorded, len(played.best)
    correct = traces.correct.reshape(n, -1)
    given = played.best >= 0
    history, space = played.state.history, played.state.space
    seconds = latency.of_purchases(traces, cells_of(space, history), played.waits)
    purchases = (history != NOTHING).sum(axis=1)
    lost = played.lost
    in_set: BoolArray = np.any(played.returned & correct & ~lost[:, None], axis=1)
    found = ReplayOutcome(
        cost_nano=played.state.spent_nano,
        in_set=in_set,
        covered=in_set | ~traces.solvable,
        solvable=traces.solvable,
        best_correct=given & correct[np.arange(n), played.best],
        length=purchases.astype(np.int16),
        set_size=distinct(played.returned[:, None], traces.answer.reshape(n, -1))[:, 0],
        set_size_leaves=played.returned.sum(axis=1).astype(np.int16),
        latency_s=latency.after(seconds, purchases),
    )
    return at_worst(found, lost, traces.dearest_nano)


def points_of(parameters: FloatArray, played: Sequence[PlayedQuestions]) -> OperatingPoints:
    """Return what questions came to at each of a policy's operating points."""
    found = [outcome_of(one) for one in played]

    def stacked(name: str) -> IntArray:
        return np.stack([getattr(one, name) for one in found], axis=1)

    return OperatingPoints(
        values=parameters,
        cost_nano=stacked("cost_nano"),
        correct=stacked("best_correct").astype(bool),
        answered=np.stack([(one.best >= 0) | one.lost for one in played], axis=1),
        covered=stacked("in_set").astype(bool),
        calls=stacked("length").astype(np.int16),
        set_size=stacked("set_size").astype(np.int16),
        answers=stacked("set_size_leaves").astype(np.int16),
        latency_s=None if found[0].latency_s is None else stacked("latency_s").astype(float),
    )


def initial_state(state: State) -> State:
    """Return the state without anything that is not known yet."""
    return replace(state, recorded=state.seen)


def opening(decision: Decision, state: State, kappa: float) -> IntArray:
    """Return the line of the first purchase, [n]; it is made wherever it can be."""
    return all_actions(decision, state, kappa).line


def all_actions(decision: Decision, state: State, kappa: float) -> Decision:
    """Return the decision, which at kappa = 0 goes on for as long as anything can be bought."""
    if kappa > 0:
        return decision
    first = np.where(state.can_buy.any(axis=1), state.can_buy.argmax(axis=1), NOTHING)
    line = np.where(decision.line == NOTHING, first, decision.line)
    return replace(decision, line=line)


def highest(returned: BoolArray, score: FloatArray, turn: IntArray) -> IntArray:
    """Return the highest-scored call of each set, [n]; of equals the latest, there the last.

    Args:
        returned: [n, C] the set; -1 is returned where it is empty.
        score: [n, C]
        turn: [n, C] when each call was made.
    """
    calls = np.arange(returned.shape[1])
    ranked = [np.lexsort((calls, turn[i], score[i])) for i in range(len(returned))]
    found = [[c for c in order if returned[i, c]] for i, order in enumerate(ranked)]
    return np.array([order[-1] if order else -1 for order in found], dtype=np.int64)
