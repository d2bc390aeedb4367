"""Logs of one model each, which commands read together as one log of all of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Farthing = Callable[..., Any]
AGREEMENT = ("--promise", "agreement", "--epsilon", 0.5, "--delta", 0.2, "--reference", "large")
BOTH = ("--traces", "small.csv", "--traces", "large.csv")
COSTS = {"small": 0.001, "large": 0.1, "medium": 0.01}


def table(model: str, questions: range) -> str:
    rows = [f"q{i},How much is {i}?,{model},{i % 3},yes,{COSTS[model]}" for i in questions]
    return "\n".join(["id,question,model,answer,correct,cost", *rows]) + "\n"


@pytest.fixture
def logs(farthing: Farthing) -> None:
    """Write the log of each of two models by itself; the large one was asked less."""
    del farthing  # whose folder they are in
    Path("small.csv").write_text(table("small", range(90)))
    Path("large.csv").write_text(table("large", range(80)))
    Path("new.csv").write_text(table("medium", range(20)))


def as_one(farthing: Farthing) -> None:
    """Write both logs as one file, by importing them together."""
    assert farthing("traces", "import", "small.csv", "large.csv", "--store", "a.db").code == 0
    assert farthing("traces", "export", "--store", "a.db", "--out", "joined.jsonl").code == 0


def several_are_as_one(farthing: Farthing, command: tuple[object, ...]) -> None:
    """Run a command on both logs and on one of them all, and compare what it prints."""
    as_one(farthing)
    trained = ("--policy", "always-small", "--grade", "same as large", "--out", "b")
    assert farthing("train", "--traces", "joined.jsonl", *trained).code == 0
    proved = ("--bundle", "b", "--traces", "joined.jsonl", *AGREEMENT)
    if command[0] == "check":
        assert farthing("calibrate", *proved).code == 0
    one = farthing(*command, "--traces", "joined.jsonl")
    several = farthing(*command, *BOTH)
    assert several.code == one.code
    assert without_names(several.out) == without_names(one.out)
    last = one.err.splitlines()[-1] if one.code == 2 else ""
    assert last in several.err
    if "sweep" not in command:
        alone = farthing(*command, "--traces", "large.csv")
        assert (alone.code, alone.out, alone.err) != (several.code, several.out, several.err)


def without_names(printed: str) -> str:
    return " ".join(
        printed.replace("small.csv + large.csv", "X").replace("joined.jsonl", "X").split()
    )


def one_call(**changes: Any) -> dict[str, Any]:
    call = {"round": 1, "role": "small", "answer": "4", "correct": True, "cost_usd": 0.001}
    about = {"id": "q1", "question": "2 + 2?", "gold": ["4"], "group": "sums", "split": "train"}
    of_call = {name: value for name, value in changes.items() if name not in {*about, "task"}}
    of_question = {name: value for name, value in changes.items() if name in {*about, "task"}}
    return {**about, **of_question, "independent": True, "calls": [{**call, **of_call}]}
