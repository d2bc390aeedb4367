"""Efforts are roles: bought by `collect` and `try`, proved, and served beside the client's own."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion
from served_bundle import ask, serving

from farthing.traces.store import Store

Farthing = Callable[..., Any]
Refused = Callable[..., str]
JOB = """
task = "text"
questions = "questions.jsonl"
pool = ["o4", "small"]
[models.o4]
provider = "openai-compatible"
model = "o4-mini"
url = "URL"
limit_name = "max_completion_tokens"
[models.small]
provider = "openai-compatible"
model = "small"
url = "URL"
[prices]
o4-mini = { input_per_million = 1, output_per_million = 4 }
small = { input_per_million = 0, output_per_million = 0 }
"""
THOUGHTS = {"low": 100, "high": 2_000, None: 700}
"""What each effort thinks, in tokens."""
LABELS = ("billing", "technical", "account")


def thinks(body: dict[str, Any]) -> web.Response:
    """Answer as `right` says, after as many tokens of thought as the effort has."""
    said = completion(body, right(body))
    thoughts = THOUGHTS[body.get("reasoning_effort")]
    said["usage"]["completion_tokens"] += thoughts
    said["usage"]["total_tokens"] += thoughts
    said["usage"]["completion_tokens_details"] = {"reasoning_tokens": thoughts}
    return web.json_response(said)


def right(body: dict[str, Any]) -> str:
    """Return the label; a low effort errs where the ticket is complicated, half of the time."""
    text = body["messages"][-1]["content"]
    label = next((one for one in LABELS if one in text), "none")
    hard = "complicated" in text and random.Random(text).random() < 0.5
    if body.get("reasoning_effort") == "low" and hard:
        return LABELS[LABELS.index(label) - 1].capitalize()
    return label.capitalize()


@pytest.fixture
def job(tmp_path: Path, endpoint: Endpoint) -> Path:
    endpoint.reply = thinks
    lines = [json.dumps({"id": f"q{k}", "question": f"{k}?", "gold": "4"}) for k in range(3)]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines))
    (tmp_path / "job.toml").write_text(JOB.replace("URL", endpoint.url))
    return tmp_path / "job.toml"


def largest_nano(body: dict[str, Any]) -> int:
    """Return the most that a request can cost at $1 and $4 per million tokens, by hand."""
    read = sum(len(m["content"].encode()) + 8 for m in body["messages"]) + 64
    return int(read * 1_000 + body["max_completion_tokens"] * 4_000)


def test_efforts_are_bought_as_roles(farthing: Farthing, endpoint: Endpoint, job: Path) -> None:
    wanted = ("collect", job, "--store", "a.db", "--max-cost", "9", "--efforts", "o4=low,high")
    priced = farthing(*wanted, "--dry-run")
    assert "3 questions left, at most 9 calls to models" in priced.out
    assert not endpoint.requests
    done = farthing(*wanted)
    assert (done.code, done.err) == (0, "")
    bodies = [one for one in endpoint.requests if one["model"] == "o4-mini"]
    assert [one["reasoning_effort"] for one in bodies].count("low") == 3
    assert {one["max_completion_tokens"] for one in bodies} == {1_024 + 25_000}
    assert all("reasoning_effort" not in one for one in endpoint.requests if one not in bodies)
    most = sum(map(largest_nano, bodies))
    assert f"at most  ${most / 1e9:,.4f} without retries" in priced.out
    with Store.read(Path("a.db")) as store:
        trace = next(store.traces())
    calls = {call.role: call for call in trace.calls}
    assert set(calls) == {"o4@low", "o4@high", "small"}
    for effort in ("low", "high"):
        call = calls[f"o4@{effort}"]
        assert (call.model, call.extra) == ("o4-mini", {"reasoning_tokens": THOUGHTS[effort]})
        assert call.input_tokens is not None
        assert call.output_tokens == THOUGHTS[effort] + 1
        nano = call.input_tokens * 1_000 + call.output_tokens * 4_000
        assert call.cost_usd == nano / 1e9
    asked = len(endpoint.requests)
    named = job.read_text().replace('pool = ["o4", "small"]', 'pool = ["o4@low", "o4@high", "o4"]')
    job.write_text(named)
    again = farthing("collect", job, "--store", "b.db", "--max-cost", "9")
    assert again.code == 0, again.err
    assert len(endpoint.requests) == asked + 9


def test_efforts_that_are_said_one_by_one_add_up(
    farthing: Farthing, endpoint: Endpoint, job: Path
) -> None:
    one_by_one = ("--efforts", "o4=low", "--efforts", "o4=high")
    done = farthing("collect", job, "--store", "a.db", "--max-cost", "9", *one_by_one)
    assert done.code == 0, done.err
    bodies = [one for one in endpoint.requests if one["model"] == "o4-mini"]
    assert sorted(one["reasoning_effort"] for one in bodies) == ["high"] * 3 + ["low"] * 3


def test_a_pool_has_a_limit_of_its_own(
    farthing: Farthing, refused: Refused, endpoint: Endpoint, job: Path
) -> None:
    job.write_text(f"max_tokens = 20\n{job.read_text()}")
    assert farthing("collect", job, "--store", "a.db", "--max-cost", "9").code == 0
    assert {
        one.get("max_tokens", one.get("max_completion_tokens")) for one in endpoint.requests
    } == {20}
    agents = "agents.base.model = 'o4'\nagents.guide.model = 'small'"
    job.write_text(job.read_text().replace('pool = ["o4", "small"]', agents))
    said = refused("collect", job, "--store", "a.db", "--max-cost", "9")
    assert "max_tokens: is of a pool alone" in said


@pytest.mark.parametrize(
    ("efforts", "says"),
    [
        (("o5=low",), "o5"),
        (("low,hgih",), "'hgih' is no effort; there are none, minimal, low"),
        (("o4=20240229",), "'20240229' is no effort"),
        (("o4=low,,",), "--efforts o4=low,,: an effort is empty"),
        ((",",), "--efforts ,: an effort is empty"),
        (("4096",), "`thinking_budget` has no name that is known at this endpoint"),
    ],
)
def test_what_is_no_effort_is_refused(
    refused: Refused, job: Path, efforts: tuple[str, ...], says: str
) -> None:
    arguments = [part for effort in efforts for part in ("--efforts", effort)]
    said = refused("collect", job, "--store", "a.db", "--max-cost", "9", *arguments)
    assert says in said


SYSTEM = "Answer with one word: billing, technical or account."


def messages(number: int) -> list[dict[str, str]]:
    drawn = random.Random(number)
    hard = " It is complicated and long." if drawn.random() < 0.2 else ""
    text = f"Ticket {number} about {drawn.choice(LABELS)}.{hard}"
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]


def logged(path: Path, n: int) -> Path:
    """Write stored completions of a model that was asked at the effort `high`."""
    with path.open("w") as file:
        for number in range(n):
            said = messages(number)
            request = {"model": "o4-mini", "messages": said, "reasoning_effort": "high"}
            reply = completion(request, right(request))
            reply["usage"]["completion_tokens"] = 2_001
            reply["usage"]["completion_tokens_details"] = {"reasoning_tokens": 2_000}
            reply["usage"].pop("total_tokens")
            file.write(json.dumps(reply | {"messages": said, "request": request}) + "\n")
    return path


@pytest.mark.slow
def test_a_lower_effort_is_tried_proved_and_served(
    farthing: Farthing, endpoint: Endpoint, tmp_path: Path
) -> None:
    log = logged(tmp_path / "tickets.jsonl", 600)
    endpoint.reply = thinks
    front = farthing("recommend", log)
    assert "o4-mini@high" in front.out
    models = ("--models", f"{endpoint.url}#o4-mini@low")
    reached = ("--reference", f"{endpoint.url}#o4-mini@high", "--price", "o4-mini=1,4")
    wanted = ("try", log, *models, *reached, "--max-cost", "90", "--sample", "500", "--yes")
    done = farthing(*wanted)
    assert done.code == 0, done.out + done.err
    assert "o4-mini@high agrees with itself on 25 of 25" in done.out
    assert {one["reasoning_effort"] for one in endpoint.requests} == {"low", "high"}
    bundle = Path(done.out.splitlines()[-1].rpartition(" ")[2])
    with serving(bundle) as url:
        endpoint.requests.clear()
        open_ones = [_ask(url, number) for number in range(600, 640)]
        assert {reply["farthing"]["provenance"] for reply in open_ones} == {"same"}
        assert {reply["farthing"]["promise"] for reply in open_ones} == {"agreement"}
        assert any(reply["farthing"]["answered_by"] == "o4-mini@low" for reply in open_ones)
        efforts = [one["reasoning_effort"] for one in endpoint.requests]
        assert efforts.count("low") >= 20
        endpoint.requests.clear()
        own = _ask(url, 600, reasoning_effort="low", max_completion_tokens=300)
        assert own["farthing"]["promise"] == "none"
        assert "says itself how long to think (low)" in own["farthing"]["says"]
        assert own["usage"]["completion_tokens_details"] == {"reasoning_tokens": 100}
        (sent,) = endpoint.requests
        assert (sent["reasoning_effort"], sent["max_tokens"]) == ("low", 300)


def _ask(url: str, number: int, **more: Any) -> dict[str, Any]:
    return ask(url, {"model": "o4-mini", "messages": messages(number)} | more)
