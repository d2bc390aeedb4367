"""One decision at a time gives what many at once give."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.features.calls import columns
from farthing.methods.lookahead.decide import Decider, Reader
from farthing.methods.lookahead.learner import LookaheadConfig, LookaheadLearner
from farthing.methods.lookahead.policy import LookaheadPolicy
from farthing.process.action_space import ProtocolName, protocol
from farthing.traces.arrays import NO_ANSWER, TraceArrays

SHAPES = {"protocol": (3, ("base", "guide")), "pool": (1, ("a", "b", "c")), "cascade": (4, ("m",))}
SIGNALS = ("confidence", "uncertainty", "output_tokens", "answer_number", "verdict")
CASES = [(shape, rules) for shape in SHAPES for rules in ("paper", "lazy")]


def make_traces(seed: int, n: int, horizon: int, roles: tuple[str, ...]) -> TraceArrays:
    rng = np.random.default_rng(seed)
    shape = (n, horizon, len(roles))
    answer = rng.integers(NO_ANSWER, 4, shape).astype(np.int16)
    signals = {name: 9 * rng.random(shape).astype(np.float32) for name in SIGNALS}
    for values in signals.values():
        values[rng.random(shape) < 0.3] = np.nan
    words = rng.integers(3, 60, (n, 1, 1))
    signals["question_words"] = np.broadcast_to(words, shape).astype(np.float32)
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=roles,
        models=("",) * len(roles),
        answer=answer,
        correct=answer == 0,
        cost_nano=rng.integers(1, 1_000, shape),
        signals=signals,
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=np.full(n, horizon, np.int16),
        independent=np.ones(n, bool),
    )


class Silent:
    def update(self, done: int, total: int, figures: object) -> None:
        pass


@cache
def trained(shape: str, rules: ProtocolName) -> LookaheadPolicy:
    learner = LookaheadLearner(LookaheadConfig(rules, iterations=2, trees=6, leaf=4))
    train = make_traces(0, 80, *SHAPES[shape])
    policy = learner.fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, LookaheadPolicy)
    return policy


@given(st.integers(0, 2**32 - 1), st.sampled_from(list(SHAPES)))
@settings(deadline=None, max_examples=60)
def test_every_number_is_that_of_many_questions_at_once(seed: int, shape: str) -> None:
    traces = make_traces(seed, 8, *SHAPES[shape])
    cells = traces.answer[0].size
    known = np.random.default_rng(seed).random((8, cells)) < 0.6
    expected = columns(traces, np.arange(8), known)
    reader = Reader(traces.roles, traces.horizon, expected)
    for q in range(8):
        flat = {name: values[q].ravel().tolist() for name, values in traces.signals.items()}
        calls = tuple(np.flatnonzero(known[q]).tolist())
        found = reader.read(calls, traces.answer[q].ravel().tolist(), flat)
        for name, values in expected.items():
            assert found.get(name, np.nan) == pytest.approx(
                values[q], rel=1e-12, abs=1e-12, nan_ok=True
            ), name


@pytest.mark.parametrize(("shape", "rules"), CASES)
@given(seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=15)
def test_line_and_score_are_those_of_the_order(shape: str, rules: ProtocolName, seed: int) -> None:
    policy, traces = trained(shape, rules), make_traces(seed, 6, *SHAPES[shape])
    order, (_, scores) = policy.order(traces), policy.arranged(traces)
    decider, steps = Decider(policy), protocol(rules, traces).steps
    for q in range(6):
        bought = [0] * policy.estimate.lines
        answers = traces.answer[q].ravel().tolist()
        signals = {name: values[q].ravel().tolist() for name, values in traces.signals.items()}
        for step in range(steps):
            choice = decider.decide(bought, answers, signals)
            assert choice.line == order.line[q, step]
            before = 1.0 if step == 0 else scores[q, step - 1, -1]
            assert choice.score == pytest.approx(before, rel=1e-9)
            bought[choice.line] += 1
        assert decider.decide(bought, answers, signals) == (-1, 0.0)


def test_calls_that_were_not_bought_are_not_looked_at() -> None:
    policy, traces = trained("protocol", "lazy"), make_traces(5, 1, *SHAPES["protocol"])
    answers = traces.answer[0].ravel().tolist()
    signals = {name: values[0].ravel().tolist() for name, values in traces.signals.items()}
    decider = Decider(policy)
    before = decider.decide([2, 1], answers, signals)
    for call in (3, 4, 5):  # the guide's second, both of round 3
        answers[call] = 3
        for name in SIGNALS:
            signals[name][call] = 1e6
    assert decider.decide([2, 1], answers, signals) == before
