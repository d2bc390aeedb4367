"""`farthing train`, `calibrate`, `evaluate`: one policy from traces to a certificate."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farthing.algorithms.base import Fitted, Progress
from farthing.algorithms.ccpo import CcpoConfig, CcpoLearner
from farthing.experiments.base import Contender
from farthing.policies import bundle
from farthing.policies.random import RandomPolicy

Farthing = Callable[..., Any]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `ccpo` train 30 updates only."""

    def contenders(*_: object) -> list[Contender]:
        return [Contender("ccpo", "CCPO", CcpoLearner(CcpoConfig(updates=30)), "split")]

    monkeypatch.setattr("farthing.experiments.single.contenders", contenders)


def test_from_traces_to_a_promise(farthing: Farthing, runs: Path) -> None:
    given = ("--bundle", "b", "--traces", runs)
    assert farthing("train", "--traces", runs, "--policy", "stopping", "--out", "b").code == 0
    assert "Nothing is promised" in farthing("evaluate", *given).out
    promised = farthing("calibrate", *given, "--alpha", "0.2").out
    assert "probability at least 0.8" in promised
    assert "of the 40 calibration questions" in promised
    measured = farthing("evaluate", *given)
    assert promised.strip() in measured.out
    assert "120 to train, 40 to calibrate, 40 to test" in measured.err
    assert max(map(len, measured.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (["pac", "--delta", "0.1"], "With confidence 0.9"),
        (["online"], "updates"),
        (["split", "--given", "solvable"], "solvable question"),
    ],
)
def test_each_method_says_what_it_promises(
    farthing: Farthing, runs: Path, method: list[str], says: str
) -> None:
    farthing("train", "--traces", runs, "--policy", "random", "--out", "b")
    asked = ("calibrate", "--bundle", "b", "--traces", runs, "--alpha", "0.2", "--method", *method)
    assert says in " ".join(farthing(*asked).out.split())


def test_questions_that_may_have_trained_the_bundle_are_remarked_on(
    farthing: Farthing, runs: Path
) -> None:
    farthing("train", "--traces", runs, "--policy", "random", "--out", "b")
    asked = ("--bundle", "b", "--traces", runs)
    assert "note:" not in farthing("evaluate", *asked).err
    assert "test questions trained the policy" in farthing("evaluate", *asked, "--seed", 1).err


def test_no_question_is_used_twice_without_a_word(farthing: Farthing, runs: Path) -> None:
    farthing("train", "--traces", runs, "--policy", "random", "--out", "b")
    asked = ("--bundle", "b", "--traces", runs)
    refused = farthing("calibrate", *asked, "--seed", 1)
    assert refused.code == 2
    assert "calibration questions trained the policy" in refused.err
    sizes = ("--train", 120, "--calibrate", 79, "--test", 1)
    assert farthing("calibrate", *asked, *sizes).code == 0
    met = farthing("evaluate", *asked).err
    assert re.search(r"(39|40) of the 40 test questions set its threshold", met)
    assert "note:" not in farthing("evaluate", *asked, *sizes).err


@pytest.mark.usefixtures("quick")
def test_the_same_seed_gives_the_same_bytes(farthing: Farthing, runs: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        asked = ("train", "--traces", runs, "--policy", "ccpo", "--seed", seed, "--out", name)
        assert farthing(*asked).code == 0

    def written(name: str) -> list[bytes]:
        files = (f"{name}/bundle.json", f"{name}/weights.safetensors", f"{name}.curves.csv")
        return [Path(file).read_bytes() for file in files]

    assert written("a") == written("b")
    assert written("a") != written("c")


@pytest.mark.usefixtures("quick")
def test_curves_have_a_line_an_update(farthing: Farthing, runs: Path) -> None:
    farthing("train", "--traces", runs, "--policy", "ccpo", "--out", "a")
    with Path("a.curves.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["update"] for line in lines] == [str(n) for n in range(1, 31)]
    assert all(0 <= float(line["coverage"]) <= 1 for line in lines)
    assert {"cost", "coverage", "kappa", "violation"} <= set(lines[0])


def test_an_interrupted_training_is_kept_and_said_so(
    farthing: Farthing, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped:
        def fit(self, train: object, alpha: object, seed: int, progress: Progress) -> Fitted:
            progress.update(3, 10, {"cost": 1.0})
            return Fitted(RandomPolicy(), stopped_early=True)

    def contenders(*_: object) -> list[Contender]:
        return [Contender("ccpo", "CCPO", Stopped(), "split")]

    monkeypatch.setattr("farthing.experiments.single.contenders", contenders)
    done = farthing("train", "--traces", runs, "--policy", "ccpo", "--out", "a")
    assert done.code == 130
    assert "interrupted; the bundle holds" in done.err
    assert bundle.load("a").kind == "random"
