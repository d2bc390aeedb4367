"""A promise that was calibrated under a budget a question: live questions go as a replay says.

Bounds of costs are declared a role, and lie above what calls cost; so budgets forbid some calls
that could have been paid.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from msgspec import structs
from playback import ask, playback, question_of
from question_parts import proved_bundle

from farthing.bundle.base import Bundle
from farthing.errors import InputError
from farthing.methods.base import Silent
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.methods.lookahead.learner import LookaheadConfig, LookaheadLearner
from farthing.money import usd_from_nano
from farthing.process.action_space import SpaceName
from farthing.process.batch_replay import replay
from farthing.process.budget import PerQuestion
from farthing.process.play import PlayedQuestions, outcome_of, play
from farthing.promises.kinds.coverage import Coverage
from farthing.recommendation.certify import Serving
from farthing.recommendation.played import PlayedPolicy, Questions
from farthing.runtime.protocol import Dialogue, Independent, Protocol
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.text import TEXT
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.pool import cascade
from farthing.traces.system import origin_of
from farthing_lab.methods.baselines.llm_replies import LlmPolicy

TOGETHER = {"base": 1_000, "guide": 3_000}
POOL = {"small": 1_000, "middle": 2_000, "large": 4_000}
"""Role to the most that a call may cost, in nano-dollars; it costs half of that or less."""
TRAINED, CALIBRATED = 40, 60


@dataclass(frozen=True)
class Kind:
    """Questions of one kind, and a policy of its own over them."""

    space: SpaceName
    most: dict[str, int]
    rounds: int
    independent: bool
    budgets: tuple[int, ...]
    """In nano-dollars a question: enough for some calls, and not always for all."""
    together: int = 1
    """The most calls of one decision."""

    def traces(self, n: int, seed: int) -> list[Trace]:
        """Record questions at random; of each role every third answer is right."""
        rng = np.random.default_rng(seed)

        def call(number: int, role: str) -> Call:
            return Call(
                round=number,
                role=role,
                model=role,
                answer=str(rng.choice(["a", "b", "c"])),
                confidence=float(rng.random()),
                cost_usd=usd_from_nano(int(rng.integers(1, self.most[role] // 2))),
            )

        rounds = range(1, self.rounds + 1)
        return [
            Trace(
                id=f"q{seed}-{i}",
                question=f"question {seed} {i}",
                gold=["a"],
                calls=[call(t, role) for t in rounds for role in self.most],
                independent=self.independent,
            )
            for i in range(n)
        ]

    def played(self, traces: list[Trace]) -> TraceArrays:
        """Lay questions out as the policy plays them."""
        arrays = assemble(traces)
        return arrays if "base" in self.most else cascade(arrays)

    def plan(self, traces: list[Trace]) -> Protocol:
        """Return agents that give back what was recorded."""
        agents = playback(traces, tuple(self.most))
        if self.independent:
            return Independent(agents, self.rounds, TEXT)
        return Dialogue(agents, self.rounds)


KINDS = {
    "look-ahead in a dialogue": Kind("rounds", TOGETHER, 3, False, (4_300, 5_000, 6_000)),
    "look-ahead over a pool": Kind("rounds", POOL, 1, True, (2_200, 3_900, 4_300)),
    "lazy": Kind("calls", TOGETHER, 2, True, (3_200, 4_100, 4_700)),
    "lazy over a pool": Kind("calls", POOL, 1, True, (4_100, 4_500, 5_000)),
    "sequence": Kind("calls", TOGETHER, 2, True, (3_200, 4_100, 4_700), together=3),
    "sequence over a pool": Kind("calls", POOL, 1, True, (4_100, 4_500, 5_000), together=2),
}
CASES = [(kind, nano) for kind in KINDS for nano in KINDS[kind].budgets]


def calibrated(kind: Kind, budget: PerQuestion) -> Bundle:
    """Train a policy, and promise nearly all of the coverage that a budget reaches."""
    train, prove = kind.traces(TRAINED, 0), kind.traces(CALIBRATED, 1)
    together = kind.together
    config = LookaheadConfig(kind.space, 1, 6, 5, together=together, wait_price=together - 1)
    whole, held_out = kind.played(train), kind.played(prove)
    policy = LookaheadLearner(config).fit(whole, Fraction(1, 10), 0, Silent()).policy
    bundle = Bundle(
        policy=policy,
        kind="lookahead",
        origin=origin_of(whole, "f"),
        kappa=None,
        empty="argmax",
        certificate=None,
        features=None,
        farthing_version="0",
    )
    parts = Questions(assemble(train), whole), Questions(assemble(prove), held_out)
    reached = (replay(policy, held_out, "argmax", budget.of(held_out)).critical > -np.inf).mean()
    level = Coverage(round(float(reached) - 0.02, 2))
    proved = proved_bundle(bundle, level, *parts, Serving(budget))
    assert proved.certificate.question_budget_nano == budget.nano
    assert proved.bundle.origin.largest_nano == budget.largest_nano
    return proved.bundle


def calls_of(played: PlayedQuestions, whole: TraceArrays, row: int) -> set[tuple[int, str]]:
    """Return which calls were bought, as their traces name them."""
    cells = np.argwhere(played.state.known[row].reshape(whole.answer.shape[1:]))
    if whole.roles == ("model",):
        names = whole.models[0].split(" -> ")
        return {(1, names[t]) for t, _ in cells.tolist()}
    return {(t + 1, whole.roles[place]) for t, place in cells.tolist()}


def without_costs(traces: list[Trace], most: dict[str, int]) -> list[Trace]:
    """Return questions where nobody knows what every other call cost, but only the most of it."""

    def forgotten(call: Call) -> Call:
        largest = usd_from_nano(most[call.role])
        return structs.replace(call, cost_usd=None, largest_cost_usd=largest)

    return [
        structs.replace(
            trace, calls=[forgotten(c) if i % 2 else c for i, c in enumerate(trace.calls, start=n)]
        )
        for n, trace in enumerate(traces)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("name", "nano"), CASES)
def test_under_its_budget_a_live_question_goes_as_it_is_replayed(
    name: str, nano: int, known: bool
) -> None:
    kind, budget = KINDS[name], PerQuestion(nano, KINDS[name].most)
    bundle = calibrated(kind, budget)
    assert bundle.kappa is not None
    traces = kind.traces(30, 2)
    traces = traces if known else without_costs(traces, kind.most)
    whole = kind.played(traces)
    limit = budget.of(whole)
    expected = replay(bundle.policy, whole, bundle.empty, limit).act(bundle.kappa)
    bought = play(bundle.policy, whole, bundle.kappa, bundle.empty, limit)
    assert (outcome_of(bought).cost_nano == expected.cost_nano).all()
    runner = PolicyRunner(bundle, kind.plan(traces), TEXT)
    for i, trace in enumerate(traces):
        found = ask(runner, question_of(trace), budget_nano=nano)
        asked = {(call.round, call.role) for call in found.trace.calls}
        assert asked == calls_of(bought, whole, i)
        assert found.rounds == expected.length[i]
        assert found.cost_nano == expected.cost_nano[i] <= nano
        assert len(found.answers) == expected.set_size[i]
        assert ("a" in {one.text for one in found.answers}) == expected.in_set[i]
        assert (found.best == "a") == expected.best_correct[i]
        assert (found.guaranteed, found.caveats, found.ended_by) == (True, (), "policy")


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_some_of_these_budgets_change_what_is_bought(name: str) -> None:
    kind = KINDS[name]
    whole = kind.played(kind.traces(30, 2))
    changed = []
    for nano in kind.budgets:
        budget = PerQuestion(nano, kind.most)
        bundle = calibrated(kind, budget)
        assert bundle.kappa is not None
        under = replay(bundle.policy, whole, bundle.empty, budget.of(whole)).act(bundle.kappa)
        free = replay(bundle.policy, whole, bundle.empty).act(bundle.kappa)
        changed.append(bool((under.cost_nano != free.cost_nano).any()))
    assert any(changed)


def test_in_a_dialogue_the_bound_of_who_sees_others_must_be_declared() -> None:
    """The guide's prompt holds the base's reply, and a round is begun before either is known."""
    kind = KINDS["look-ahead in a dialogue"]
    traces = assemble(
        [
            structs.replace(
                trace,
                calls=[
                    structs.replace(call, largest_cost_usd=usd_from_nano(TOGETHER[call.role]))
                    for call in trace.calls
                ],
            )
            for trace in kind.traces(3, 0)
        ]
    )
    with pytest.raises(InputError, match=r"calls of guide saw others.* give --largest guide=USD"):
        PerQuestion(5_000).of(traces)
    alone = PerQuestion(5_000).of(replace(traces, independent=np.ones(3, dtype=bool)))
    first = PerQuestion(5_000, {"guide": 3_000}).of(traces)
    for budget in (alone, first):
        assert budget.largest_nano.tolist() == [[1_000, 3_000] * 3] * 3


def test_what_is_not_declared_is_bounded_by_a_dry_run_and_added() -> None:
    """Base 600 by a dry run, guide 3,000 as declared: a round needs 3,600, and is begun for it."""
    calls = [
        Call(round=t, role=role, model=role, answer="a", cost_usd=usd_from_nano(600))
        for t in (1, 2)
        for role in TOGETHER
    ]
    trace = Trace(id="q", question="?", gold=["a"], calls=calls)
    origin = structs.replace(origin_of(assemble([trace]), "f"), largest_nano={"guide": 3_000})
    bundle = Bundle(
        policy=FixedDepthPolicy(1),
        kind="fixed-depth",
        origin=origin,
        kappa=1.0,
        empty="argmax",
        certificate=None,
        features=None,
        farthing_version="0",
    )
    agents = playback([trace], tuple(TOGETHER))
    runner = PolicyRunner(bundle, Dialogue(agents, 2), TEXT)
    for nano, rounds in ((3_599, 0), (3_600, 1)):
        assert ask(runner, question_of(trace), budget_nano=nano).rounds == rounds


@pytest.mark.parametrize("name", ["look-ahead in a dialogue", "lazy"])
@pytest.mark.parametrize("ours", [None, 4_101, 100_000])
def test_another_budget_is_not_what_was_promised(name: str, ours: int | None) -> None:
    kind = KINDS[name]
    bundle = calibrated(kind, PerQuestion(4_100, kind.most))
    traces = kind.traces(5, 2)
    runner = PolicyRunner(bundle, kind.plan(traces), TEXT)
    for trace in traces:
        found = ask(runner, question_of(trace), budget_nano=ours)
        assert not found.guaranteed
        assert (
            "the promise holds under a budget of $0.0000041 a question, and this one had"
            in (found.caveats[0])
        )


@pytest.mark.parametrize("nano", range(4_000, 15_000, 1_000))
def test_an_llm_that_is_asked_what_to_do_is_paid_out_of_the_same_budget(nano: int) -> None:
    """It goes on for as long as it can be asked; its replies cost up to 900 of at most 1,000."""
    kind, rng = KINDS["look-ahead in a dialogue"], np.random.default_rng(3)

    def reply(number: int) -> Call:
        usd = usd_from_nano(int(rng.integers(1, 900)))
        return Call(round=number, role="policy-x", model="x", answer="3", cost_usd=usd)

    traces = [
        structs.replace(trace, calls=[*trace.calls, *map(reply, (1, 2, 3))])
        for trace in kind.traces(20, 2)
    ]
    whole, most = assemble(traces), {**TOGETHER, "policy-x": 1_000}
    policy, budget = LlmPolicy("policy-x"), PerQuestion(nano, most)
    limit = budget.of(whole, "policy-x")
    expected = replay(policy, whole, "allow", limit).act(1.0)
    bought = play(policy, whole, 1.0, "allow", limit)
    bundle = Bundle(
        policy=policy,
        kind="llm-policy",
        origin=structs.replace(origin_of(whole, "f"), largest_nano=most),
        kappa=1.0,
        empty="allow",
        certificate=None,
        features=None,
        farthing_version="0",
    )
    runner = PolicyRunner(bundle, Dialogue(playback(traces, tuple(most)), 3), TEXT)
    for i, trace in enumerate(traces):
        found = ask(runner, question_of(trace), budget_nano=nano)
        rounds = int((bought.state.history[i] >= 0).sum())
        assert found.rounds == expected.length[i] == rounds
        assert {call.round for call in found.trace.calls} == set(range(1, rounds + 1))
        if rounds:
            assert found.cost_nano == expected.cost_nano[i] <= nano


def test_the_bound_of_an_llm_that_is_asked_what_to_do_must_be_declared() -> None:
    kind = KINDS["look-ahead in a dialogue"]
    reply = Call(round=1, role="policy-x", answer="3", cost_usd=usd_from_nano(900))
    traces = assemble([structs.replace(t, calls=[*t.calls, reply]) for t in kind.traces(3, 0)])
    for bounds, says in (
        (TOGETHER, r"policy-x is paid for saying what to do.* give --largest policy-x=USD"),
        (
            {**TOGETHER, "policy-x": 899},
            r"a reply of policy-x cost \$0.0000009, more than its",
        ),
    ):
        with pytest.raises(InputError, match=says):
            PlayedPolicy(LlmPolicy("policy-x"), "allow", PerQuestion(5_000, bounds)).replay(traces)
