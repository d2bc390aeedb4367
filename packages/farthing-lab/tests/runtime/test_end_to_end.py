"""Collect over HTTP, store, train, calibrate, evaluate, ask: the whole way, by the command line."""

import json
import re
from pathlib import Path

import pytest
from chat_server import Endpoint, Messages
from playback import replayed_from_store
from sums import farthing, write_job

from farthing.traces.assemble import assemble

QUESTIONS, ROUNDS = 60, 3


def say(messages: Messages) -> str:
    """Answer as a base or as its guide; every fourth question takes the base a second attempt."""
    asked = re.search(r"What is (\d+) \+", messages[0]["content"])
    assert asked
    number = int(asked[1])
    if "Judge an answer" in messages[0]["content"]:
        shown = re.findall(r"Answer: (\d+)", messages[0]["content"])
        return "Yes" if shown and shown[-1] == str(2 * number) else "No 0"
    earlier = sum(message["role"] == "assistant" for message in messages)
    right = number % 4 or earlier
    return f"I add them up.\nAnswer: {2 * number if right else 1}"


def test_from_live_models_to_answers_with_a_promise(
    endpoint: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    endpoint.answer = say
    write_job(tmp_path, endpoint.url, questions=QUESTIONS, rounds=ROUNDS, mode="dialogue")
    assert farthing("collect", "job.toml", "--store", "traces.db", "--max-cost", "1") == 0
    assert len(endpoint.requests) == QUESTIONS * ROUNDS * 2
    common = ("--traces", "traces.db")
    assert farthing("train", *common, "--policy", "stopping", "--out", "bundle") == 0
    assert farthing("calibrate", *common, "--bundle", "bundle", "--alpha", "0.1") == 0
    assert farthing("evaluate", *common, "--bundle", "bundle") == 0
    assert "coverage" in capsys.readouterr().out
    the_log_answers_what_was_collected(endpoint, capsys)
    new_questions_stop_as_soon_as_they_may(endpoint, capsys)


def the_log_answers_what_was_collected(
    endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is asked again, and every answer is what a replay of the store says."""
    before = len(endpoint.requests)
    config = ("job.toml", "--bundle", "bundle", "--store", "traces.db")
    assert farthing("ask", *config, "--questions", "questions.jsonl") == 0
    assert len(endpoint.requests) == before
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    traces, expected = replayed_from_store(found)
    assert [answer["cost_nano"] for answer in found] == expected.cost_nano.tolist()
    assert [answer["rounds"] for answer in found] == expected.length.tolist()
    assert [len(answer["answers"]) for answer in found] == expected.set_size.tolist()
    assert all(answer["guaranteed"] for answer in found)
    assert expected.cost_nano.sum() < 0.6 * assemble(traces).round_cost_nano.sum()


def new_questions_stop_as_soon_as_they_may(
    endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ("ask", "job.toml", "--bundle", "bundle")
    before = len(endpoint.requests)
    assert farthing(*config, "What is 301 + 301?") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("answer   602\nset      602 (1.00)\ncost     $0.")
    assert "ended by the policy after 1 of 3 rounds" in shown
    assert "promise  A new question is covered with probability at least 0.9" in shown
    assert len(endpoint.requests) == before + 2
    assert farthing(*config, "What is 300 + 300?", "--json") == 0
    hard = json.loads(capsys.readouterr().out)
    assert (hard["answer"], hard["rounds"], hard["guaranteed"]) == ("600", 2, True)
    assert farthing(*config, "What is 300 + 300?", "--json", "--max-cost", "0.0258") == 0
    cut = json.loads(capsys.readouterr().out)
    assert (cut["rounds"], cut["ended_by"], cut["guaranteed"]) == (1, "budget", False)
    assert "the budget cut it after 1 of 3 rounds" in cut["promise"]
    spent, first = len(endpoint.requests), ("--json", "--max-cost", "0.0256")
    assert farthing(*config, "What is 300 + 300?", *first) == 0
    none = json.loads(capsys.readouterr().out)  # the longest replies could cost more
    assert (none["answer"], none["rounds"], none["cost_nano"]) == (None, 0, 0)
    assert len(endpoint.requests) == spent
    assert cut["cost_usd"] <= 0.0258
