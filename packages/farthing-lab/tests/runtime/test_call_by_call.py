"""Independent calls over HTTP, and a policy that buys them one by one, under its promise."""

import asyncio
import json
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from chat_server import Endpoint, completion
from msgspec import structs
from playback import replayed_from_store
from sums import farthing, write_job

from farthing.bundle.base import Bundle
from farthing.errors import AuthenticationError, InputError
from farthing.features.calls import CallFeatures
from farthing.methods.forest import LEAF, Forest
from farthing.methods.lookahead.policy import GainEstimate, LookaheadPolicy
from farthing.models.base import Completion, Prompt, Usage
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import ScriptedModel
from farthing.promises.certificate import Certificate
from farthing.promises.kinds.split import SplitPromise
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.answer import Answer
from farthing.runtime.protocol import Dialogue
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.base import Question
from farthing.tasks.text import TEXT
from farthing.traces import jsonl
from farthing.traces.assemble import assemble
from farthing.traces.system import Origin
from farthing_lab.agents.guide import GuideAgent

QUESTIONS, ROUNDS = 110, 2


def say(body: dict[str, Any]) -> web.Response:
    """Answer by oneself; every third question is beyond the small model, which then says 1."""
    assert len(body["messages"]) == 1, "somebody was shown what another one said"
    asked = re.search(r"What is (\d+) \+", body["messages"][0]["content"])
    assert asked
    number = int(asked[1])
    right = body["model"] == "large" or number % 3
    return web.json_response(completion(body, f"Answer: {2 * number if right else 1}"))


@pytest.fixture
def calibrated(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """Collect, train and calibrate; return the server."""
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path, endpoint.url, questions=QUESTIONS, rounds=ROUNDS, mode="independent")
    endpoint.reply = say
    assert farthing("collect", "job.toml", "--store", "traces.db", "--max-cost", "5") == 0
    assert len(endpoint.requests) == QUESTIONS * ROUNDS * 2
    common = ("--traces", "traces.db")
    assert farthing("train", *common, "--policy", "lazy", "--out", "bundle") == 0
    assert farthing("calibrate", *common, "--bundle", "bundle", "--alpha", "0.1") == 0
    endpoint.requests.clear()
    return endpoint


