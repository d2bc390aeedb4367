"""`farthing study sweep`: a table, three files in a folder, and a second run goes on."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farthing.cli.console import Trainings
from farthing.methods.lookahead.learner import LookaheadLearner
from farthing.recommendation.base import Event
from farthing_lab.studies.settings import settings_of
from farthing_lab.studies.tuning import ALL

Farthing = Callable[..., Any]
QUICK = ("--policy", "lookahead", "--try", "trees=2,3", "--try", "iterations=1")
SMALL = ("--folds", 2, "--splits", 3, "--alpha", "0.05", "--workers", 1, "--out", "swept")


@pytest.mark.slow
def test_a_sweep_prints_a_table_and_keeps_everything(farthing: Farthing, runs: Path) -> None:
    done = farthing("study", "sweep", "--traces", runs, *QUICK, *SMALL)
    assert done.code == 0, done
    assert "results: swept/results.csv" in done.err
    assert max(map(len, done.out.splitlines())) <= 80
    assert "lookahead, alpha = 0.05" in done.out
    assert "3 splits of questions that took no part" in " ".join(done.out.split())
    with Path("swept/results.csv").open() as file:
        rows = list(csv.DictReader(file))
    costs = [float(row["cost_usd"]) for row in rows]
    assert costs == sorted(costs)
    present = settings_of(LookaheadLearner())
    assert {(int(row["trees"]), int(row["iterations"])) for row in rows} == {
        (2, 1),
        (3, 1),
        (present["trees"], present["iterations"]),
    }
    assert {int(row["leaf"]) for row in rows} == {present["leaf"]}
    found = json.loads(Path("swept/results.json").read_text())
    assert found["winner"]["trees"] == int(rows[0]["trees"])
    assert found["sizes"] == {"train": 120, "calibrate": 40, "test": 40}
    assert [len(one["trainings"]) for one in found["settings"]] == [2, 2, 2]
    assert {row["policy"] for row in found["test"]} <= {"lookahead", "lookahead-tuned"}

    before = Path("swept/results.json").read_bytes()
    again = farthing("study", "sweep", "--traces", runs, *QUICK, *SMALL)
    assert "6 trainings were there already" in again.err
    assert again.out == done.out
    assert Path("swept/results.json").read_bytes() == before


@pytest.mark.slow
def test_an_interrupted_sweep_says_what_it_has_and_goes_on(
    farthing: Farthing, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(_: Trainings, event: Event) -> None:
        if event.name == ALL and event.done == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trainings, "watch", watch)
        done = farthing("study", "sweep", "--traces", runs, *QUICK, *SMALL)
    assert done.code == 130
    assert "2 of 6 trainings are done" in done.out
    assert "unchanged" in done.out
    assert "the same command goes on" in done.err
    assert json.loads(Path("swept/results.json").read_text())["winner"] is None
    again = farthing("study", "sweep", "--traces", runs, *QUICK, *SMALL)
    assert again.code == 0
    assert "2 trainings were there already" in again.err


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (("--policy", "lookahead"), "nothing to try"),
        (("--policy", "lookahead", "--try", "leef=1"), "did you mean 'leaf'"),
        (("--policy", "lookahead", "--try", "leaf=1..9"), "add --draw"),
        (("--policy", "lookahead", "--try", "leaf=1", "--folds", 1), "must be at least 2"),
        (("--policy", "ccpi", "--try", "batch=1"), "unknown policy 'ccpi'"),
    ],
)
def test_a_wrong_sweep_is_one_line(
    refused: Callable[..., str], runs: Path, wrong: tuple[object, ...], says: str
) -> None:
    assert says in refused("study", "sweep", "--traces", runs, *wrong, "--out", "swept")


def test_traces_or_a_preset_must_be_given(refused: Callable[..., str]) -> None:
    assert "either traces, such as runs.jsonl, or --preset NAME" in refused(
        "study", "sweep", *QUICK, "--out", "swept"
    )
