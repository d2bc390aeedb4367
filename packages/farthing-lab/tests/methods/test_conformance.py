"""What every policy must do: an example of each class that cards name, and all that are trained.

A new policy is held to this once it has an example in `EXAMPLES`; what a new card trains at once.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from examples import (
    EXAMPLES,
    EXIT,
    OF_THOUGHTS,
    POLICY,
    SHAPES,
    example,
    in_rounds_or_calls,
    random_thoughts,
    random_traces,
)
from numpy.typing import NDArray

from farthing.errors import InputError
from farthing.methods.base import Dataset, Saveable, load
from farthing.methods.cards import cards
from farthing.process.base import Policy
from farthing.process.batch_replay import Priced, followed
from farthing.recommendation.candidates import candidates
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, PolicyReplies, TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.baselines.llm_replies import NO_REPLIES, LlmExitPolicy, LlmPolicy

PRESET = "hotpotqa-llama2-7b"
Case = tuple[Policy, TraceArrays]


@pytest.mark.slow
def test_every_class_of_policies_has_an_example() -> None:
    """But the one that knows the generator: it is asked about generated questions alone."""
    by_name = {card.name: card for card in in_rounds_or_calls()}
    examples = {by_name[name.split(",")[0]].policy for name in EXAMPLES}
    assert examples == {card.policy for card in by_name.values()} - {by_name["optimum"].policy}
    of_cuts = {card.name for card in cards() if card.space == "cuts"}
    assert of_cuts == OF_THOUGHTS.keys()
    traces = random_traces(0, 4, ("base", "guide"))
    for name, build in EXAMPLES.items():
        assert type(build(traces)) is load(by_name[name.split(",")[0]].policy)


class Brief:
    """Interrupts long trainings at their first report: a policy is a policy at any time."""

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        if total > 100:
            raise KeyboardInterrupt


@cache
def generated() -> Dataset:
    config = preset(PRESET).config
    traces = generate(config, 120, np.random.default_rng(4))
    replies = random_traces(5, config.rounds, traces.roles, n=120).replies
    named = {"policy-guide": POLICY, "policy-base": POLICY, "exit-guide": EXIT, "exit-base": EXIT}
    traces = replace(traces, replies={role: replies[kind] for role, kind in named.items()})
    apart = np.ones(len(traces), bool)  # so that policies that skip calls take part
    return Dataset("generated", replace(traces, independent=apart), config, PRESET)


TRAINED = [card.name for card in in_rounds_or_calls()]


@cache
def trained(name: str) -> Mapping[str, Policy]:
    """Return the policy of each candidate of a name."""
    found = {}
    for candidate in candidates(generated(), [name]):
        assert candidate.learner is not None, candidate.note
        fitted = candidate.learner.fit(generated().traces, Fraction(1, 10), 0, Brief())
        found[candidate.name] = fitted.policy
    assert found
    return found


@pytest.fixture(
    params=[(name, shape) for name in EXAMPLES for shape in SHAPES]
    + [(name, "candidate") for name in TRAINED]
    + [(name, "thought") for name in OF_THOUGHTS],
    ids=" - ".join,
)
def cases(request: pytest.FixtureRequest) -> list[Case]:
    """Policies, each with the traces that it is asked about."""
    name, kind = request.param
    if kind == "candidate":
        return [(policy, generated().traces) for policy in trained(name).values()]
    if kind == "thought":
        return [(OF_THOUGHTS[name](random_thoughts(0)), random_thoughts(1))]
    return [(example(name, kind), random_traces(1, *SHAPES[kind]))]


def test_scores_lie_between_0_and_1_and_the_last_round_has_no_next(cases: list[Case]) -> None:
    for policy, traces in cases:
        assert isinstance(policy, Policy)
        check_scores(policy, traces)


def check_scores(policy: Policy, traces: TraceArrays) -> None:
    along = followed(policy, traces)
    scores, laid = along.scores, along.traces
    assert scores.shape == (len(traces), laid.horizon, laid.n_roles + 1)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert scores[:, :, :-1].min() >= 0
    assert scores[:, :-1, -1].min(initial=0) >= 0
    assert scores.max() <= 1
    assert np.isin(scores[:, -1, -1], (0, -1)).all()  # -1: there is nothing left to buy
    if policy.stochastic:
        np.testing.assert_allclose(scores.sum(axis=2), 1, rtol=0, atol=1e-12)


def test_deciding_costs_whole_nano_dollars_and_no_round_costs_less_than_nothing(
    cases: list[Case],
) -> None:
    """An LLM that answers alone gives back the price of the calls that it does not make."""
    for policy, traces in cases:
        if isinstance(policy, Priced):
            cost, spent = policy.decision_cost_nano(traces), followed(policy, traces).traces
            if cost is None:
                continue
            assert cost.shape == (len(traces), spent.horizon)
            assert cost.dtype == np.int64
            assert (spent.round_cost_nano + cost).min() >= 0


def mixed(traces: TraceArrays, kept: BoolArray) -> TraceArrays:
    """Replace all that was recorded of other calls by what another question's say.

    Args:
        traces: the questions.
        kept: [n, T, L] the calls that stay; a reply stays where its whole round does.
    """
    other = traces.take(np.roll(np.arange(len(traces)), 1))
    whole = kept.all(axis=2)

    def calls(name: str) -> NDArray[Any]:
        values: NDArray[Any] = np.where(kept, getattr(traces, name), getattr(other, name))
        return values

    return replace(
        traces,
        answer=calls("answer"),
        correct=calls("correct"),
        cost_nano=calls("cost_nano"),
        signals={
            name: np.where(kept, values, other.signals[name])
            for name, values in traces.signals.items()
        },
        replies={
            role: PolicyReplies(
                np.where(whole, r.action, other.replies[role].action),
                np.where(whole, r.cost_nano, other.replies[role].cost_nano),
            )
            for role, r in traces.replies.items()
        },
    )


def bought(policy: Policy, traces: TraceArrays) -> IntArray:
    """Return the calls of each purchase, numbered from 1, [n, S, U]; 0 for none."""
    along = followed(policy, traces)
    return np.where(along.bought[:, :, None], along.calls + 1, 0)


def seen_by(policy: Policy, traces: TraceArrays) -> FloatArray:
    """Return scores, cost of deciding, and answers as laid out, side by side, [n, S, 2 U + 2]."""
    along = followed(policy, traces)
    paid = np.zeros(along.scores.shape[:2])
    if isinstance(policy, Priced):
        decided = policy.decision_cost_nano(traces)
        paid += 0 if decided is None else decided
    return np.concatenate([along.scores, paid[:, :, None], along.traces.answer], axis=2)


def test_no_decision_sees_a_call_that_is_not_paid(cases: list[Case]) -> None:
    """Not in its scores, nor in its choice of what to pay for next."""
    for policy, traces in cases:
        before, order = seen_by(policy, traces), bought(policy, traces)
        number = np.arange(traces.answer[0].size).reshape(traces.answer[0].shape) + 1
        for t in range(order.shape[1] - 1):
            own = order[:, : t + 1].reshape(len(traces), -1)
            kept = np.any(number[None, ..., None] == own[:, None, None], axis=-1)
            after = mixed(traces, kept)
            np.testing.assert_allclose(
                seen_by(policy, after)[:, : t + 1], before[:, : t + 1], rtol=0, atol=1e-12
            )
            np.testing.assert_array_equal(bought(policy, after)[:, : t + 2], order[:, : t + 2])


def test_every_call_is_paid_once(cases: list[Case]) -> None:
    for policy, traces in cases:
        order = bought(policy, traces).reshape(len(traces), -1)
        every = np.arange(traces.answer[0].size) + 1
        np.testing.assert_array_equal(
            np.sort(order, axis=1), np.broadcast_to(every, order.shape), str(policy)
        )


def test_no_decision_sees_a_grade(cases: list[Case]) -> None:
    for policy, traces in cases:
        regraded = replace(traces, correct=~traces.correct)
        np.testing.assert_array_equal(seen_by(policy, regraded), seen_by(policy, traces))


def test_a_question_is_decided_alone(cases: list[Case]) -> None:
    """Another order of the questions, or some of them, gives the same scores of each."""
    rng = np.random.default_rng(3)
    for policy, traces in cases:
        whole = seen_by(policy, traces)
        order = rng.permutation(len(traces))
        for index in (order, order[:7], order[:1], np.flatnonzero(order % 2)):
            found = seen_by(policy, traces.take(index))
            np.testing.assert_allclose(found, whole[index], rtol=0, atol=1e-12)


def test_scoring_changes_neither_the_traces_nor_the_policy(cases: list[Case]) -> None:
    for policy, traces in cases:
        kept = traces.take(np.arange(len(traces)))
        first = seen_by(policy, traces)
        np.testing.assert_array_equal(traces.answer, kept.answer)
        for name, values in kept.signals.items():
            np.testing.assert_array_equal(traces.signals[name], values)
        np.testing.assert_array_equal(seen_by(policy, traces), first)


def test_what_a_bundle_keeps_brings_it_back(cases: list[Case]) -> None:
    for policy, traces in cases:
        if isinstance(policy, Saveable):
            arrays, settings = policy.to_state()
            stored = {name: values.copy() for name, values in arrays.items()}
            back = type(policy).from_state(stored, json.loads(json.dumps(settings)))
            assert back.stochastic == policy.stochastic
            np.testing.assert_array_equal(seen_by(back, traces), seen_by(policy, traces))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_works_where_only_answers_were_recorded(name: str, shape: str) -> None:
    """Trained on bare traces, and trained on full ones and then asked about bare ones."""
    full = random_traces(0, *SHAPES[shape])
    bare = replace(random_traces(1, *SHAPES[shape]), signals={})
    for train in (full, bare):
        check_scores(EXAMPLES[name](train), bare)


@pytest.mark.parametrize("name", ["llm-policy-guide", "exit-guide"])
def test_replies_are_never_invented(name: str) -> None:
    traces = replace(random_traces(0, 4, ("base", "guide")), replies={})
    policy = EXAMPLES[name](traces)
    assert isinstance(policy, LlmPolicy | LlmExitPolicy)
    for ask in (policy.scores, policy.decision_cost_nano):
        with pytest.raises(InputError, match=NO_REPLIES):
            ask(traces)
