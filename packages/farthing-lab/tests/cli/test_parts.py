"""`farthing study parts`: a table money first, what each part gets, and refusals in a line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Farthing = Callable[..., Any]
Refused = Callable[..., str]


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Write 40 tasks of two parts, each asked of two models three times."""
    rng, toml = np.random.default_rng(0), []
    for part, chance in (("find", (0.9, 0.95)), ("write", (0.3, 0.85))):
        toml.append(f"[parts.{part}.models]")
        for model, right, usd in zip(("small", "large"), chance, (0.0001, 0.001), strict=True):
            toml.append(f'{model} = "{part}-{model}.jsonl"')
            with (tmp_path / f"{part}-{model}.jsonl").open("w") as file:
                for i in range(40):
                    calls = [
                        {
                            "round": t + 1,
                            "role": "worker",
                            "model": model,
                            "cost_usd": usd,
                            "output_tokens": int(rng.integers(10, 40)),
                            "answer": "a" if rng.random() < right else "b",
                        }
                        for t in range(3)
                    ]
                    line = {"id": f"q{i}", "gold": ["a"], "independent": True, "calls": calls}
                    file.write(json.dumps(line) + "\n")
    (tmp_path / "parts.toml").write_text("\n".join(toml))
    return tmp_path / "parts.toml"


def test_a_table_money_first_and_what_each_part_gets(farthing: Farthing, parts: Path) -> None:
    done = farthing("study", "parts", "--parts", parts, "--budget", "0.0025", "--trials", "10")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    for said in (
        "parts.toml: 2 parts, 20 tasks to measure on, a budget of $0.0025 a task",
        "Plan-and-Budget",
        "even shares",
        "one model for all: large",
    ):
        assert said in done.out


def test_json_says_who_does_what(farthing: Farthing, parts: Path) -> None:
    done = farthing(
        *("study", "parts", "--parts", parts, "--budget", "0.0025", "--allocator", "agent-tts"),
        *("--trials", "10", "--json"),
    )
    found = json.loads(done.out)
    assert (found["budget_usd"], found["tasks"], found["rows"][0]["name"]) == (
        0.0025,
        20,
        "AgentTTS",
    )
    assert found["rows"][0]["parts"]["write"]["model"] == "large"


def test_tokens_are_shared_as_caps(farthing: Farthing, parts: Path) -> None:
    done = farthing("study", "parts", "--parts", parts, "--tokens", "50")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "50 tokens a task" in done.out
    assert "25 25" in done.out
    found = json.loads(farthing("study", "parts", "--parts", parts, "--tokens", "50", "--json").out)
    assert all(sum(row["caps"].values()) == 50 for row in found["rows"][:-1])


def test_seed_and_trials_are_those_that_were_given(farthing: Farthing, parts: Path) -> None:
    def rows(*given: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            farthing("study", "parts", "--parts", parts, "--json", *given).out
        )["rows"]
        return found

    assert rows("--tokens", "50") != rows("--tokens", "50", "--seed", "1")
    once = {row["name"]: row for row in rows("--budget", "0.0025", "--trials", "1")}
    assert once["AgentTTS"]["parts"] == once["the cheapest of each part"]["parts"]
    assert rows("--budget", "0.0025", "--trials", "1", "--seed", "1") != list(once.values())


def test_what_cannot_be_shared_is_refused(refused: Refused, parts: Path) -> None:
    of = ("study", "parts", "--parts", parts)
    assert "one of both" in refused(*of)
    assert "one of both" in refused(*of, "--budget", "1", "--tokens", "3")
    assert "leave --allocator and --trials out" in refused(*of, "--tokens", "30", "--trials", "9")
    assert "cheapest options of its 2 parts cost" in refused(*of, "--budget", "0.0001")
    assert "fewer than one for each of 2 parts" in refused(*of, "--tokens", "1")
    assert "plan-and-budget" in refused(*of, "--budget", "1", "--allocator", "nobody")
    assert "no such file" in refused(
        "study", "parts", "--parts", parts.parent / "none.toml", "--budget", "1"
    )
