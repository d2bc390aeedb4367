"""`farthing corl`: train a tiny controller, evaluate it, ask it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from controller_pool import write_pool


@pytest.fixture(scope="module")
def pool_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pool(tmp_path_factory.mktemp("corl"))


def test_a_controller_is_trained_evaluated_and_asked(
    farthing: Callable[..., Any], refused: Callable[..., str], pool_file: Path
) -> None:
    few = ("--updates", 2, "--prompts", 4)
    done = farthing("corl", "train", "--pool", pool_file, *few, "--out", "made")
    assert done.code == 0, done
    assert "Next: farthing corl evaluate made" in done.out
    assert (Path("made") / "curves.png").stat().st_size > 1_000
    assert "holds a controller already" in refused(
        "corl", "train", "--pool", pool_file, *few, "--out", "made"
    )
    shown = farthing("corl", "evaluate", "made", "--n", 6)
    assert shown.code == 0, shown
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "USD a question" in shown.out
    found = json.loads(farthing("corl", "evaluate", "made", "--n", 6, "--json").out)
    assert list(found["modes"]) == ["low", "high"]
    for mode in found["modes"].values():
        for name in ("accuracy", "cost_usd", "call_ratio", "over_budget"):
            low, high = mode[f"{name}_interval"]
            assert low <= mode[name] <= high
    asked = farthing(
        "corl", "run", "b=a+1;a=2;b?", "--controller", "made", "--mode", "low", "--json"
    )
    answer = json.loads(asked.out)
    assert asked.code == (1 if answer["answer"] is None else 0)
    assert answer["mode"] == "low"
    assert answer["dearest"]["expert"] == "large"
    assert "cost    $" in farthing("corl", "run", "b=a+1;a=2;b?", "--controller", "made").out


def test_a_controller_is_taught_and_its_adapter_trained(
    farthing: Callable[..., Any], refused: Callable[..., str], pool_file: Path
) -> None:
    few = ("--pool", pool_file, "--steps", 8, "--questions", 6, "--lora", 2)
    assert "give a multiple of 8" in refused(
        "corl", "warm", "--pool", pool_file, "--steps", 9, "--out", "odd"
    )
    done = farthing("corl", "warm", *few, "--out", "warm")
    assert done.code == 0, done
    assert f"Next: farthing corl train --pool {pool_file} --controller warm" in done.out
    assert "holds a controller already" in refused("corl", "warm", *few, "--out", "warm")
    begun = ("--pool", pool_file, "--controller", "warm", "--updates", 1, "--prompts", 4)
    assert farthing("corl", "train", *begun, "--out", "made").code == 0
    found = json.loads(farthing("corl", "evaluate", "made", "--n", 6, "--json").out)
    assert list(found["modes"]) == ["low", "high"]
    asked = farthing("corl", "run", "b=a+1;a=2;b?", "--controller", "made", "--json")
    assert asked.code == (1 if json.loads(asked.out)["answer"] is None else 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("warm", "--pool", "three", "--out", "x"), "give two, four, or a TOML file"),
        (("train", "--pool", "three", "--out", "x"), "give two, four, or a TOML file"),
        (("train", "--pool", "no.toml", "--out", "x"), "there is no such file"),
        (("train", "--pool", "two", "--reward", "hard", "--out", "x"), "unknown reward 'hard'"),
        (
            ("train", "--pool", "two", "--advantage", "group", "--rollouts", "1", "--out", "x"),
            "compares episodes of a question; give --rollouts 2",
        ),
        (("train", "--pool", "two", "--controller", "no", "--out", "x"), "no such folder"),
        (("evaluate", "no"), "no: there is no such folder of a controller"),
        (("run", "a=2;a?", "--controller", "no"), "no: there is no such folder"),
        (("run", "a=2;a?", "--budget", "much"), "is no amount of dollars"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    refused: Callable[..., str], arguments: tuple[str, ...], said: str
) -> None:
    assert said in refused("corl", *arguments)
