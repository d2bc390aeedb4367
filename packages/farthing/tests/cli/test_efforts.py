"""Efforts are roles: each is bought by `collect`, and one cannot be misread."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from thinking_model import THOUGHTS, thinks

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
    agents = "mode = 'independent'\nagents.base.model = 'o4'\nagents.guide.model = 'small'"
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
