"""Budgets, failures, and what is promised of an answer."""

import asyncio
from decimal import Decimal
from fractions import Fraction
from itertools import count

import msgspec
import numpy as np
import pytest
from playback import ask, bundle_of

from farthing.bundle.base import Bundle
from farthing.errors import (
    AuthenticationError,
    ContentRefusedError,
    InputError,
    ModelTimeoutError,
    UnpricedModelError,
)
from farthing.features.rounds import FeatureSet
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.models.base import Completion, Model, Prompt, Usage
from farthing.models.prices import Rates, TokenPrice
from farthing.models.retry import Retrying, RetryPolicy
from farthing.models.scripted import Reply, ScriptedModel
from farthing.money import nano_from_usd
from farthing.process.base import Policy
from farthing.process.budget import CASCADE
from farthing.promises.certificate import Certificate, Threshold
from farthing.promises.kinds import split
from farthing.promises.kinds.groups import GroupsPromise
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.answer import Answer
from farthing.runtime.protocol import Dialogue, Independent
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.base import Question
from farthing.tasks.text import TEXT
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.system import Origin
from farthing_lab.agents.guide import GuideAgent
from farthing_lab.methods.baselines.llm_replies import LlmPolicy
from farthing_lab.methods.stopping import StoppingPolicy
from farthing_lab.promises import online
from farthing_lab.promises.online import OnlineThreshold

CENT = 10_000_000
ORIGIN = Origin(
    roles=("base", "guide"),
    models=("small", "large"),
    mean_cost_nano=(0, 0),
    horizon=3,
    fingerprint="f",
)
QUESTION = Question("q", "What is the capital of Portugal?")


def scripted(name: str, *replies: Reply, cost_nano: int = CENT) -> ScriptedModel:
    """A model that gives these replies in turn, and the last one from then on; a cent each."""
    left = list(replies)

    def reply(_: Prompt) -> Reply:
        said = left.pop(0) if len(left) > 1 else left[0]
        if not isinstance(said, str):
            return said
        return Completion(said, name, "stop", Usage(1, 1), cost_nano, 0.0)

    price = TokenPrice((Rates(Decimal(0), Decimal(0)),), Decimal("0.01"))
    return ScriptedModel(reply, name=name, price=price)


def live(base: Model, guide: Model, bundle: Bundle | None = None) -> PolicyRunner:
    bundle = bundle or certified(FixedDepthPolicy(3))
    agents = (BaseAgent(base), GuideAgent(guide, samples=0))
    return PolicyRunner(bundle, Dialogue(agents, 3), TEXT)


def certified(policy: Policy, origin: Origin = ORIGIN) -> Bundle:
    bundle = bundle_of(policy, origin, 1.0)
    certificate = split.certify(np.ones(200), "0.1", fingerprint="f")
    assert certificate.kappa == 1.0
    return msgspec.structs.replace(bundle, certificate=certificate)


