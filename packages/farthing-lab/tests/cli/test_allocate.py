"""`farthing study allocate`: a batch, a budget, a table and a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_up_pool import COST_NANO, pool, ungraded, write

Farthing = Callable[..., Any]
Refused = Callable[..., str]
N = 60
"""Held-out questions of 300."""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pool") / "pool.jsonl", pool(300))


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("batch") / "new.jsonl"
    path.write_text("".join(f'{{"id": "n{i}", "question": "is {i} odd?"}}\n' for i in range(10)))
    return path


def test_held_out_questions_money_first(farthing: Farthing, traces: Path) -> None:
    done = farthing("study", "allocate", traces, "--budget", "0.03")
    assert done.code == 0
    assert done.err == "learned from 240 recorded questions\n"
    assert max(map(len, done.out.splitlines())) <= 80
    first, *_ = done.out.splitlines()
    assert first == f"pool.jsonl: {N} questions, a budget of $0.03"
    said = " ".join(done.out.split())
    for part in (
        "allocated",
        "by price alone",
        "best affordable",
        "cheapest model",
        "strongest",
        "drawn at random",
        "* costs more than the budget",
    ):
        assert part in said, part


def test_json_has_the_table_and_the_file_has_everyone(farthing: Farthing, traces: Path) -> None:
    given = (
        "study",
        "allocate",
        "--traces",
        traces,
        "--budget",
        "0.03",
        "--json",
        "--out",
        "who.jsonl",
    )
    done = farthing(*given)
    found = json.loads(done.out)
    lines = [json.loads(line) for line in Path("who.jsonl").read_text().splitlines()]
    assert found["questions"] == len(lines) == sum(found["asked"].values()) == N
    mine = found["rows"][0]
    spent = sum(line["expected_cost_usd"] for line in lines)
    assert mine["expected_cost_usd"] == pytest.approx(spent)
    assert spent <= 0.03
    assert mine["expected_right"] == pytest.approx(sum(line["chance"] for line in lines), abs=1e-3)
    assert mine["expected_right"] <= found["bound"]
    low, high = mine["right_interval"]
    assert low <= mine["right"] / N <= high
    within = {row["name"]: row["within_budget"] for row in found["rows"]}
    assert not within["strongest model: large"]
    assert all(ok for name, ok in within.items() if "strongest" not in name)
    assert farthing(*given).out == done.out, "the same seed gives the same"


def test_new_questions_have_no_real_columns(farthing: Farthing, traces: Path, batch: Path) -> None:
    done = farthing(
        "study",
        "allocate",
        "--traces",
        traces,
        "--questions",
        batch,
        "--budget",
        "0.005",
        "--out",
        "who.jsonl",
        "--allocator",
        "rco",
    )
    assert done.code == 0
    assert "really" not in done.out
    assert "new.jsonl: 10 questions" in done.out
    lines = [json.loads(line) for line in Path("who.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [f"n{i}" for i in range(10)]
    cost = dict(zip(("small", "medium", "large"), COST_NANO.tolist(), strict=True))
    assert sum(cost[line["model"]] for line in lines) <= 5_000_000


def test_largest_costs_can_be_held_to_the_budget(farthing: Farthing, traces: Path) -> None:
    done = farthing("study", "allocate", "--traces", traces, "--budget", "0.03", "--at-most")
    assert "at most, USD" in done.out
    assert "the batch can cost up to $0.0" in " ".join(done.out.split())


def test_what_cannot_be_done_is_one_line(refused: Refused, traces: Path, tmp_path: Path) -> None:
    given = ("study", "allocate", "--traces", traces, "--budget")
    assert "the cheapest options of 60 items cost $0.006" in refused(*given, "0.001")
    assert "no amount of US dollars" in refused(*given, "none")
    assert "allocator" in refused(*given, "1", "--allocator", "nobody")
    two = tmp_path / "two.jsonl"
    two.write_text("\n".join(traces.read_text().splitlines()[:2]))
    said = refused("study", "allocate", "--traces", two, "--budget", "1")
    assert "2 recorded questions cannot be divided" in said
    assert "does not exist" in refused(*given, "1", "--questions", "absent.jsonl")
    assert "is a folder" in refused(*given, "1", "--out", tmp_path)
    blank = write(tmp_path / "blank.jsonl", ungraded(pool(30)))
    assert (
        "is graded"
        in refused("study", "allocate", "--traces", blank, "--budget", "1").splitlines()[-1]
    )
