"""A thought that is stopped at cuts: recorded, and stopped live exactly where a replay stops it."""

import asyncio
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion
from gateway_running import gateway, serve_section
from playback import bundle_of, question_of, replayed_from_store
from sums import farthing

from farthing.bundle import folder as bundles
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.models.base import Message, Prompt
from farthing.models.openai_compatible import OpenAISettings
from farthing.runtime.answer import Answer
from farthing.runtime.base import DirectClient, Turn
from farthing.runtime.job import read_job
from farthing.runtime.runner import PolicyRunner
from farthing.traces.assemble import assemble
from farthing.traces.base import Trace
from farthing.traces.pool import cascade
from farthing.traces.store import Store
from farthing.traces.system import origin_of

QUESTIONS = 200
CUTS = (40, 80, 120, 160, 200)
JOB = """
task = "gsm8k"
questions = "questions.jsonl"

[agents.thought]
model = "thinker"
cuts = [40, 80, 120, 160, 200]
max_tokens = 20
top_logprobs = 2

[models.thinker]
provider = "openai-compatible"
model = "thinker"
url = "{url}"

[prices]
thinker = {{ input_per_million = 0.01, output_per_million = 10 }}
"""
ENDS, OPENS, CLOSES = "</think>", "<think>\n", "\n</think>\n\nAnswer: "


def settles(number: int) -> int:
    """Return the token of its thought from which a question's answer is right: 30 to 130."""
    return 30 + 10 * (number % 11)


def ends(number: int) -> int:
    """Return the token at which it ends its thought: it goes on for 70 more."""
    return settles(number) + 70


def think(body: dict[str, Any]) -> web.Response:
    """Write a token of thought at a time, or the answer that so many of them lead to."""
    assert [message["role"] for message in body["messages"]][-1:] == ["assistant"] or not OPENS
    asked = re.search(r"What is (\d+) \+", body["messages"][0]["content"])
    assert asked
    number, begun = int(asked[1]), body["messages"][-1]["content"]
    assert begun.startswith(OPENS)
    have = len(re.findall("wait", begun))
    if begun.endswith(CLOSES):
        sure = have >= settles(number)
        return reply(body, str(2 * number if sure else 1 + have), "stop", sure)
    assert body["stop"] == [ENDS]
    assert ENDS not in begun
    left = ends(number) - have
    tokens = min(body["max_tokens"], left)
    return reply(body, "wait " * tokens, "length" if tokens < left else "stop", sure=False)


def reply(body: dict[str, Any], text: str, finish: str, sure: bool) -> web.Response:
    said = completion(body, text)
    said["choices"][0]["finish_reason"] = finish
    said["usage"] = {
        "prompt_tokens": len(str(body["messages"])) // 4,
        "completion_tokens": max(1, len(text.split())),
    }
    if body.get("logprobs"):
        top = [{"token": text, "logprob": -0.05}, {"token": "?", "logprob": -3.0}]
        if not sure:
            top = [{"token": text, "logprob": -0.6}, {"token": "?", "logprob": -0.8}]
        token = {"token": text, "logprob": top[0]["logprob"], "top_logprobs": top}
        said["choices"][0]["logprobs"] = {"content": [token]}
    return web.json_response(said)


@pytest.fixture
def recorded(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Trace]:
    monkeypatch.chdir(tmp_path)
    endpoint.reply = think
    Path("job.toml").write_text(JOB.format(url=endpoint.url))
    lines = [
        json.dumps({"id": f"q{k}", "question": f"What is {k} + {k}?", "gold": [str(2 * k)]})
        for k in range(100, 100 + QUESTIONS)
    ]
    Path("questions.jsonl").write_text("\n".join(lines))
    assert farthing("collect", "job.toml", "--store", "traces.db", "--max-cost", "9") == 0
    with Store.open("traces.db", create=False) as store:
        return {trace.id: trace for trace in store.traces()}


