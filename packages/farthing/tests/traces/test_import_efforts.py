"""A log whose requests say how long to think has a role for each effort of a model."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from farthing.cli.imports import read_price
from farthing.traces.importers.read import Supplied, read_foreign

Line = dict[str, Any]
ASKED = [{"role": "user", "content": "2 + 2?"}]
THOUGHTS = {"low": 40, "high": 900}
ROLES = {f"o4-mini@{effort}": tokens for effort, tokens in THOUGHTS.items()}


def completion(tokens: int) -> Line:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": tokens + 2,
        "total_tokens": tokens + 12,
        "completion_tokens_details": {"reasoning_tokens": tokens},
    }
    reply = {"message": {"role": "assistant", "content": "4"}}
    return {"object": "chat.completion", "model": "o4-mini", "choices": [reply], "usage": usage}


def stored(effort: str, tokens: int) -> Line:
    request = {"model": "o4-mini", "messages": ASKED, "reasoning_effort": effort}
    return completion(tokens) | {"messages": ASKED, "request": request}


def spend(effort: str, tokens: int) -> Line:
    body = {"model": "o4-mini", "messages": ASKED, "reasoning_effort": effort}
    return {
        "call_type": "acompletion",
        "spend": 0.001,
        "prompt_tokens": 10,
        "completion_tokens": tokens + 2,
        "model": "o4-mini",
        "metadata": {"usage_object": completion(tokens)["usage"]},
        "messages": ASKED,
        "proxy_server_request": {"body": body},
        "response": completion(tokens),
    }


def observation(effort: str, tokens: int) -> Line:
    return {
        "type": "GENERATION",
        "provided_model_name": "o4-mini",
        "input": json.dumps(ASKED),
        "output": json.dumps({"role": "assistant", "content": "4"}),
        "model_parameters": {"reasoning_effort": effort},
        "usage_details": {"input": 10, "output": 2, "output_reasoning_tokens": tokens},
    }


def evaluated(effort: str, tokens: int) -> Line:
    about = {
        "task": "sums",
        "model": "openai/o4-mini",
        "model_generate_config": {"reasoning_effort": effort},
    }
    used = {"input_tokens": 10, "output_tokens": tokens + 2, "reasoning_tokens": tokens}
    sample = {
        "id": 1,
        "epoch": 1,
        "input": "2 + 2?",
        "target": "4",
        "output": {"model": "o4-mini", "choices": completion(tokens)["choices"], "usage": used},
    }
    return {"version": 2, "status": "success", "eval": about, "samples": [sample]}


LOGS = {"openai": stored, "litellm": spend, "langfuse": observation, "inspect": evaluated}


@pytest.mark.parametrize("form", LOGS)
def test_each_effort_of_a_model_is_a_role(form: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{effort}.json" for effort in THOUGHTS]
    for path, (effort, tokens) in zip(paths, THOUGHTS.items(), strict=True):
        path.write_text(json.dumps(LOGS[form](effort, tokens)) + "\n")
    (trace,) = read_foreign(paths, form).traces
    prefix = "openai/" if form == "inspect" else ""
    said = {call.role.removeprefix(prefix): call for call in trace.calls}
    assert {role: call.extra for role, call in said.items()} == {
        role: {"reasoning_tokens": tokens} for role, tokens in ROLES.items()
    }
    assert {call.model for call in trace.calls} == {f"{prefix}o4-mini"}
    assert {role: call.output_tokens for role, call in said.items()} == {
        role: tokens + 2 for role, tokens in ROLES.items()
    }


def test_a_table_has_a_column_for_efforts(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        names = ("question", "model", "answer", "input_tokens", "output_tokens")
        rows.writerow([*names, "reasoning_tokens", "reasoning_effort", "thinking_budget"])
        for effort, tokens in THOUGHTS.items():
            rows.writerow(["2 + 2?", "o4-mini", "4", 10, tokens + 2, tokens, effort, ""])
        rows.writerow(["2 + 2?", "qwen-plus", "4", 10, 30, 28, "", 4096])
        rows.writerow(["2 + 2?", "small", "5", 10, 2, "", "", ""])
    (trace,) = read_foreign([path]).traces
    kept = {call.role: call.extra.get("reasoning_tokens") for call in trace.calls}
    assert kept == ROLES | {"qwen-plus@4096": 28, "small": None}
    assert [call.model for call in trace.calls] == ["o4-mini", "o4-mini", "qwen-plus", "small"]


def test_thoughts_beside_a_completion_are_priced(tmp_path: Path) -> None:
    """What xAI's documentation shows: 32 read, 9 written, 94 thought, 135 in all."""
    path = tmp_path / "grok.jsonl"
    said = completion(94) | {"messages": ASKED, "reasoning_effort": "high", "model": "grok"}
    said["usage"] |= {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 135}
    path.write_text(json.dumps(said) + "\n")
    prices = dict([read_price("grok=1,4")])
    (trace,) = read_foreign([path], "openai", Supplied(prices=prices)).traces
    (call,) = trace.calls
    assert (call.role, call.output_tokens) == ("grok@high", 103)
    assert call.cost_usd == (32 * 1_000 + 103 * 4_000) / 1e9