@pytest.mark.parametrize("cents", range(8))
def test_a_budget_is_never_passed_and_cuts_whole_rounds(cents: int) -> None:
    base = scripted("small", "Answer: Porto", "Answer: Lisbon")
    guide = scripted("large", "No Lisbon", "Yes")
    found = ask(live(base, guide), QUESTION, budget_nano=cents * CENT + 7)
    whole = min(cents // 2, 3)
    assert found.rounds == whole
    assert found.cost_nano == 2 * whole * CENT  # also the first is begun only if all of it fits
    assert found.guaranteed == (whole == 3)
    assert found.ended_by == ("policy" if whole == 3 else "budget")
    assert found.best == ("Lisbon" if whole else None)
    if whole < 3:
        assert f"the budget cut it after {whole} of 3 rounds" in found.promise
        assert found.promise.startswith("The bundle's promise does not hold for this answer: ")
    else:
        assert found.promise.startswith("A new question is covered with probability at least 0.9")
    assert len(base.calls) + len(guide.calls) == len(found.trace.calls)


def test_a_policy_that_stops_in_time_keeps_its_promise_under_a_budget() -> None:
    runner = live(
        scripted("small", "Answer: Lisbon"),
        scripted("large", "Yes"),
        certified(FixedDepthPolicy(1)),
    )
    found = ask(runner, QUESTION, budget_nano=2 * CENT)
    assert (found.guaranteed, found.ended_by, found.caveats) == (True, "policy", ())


def test_a_cut_question_whose_set_is_empty_returns_its_best_answer() -> None:
    class GoesOn(FixedDepthPolicy):
        def scores(self, traces: TraceArrays) -> FloatArray:
            return np.broadcast_to([0.3, 0.2, 1.0], (len(traces), 3, 3)).copy()

    bundle = certified(GoesOn(3))
    runner = live(scripted("small", "Answer: Porto"), scripted("large", "No Lisbon"), bundle)
    found = ask(runner, QUESTION, budget_nano=3 * CENT)
    assert [(r.text, r.score) for r in found.answers] == [("Porto", 0.3)]
    assert not found.guaranteed


def test_each_try_is_reserved_before_it_is_sent() -> None:
    failing = scripted("small", ModelTimeoutError("slow", cost_nano=CENT))
    patience = RetryPolicy(tries=6, first_s=0.0)
    runner = live(Retrying(failing, patience), scripted("large", "Yes"))
    found = ask(runner, QUESTION, budget_nano=3 * CENT + 1)
    assert len(failing.calls) == 3
    assert (found.cost_nano, found.ended_by, found.answers) == (3 * CENT, "budget", ())


def test_a_retry_is_paid_for_once() -> None:
    base = scripted("small", ModelTimeoutError("slow", cost_nano=CENT), "Answer: Lisbon")
    runner = live(
        Retrying(base, RetryPolicy(first_s=0.0)),
        Retrying(scripted("large", "Yes")),
        certified(FixedDepthPolicy(1)),
    )
    for budget in (3 * CENT, None):
        found = ask(runner, QUESTION, budget_nano=budget)
        assert found.best == "Lisbon"
        assert found.cost_nano == sum(nano_from_usd(c.cost_usd or 0) for c in found.trace.calls)
    assert len(base.calls) == 3


def test_a_model_without_a_price_is_refused_before_anything_is_paid() -> None:
    base = scripted("small", "Answer: Lisbon")
    unpriced = ScriptedModel(lambda _: "Yes", name="large", price=None)
    with pytest.raises(UnpricedModelError, match="large"):
        ask(live(base, unpriced), QUESTION, budget_nano=CENT)
    assert base.calls == []
    assert ask(live(base, unpriced), QUESTION).cost_nano is None


@pytest.mark.parametrize("independent", [False, True])
def test_questions_that_are_asked_at_once_have_a_budget_each(independent: bool) -> None:
    def flaky(name: str, said: str) -> Model:
        tries = count()

        def reply(_: Prompt) -> Reply:
            if next(tries) % 3:
                return ModelTimeoutError("slow", cost_nano=CENT)
            return Completion(said, name, "stop", Usage(1, 1), CENT, 0.0)

        price = TokenPrice((Rates(Decimal(0), Decimal(0)),), Decimal("0.01"))
        model = ScriptedModel(reply, name=name, price=price, latency_s=0.001)
        return Retrying(model, RetryPolicy(tries=9, first_s=0.0))

    base = BaseAgent(flaky("small", "Answer: Porto"))
    bundle = certified(FixedDepthPolicy(3))
    if independent:
        other = BaseAgent(flaky("large", "Answer: Porto"), role="guide")
        runner = PolicyRunner(bundle, Independent((base, other), 3, TEXT), TEXT)
    else:
        guide = GuideAgent(flaky("large", "Yes"), samples=0)
        runner = PolicyRunner(bundle, Dialogue((base, guide), 3), TEXT)

    async def all_at_once() -> list[Answer]:
        budgets = [cents * CENT for cents in range(30)]
        return await asyncio.gather(
            *(runner.answer(QUESTION, budget_nano=budget) for budget in budgets)
        )

    found = asyncio.run(all_at_once())
    costs = [answer.cost_nano or 0 for answer in found]
    assert all(cost <= cents * CENT for cents, cost in enumerate(costs))
    assert {answer.ended_by for answer in found} == {"budget", "policy"}
    assert max(costs) > 6 * CENT  # retries were paid


# ---- Failures


def test_a_failed_call_is_data_and_the_next_round_goes_on() -> None:
    base = scripted("small", ModelTimeoutError("slow", cost_nano=3), "Answer: Lisbon")
    guide = scripted("large", ContentRefusedError("no"), "Yes")
    found = ask(live(base, guide), QUESTION)
    assert [call.error and call.error.type for call in found.trace.calls] == [
        "timeout",
        "refused",
        *[None] * 4,
    ]
    assert (found.best, found.rounds, found.cost_nano) == ("Lisbon", 3, 4 * CENT + 3)
    assert found.guaranteed


@pytest.mark.parametrize(
    ("replies", "says"),
    [
        (("It is Lisbon.", "Perhaps"), "No answer could be read from any reply. A new question is"),
        ((ContentRefusedError("no"),) * 2, "There is no answer, since every call failed. A new"),
        (("Answer: Lisbon", "Perhaps"), "A new question is covered"),
    ],
)
def test_an_answer_that_could_not_be_read_says_so(replies: tuple[Reply, Reply], says: str) -> None:
    """Its promise holds: in calibration, too, such replies covered no question that is solvable."""
    base, guide = replies
    found = ask(live(scripted("small", base), scripted("large", guide)), QUESTION)
    assert found.guaranteed
    assert found.promise.startswith(says)


def test_an_answer_prints_as_a_few_plain_lines() -> None:
    found = ask(live(scripted("small", "Answer: Lisbon"), scripted("large", "Yes")), QUESTION)
    assert str(found).splitlines() == [
        "answer   Lisbon",
        "set      Lisbon (1.00)",
        "cost     $0.060000, ended by the policy after 3 of 3 rounds",
        f"promise  {found.promise}",
    ]
    assert "trace=Trace(" in repr(found)


def test_a_wrong_key_ends_with_what_is_there() -> None:
    guide = scripted("large", "Yes", AuthenticationError("the key is wrong"))
    found = ask(live(scripted("small", "Answer: Lisbon"), guide), QUESTION)
    assert (found.best, found.rounds, found.ended_by) == ("Lisbon", 1, "failure")
    assert len(found.trace.calls) == 3
    assert found.trace.truncated
    assert found.cost_nano == 3 * CENT
    assert "the key is wrong" in found.promise


def test_independent_attempts_see_nothing_and_lose_nothing() -> None:
    base = scripted("small", "Answer: Porto")
    wrong = scripted("large", AuthenticationError("the key is wrong"))
    agents = (BaseAgent(base), BaseAgent(wrong, role="guide"))
    bundle = certified(FixedDepthPolicy(3))
    found = ask(PolicyRunner(bundle, Independent(agents, 3, TEXT), TEXT), QUESTION)
    assert [call.role for call in found.trace.calls] == ["base"]
    assert (found.best, found.ended_by, found.cost_nano) == ("Porto", "failure", CENT)
    agents = (BaseAgent(base), BaseAgent(scripted("large", "Answer: porto"), role="guide"))
    found = ask(PolicyRunner(bundle, Independent(agents, 3, TEXT), TEXT), QUESTION)
    assert [call.verdict for call in found.trace.calls] == [None, True] * 3
    assert {len(prompt.messages) for prompt in base.calls} == {1}
    assert found.trace.independent


# ---- What a bundle allows


def test_other_models_end_the_promise() -> None:
    origin = msgspec.structs.replace(ORIGIN, models=("small", "larger"))
    runner = live(
        scripted("small", "Answer: Lisbon"),
        scripted("large", "Yes"),
        certified(FixedDepthPolicy(1), origin),
    )
    found = ask(runner, QUESTION)
    assert found.best == "Lisbon"
    assert not found.guaranteed
    assert runner.validity.invalid_because == found.caveats
    assert "made for the models small and larger, and these are small and large" in found.promise


@pytest.mark.parametrize("seen", [True, False])
def test_calls_that_see_one_another_are_another_protocol(seen: bool) -> None:
    """A guide that judges, where it answered by itself in the traces, or the reverse."""
    base = BaseAgent(scripted("small", "Answer: Lisbon"))
    alone = BaseAgent(scripted("large", "Answer: Lisbon"), role="guide")
    judge = GuideAgent(scripted("large", "Yes"), samples=0)
    plan = Dialogue((base, judge), 3) if seen else Independent((base, alone), 3, TEXT)
    for independent in (None, seen, not seen):
        origin = msgspec.structs.replace(ORIGIN, independent=independent)
        runner = PolicyRunner(certified(FixedDepthPolicy(1), origin), plan, TEXT)
        assert ask(runner, QUESTION).guaranteed == (independent is not seen)
        said = "".join(runner.validity.invalid_because)
        assert ("made for calls that see" in said) == (independent is seen)


def test_a_cascade_of_agents_that_judge_is_another_protocol() -> None:
    base = BaseAgent(scripted("small", "Answer: Lisbon"))
    plan = Dialogue((base, GuideAgent(scripted("large", "Yes"), samples=0)), 2)
    origin = msgspec.structs.replace(
        ORIGIN, roles=CASCADE, models=("small -> large",), mean_cost_nano=(0,), horizon=2,
        independent=True,
    )  # fmt: skip
    runner = PolicyRunner(certified(FixedDepthPolicy(1), origin), plan, TEXT)
    assert any("calls that see nothing" in why for why in runner.validity.invalid_because)


def test_an_online_threshold_promises_nothing_once_it_is_frozen() -> None:
    state = OnlineThreshold(kappa=0.5, updates=10_000)
    certificate = online.certify(state, "0.1", fingerprint="f")
    assert certificate.promises
    bundle = msgspec.structs.replace(
        certified(FixedDepthPolicy(1)), kappa=certificate.kappa, certificate=certificate
    )
    runner = live(scripted("small", "Answer: Lisbon"), scripted("large", "Yes"), bundle)
    found = ask(runner, QUESTION)
    assert not found.guaranteed
    assert found.caveats == ("the online threshold is no longer updated",)


def test_a_bundle_without_a_certificate_answers_and_says_so() -> None:
    bundle = msgspec.structs.replace(certified(FixedDepthPolicy(1)), certificate=None)
    found = ask(
        live(scripted("small", "Answer: Lisbon"), scripted("large", "Yes"), bundle), QUESTION
    )
    assert (found.best, found.guaranteed) == ("Lisbon", False)
    assert found.promise == "No certificate: the bundle was not calibrated, so nothing is promised."
    runner = live(scripted("small", "Answer: Lisbon"), scripted("large", "Yes"), bundle)
    cut = ask(runner, QUESTION, budget_nano=0)
    assert cut.promise.startswith(f"{found.promise} Besides, the budget cut it after 0 of 3 rounds")


def test_a_group_has_its_own_threshold_and_a_new_one_no_promise() -> None:
    groups = {"easy": Threshold(kappa=0.9, k=3, n=40), "hard": Threshold(kappa=0.1, k=3, n=40)}
    promise = GroupsPromise(alpha=Fraction("0.1"), groups=groups)
    certificate = Certificate(promise=promise, kappa=0.1, n=80)
    policy = StoppingPolicy(
        FeatureSet(roles=ORIGIN.roles, horizon=3, names=(), mean=(), scale=(), off={}),
        np.zeros((2, 0)),
        np.zeros(2),
    )
    bundle = msgspec.structs.replace(bundle_of(policy, ORIGIN, 0.1), certificate=certificate)
    runner = live(scripted("small", "Answer: Lisbon"), scripted("large", "Yes"), bundle)
    rounds = {}
    for group in ("easy", "hard", "odd", None):
        found = ask(runner, Question("q", "?", group=group))
        rounds[group] = found.rounds
        assert found.guaranteed == (group in groups)
    assert rounds == {"easy": 1, "hard": 3, "odd": 3, None: 3}


def test_models_alone_make_the_plainest_agents() -> None:
    models = {"base": scripted("small", "Answer: Porto"), "guide": scripted("large", "No Lisbon")}
    found = ask(PolicyRunner.with_models(certified(FixedDepthPolicy(2)), models, TEXT), QUESTION)
    assert [call.role for call in found.trace.calls] == ["base", "guide"] * 2
    assert (found.best, found.guaranteed) == ("Lisbon", True)
    pool = {"small": models["base"], "large": scripted("large", "Answer: Lisbon")}
    origin = msgspec.structs.replace(
        ORIGIN, roles=("model",), models=("small -> large",), horizon=2
    )
    bundle = certified(FixedDepthPolicy(2), origin)
    found = ask(PolicyRunner.with_models(bundle, pool, TEXT), QUESTION)
    assert [(call.role, call.round) for call in found.trace.calls] == [("small", 1), ("large", 1)]
    assert [returned.text for returned in found.answers] == ["Lisbon", "Porto"]


def test_agents_that_a_policy_was_not_trained_for_are_refused() -> None:
    agents = (BaseAgent(scripted("small", "")),)
    with pytest.raises(InputError, match="is for base and guide, and here answer base;"):
        PolicyRunner(certified(FixedDepthPolicy(1)), Dialogue(agents, 3), TEXT)
    both = (*agents, GuideAgent(scripted("large", "")))
    with pytest.raises(InputError, match="add the agent 'policy-x'"):
        PolicyRunner(certified(LlmPolicy("policy-x")), Dialogue(both, 3), TEXT)
    origin = msgspec.structs.replace(ORIGIN, roles=("model",), models=("small -> huge",))
    with pytest.raises(InputError, match="huge is not among"):
        PolicyRunner(certified(FixedDepthPolicy(1), origin), Independent(both, 1, TEXT), TEXT)
    origin = msgspec.structs.replace(origin, models=("small -> small",))
    with pytest.raises(InputError, match="two of these have one name"):
        PolicyRunner(certified(FixedDepthPolicy(1), origin), Independent(both, 1, TEXT), TEXT)
