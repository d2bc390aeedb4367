"""`farthing study samples`: samples to take, and what other commands say of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Farthing = Callable[..., Any]
Refused = Callable[..., str]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write 40 questions with 12 samples each, some easy and some hard."""
    rng, path = np.random.default_rng(0), tmp_path / "samples.jsonl"
    with path.open("w") as file:
        for i in range(40):
            sure = rng.choice([0.4, 0.95])
            calls = [
                {
                    "round": t + 1,
                    "role": "base",
                    "cost_usd": 0.001,
                    "answer": "a" if rng.random() < sure else str(rng.choice(["b", "c"])),
                }
                for t in range(12)
            ]
            line = {"id": f"q{i}", "gold": ["a"], "independent": True, "calls": calls}
            file.write(json.dumps(line) + "\n")
    return path


def test_a_table_money_first_and_a_plan_for_a_stream(farthing: Farthing, runs: Path) -> None:
    done = farthing("study", "samples", "--traces", runs, "--per-question", "6", "--orders", "3")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 80
    for said in (
        "samples.jsonl: 40 questions, 6 samples each",
        "the same for each",
        "adaptive consistency",
        "PETS, as one batch",
        "PETS, one by one",
        "all that were recorded",
        "One by one: take 4 samples",
        "4 agree",
    ):
        assert said in done.out


def test_json_holds_ways_to_the_same_samples(farthing: Farthing, runs: Path) -> None:
    given = ("study", "samples", "--traces", runs, "--per-question", "6", "--orders", "3", "--json")
    done = farthing(*given)
    found = json.loads(done.out)
    rows = {row["name"]: row for row in found["rows"]}
    assert rows["the same for each"]["samples"] == rows["PETS, as one batch"]["samples"] == 6
    assert rows["PETS, one by one"]["samples"] <= 6
    assert rows["PETS, as one batch"]["cost_usd"] == pytest.approx(0.006)
    assert rows["all that were recorded"]["same_as_all"] == 1
    assert sum(one["share"] for one in found["plan"]) == pytest.approx(1)
    assert farthing(*given).out == done.out


def test_two_samples_are_too_few_for_a_plan(farthing: Farthing, runs: Path) -> None:
    done = farthing("study", "samples", "--traces", runs, "--per-question", "2", "--orders", "2")
    assert done.code == 0
    assert "one by one" not in done.out.lower()


def test_info_describes_them_and_a_store_keeps_them(farthing: Farthing, runs: Path) -> None:
    assert "12 samples of one model" in farthing("traces", "info", runs).out
    assert json.loads(farthing("traces", "info", runs, "--json").out)["samples"]
    assert farthing("traces", "import", runs, "--store", "s.db").code == 0
    assert "12 samples of one model" in farthing("traces", "info", "s.db").out


@pytest.mark.parametrize("command", ["train", "recommend", "compare", "study allocate"])
def test_what_needs_several_models_says_so(refused: Refused, runs: Path, command: str) -> None:
    out = ("--out", "out.jsonl") if command != "recommend" else ()
    more = ("--budget", "1") if command == "study allocate" else ()
    said = refused(*command.split(), "--traces", runs, *out, *more)
    assert "samples of one model: `farthing study samples` says how many to take" in said


def test_others_are_refused(refused: Refused, runs: Path, tmp_path: Path) -> None:
    said = refused("study", "samples", "--traces", runs, "--per-question", "12")
    assert "give fewer than 12" in said
    pool = tmp_path / "pool.jsonl"
    pool.write_text(
        '{"id": "q", "gold": ["a"], "calls": [{"round": 1, "role": "x", "answer": "a"}]}'
    )
    assert "are no samples" in refused("study", "samples", "--traces", pool).splitlines()[-1]


def test_a_table_of_answers_is_imported_as_samples(farthing: Farthing, tmp_path: Path) -> None:
    rng, table = np.random.default_rng(1), tmp_path / "answers.csv"
    rows = [f"q{i},m,{'a' if rng.random() < 0.7 else 'b'}" for _ in range(8) for i in range(10)]
    table.write_text("\n".join(["id,model,answer", *rows]) + "\n")
    store = tmp_path / "samples.db"
    assert farthing("traces", "import", table, "--samples", "--store", store).code == 0
    done = farthing("study", "samples", "--traces", store, "--per-question", "4", "--orders", "2")
    assert done.code == 0
    assert "10 questions, 4 samples each" in done.out


def test_one_sample_is_one(farthing: Farthing, runs: Path) -> None:
    done = farthing("study", "samples", "--traces", runs, "--per-question", "1", "--orders", "1")
    assert done.out.splitlines()[0] == "samples.jsonl: 40 questions, 1 sample each"
    assert "Means over 1 order;" in done.out


def test_what_is_no_json_is_named_so(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "prose.jsonl"
    path.write_text("this is not json\n")
    assert "line 1, line: is no JSON" in refused("study", "samples", "--traces", path)
