"""`farthing study memory`: contexts from documents, within a budget."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farthing_lab.tasks.linked_facts import linked_facts

Farthing = Callable[..., Any]
Refused = Callable[..., str]
QUICK = ("--updates", "5")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = linked_facts(24, np.random.default_rng(0), towns=6)
    rows = [{"title": title, "text": text} for title, text in made.documents]
    asked = [{"id": q.id, "question": q.text, "gold": list(q.gold)} for q in made.questions]
    for name, lines in (
        ("docs", rows),
        ("graded", asked[:12]),
        ("new", [{"question": one["question"]} for one in asked[12:]]),
    ):
        text = "\n".join(json.dumps(line) for line in lines)
        (tmp_path / f"{name}.jsonl").write_text(text)
    return tmp_path


@pytest.mark.slow
def test_contexts_of_new_questions_within_the_budget(farthing: Farthing, folder: Path) -> None:
    given = ("--documents", folder / "docs.jsonl", "--graded", folder / "graded.jsonl")
    more = ("--questions", folder / "new.jsonl", "--budget", "0.0008")
    out = folder / "contexts.jsonl"
    done = farthing("study", "memory", *given, *more, *QUICK, "--out", out)
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert "docs.jsonl: 12 questions, a budget of $0.0008" in done.out
    assert "not graded" in done.out
    assert "learned from 12 graded questions" in done.err
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 12
    assert sum(line["cost_usd"] for line in lines) <= 0.0008
    assert set(lines[0]["tiers"]) == {"search", "link", "filter", "rank", "read"}


@pytest.mark.slow
def test_half_of_the_graded_ones_are_held_out(farthing: Farthing, folder: Path) -> None:
    given = ("--documents", folder / "docs.jsonl", "--graded", folder / "graded.jsonl")
    found = json.loads(
        farthing("study", "memory", *given, "--budget", "0.001", *QUICK, "--json").out
    )
    assert (found["questions"], found["learned_from"]) == (6, 6)
    held = [row for row in found["rows"] if row["held"]]
    assert len(held) == 2
    assert all(row["total_cost_usd"] <= 0.001 and row["right"] is not None for row in held)
    names = [row["name"] for row in found["rows"]]
    assert names[0] == "BudgetMem"
    assert names[-3:] == ["all low", "all mid", "all high"]


def test_what_cannot_be_done_is_one_line(refused: Refused, folder: Path) -> None:
    docs, graded = folder / "docs.jsonl", folder / "graded.jsonl"
    said = refused(
        "study", "memory", "--documents", docs, "--graded", graded, "--budget", "0.00001"
    )
    assert "the low tiers of 6 questions can cost $0.000096" in said
    assert "give --graded" in refused("study", "memory", "--documents", docs, "--budget", "1")
    bare = folder / "bare.jsonl"
    bare.write_text('{"id": "g0", "question": "Who?"}\n{"id": "g1", "question": "Where?"}\n')
    said = refused("study", "memory", "--documents", docs, "--graded", bare, "--budget", "1")
    assert "question g0 has no accepted answer" in said
    assert "give --documents" in refused("study", "memory", "--graded", graded, "--budget", "1")
