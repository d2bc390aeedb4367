"""`farthing demo`: two small language models, from questions to answers, and going on."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farthing.tasks.questions import load_questions
from farthing.traces.files import read_arrays
from farthing.traces.store import Store
from farthing_lab.cli import demo as demo_command
from farthing_lab.models.embedded import find
from farthing_lab.tasks.arithmetic import part_of, solve

Farthing = Callable[..., Any]


def test_questions_keep_their_part_and_more_begin_with_the_same(tmp_path: Path) -> None:
    few, many = (
        load_questions(
            "arithmetic", demo_command.write_job(tmp_path / str(n), n).parent / "questions.jsonl"
        )
        for n in (90, 120)
    )
    assert {question.id for question in few} < {question.id for question in many}
    for question in few:
        assert question.split == part_of(question.text)
        assert question.gold == (solve(question.text),)


@pytest.mark.slow
def test_the_demo_collects_proves_answers_and_goes_on(
    farthing: Farthing,
) -> None:
    done = farthing("demo", "--n", "120")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("Two small language models")
    assert f"large costs {_ratio():.0f} times as much as small" in " ".join(done.out.split())
    assert max(map(len, lines)) <= 90
    assert re.search(r"120 questions recorded into demo-out/traces.db, 0 were there", done.out)
    places = [done.out.index(said) for said in ("You pay", "Promise: ", "5 new questions")]
    assert places == sorted(places)
    assert "Next: farthing ask demo-out/job.toml" in done.err
    assert "on average" in lines[-1]
    page_and_terminal_say_the_same(done.out)
    assert verdicts(Path("demo-out/traces.db")) > 0.95

    job = demo_command.write_job(Path("demo-out"), 123)
    again = farthing("collect", job, "--store", "demo-out/traces.db", "--max-cost", "10")
    assert "3 questions recorded into demo-out/traces.db, 120 were there" in again.out


def page_and_terminal_say_the_same(terminal: str) -> None:
    page = re.sub(
        r"<style.*?</style>|<[^>]+>", " ", Path("demo-out/report.html").read_text(), flags=re.DOTALL
    )
    page = " ".join(page.split())
    [printed] = re.findall(r"Saved +([−\d.]+) % \(", terminal)
    [reported] = re.findall(r"Saved (-?[\d.]+) % 95 %", page.replace("\N{MINUS SIGN}", "-"))
    assert reported == printed.replace("\N{MINUS SIGN}", "-")
    for said in ("large alone", "small alone", "you may be 90 % sure of that"):
        assert said in page
    assert not re.search(r"\b(base|guide)\b", page)


def _ratio() -> float:
    return find("large").output_per_million / find("small").output_per_million


def verdicts(store: Path) -> float:
    """Return the share of the guide's calls whose verdict could be read; both ways are there."""
    with Store.read(store) as traces:
        said = [c.verdict for t in traces.traces() for c in t.calls if c.role == "guide"]
    assert {True, False} <= set(said)
    arrays = read_arrays(store)
    base, guide = arrays.correct.mean(axis=(0, 1))
    assert 0.5 < base < 0.9  # both err
    assert 0.7 < guide < 1
    return sum(verdict is not None for verdict in said) / len(said)
