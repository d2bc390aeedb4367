"""A reply with a good status that failed is collected as a failure, at the cost that it says."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint
from sums import farthing

from farthing.traces.base import Call
from farthing.traces.store import Store

JOB = """
task = "text"
questions = "questions.jsonl"
pool = ["small", "large"]

[models.small]
provider = "openai-compatible"
model = "small"
url = "{url}"
retries = {{ tries = 1 }}

[models.large]
provider = "openai-compatible"
model = "large"
url = "{url}"
retries = {{ tries = 1 }}

[prices]
small = {{ input_per_million = 10, output_per_million = 20 }}
large = {{ input_per_million = 10, output_per_million = 20 }}
"""
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}
USD = (100 * 10 + 10 * 20) / 1e6


def reply(finish: str, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "Answer: I cannot"} | more.pop("message", {})
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]} | more


def collected(endpoint: Endpoint, body: dict[str, Any], name: str = "a.db") -> list[Call]:
    """Have a model say something to one question; return the calls that were recorded."""
    endpoint.reply = lambda _: web.json_response(body)
    Path("job.toml").write_text(JOB.format(url=endpoint.url))
    Path("questions.jsonl").write_text(json.dumps({"id": "q", "question": "?", "gold": ["4"]}))
    farthing("collect", "job.toml", "--store", name, "--max-cost", "1")
    with Store.open(name, create=False) as store:
        return [call for trace in store.traces() for call in trace.calls]


@pytest.mark.parametrize(
    ("body", "kind", "usd"),
    [
        (reply("content_filter", usage=USAGE), "refused", USD),
        (reply("content_filter"), "filtered", 0.0),
        (reply("stop", usage=USAGE, message={"content": None, "refusal": "No."}), "refused", USD),
        (reply("stop", usage=USAGE, error={"code": "content_filter"}), "refused", USD),
    ],
)
def test_a_filtered_reply_is_recorded_without_an_answer(
    endpoint: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    body: dict[str, Any],
    kind: str,
    usd: float,
) -> None:
    monkeypatch.chdir(tmp_path)
    calls = collected(endpoint, body)
    assert len(calls) == 2
    for call in calls:
        assert call.error is not None
        assert (call.error.type, call.answer) == (kind, None)
        assert call.cost_usd == pytest.approx(usd)


@pytest.mark.parametrize(
    ("body", "usd"),
    [
        ({"error": {"message": "slow down", "code": 429}}, 0.0),
        (reply("error"), 0.0),
        (reply("error", usage=USAGE), USD),
    ],
)
def test_a_reply_that_failed_is_asked_again_by_the_next_run(
    endpoint: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    body: dict[str, Any],
    usd: float,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert collected(endpoint, body) == []
    said = capsys.readouterr()
    assert not usd or f"${2 * usd:.4f}" in said.out + said.err
    calls = collected(endpoint, reply("stop", usage=USAGE))
    assert [(call.error, call.answer is None) for call in calls] == [(None, False)] * 2
