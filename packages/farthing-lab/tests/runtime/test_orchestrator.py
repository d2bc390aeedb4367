"""Live decisions are those of a replay: random traces, played back to every kind of policy."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from playback import ask, bundle_of, playback, question_of

from farthing.features.rounds import FeatureSet
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.methods.forest import LEAF, Forest
from farthing.methods.lookahead.learner import LookaheadConfig, LookaheadLearner
from farthing.methods.lookahead.policy import LookaheadPolicy
from farthing.methods.selective.confidence import Confidence, Evidence
from farthing.methods.selective.policy import SelectivePolicy, walk
from farthing.money import usd_from_nano
from farthing.process.base import Policy
from farthing.process.batch_replay import NestedReplay, followed, replay
from farthing.process.replay import EMPTY_SETS, sample
from farthing.runtime.protocol import Dialogue, Independent, judged
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.base import Question
from farthing.tasks.text import TEXT
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.pool import cascade
from farthing.traces.system import origin_of
from farthing_lab.methods.baselines.llm_replies import LlmExitPolicy, LlmPolicy
from farthing_lab.methods.baselines.rounds import RandomPolicy
from farthing_lab.methods.baselines.uala import UalaPolicy
from farthing_lab.methods.ccpo.policy import NetworkPolicy
from farthing_lab.methods.set_size_penalty import SetSizePenaltyPolicy, evidence
from farthing_lab.methods.stopping import StoppingPolicy

HORIZON = 3
REPLIES = ("policy-x", "exit-guide")

ANSWERS = st.sampled_from([None, "", "a", "A.", "b", "c"])
NUMBER = st.one_of(st.none(), st.floats(0, 1))
COST = st.integers(0, 10**6).map(usd_from_nano)


@st.composite
def calls(draw: st.DrawFn, number: int, role: str) -> Call:
    reply = {"policy-x": ("1", "2", "3", None), "exit-guide": ("exit", "continue", None)}.get(role)
    return Call(
        round=number,
        role=role,
        model=role,
        answer=draw(st.sampled_from(reply) if reply else ANSWERS),
        verdict=draw(st.sampled_from([None, True, False])) if role == "guide" else None,
        confidence=draw(NUMBER),
        uncertainty=draw(NUMBER) if role == "guide" else None,
        input_tokens=draw(st.one_of(st.none(), st.integers(0, 500))),
        output_tokens=draw(st.one_of(st.none(), st.integers(0, 500))),
        cost_usd=draw(COST),
    )


@st.composite
def protocol(draw: st.DrawFn) -> list[Trace]:
    n = draw(st.integers(2, 5))
    roles = ("base", "guide", *REPLIES)
    return [
        Trace(
            id=f"q{i}",
            question=f"question {i}",
            gold=["a"],
            calls=[draw(calls(t, role)) for t in range(1, HORIZON + 1) for role in roles],
        )
        for i in range(n)
    ]


def network(train: TraceArrays) -> Policy:
    rng = np.random.default_rng(1)
    features = FeatureSet.fit(train)
    sizes = (len(features.names), 8, train.n_roles + 1)
    weights = [rng.normal(size=pair) for pair in pairwise(sizes)]
    return NetworkPolicy(features, weights, [rng.normal(size=size) for size in sizes[1:]])


def stopping(train: TraceArrays) -> Policy:
    rng = np.random.default_rng(2)
    features = FeatureSet.fit(train)
    paid = train.horizon - 1
    return StoppingPolicy(
        features, rng.normal(size=(paid, len(features.names))), rng.normal(size=paid)
    )


class Silent:
    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        pass


def lookahead(train: TraceArrays) -> Policy:
    learner = LookaheadLearner(LookaheadConfig(iterations=2, trees=3, leaf=2))
    return learner.fit(train, Fraction(1, 10), 0, Silent()).policy


def confident(policy: Policy, train: TraceArrays) -> SelectivePolicy:
    """Let a policy say how sure it is, at random."""
    rng = np.random.default_rng(4)
    walked, evidence = walk(policy, train, "argmax"), Evidence.fit(train)
    width = evidence.of(train, walked.known, walked.along.traces.answer).shape[-1]
    root = np.zeros(1, dtype=np.int32)
    forest = Forest(root + LEAF, root.astype(np.float32), root, np.full((1, 1), 0.4), root, 0)
    sure = Confidence(evidence, rng.normal(size=width + 1), forest)
    levels = walked.sure(sure, train)
    until, enough = np.quantile(walked.reach, 0.4), np.quantile(levels, 0.8)
    return SelectivePolicy(policy, "argmax", float(until), float(enough), sure)


POLICIES: Mapping[str, Callable[[TraceArrays], Policy]] = {
    "network": network,
    "stopping": stopping,
    "lookahead": lookahead,
    "confident": lambda train: confident(stopping(train), train),
    "confident look-ahead": lambda train: confident(lookahead(train), train),
    "uala": lambda _: UalaPolicy(),
    "uala, by disagreement": lambda _: UalaPolicy("disagreement"),
    "fixed-depth": lambda _: FixedDepthPolicy(2),
    "random": lambda _: RandomPolicy(),
    "llm-policy": lambda _: LlmPolicy("policy-x"),
    "llm-exit": lambda _: LlmExitPolicy("exit-guide", "guide"),
}


def said(trace: Trace, whole: TraceArrays, t: int, place: int) -> str:
    """Return what the call behind one place of the arrays answered, normalised."""
    number, role = t + 1, whole.roles[place]
    if role == "model":
        number, role = 1, whole.models[0].split(" -> ")[t]
    answer = next(c.answer for c in trace.calls if (c.round, c.role) == (number, role))
    return TEXT.normalise(answer or "")


def check_against_replay(
    runner: PolicyRunner, traces: Sequence[Trace], whole: TraceArrays, kappa: float
) -> None:
    """Everything that a replay says of each question is what the live answer says."""
    bundle = runner.bundle
    replayed = replay(bundle.policy, whole, bundle.empty)
    assert isinstance(replayed, NestedReplay)
    if isinstance(bundle.policy, LlmExitPolicy):  # live, all roles are paid
        paid = whole.replies["exit-guide"].cost_nano
        replayed = dataclasses.replace(replayed, decision_cost_nano=paid)
    then, laid, scores = replayed.followed, replayed.traces, replayed.followed.score
    expected = replayed.act(kappa)
    for i, trace in enumerate(traces):
        found = ask(runner, question_of(trace))
        member = then.leaf[i] >= min(kappa, 1.0)
        texts = [TEXT.normalise(returned.text) for returned in found.answers]
        ranked = sorted(zip(*np.nonzero(member), strict=True), key=lambda at: (scores[i][at], *at))
        places = [(t, place) for t in range(whole.horizon) for place in range(whole.n_roles)]
        words = {whole.answer[i][at]: said(trace, whole, *at) for at in places}
        expected_texts = [words[laid.answer[i][at]] for at in ranked]
        assert set(texts) == set(expected_texts)
        assert texts[:1] == expected_texts[-1:]
        assert found.rounds == expected.length[i]
        assert found.cost_nano == expected.cost_nano[i]
        assert len(found.answers) == len(set(texts)) == expected.set_size[i]
        assert TEXT.grade(found.best, trace.gold) == expected.best_correct[i]
        assert ("a" in texts) == expected.in_set[i]
        assert found.trace.truncated == (found.rounds < laid.horizon)
        assert found.ended_by == "policy"
        assert found.caveats == ()
        by_score = [returned.score for returned in found.answers]
        assert by_score == sorted(by_score, reverse=True)
        made = [call for call in found.trace.calls if call.role not in REPLIES]
        assert all(known(call, found.trace, trace) in trace.calls for call in made)


def known(call: Call, live: Trace, recorded: Trace) -> Call:
    """Return a live call as it was recorded, without the most that it could have cost.

    A verdict that it lacks while the base has not been asked is filled in.
    """
    assert call.largest_cost_usd == call.cost_usd  # as `Recorded` has it
    call = msgspec.structs.replace(call, largest_cost_usd=None)
    base = any((c.round, c.role) == (call.round, "base") for c in live.calls)
    if call.role != "guide" or base:
        return call
    assert call.verdict is None
    verdict = next(
        c.verdict for c in recorded.calls if (c.round, c.role) == (call.round, call.role)
    )
    return msgspec.structs.replace(call, verdict=verdict)


def own_scores(policy: Policy, whole: TraceArrays) -> FloatArray:
    """Return every score that a policy gives to what can be done."""
    scores = np.unique(followed(policy, whole).scores)
    found: FloatArray = scores[scores >= 0]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
@settings(deadline=None, max_examples=8)
@given(st.data())
def test_decisions_are_those_of_a_replay(name: str, data: st.DataObject) -> None:
    traces = data.draw(protocol())
    whole = assemble(traces)
    policy = POLICIES[name](whole)
    empty = data.draw(st.sampled_from(EMPTY_SETS))
    scores = own_scores(policy, whole)
    kappa = float(data.draw(st.sampled_from([0.0, *scores, *(scores + 0.01), 1.5, np.inf])))
    asked = {"llm-policy": REPLIES[:1], "llm-exit": REPLIES[1:]}.get(name, ())
    everybody = playback(traces, ("base", "guide", *REPLIES))
    bundle = bundle_of(policy, origin_of(whole, "f"), kappa, empty)
    runner = PolicyRunner(bundle, Dialogue(everybody, HORIZON), TEXT)
    check_against_replay(runner, traces, whole, kappa)
    roles = {call.role for call in ask(runner, question_of(traces[0])).trace.calls}
    assert roles == {"base", "guide", *asked}


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.data())
def test_a_pool_is_played_as_a_cascade(data: st.DataObject) -> None:
    names = ("small", "middle", "large")
    traces = [
        Trace(id=f"q{i}", gold=["a"], calls=[data.draw(calls(1, name)) for name in names])
        for i in range(3)
    ]
    whole = cascade(assemble(traces))
    policy = data.draw(st.sampled_from([network, lookahead]))(whole)
    kappa = float(data.draw(st.sampled_from(list(own_scores(policy, whole)))))
    plan = Independent(playback(traces, names), 1, TEXT)
    bundle = bundle_of(policy, origin_of(whole, "f"), kappa)
    check_against_replay(PolicyRunner(bundle, plan, TEXT), traces, whole, kappa)


@st.composite
def independent(draw: st.DrawFn) -> list[Trace]:
    """Base and guide, each by itself in every round; or a pool."""
    pool = draw(st.booleans())
    roles = ("small", "middle", "large") if pool else ("base", "guide")
    rounds = 1 if pool else HORIZON
    traces = []
    for i in range(draw(st.integers(4, 8))):
        attempts = [draw(calls(t, role)) for t in range(1, rounds + 1) for role in roles]
        alone = [msgspec.structs.replace(call, verdict=None) for call in attempts]
        words = "how many " * draw(st.integers(1, 3)) + str(i)
        traces.append(
            Trace(
                id=f"q{i}",
                question=words,
                gold=["a"],
                calls=judged(alone, TEXT),
                independent=True,
            )
        )
    return traces


def by_call(whole: TraceArrays, around: str) -> Policy:
    """Train a policy that buys single calls; another one may have the last word on answers."""
    together = 3 if around == "sequence" else 1
    config = LookaheadConfig("calls", 1, 4, 1, together=together, wait_price=together - 1)
    learner = LookaheadLearner(config)
    lazy = learner.fit(whole, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(lazy, LookaheadPolicy)
    if around == "confident":
        return confident(lazy, whole)
    if around == "thrifty":
        along = lazy.followed(whole)
        width = evidence(along.traces, along.scores[:, :, -1]).shape[-1]
        weights = np.random.default_rng(3).normal(size=width + 1)
        return SetSizePenaltyPolicy(lazy, weights, lazy.price_nano)
    return lazy


@pytest.mark.slow
@settings(deadline=None, max_examples=40, phases=[Phase.generate])  # each example is a training
@given(st.data())
def test_a_policy_that_buys_call_by_call_is_played_as_it_is_replayed(data: st.DataObject) -> None:
    traces = data.draw(independent())
    roles = tuple(dict.fromkeys(call.role for call in traces[0].calls))
    arrays = assemble(traces)
    whole = arrays if "base" in roles else cascade(arrays)
    policy = by_call(
        whole, data.draw(st.sampled_from(["nothing", "thrifty", "confident", "sequence"]))
    )
    assert followed(policy, whole).traces.horizon == whole.horizon * whole.n_roles
    near = own_scores(policy, whole)
    kappa = float(data.draw(st.sampled_from([0.0, *near, *(near + 0.01), 1.5, np.inf])))
    empty = data.draw(st.sampled_from(EMPTY_SETS))
    alone = [
        msgspec.structs.replace(
            trace, calls=[msgspec.structs.replace(c, verdict=None) for c in trace.calls]
        )
        for trace in traces
    ]
    plan = Independent(playback(alone, roles), whole.horizon, TEXT)
    bundle = bundle_of(policy, origin_of(whole, "f"), kappa, empty)
    check_against_replay(PolicyRunner(bundle, plan, TEXT), traces, whole, kappa)


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.data())
def test_a_policy_without_a_threshold_draws_as_a_replay_does(data: st.DataObject) -> None:
    traces = data.draw(protocol())
    whole = assemble(traces)
    policy = data.draw(st.sampled_from([RandomPolicy(), network(whole)]))
    bundle = bundle_of(policy, origin_of(whole, "f"), None)
    agents = playback(traces, ("base", "guide"))
    runner = PolicyRunner(bundle, Dialogue(agents, HORIZON), TEXT)
    for i, trace in enumerate(traces):
        one = whole.take(np.array([i]))
        expected = sample(followed(policy, one).scores, one, np.random.default_rng(i))
        found = ask(runner, question_of(trace), rng=np.random.default_rng(i))
        assert found.rounds == expected.length[0]
        assert found.cost_nano == expected.cost_nano[0]
        assert len(found.answers) == expected.set_size[0]
        assert TEXT.grade(found.best, trace.gold) == expected.best_correct[0]


def test_the_trace_of_an_answer_is_the_recorded_one_as_far_as_it_went() -> None:
    roles = ("base", "guide")
    recorded = [
        Call(round=t, role=role, model=role, answer=f"{t}", cost_usd=0.001, largest_cost_usd=0.001)
        for t in (1, 2, 3)
        for role in roles
    ]
    trace = Trace(id="q", question="?", gold=["1"], group="g", calls=recorded)
    whole = assemble([trace])
    bundle = bundle_of(FixedDepthPolicy(2), origin_of(whole, "f"), 1.0)
    runner = PolicyRunner(bundle, Dialogue(playback([trace], roles), HORIZON), TEXT)
    found = ask(runner, Question("q", "?", ("1",), "g"))
    assert found.trace == msgspec.structs.replace(trace, calls=recorded[:4], truncated=True)
    assert [(r.text, r.round, r.role) for r in found.answers] == [
        ("2", 2, "guide"),
        ("1", 1, "guide"),
    ]
