"""`farthing grade`: what is listed, asked, taken from files and judges, and refused."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Farthing = Callable[..., Any]
PARITY = ("--epsilon", "0.1", "--delta", "0.1", "--reference", "large")
AGREEMENT = ("--promise", "agreement", "--epsilon", "0.1", "--delta", "0.1")
SIZES = ("--train", 150, "--calibrate", 200, "--test", 50)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return the lines of 400 questions without gold, and of their gold."""
    rng, lines, gold = np.random.default_rng(0), [], []
    for i in range(400):
        hard, calls = rng.random() < 0.3, []
        for k, (role, cost, skill) in enumerate((("mini", 0.1, 0.5), ("large", 1.0, 0.9))):
            right = rng.random() < (skill if hard else 0.97)
            sure = float(np.clip(rng.normal(0.5 if hard else 0.9, 0.1), 0, 1))
            answer = "yes" if right else f"wrong{k}"
            calls.append(
                {"round": 1, "role": role, "model": role, "answer": answer, "cost_usd": cost}
                | {"confidence": sure}
            )
        record = {"id": f"q{i}", "question": f"Is it {i}?", "independent": True, "calls": calls}
        lines.append(json.dumps(record))
        gold.append(json.dumps({"id": f"q{i}", "gold": ["yes"]}))
    return "\n".join(lines), "\n".join(gold)


@pytest.fixture
def common(farthing: Farthing, logs: tuple[str, str]) -> tuple[object, ...]:
    Path("logs.jsonl").write_text(logs[0])
    Path("gold.jsonl").write_text(logs[1])
    Path("models.toml").write_text('[models.j]\nprovider = "scripted"\notherwise = "No"\n')
    train = ("--policy", "conformal-arbitrage", "--grade", "same as large", "--out", "b")
    assert farthing("train", "--traces", "logs.jsonl", *train, *SIZES).code == 0
    return ("--bundle", "b", "--traces", "logs.jsonl", *SIZES)


def typed(monkeypatch: pytest.MonkeyPatch, *keys: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{key}\n" for key in keys)))


@pytest.mark.slow
def test_from_a_list_to_grades_to_a_promise(
    farthing: Farthing, common: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = farthing("grade", *common, *PARITY, "--batch", 2)
    assert listed.code == 0
    assert listed.out.startswith(("proved: a policy", "nothing is proved yet"))
    assert "questions more would probably prove" in listed.out
    assert "Is it " in listed.out
    assert not Path("logs.grades.jsonl").exists()
    typed(monkeypatch, "s", "what?", "1", "neither", "quit")
    asked = farthing("grade", *common, *PARITY, "--ask", "--batch", 2)
    assert asked.code == 0
    assert "mini" not in asked.out
    lines = [json.loads(line) for line in Path("logs.grades.jsonl").read_text().splitlines()]
    assert [line["right"] for line in lines] == [*sorted([True, False], reverse=True), False, False]
    taken = farthing("grade", *common, *PARITY, "--grades", "gold.jsonl")
    assert taken.out.splitlines()[0].endswith("no further grade could prove more")
    proved = ("--promise", "parity", "--grades", "logs.grades.jsonl")
    done = farthing("calibrate", *common, *PARITY, *proved)
    assert done.code == 0
    assert "above large's minus 0.1" in " ".join(done.out.split())


class Interrupted:
    """A terminal at which one answer is typed, and then Ctrl-C."""

    def __init__(self) -> None:
        self.typed = ["neither\n"]

    def readline(self) -> str:
        if not self.typed:
            raise KeyboardInterrupt
        return self.typed.pop()


def test_ctrl_c_loses_nothing(
    farthing: Farthing, common: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Interrupted())
    asked = farthing("grade", *common, *PARITY, "--ask")
    assert asked.code == 130
    assert "every grade so far is in logs.grades.jsonl" in asked.err
    assert len(Path("logs.grades.jsonl").read_text().splitlines()) == 2


@pytest.mark.slow
def test_a_judge_and_persons_who_check_it(farthing: Farthing, common: tuple[object, ...]) -> None:
    judge = ("--judge", "j", "--config", "models.toml", "--max-cost", "1")
    made = farthing("grade", *common, *PARITY, *judge, "--check", "0.5")
    assert made.code == 0
    lines = Path("logs.grades.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {
        "kind": "draw", "seed": 0, "probability": 0.5, "judge": "j",
    }  # fmt: skip
    assert all(json.loads(line)["judge"] == "j" for line in lines[1:])
    assert Path("logs.grades.db").exists()
    farthing("grade", *common, *PARITY, "--grades", "gold.jsonl")
    done = farthing(
        "calibrate", *common, *PARITY, "--promise", "parity", "--grades", "logs.grades.jsonl"
    )
    assert "questions that chance drew to be graded, and on what j says of all" in " ".join(
        done.out.split()
    )


@pytest.mark.slow
def test_a_judge_of_what_is_the_same(farthing: Farthing, common: tuple[object, ...]) -> None:
    judge = ("--judge", "j", "--config", "models.toml", "--max-cost", "1")
    levels = ("--promise", "agreement", "--epsilon", "0.2", "--delta", "0.1")
    split = ("--judge-epsilon", "0.025", "--judge-delta", "0.05")
    made = farthing("grade", *common, *levels, *split, *judge)
    assert made.code == 0
    lines = Path("logs.grades.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {"kind": "pairs", "seed": 0, "number": 119, "judge": "j"}
    assert "119 questions" in made.err
    done = farthing("calibrate", *common, *levels, *split, "--grades", "logs.grades.jsonl")
    assert "of epsilon 0.025 and of delta 0.05 are spent on its errors" in " ".join(
        done.out.split()
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--max-loss", "2"), "epsilon is 2; it must be below 1"),
        ((*PARITY, "--judge", "j"), "--judge needs --config"),
        ((*PARITY, "--max-cost", "1"), "go with --judge"),
        ((*PARITY, "--grades", "none.csv"), "none.csv: cannot be read (No such file or directory)"),
        ((*PARITY, "--grades", "binary.csv"), "binary.csv: is no text; save it as CSV or JSON"),
        ((*PARITY, "--grades", "models.toml"), "name a table .csv"),
        ((*PARITY, "--out", "gold.jsonl"), "which takes a table of yours with --grades FILE"),
        ((*PARITY, "--out", "models.toml"), "which takes a table of yours with --grades FILE"),
        (("--epsilon", "0.1", "--delta", "0.1"), "name the reference, one of mini, large"),
        ((*PARITY, "--judge-delta", "0.01"), "--judge-delta means nothing to --promise parity"),
        (AGREEMENT, "or leave grades out: `farthing calibrate` proves agreement without any"),
        (("--promise", "selective", "--delta", "0.1"), "150 of 150 questions have answers that"),
        (
            (*AGREEMENT, "--judge-epsilon", "0.1"),
            "must be below",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    farthing: Farthing,
    common: tuple[object, ...],
    refused: Callable[..., str],
    options: tuple[str, ...],
    says: str,
) -> None:
    del farthing
    Path("binary.csv").write_bytes(b"\xc7\xff")
    assert says in refused("grade", *common, *options)


def test_a_store_of_no_grades_is_refused(
    common: tuple[object, ...], refused: Callable[..., str]
) -> None:
    asked = ("calibrate", *common, *PARITY, "--promise", "parity", "--grades", "no.jsonl")
    assert "there is no such file of grades" in refused(*asked)
