"""One model under two names: a line proposes an alias, and the alias makes them one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farthing.traces.base import Call, Trace
from farthing.traces.importers.read import proposals
from farthing.traces.jsonl import read_traces

Farthing = Callable[..., Any]


def log(old: str, new: str) -> str:
    """Return calls in which a model goes by one name for one half of the questions."""
    rows = []
    for i in range(40):
        for model, cost in (((old, new)[i % 2], 0.01), ("tiny", 0.001)):
            rows.append({"question": f"q{i}", "model": model, "answer": "a", "cost": cost})
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai:chat:gpt-4o", "gpt-4o"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
    ],
)
def test_an_alias_is_proposed_and_makes_two_names_one(
    farthing: Farthing, old: str, new: str
) -> None:
    Path("calls.jsonl").write_text(log(old, new))
    said = farthing("traces", "import", "calls.jsonl", "--store", "two.db").err
    assert f"--alias {old}={new} makes them one" in said
    pair = ("--alias", f"{old}={new}")
    said = farthing("traces", "import", "calls.jsonl", "--store", "one.db", *pair).err
    assert "--alias" not in said
    farthing("traces", "export", "--store", "one.db", "--out", "out.jsonl")
    roles = {tuple(call.role for call in trace.calls) for trace in read_traces("out.jsonl")}
    assert roles == {(new, "tiny")}
    again = farthing("traces", "import", "calls.jsonl", "--store", "a.db", "--alias", "gpt-4o")
    assert (again.code, again.err.count("\n")) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["calls.jsonl", "two.db"])
def test_recommend_reads_an_alias_of_logs_and_of_stores(farthing: Farthing, name: str) -> None:
    Path("calls.jsonl").write_text(log("openai/gpt-4o", "gpt-4o"))
    farthing("traces", "import", "calls.jsonl", "--store", "two.db")
    asked = ("recommend", name, "--reference", "gpt-4o", "--json")
    assert "--alias openai/gpt-4o=gpt-4o" in farthing(*asked).err
    done = farthing(*asked, "--alias", "openai/gpt-4o=gpt-4o")
    assert done.code in {0, 1}, done.err
    assert "openai" not in done.out
    assert "--alias" not in done.err


def test_names_that_a_question_has_both_of_are_two_models() -> None:
    both = [Call(round=1, role=role) for role in ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06")]
    assert list(proposals([Trace(id="q", calls=both)])) == []
    apart = [Trace(id=one.role, calls=[one]) for one in both]
    assert len(list(proposals(apart))) == 1
    others = [Call(round=1, role=role) for role in ("llama3:8b", "qwen3:8b", "o4@low", "o4@high")]
    assert list(proposals([Trace(id=one.role, calls=[one]) for one in others])) == []
