"""A log of one model: what is paid today, the next command, and options in plain words."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.errors import InputError
from farthing.models.providers import PROVIDERS

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


def test_a_key_that_the_next_command_needs_is_named(
    farthing: Farthing, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {key for one in PROVIDERS.values() for key in one.keys}
    for key in keys:
        monkeypatch.delenv(key, raising=False)
    done = farthing("recommend", "tickets.jsonl")
    named = re.findall(r"--models (\S+)", done.out)[0].split(",")
    wanted = {PROVIDERS[name.partition("/")[0]].key_env for name in named}
    assert {key for key in keys if key in done.out} == wanted
    assert "It needs a key in" in done.out
    for key in wanted:
        monkeypatch.setenv(key, "a-key")
    assert "It needs a key" not in farthing("recommend", "tickets.jsonl").out


def test_a_reference_that_a_log_of_one_model_lacks_is_refused(refused: Refused, log: Path) -> None:
    said = refused("recommend", "tickets.jsonl", "--reference", "gpt-4")
    assert "gpt-4o" in said
    assert "model of the log" in said


@pytest.mark.filterwarnings("ignore")
def test_python_says_that_there_is_nothing_to_compare(log: Path) -> None:
    traces = ft.read_traces(log)
    with pytest.raises(InputError, match="nothing to compare yet") as refusal:
        ft.recommend(traces)
    assert "`farthing try LOG --models PROVIDER/MODEL --max-cost 5`" in str(refusal.value)


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


@pytest.mark.slow
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


def test_the_command_line_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "farthing", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"farthing {ft.__version__}\n"
