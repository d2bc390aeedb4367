"""`farthing study joins`: a pool, a few outcomes of another model, and what it is worth."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from item_responses import World, answered, recorded

from farthing.traces.arrays import TraceArrays

Farthing = Callable[..., Any]
Refused = Callable[..., str]
WORLD = World.drawn(31)
N = 200


def write(path: Path, traces: TraceArrays, *, graded: bool = True) -> Path:
    """Write a trace file with texts."""
    assert traces.question is not None
    lines = []
    for i in range(len(traces)):
        calls = [
            {
                "round": 1,
                "role": role,
                "answer": str(traces.answer[i, 0, k]),
                "cost_usd": int(traces.cost_nano[i, 0, k]) / 1e9,
            }
            for k, role in enumerate(traces.roles)
        ]
        line = {"id": traces.ids[i], "question": traces.question[i], "independent": True}
        lines.append(json.dumps(line | {"calls": calls} | ({"gold": ["0"]} if graded else {})))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, float]:
    """A pool of three models, 40 outcomes of a cheap and good one, and how often it is right."""
    folder, rng = tmp_path_factory.mktemp("joins"), np.random.default_rng(32)
    asked, z, own = WORLD.questions(N, rng)
    abilities = np.array([[-0.5, 1, 0], [0.5, 1, 0.3], [1.0, 1, -0.3], [2.0, 1, 0.0]])
    right = answered(abilities, z, own, rng)
    pool = recorded(asked, right[:, :3])
    few = recorded(asked, right[:, 3:]).take(np.arange(40))
    few = replace(few, roles=("new",), models=("new",), cost_nano=few.cost_nano + 2_000)
    paths = write(folder / "pool.jsonl", pool), write(folder / "few.jsonl", few)
    return (*paths, float(right[:, 3].mean()))


def test_money_first_then_who_is_asked(farthing: Farthing, files: tuple[Path, Path, float]) -> None:
    pool, few, _ = files
    done = farthing("study", "joins", "--traces", pool, "--new", few)
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    said = " ".join(done.out.split())
    assert said.startswith("few.jsonl: new costs $0.000012 a question and is expected right on")
    for part in (
        "From 40 outcomes",
        "200 questions to 3 other models",
        "new (joins)",
        "without it",
    ):
        assert part in said, part


@pytest.mark.slow
def test_json_has_the_same(farthing: Farthing, files: tuple[Path, Path, float]) -> None:
    pool, few, share = files
    given = ("study", "joins", "--traces", pool, "--new", few, "--json")
    done = farthing(*given, "--budget", "0.000012", "--budget", "0.00004", "--budget", "0.000001")
    found = json.loads(done.out)
    low, high = found["accuracy_interval"]
    assert low < found["accuracy"] < high
    assert low < share < high
    assert found["cost_usd"] == pytest.approx(1.2e-5)
    assert [one["model"] for one in found["others"]] == ["m0", "m1", "m2"]
    cheap, dear, none = found["budgets"]
    assert cheap["right_with"] > cheap["right_without"] + 0.1
    assert cheap["share_asked"] > 0.9
    assert dear["right_with"] >= dear["right_without"]
    assert none["right_with"] is None
    again = farthing(*given, "--budget", "0.000012", "--budget", "0.00004", "--budget", "0.000001")
    assert again.out == done.out, "the same seed gives the same"


@pytest.mark.slow
def test_what_cannot_be_done_is_one_line(
    refused: Refused, files: tuple[Path, Path, float], tmp_path: Path
) -> None:
    pool, few, _ = files
    assert "say which of these joins: m0, m1, m2" in refused(
        "study", "joins", "--traces", few, "--new", pool
    )
    given = ("study", "joins", "--traces", pool, "--new")
    assert "m1 is in the pool already" in refused(*given, pool, "--model", "m1")
    assert "other is none of these" in refused(*given, pool, "--model", "other")
    assert "cannot be read" in refused(*given, "absent.jsonl")
    assert "no amount of US dollars" in refused(*given, few, "--budget", "none")
    blank = recorded(*WORLD.questions(3, np.random.default_rng(0))[:1], np.ones((3, 1), dtype=bool))
    bare = write(tmp_path / "bare.jsonl", blank, graded=False)
    assert "no answer of m0 is graded" in refused(*given, bare, "--model", "m0").splitlines()[-1]


def test_one_question_is_too_few_and_one_outcome_is_one(
    farthing: Farthing, refused: Refused, files: tuple[Path, Path, float], tmp_path: Path
) -> None:
    pool, few, _ = files
    lines, single, first = pool.read_text().splitlines(), tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    single.write_text(lines[0] + "\n")
    first.write_text(few.read_text().splitlines()[0] + "\n")
    assert "one question is too few" in refused("study", "joins", "--traces", single, "--new", few)
    said = " ".join(farthing("study", "joins", "--traces", pool, "--new", first).out.split())
    assert "From 1 outcome, " in said
