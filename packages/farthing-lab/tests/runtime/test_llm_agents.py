"""LLMs that decide: their replies are recorded as replays read them."""

import asyncio

import pytest

from farthing.errors import ModelConnectionError
from farthing.models.scripted import ScriptedModel
from farthing.runtime.base import Agent, DirectClient, Turn
from farthing.tasks.base import Question
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, CallError, Trace
from farthing_lab.agents.llm import LlmExitAgent, LlmPolicyAgent
from farthing_lab.methods.baselines.llm_replies import LlmExitPolicy, LlmPolicy

QUESTION = Question("q", "Capital of Portugal?", gold=("SECRET",))
CALLS = [
    Call(round=1, role="base", answer="Oslo", correct=False),
    Call(round=1, role="guide", answer="Rome\n2. Lisbon", verdict=False, uncertainty=0.25),
    Call(round=2, role="base", answer=None),
    Call(round=2, role="guide", answer="Lisbon", verdict=None, correct=True),
]


def always(reply: str) -> ScriptedModel:
    return ScriptedModel(lambda _: reply)


def act(agent: Agent, number: int) -> Call:
    so_far = [call for call in CALLS if call.round <= number]
    return asyncio.run(agent.act(Turn(QUESTION, number, so_far), DirectClient()))


def test_the_policy_is_shown_what_the_paper_shows_it() -> None:
    model = ScriptedModel(lambda _: "3")
    call = act(LlmPolicyAgent(model, "gpt-4o", coverage=0.95), 1)
    assert (call.role, call.answer, call.text) == ("policy-gpt-4o", "3", "3")
    system, user = model.calls[0].messages
    assert (system.role, user.role) == ("system", "user")
    assert "about 0.95 of the questions" in system.content
    assert "Oslo" in user.content
    assert "agrees: no" in user.content
    assert "uncertainty: 0.250" in user.content
    assert "SECRET" not in system.content + user.content


def test_the_policy_is_told_what_is_not_known() -> None:
    model = ScriptedModel(lambda _: "2")
    act(LlmPolicyAgent(model, "m"), 2)
    user = model.calls[0].messages[1].content
    assert "Base model's answer:\n(none)" in user
    assert "agrees: unknown" in user
    assert "uncertainty: unknown" in user


def test_exit_is_shown_one_roles_answers_each_on_its_line() -> None:
    model = ScriptedModel(lambda _: "[CONTINUE]")
    call = act(LlmExitAgent(model, "guide"), 2)
    assert (call.role, call.answer) == ("exit-guide", "continue")
    assert "\n1. Rome 2. Lisbon\n2. Lisbon\n" in model.calls[0].messages[0].content
    model = ScriptedModel(lambda _: "EXIT")
    assert act(LlmExitAgent(model, "base"), 2).answer == "exit"
    assert "\n1. Oslo\n2. (none)\n" in model.calls[0].messages[0].content


@pytest.mark.parametrize("reply", ["", "Use 1 or 2", "[EXIT] or [CONTINUE]", "hm"])
def test_what_cannot_be_read_is_recorded_as_such(reply: str) -> None:
    model = ScriptedModel(lambda _: reply)
    for agent in (LlmPolicyAgent(model, "m"), LlmExitAgent(model, "base")):
        call = act(agent, 1)
        assert (call.answer, call.text) == (None, reply or None)


def test_a_failure_is_recorded() -> None:
    model = ScriptedModel(lambda _: ModelConnectionError("gone"))
    assert act(LlmExitAgent(model, "base"), 1).error == CallError("connection", "gone")


def test_a_replay_decides_as_they_did() -> None:
    said = {1: ("Action: 3", "CONTINUE"), 2: ("2", "[EXIT]")}
    calls = []
    for number, (choice, ending) in said.items():
        calls.append(act(LlmPolicyAgent(always(choice), "m"), number))
        calls.append(act(LlmExitAgent(always(ending), "guide"), number))
    arrays = assemble([Trace(id="q", gold=["Lisbon"], calls=[*CALLS, *calls])])
    assert LlmPolicy("policy-m").scores(arrays)[0].tolist() == [[0, 0, 1], [0, 1, 0]]
    assert LlmExitPolicy("exit-guide", "guide").scores(arrays)[0].tolist() == [[0, 0, 1], [0, 1, 0]]
    assert arrays.replies["policy-m"].action.tolist() == [[2, 1]]
    assert arrays.replies["exit-guide"].action.tolist() == [[2, 1]]
