"""A promise about answers that are given, kept by a policy from the first call to the last."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from chat_server import Endpoint, completion
from playback import replayed_from_store
from sums import farthing, write_job

QUESTIONS = 150


def say(body: dict[str, Any]) -> web.Response:
    """Every third question is beyond the small model, every sixth beyond the large one as well."""
    asked = re.search(r"What is (\d+) \+", body["messages"][0]["content"])
    assert asked
    number = int(asked[1])
    beyond = {"small": 3, "large": 6, "huge": 10**9}[body["model"]]
    right = number % beyond
    return web.json_response(completion(body, f"Answer: {2 * number if right else 1}"))


def withheld_as_replayed(
    policy: str, endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """Collect, train, prove and ask in the present folder: live and replayed are withheld alike."""
    write_job(Path(), endpoint.url, questions=QUESTIONS, rounds=2, mode="independent")
    endpoint.reply = say
    assert farthing("collect", "job.toml", "--store", "traces.db", "--max-cost", "9") == 0
    common = ("--traces", "traces.db")
    assert farthing("train", *common, "--policy", policy, "--out", "bundle") == 0
    promise = ("--promise", "selective", "--alpha", "0.15", "--delta", "0.1")
    assert farthing("calibrate", *common, "--bundle", "bundle", *promise) == 0
    endpoint.requests.clear()
    capsys.readouterr()
    config = ("ask", "job.toml", "--bundle", "bundle")
    store = ("--store", "traces.db", "--questions", "questions.jsonl")
    assert farthing(*config, *store) == 0
    assert endpoint.requests == []
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    _, expected = replayed_from_store(found)
    withheld = expected.set_size == 0
    assert [answer["abstained"] for answer in found] == withheld.tolist()
    assert [answer["answer"] is None for answer in found] == withheld.tolist()
    assert [answer["cost_nano"] for answer in found] == expected.cost_nano.tolist()
    assert [answer["guaranteed"] for answer in found] == (~withheld).tolist()
    beyond = np.array([int(answer["id"][1:]) % 6 == 0 for answer in found])
    assert withheld[beyond].all()
    assert not withheld[~beyond].any()
    a_question_is_passed_on_if_that_is_wanted(config, endpoint, capsys)


def a_question_is_passed_on_if_that_is_wanted(
    config: Sequence[str], endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    hard = "What is 600 + 600?"
    assert farthing(*config, hard) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("answer   none\nset      empty\n")
    assert "No answer is given: the policy is not sure enough of any." in shown
    endpoint.requests.clear()
    for _ in range(2):
        assert farthing(*config, hard, "--escalate", "huge", "--json", "--store", "log.db") == 0
        answer = json.loads(capsys.readouterr().out)
        assert (answer["answer"], answer["abstained"], answer["guaranteed"]) == (
            "1200",
            True,
            False,
        )
        assert answer["answers"] == []
        assert answer["escalated"]["model"] == "huge"
        assert "the question was passed on to huge" in answer["promise"]
        own = sum(round(call["cost_usd"] * 1e9) for call in answer["trace"]["calls"])
        assert answer["cost_nano"] == own + round(answer["escalated"]["cost_usd"] * 1e9)
    assert [request["model"] for request in endpoint.requests].count("huge") == 1
    endpoint.requests.clear()
    assert farthing(*config, "What is 601 + 601?", "--escalate", "huge") == 0
    assert capsys.readouterr().out.startswith("answer   1202\n")
    assert "huge" not in [request["model"] for request in endpoint.requests]
    assert farthing(*config, hard, "--escalate", "absent") == 2
    assert "lacks a section [models.absent]" in capsys.readouterr().err