@pytest.mark.slow
def test_a_thought_is_recorded_at_each_cut(
    recorded: Mapping[str, Trace], endpoint: Endpoint
) -> None:
    for number in (100, 101, 107, 109):  # they settle after 40, 50, 110 and 130
        calls = recorded[f"q{number}"].calls
        taken = [sum(w == "wait" for w in (call.text or "").split()) for call in calls]
        end = ends(number)
        assert taken == [min(cut, end) - min(cut - 40, end) for cut in CUTS][: len(calls)]
        assert len(calls) == -(-end // 40)
        assert [call.ended for call in calls] == [end <= cut for cut in CUTS][: len(calls)]
        assert {call.role for call in calls} == {"thought"}
        right = [call.answer == str(2 * number) for call in calls]
        assert right == [cut >= settles(number) for cut in CUTS][: len(calls)]
        assert all(call.cost_usd and call.largest_cost_usd for call in calls)
        assert calls[0].extra["mean_logprob"] == pytest.approx(-0.05 if right[0] else -0.6)


@pytest.mark.slow
def test_a_collection_of_thoughts_goes_on_where_it_was(
    recorded: Mapping[str, Trace], endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    assert min(len(trace.calls) for trace in recorded.values()) < len(CUTS)
    endpoint.requests.clear()
    more = {"id": "q999", "question": "What is 999 + 999?", "gold": ["1998"]}
    with Path("questions.jsonl").open("a") as file:
        file.write("\n" + json.dumps(more))
    assert farthing("collect", "job.toml", "--store", "traces.db", "--max-cost", "9") == 0
    assert f"1 question recorded into traces.db, {QUESTIONS} were there" in capsys.readouterr().out
    assert all("999 + 999" in body["messages"][0]["content"] for body in endpoint.requests)
    job = Path("job.toml").read_text().replace("[40, 80, 120, 160, 200]", "[40, 80]")
    Path("job.toml").write_text(job)
    assert farthing("collect", "job.toml", "--store", "traces.db", "--max-cost", "9") == 2
    assert "with other rounds" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["settled", "repeats", "uala"])
def test_a_thought_is_stopped_where_a_replay_stops_it(
    policy: str,
    recorded: Mapping[str, Trace],
    endpoint: Endpoint,
    capsys: pytest.CaptureFixture[str],
) -> None:
    common = ("--traces", "traces.db")
    assert farthing("train", *common, "--policy", policy, "--out", "bundle") == 0
    promise = ("--promise", "agreement", "--epsilon", "0.1")
    assert farthing("calibrate", *common, "--bundle", "bundle", *promise) == 0
    certificate = bundles.load("bundle").certificate
    assert certificate is not None
    assert certificate.promises
    assert certificate.kappa is not None
    endpoint.requests.clear()
    capsys.readouterr()
    asked = ("ask", "job.toml", "--bundle", "bundle", "--questions", "questions.jsonl")
    assert farthing(*asked, "--store", "traces.db") == 0
    assert endpoint.requests == []  # all is in the journal
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    _, expected = replayed_from_store(found)
    assert [answer["cost_nano"] for answer in found] == expected.cost_nano.tolist()
    assert all(answer["guaranteed"] for answer in found)
    assert farthing(*asked, "--store", "other.db") == 0
    again = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [a["answer"] for a in again] == [a["answer"] for a in found]
    cuts = sum(len(trace.calls) for trace in recorded.values())
    assert QUESTIONS <= len(endpoint.requests) // 2 < cuts


@pytest.mark.slow
def test_one_cut_for_all_is_thought_up_to_without_answers_before(
    recorded: Mapping[str, Trace], endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    assert farthing("train", "traces.db", "--policy", "always-cut-3", "--out", "bundle") == 0
    endpoint.requests.clear()
    capsys.readouterr()
    asked = ("ask", "job.toml", "--bundle", "bundle", "--json", "What is 101 + 101?")
    assert farthing(*asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["answer"], found["rounds"]) == ("202", 1)
    assert [body["max_tokens"] for body in endpoint.requests] == [120, 20]
    assert "q101" in recorded
    assert found["cost_nano"] < round(1e9 * sum(c.cost_usd or 0 for c in recorded["q101"].calls))
    assert found["provenance"] == "same"
    assert farthing(*asked, "--max-cost", "0.0012") == 0
    cut = json.loads(capsys.readouterr().out)["promise"]
    assert "(the next call can cost $0.0014" in cut  # 140 tokens; the first cut would be $0.0006
    job = Path("job.toml").read_text()
    Path("job.toml").write_text(job.replace("[40, 80, 120, 160, 200]", "[40, 80, 130, 160, 200]"))
    assert farthing(*asked) == 0
    assert json.loads(capsys.readouterr().out)["provenance"] == "changed"


@pytest.mark.slow
def test_after_its_end_a_thought_says_the_same_for_nothing(
    recorded: Mapping[str, Trace],
) -> None:
    job = read_job(Path("job.toml"))
    plan, closing = job.open()
    trace = recorded["q100"]
    origin = origin_of(cascade(assemble(list(recorded.values()))), "f")
    bundle = bundle_of(FixedDepthPolicy(len(CUTS)), origin, None)

    async def answered() -> Answer:
        turn = Turn(question_of(trace), len(CUTS), tuple(trace.calls))
        again = await plan.protocol.turns()[-1][1].act(turn, DirectClient())
        assert (again.answer, again.cost_usd, again.output_tokens) == ("200", 0, 0)
        runner = PolicyRunner(bundle, plan.protocol, plan.task)
        answer = await runner.answer(question_of(trace))
        for model in closing:
            await model.aclose()
        return answer

    found = asyncio.run(answered())
    assert (found.rounds, len(found.trace.calls), found.trace.truncated) == (5, 3, False)
    assert found.cost_nano == round(1e9 * sum(call.cost_usd or 0 for call in trace.calls))
    assert [call.answer for call in found.trace.calls] == [call.answer for call in trace.calls]


@pytest.mark.slow
def test_side_by_side_a_cut_costs_what_thinking_straight_to_it_costs(
    recorded: Mapping[str, Trace], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arrays = assemble(list(recorded.values()))
    assert (arrays.stopping_nano[:, 0, 0] == 0).all()
    assert (arrays.stopping_nano[:, 0, 1:] > 0).all()
    paid = [sum(round(1e9 * (c.cost_usd or 0)) for c in trace.calls) for trace in recorded.values()]
    assert cascade(arrays).cost_nano.sum(axis=(1, 2)).tolist() == paid
    for number in (2, 5):
        assert farthing("train", "traces.db", "--policy", f"always-cut-{number}", "--out", "b") == 0
        capsys.readouterr()
        assert farthing("ask", "job.toml", "--bundle", "b", "--questions", "questions.jsonl") == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        straight = dict(zip(recorded, arrays.cost_nano[:, 0, number - 1].tolist(), strict=True))
        assert {answer["id"]: answer["cost_nano"] for answer in found} == straight
        shutil.rmtree("b")


@pytest.mark.slow
def test_other_cuts_than_those_that_were_recorded_are_refused_or_void_the_promise(
    recorded: Mapping[str, Trace], capsys: pytest.CaptureFixture[str]
) -> None:
    assert recorded
    assert farthing("train", "traces.db", "--policy", "settled", "--out", "bundle") == 0
    promise = ("--promise", "agreement", "--epsilon", "0.1")
    assert farthing("calibrate", "traces.db", "--bundle", "bundle", *promise) == 0
    job = Path("job.toml").read_text()
    ask = ("ask", "job.toml", "--bundle", "bundle", "--json", "What is 101 + 101?")
    Path("job.toml").write_text(job.replace("[40, 80, 120, 160, 200]", "[40, 80, 120]"))
    assert farthing(*ask) == 2
    assert "there are 5" in capsys.readouterr().err
    Path("job.toml").write_text(job.replace("[40, 80, 120, 160, 200]", "[40, 80, 120, 160, 240]"))
    assert farthing(*ask) == 0
    found = json.loads(capsys.readouterr().out)
    assert not found["guaranteed"]
    assert any("cut-5" in caveat for caveat in found["caveats"])


@pytest.mark.slow
def test_a_gateway_stops_the_thoughts_of_a_jobs_model(
    recorded: Mapping[str, Trace], endpoint: Endpoint, tmp_path: Path
) -> None:
    assert recorded
    assert farthing("train", "traces.db", "--policy", "settled", "--out", "bundle") == 0
    promise = ("--promise", "agreement", "--epsilon", "0.1")
    assert farthing("calibrate", "traces.db", "--bundle", "bundle", *promise) == 0
    _, _, sold = JOB.format(url=endpoint.url).partition("[models.thinker]")
    policy = '[policies.sums]\njob = "job.toml"\nbundle = "bundle"\n'
    config = serve_section(strongest="thinker") + policy + "[models.thinker]" + sold
    endpoint.requests.clear()
    with gateway(tmp_path, config) as running:
        reply = running.chat("farthing/sums", "What is 904 + 904?")  # sure from token 50 of 120
    said = reply.json["farthing"]
    assert reply.json["choices"][0]["message"]["content"] == "1808"
    assert (said["promise"], said["provenance"]) == ("agreement", "same"), said["says"]
    assert [body["max_tokens"] for body in endpoint.requests] == [40, 20, 40, 20]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("cuts = [40, 80, 120, 160, 200]", "cuts = [80, 80]"), "must ascend"),
        (("cuts = [40, 80, 120, 160, 200]", "cuts = [80]"), "a list in brackets, at least 2 long"),
        (("cuts = [40, 80, 120, 160, 200]", "cuts = [80, 999999999]"), "1000000"),
        (("max_tokens = 20", 'closes = " "'), "is empty"),
        (("max_tokens = 20", 'mode = "x"'), "takes no `mode`"),
        (('task = "gsm8k"', 'task = "gsm8k"\nmode = "samples"'), "stands alone"),
        (("[models.thinker]", '[models.thinker]\nreasoning_effort = "low"'), "cuts say how long"),
        (('"thinker"\ncuts', '"thinker@low"\ncuts'), "the cuts say how long"),
        (('task = "gsm8k"', 'task = "gsm8k"\nrounds = 3'), "is the number of cuts"),
        (("[models.thinker]", '[models.thinker]\ndialect = "openai"'), "does not go on from"),
        (("[prices]", '[agents.base]\nmodel = "thinker"\n[prices]'), "stands alone"),
    ],
)
def test_what_cannot_be_a_thought_is_refused_in_a_line(
    change: tuple[str, str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job, (old, new) = JOB.format(url="http://localhost:9/v1"), change
    assert old in job
    (tmp_path / "job.toml").write_text(job.replace(old, new))
    (tmp_path / "questions.jsonl").write_text('{"id": "q", "question": "?", "gold": ["1"]}\n')
    store = ("--store", tmp_path / "traces.db")
    assert farthing("collect", tmp_path / "job.toml", *store, "--max-cost", "1") == 2
    assert said in capsys.readouterr().err


def test_a_reply_is_gone_on_with_in_the_words_of_its_endpoint() -> None:
    begun = Prompt((Message("user", "?"), Message("assistant", "<think>")))
    settings = OpenAISettings(model="m", url="http://localhost:8000/v1", dialect="vllm")
    sent = settings.parameters(begun, "max_tokens")
    assert (sent["continue_final_message"], sent["add_generation_prompt"]) == (True, False)
    plain = settings.parameters(Prompt((Message("user", "?"),)), "max_tokens")
    assert not {"continue_final_message", "add_generation_prompt"} & plain.keys()


def repeating(body: dict[str, Any]) -> web.Response:
    """Do as llama.cpp's server does: a reply begins with the message that was begun."""
    last, gone_on = body["messages"][-1], going_on(body)
    assert gone_on.text is not None
    said = json.loads(gone_on.text)
    if last["role"] == "assistant":
        message = said["choices"][0]["message"]
        message["content"] = last["content"] + message["content"]
    return web.json_response(said)


def going_on(body: dict[str, Any]) -> web.Response:
    """Go on from what was begun, from a probe as well, at tokens that count generated ones."""
    if body["messages"][0]["content"].startswith("Go on"):
        return reply(body, " sang.", "stop", sure=True)
    return think(body)


@pytest.mark.parametrize("opens", [OPENS, ""])
def test_an_endpoint_that_repeats_a_begun_message_is_asked_once_and_read_right(
    endpoint: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    opens: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    job = JOB.format(url=endpoint.url)
    if not opens:
        job = job.replace("max_tokens = 20", 'max_tokens = 20\nopens = ""')
        monkeypatch.setattr(f"{__name__}.OPENS", "")
    Path("job.toml").write_text(job)
    lines = [
        json.dumps({"id": f"q{k}", "question": f"What is {k} + {k}?", "gold": [str(2 * k)]})
        for k in range(100, 104)
    ]
    Path("questions.jsonl").write_text("\n".join(lines))
    found, probes = [], []
    dry: tuple[str, ...] = ()
    for name, handle in (("on", going_on), ("again", repeating)):
        endpoint.reply, endpoint.requests = handle, []
        dry = ("collect", "job.toml", "--store", f"{name}.db", "--max-cost", "9", "--dry-run")
        assert farthing(*dry) == 0
        calls = capsys.readouterr().out
        assert farthing(*dry[:-1]) == 0
        probes.append(sum("Go on" in one["messages"][0]["content"] for one in endpoint.requests))
        assert f"{2 * 5 * 4 + 1:,} calls" in calls
        with Store.open(f"{name}.db", create=False) as store:
            traces = {trace.id: trace for trace in store.traces()}
        found.append({k: [(c.answer, c.text, c.ended) for c in t.calls] for k, t in traces.items()})
    assert found[0] == found[1]
    # Without a mark at its beginning a thought may say again by chance what was begun.
    assert probes == [int(not opens), 1]
    endpoint.requests = []
    assert farthing(*dry[:-1]) == 0
    assert endpoint.requests == []
