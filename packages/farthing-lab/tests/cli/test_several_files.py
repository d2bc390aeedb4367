"""Comparisons and studies of several files of traces: as of one that holds them all."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from logs_by_model import AGREEMENT, logs, one_call, several_are_as_one

Farthing = Callable[..., Any]
Refused = Callable[..., str]
__all__ = ["logs"]
COMMANDS = (
    ("compare", "--policies", "always-small", "--splits", 2, *AGREEMENT, "--out", "r"),
    ("study", "allocate", "--budget", 1),
    ("study", "explore", "--budget", 1, "--log", "log.jsonl"),
    ("study", "sweep", "--policy", "stopping", "--try", "unknown=1", "--out", "s"),
    ("study", "joins", "--new", "new.csv"),
)


@pytest.mark.slow
@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    "command", COMMANDS, ids=[" ".join(map(str, command[:2])) for command in COMMANDS]
)
def test_several_files_are_what_one_of_them_all_is(
    farthing: Farthing, command: tuple[object, ...]
) -> None:
    several_are_as_one(farthing, command)


def test_samples_of_several_files_are_one_set(farthing: Farthing) -> None:
    lines = []
    for i in range(20):
        calls = [
            {"round": r, "role": "m", "answer": str(i * r % 3), "correct": True, "cost_usd": 0.01}
            for r in (1, 2, 3)
        ]
        lines.append(json.dumps({"id": f"q{i}", "independent": True, "calls": calls}) + "\n")
    Path("a.jsonl").write_text("".join(lines[:12]))
    Path("b.jsonl").write_text("".join(lines[12:]))
    Path("joined.jsonl").write_text("".join(lines))
    sizes = ("--per-question", 2)
    several = farthing("study", "samples", *sizes, "--traces", "a.jsonl", "--traces", "b.jsonl")
    one = farthing("study", "samples", *sizes, "--traces", "joined.jsonl")
    assert several.code == one.code == 0
    assert several.out.replace("a.jsonl + b.jsonl", "joined.jsonl").split() == one.out.split()


@pytest.mark.usefixtures("farthing")
def test_files_that_contradict_each_other_are_refused(refused: Refused) -> None:
    Path("a.jsonl").write_text(json.dumps(one_call()))
    Path("b.jsonl").write_text(json.dumps(one_call(question="2 + 3?")))
    said = refused("compare", "--out", "r", "--traces", "a.jsonl", "--traces", "b.jsonl")
    assert "question is '2 + 2?' in the one and '2 + 3?' in the other" in said
