"""A log of one model: what is paid today, the next command, and options in plain words."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

Farthing = Callable[..., Any]
Refused = Callable[..., str]
SYSTEM = "Answer with one word: billing, technical or other."


def row(number: int, **changed: Any) -> dict[str, Any]:
    """Return a row of LiteLLM's spend log, an hour after the one before."""
    began = datetime(2026, 10, 1, tzinfo=UTC) + timedelta(hours=number)
    said = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"Ticket {number}: where is my invoice?"},
    ]
    return {
        "request_id": f"r{number}",
        "call_type": "acompletion",
        "model": "gpt-4o",
        "custom_llm_provider": "openai",
        "spend": 0.001,
        "prompt_tokens": 200,
        "completion_tokens": 3,
        "startTime": began.isoformat(),
        "endTime": (began + timedelta(seconds=1)).isoformat(),
        "status": "success",
        "messages": said,
        "response": {"choices": [{"message": {"role": "assistant", "content": "Billing"}}]},
        "proxy_server_request": {"messages": said, "temperature": 0},
        **changed,
    }


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = [row(number) for number in range(49)]
    path = tmp_path / "tickets.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def test_a_log_of_one_model_says_what_is_paid_and_the_next_command(
    farthing: Farthing, log: Path
) -> None:
    done = farthing("recommend", "tickets.jsonl")
    assert done.code == 1
    assert "You paid $0.05 for 49 requests in 2 days: $0.0245 a day" in " ".join(done.out.split())
    command = done.out.splitlines()[-1]
    assert command.startswith("Next: farthing try tickets.jsonl --models ")
    assert command.endswith("--sample 49 --max-cost 1")
    assert done.err == "", "nothing that a log of one model lacks is worth a remark"


def test_traces_are_named_with_or_without_the_option(farthing: Farthing, log: Path) -> None:
    without = farthing("recommend", "tickets.jsonl", "--json")
    with_option = farthing("recommend", "--traces", "tickets.jsonl", "--json")
    assert json.loads(without.out) == json.loads(with_option.out)
    assert json.loads(without.out)["paid_today"] == {
        "gpt-4o": {"requests": 49, "usd": pytest.approx(0.049), "unpriced": 0}
    }


def test_what_is_not_known_of_a_log_is_not_taken_for_nothing(farthing: Farthing, log: Path) -> None:
    rows = [row(k, spend=0, model="my-own", custom_llm_provider=None) for k in range(3)]
    for one in rows:
        del one["startTime"]
    log.write_text("".join(json.dumps(one) + "\n" for one in rows))
    said = " ".join(farthing("recommend", "tickets.jsonl").out.split())
    assert "without 3 requests whose cost is not known" in said
    assert "The log says no times" in said


def test_no_traces_at_all_are_refused(refused: Refused) -> None:
    assert "name the traces, such as log.jsonl" in refused("recommend")


def test_plain_names_are_those_of_the_letters(farthing: Farthing, runs: Path) -> None:
    options = {
        "letters": ("--epsilon", "0.3", "--delta", "0.2"),
        "words": ("--max-loss", "0.3", "--confidence", "0.8"),
    }
    asked = ("calibrate", "--promise", "parity", "--reference", "guide", "--json")
    farthing("train", runs, "--policy", "stopping", "--out", "b")
    found = {}
    for name, levels in options.items():
        done = farthing(*asked, runs, "--bundle", "b", *levels)
        assert done.code == 0, done.err
        found[name] = json.loads(done.out)
    assert found["letters"] == found["words"]
    assert '"delta": "1/5"' in json.dumps(found["words"]) or "0.8" in json.dumps(found["words"])