@pytest.mark.slow
def test_from_independent_calls_to_answers_call_by_call(
    calibrated: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_the_log_answers_as_a_replay_does(calibrated, capsys)
    assert_new_questions_take_as_few_calls_as_they_may(calibrated, capsys)
    assert_nothing_is_paid_twice(calibrated, capsys)


def assert_the_log_answers_as_a_replay_does(
    endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    config = ("job.toml", "--bundle", "bundle", "--store", "traces.db")
    assert farthing("ask", *config, "--questions", "questions.jsonl") == 0
    assert endpoint.requests == []
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    traces, expected = replayed_from_store(found)
    assert all(trace.independent for trace in traces)
    assert [answer["cost_nano"] for answer in found] == expected.cost_nano.tolist()
    assert [answer["rounds"] for answer in found] == expected.length.tolist()
    assert [len(answer["answers"]) for answer in found] == expected.set_size.tolist()
    right = [a["answer"] == trace.gold[0] for a, trace in zip(found, traces, strict=True)]
    assert right == expected.best_correct.tolist()
    assert all(answer["guaranteed"] and answer["bought"] == "calls" for answer in found)
    assert Fraction(int(expected.covered.sum()), len(traces)) >= Fraction(9, 10)
    assert expected.cost_nano.sum() < 0.3 * assemble(traces).cost_nano.sum()
    for answer in found:
        jsonl.decode(json.dumps(answer["trace"]).encode())  # a trace like any other


def assert_new_questions_take_as_few_calls_as_they_may(
    endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    assert farthing("ask", "job.toml", "--bundle", "bundle", "What is 301 + 301?") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("answer   602\nset      602 (1.00)\ncost     $0.")
    assert "ended by the policy after 1 of 4 calls" in shown
    assert "promise  A new question is covered with probability at least 0.9" in shown
    assert [request["model"] for request in endpoint.requests] == ["small"]
    endpoint.requests.clear()


def assert_nothing_is_paid_twice(endpoint: Endpoint, capsys: pytest.CaptureFixture[str]) -> None:
    """A question that was cut is taken up where it was left."""
    config = ("ask", "job.toml", "--bundle", "bundle", "What is 300 + 300?", "--json")
    assert farthing(*config, "--store", "log.db", "--max-cost", "0.001") == 0
    cut = json.loads(capsys.readouterr().out)
    assert (cut["answer"], cut["ended_by"], cut["guaranteed"]) == ("1", "budget", False)
    assert "the budget cut it after 1 of 4 calls (the next call can cost $" in cut["promise"]
    assert cut["cost_usd"] <= 0.001
    assert [request["model"] for request in endpoint.requests] == ["small"]
    for _ in range(2):
        assert farthing(*config, "--store", "log.db") == 0
        hard = json.loads(capsys.readouterr().out)
        assert (hard["answer"], hard["rounds"], hard["guaranteed"]) == ("600", 2, True)
        assert [call["role"] for call in hard["trace"]["calls"]] == ["base", "guide"]
        assert hard["trace"]["calls"][1]["verdict"] is False
    assert [request["model"] for request in endpoint.requests] == ["small", "large"]


@pytest.mark.slow
def test_what_cannot_be_played_is_one_line_before_anything_is_paid(
    calibrated: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    job = Path("job.toml").read_text()
    Path("dialogue.toml").write_text(job.replace('mode = "independent"', ""))
    capsys.readouterr()
    assert farthing("ask", "dialogue.toml", "--bundle", "bundle", "What is 1 + 1?") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert 'calls see one another; write mode = "independent" in the job' in said
    assert calibrated.requests == []


@pytest.mark.slow
def test_a_call_that_was_answered_survives_the_death_of_the_process(
    calibrated: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed while the guide is asked: the base is not asked again, the guide is."""
    config = ["ask", "job.toml", "--bundle", "bundle", "What is 300 + 300?", "--store", "log.db"]
    waiting = threading.Event()

    def slow_guide(body: dict[str, Any]) -> web.Response:
        if body["model"] == "large":
            waiting.set()
            time.sleep(3)
        return say(body)

    calibrated.reply = slow_guide
    program = f"from farthing.cli import main; main._run({config!r})"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL)
    assert waiting.wait(60)
    process.kill()
    process.wait()
    calibrated.reply = say
    capsys.readouterr()
    assert farthing(*config, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["answer"], answer["rounds"], answer["guaranteed"]) == ("600", 2, True)
    asked = [request["model"] for request in calibrated.requests]
    assert asked == ["small", "large", "large"]


# ---- Without a server

CENT = 10_000_000


def four_calls() -> Bundle:
    """A policy that asks the base twice and then the guide twice, whatever they say."""
    features = CallFeatures(roles=("base", "guide"), horizon=2, names=("calls",), missing=(0.0,))
    root = np.zeros(1, dtype=np.int32)
    gain_and_cost = np.array([[0.9, 0.5, 1.0, 1.0]])
    leaf = Forest(root + LEAF, root.astype(np.float32), root, gain_and_cost, root, 0)
    estimate = GainEstimate(leaf, np.zeros((0, 2)), np.zeros((0, 2)), np.ones(2), share=1.0)
    return bundle_of(LookaheadPolicy("calls", features, estimate, 1.0))


def two_and_two() -> Bundle:
    """A policy that asks base and guide at the same time, twice, and alone if need be."""
    bundle = four_calls()
    policy, nothing = bundle.policy, np.zeros((0, 2))
    assert isinstance(policy, LookaheadPolicy)
    gain, cost = [0.9, 0.5, 0.9, 0.95, 0.5], [1.0] * 5  # of base, guide, twice, both, twice
    leaf = replace(policy.estimate.forest, value=np.array([gain + cost]))
    estimate = GainEstimate(leaf, nothing, nothing, np.ones(5), share=1.0)
    return structs.replace(bundle, policy=replace(policy, estimate=estimate, together=2))


def bundle_of(policy: LookaheadPolicy) -> Bundle:
    origin = Origin(
        roles=("base", "guide"),
        models=("small", "large"),
        mean_cost_nano=(0, 0),
        horizon=2,
        fingerprint="f",
    )
    return Bundle(
        policy=policy,
        kind="lookahead",
        origin=origin,
        kappa=0.25,
        empty="argmax",
        certificate=Certificate(promise=SplitPromise(alpha=Fraction("0.1"), k=9), kappa=0.25, n=99),
        features=None,
        farthing_version="0",
    )


def scripted(name: str, said: str) -> ScriptedModel:
    """A model whose every call costs a cent."""
    price = TokenPrice((Rates(Decimal(0), Decimal(0)),), Decimal("0.01"))

    def reply(_: Prompt) -> Completion:
        return Completion(said, name, "stop", Usage(1, 1), CENT, 0.0)

    return ScriptedModel(reply, name=name, price=price)


@pytest.mark.parametrize("cents", range(6))
def test_a_budget_is_never_passed_and_cuts_between_calls(cents: int) -> None:
    models = {
        "base": scripted("small", "Answer: Porto"),
        "guide": scripted("large", "Answer: Lisbon"),
    }
    runner = PolicyRunner.with_models(four_calls(), models, TEXT)
    question = Question("q", "What is the capital of Portugal?", ("Lisbon",))
    found = asyncio.run(runner.answer(question, budget_nano=cents * CENT + 7))
    made = min(cents, 4)
    assert (found.rounds, found.cost_nano, found.bought) == (made, made * CENT, "calls")
    asked = [(call.role, call.round) for call in found.trace.calls]
    assert asked == [("base", 1), ("base", 2), ("guide", 1), ("guide", 2)][:made]
    assert found.ended_by == ("policy" if made == 4 else "budget")
    assert found.guaranteed == (made == 4)
    assert found.best == (None if not made else "Porto" if made < 3 else "Lisbon")
    assert [(r.text, r.round, r.role) for r in found.answers] == {
        0: [],
        1: [("Porto", 1, "base")],
        2: [("Porto", 2, "base")],
        3: [("Lisbon", 1, "guide"), ("Porto", 2, "base")],
        4: [("Lisbon", 2, "guide"), ("Porto", 2, "base")],
    }[made]
    if made:
        assert jsonl.decode(jsonl.encode(found.trace)) == found.trace  # whatever call it lacks
        assert assemble([found.trace]).cost_nano.sum() == found.cost_nano
    if made < 4:
        assert f"the budget cut it after {made} of 4 calls" in found.promise


def test_the_guide_answers_by_itself_and_its_verdict_waits_for_the_base() -> None:
    models = {
        "base": scripted("small", "Answer: porto"),
        "guide": scripted("large", "Answer: Porto"),
    }
    runner = PolicyRunner.with_models(four_calls(), models, TEXT)
    found = asyncio.run(runner.answer(Question("q", "What is the capital of Portugal?")))
    assert [call.verdict for call in found.trace.calls] == [None, None, True, True]
    assert {len(prompt.messages) for prompt in models["guide"].calls} == {1}
    guide = GuideAgent(models["guide"])
    with pytest.raises(InputError, match="here calls see one another"):
        PolicyRunner(four_calls(), Dialogue((BaseAgent(models["base"]), guide), 2), TEXT)


def test_roles_of_one_model_draw_samples_of_their_own() -> None:
    one = scripted("small", "Answer: Porto")
    runner = PolicyRunner.with_models(four_calls(), {"base": one, "guide": one}, TEXT)
    asyncio.run(runner.answer(Question("q", "What is the capital of Portugal?")))
    assert [prompt.seed for prompt in one.calls] == [None, 2, None, 1_000_002]


@dataclass
class Meeting:
    """A model that replies once two calls are under way."""

    model: ScriptedModel
    barrier: asyncio.Barrier

    @property
    def name(self) -> str:
        return self.model.name

    async def complete(self, prompt: Prompt) -> Completion:
        await asyncio.wait_for(self.barrier.wait(), 20)
        return await self.model.complete(prompt)

    def largest_cost_nano(self, prompt: Prompt) -> int:
        return self.model.largest_cost_nano(prompt)

    async def aclose(self) -> None:
        await self.model.aclose()


def test_what_one_decision_buys_is_asked_at_the_same_time() -> None:
    async def ask() -> Answer:
        barrier = asyncio.Barrier(2)
        models = {
            "base": Meeting(scripted("small", "Answer: Porto"), barrier),
            "guide": Meeting(scripted("large", "Answer: Lisbon"), barrier),
        }
        runner = PolicyRunner.with_models(two_and_two(), models, TEXT)
        return await runner.answer(Question("q", "What is the capital of Portugal?"))

    found = asyncio.run(ask())
    asked = [(call.role, call.round) for call in found.trace.calls]
    assert asked == [("base", 1), ("guide", 1), ("base", 2), ("guide", 2)]
    assert (found.rounds, found.cost_nano, found.guaranteed) == (4, 4 * CENT, True)


@pytest.mark.parametrize("cents", range(6))
def test_a_budget_is_never_passed_by_calls_that_are_made_together(cents: int) -> None:
    models = {"base": scripted("small", "Answer: a"), "guide": scripted("large", "Answer: b")}
    runner = PolicyRunner.with_models(two_and_two(), models, TEXT)
    question = Question("q", "What is the capital of Portugal?")
    found = asyncio.run(runner.answer(question, budget_nano=cents * CENT + 7))
    made = min(cents, 4)
    assert (found.rounds, found.cost_nano) == (made, made * CENT)
    assert found.guaranteed == (made == 4)
    asked = [(call.role, call.round) for call in found.trace.calls]
    assert asked == [("base", 1), ("guide", 1), ("base", 2), ("guide", 2)][:made]


def test_where_the_first_set_is_not_worth_it_its_first_call_is_made_alone() -> None:
    models = {"base": scripted("small", "Answer: a"), "guide": scripted("large", "Answer: b")}
    bundle = structs.replace(two_and_two(), kappa=0.6)  # 0.95 / 1.95 is less
    runner = PolicyRunner.with_models(bundle, models, TEXT)
    found = asyncio.run(runner.answer(Question("q", "What is the capital of Portugal?")))
    assert [call.role for call in found.trace.calls] == ["base"]
    assert not models["guide"].calls


def test_what_was_paid_beside_a_call_that_cannot_be_made_is_kept() -> None:
    wrong = ScriptedModel(lambda _: AuthenticationError("wrong key"), name="large")
    models = {"base": scripted("small", "Answer: a"), "guide": wrong}
    runner = PolicyRunner.with_models(two_and_two(), models, TEXT)
    found = asyncio.run(runner.answer(Question("q", "What is the capital of Portugal?")))
    assert (found.ended_by, found.cost_nano, found.guaranteed) == ("failure", CENT, False)
    assert [(call.role, call.answer) for call in found.trace.calls] == [("base", "a")]
