"""`farthing corl`: train a tiny controller, evaluate it, ask it."""

import inspect
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from controller_pool import write_pool

from farthing.traces.arrays import SPLITS
from farthing_lab.cli import corl as cli
from farthing_lab.corl.learner import TrainingSchedule
from farthing_lab.corl.training import COURSE, TrainingPlan, WarmStartPlan
from farthing_lab.lm.masked_ppo import Settings
from farthing_lab.models.embedded import WEIGHTS

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def pool_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pool(tmp_path_factory.mktemp("corl"))


def documented(command: str) -> set[str]:
    """Return the keys that the page of the commands says a command's JSON has."""
    page = (ROOT / "docs" / "research/commands.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith(f"| `{command}` |"))
    return set(re.findall(r"`(\w+)`", row.split("|", 2)[2])) - {"NAME_interval"}


def keys(record: Any) -> set[str]:
    """Return the keys of a record that everybody gets: its own, its modes' and its steps'."""
    inside = [*record.get("modes", {}).values(), *record.get("steps", [])]
    own = {key for one in (record, *inside) for key in one}
    return own | set(record["dearest"] if "steps" in record else ())


def amounts(record: Any) -> Iterator[float]:
    """Yield every amount of money in a record."""
    inside = record.items() if isinstance(record, dict) else enumerate(record)
    for name, value in inside:
        if isinstance(value, dict | list) and "usd" not in str(name):
            yield from amounts(value)
        elif "usd" in str(name) and value is not None:
            yield from value if isinstance(value, list) else [value]


@pytest.mark.slow
def test_a_controller_is_trained_evaluated_and_asked(
    farthing: Callable[..., Any], refused: Callable[..., str], pool_file: Path
) -> None:
    few = ("--updates", 2, "--prompts", 4, "--allocation", "uncertain", "--hook", "thinking-limit")
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
    assert all(usd == round(usd, 9) for usd in amounts(found))
    shares = {name for name in keys(found) if f"{name}_interval" in keys(found)}
    assert keys(found) - {f"{name}_interval" for name in shares} == documented("corl evaluate")
    asked = farthing(
        "corl", "run", "b=a+1;a=2;b?", "--controller", "made", "--mode", "low", "--json"
    )
    answer = json.loads(asked.out)
    assert keys(answer) == documented("corl run")
    assert asked.code == (1 if answer["answer"] is None else 0)
    assert answer["mode"] == "low"
    assert answer["dearest"]["expert"] == "large"
    assert "cost    $" in farthing("corl", "run", "b=a+1;a=2;b?", "--controller", "made").out


def test_damaged_weights_are_named(
    refused: Callable[..., str], pool_file: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(pool_file.parent / "controller", copy)
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1_000])
    told = refused("corl", "evaluate", copy, "--pool", pool_file, "--n", 4)
    assert "the weights are damaged" in told
    assert str(copy) in told


def test_without_a_command_the_help_is_all_that_is_said(farthing: Callable[..., Any]) -> None:
    done = farthing("corl")
    assert (done.code, done.err) == (2, "")
    assert "certify" in done.out


@pytest.mark.slow
def test_a_mode_is_certified_in_a_sentence_about_money_and_as_json(
    farthing: Callable[..., Any], pool_file: Path
) -> None:
    few = ("corl", "certify", "--pool", pool_file, "--n", 12)
    shown = farthing(*few)
    first = shown.out.splitlines()[0]
    assert first.startswith(("Use the mode", "Keep asking")), shown
    assert "a question" in first
    assert max(map(len, shown.out.splitlines())) <= 80
    loose = (*few, "--epsilon", "0.9", "--reference", "large", "--json")
    done = farthing(*loose)
    found = json.loads(done.out)
    assert (done.code, found["mode"]) == (0, "low")
    assert keys(found) == documented("corl certify")
    assert found["saved"] == pytest.approx(
        1 - found["modes"]["low"]["cost_usd"] / found["reference"]["cost_usd"]
    )
    assert found["certificate"]["promise"]["kind"] == "parity"
    assert found["questions"] == {"train": 20, "calibrate": 12, "test": 12}
    strict = farthing(*loose, "--promise", "agreement", "--epsilon", "0.01")
    found = json.loads(strict.out)
    assert (strict.code, found["mode"]) == (1, None)
    assert "large answers" in found["promise"]
    assert found["outlook"]


def test_an_expert_that_is_not_there_certifies_nothing(
    refused: Callable[..., str], pool_file: Path
) -> None:
    few = ("corl", "certify", "--pool", pool_file, "--n", 12)
    assert "unknown expert 'nobody'" in refused(*few, "--reference", "nobody")


@pytest.mark.slow
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
        (("warm", "--pool", "two", "--device", "tpu9", "--out", "x"), "device 'tpu9'"),
        (("train", "--pool", "two", "--device", "tpu9", "--out", "x"), "device 'tpu9'"),
        (("train", "--pool", "two", "--device", "meta", "--out", "x"), "give cpu or cuda"),
        (("train", "--pool", "two", "--reward", "hard", "--out", "x"), "unknown reward 'hard'"),
        (
            ("train", "--pool", "two", "--sampler", "rollout", "--out", "x"),
            "unknown sampler 'rollout'; did you mean 'rollouts'? Known: rollouts",
        ),
        (
            ("train", "--pool", "two", "--allocation", "odd", "--out", "x"),
            "unknown allocation 'odd'. Known: duet, even, knapsack, uncertain",
        ),
        (
            ("train", "--pool", "two", "--hook", "no-calls", "--hook", "all", "--out", "x"),
            "unknown logits hook 'all'. Known: no-calls, thinking-limit",
        ),
        (
            ("train", "--pool", "two", "--advantage", "group", "--rollouts", "1", "--out", "x"),
            "compares episodes of a question; give --rollouts 2",
        ),
        (("train", "--pool", "two", "--controller", "no", "--out", "x"), "no such folder"),
        (
            ("train", "--pool", "two", "--prompt", "plain", "--out", "x"),
            "has 61 symbols, and its prompt in the mode low, style plain, has others, such as A n",
        ),
        (("train", "--pool", "two", "--prompt", "forbidding", "--out", "x"), "--prompt compact"),
        (("evaluate", "no"), "no: there is no such folder of a controller"),
        (("certify", "no"), "no: there is no such folder of a controller"),
        (("certify", "--promise", "agreement", "--epsilon", "0"), "give one above 0, such as 0.05"),
        (("certify", "--promise", "coverage"), "coverage"),
        (("certify", "--delta", "2"), "between 0 and 1"),
        (("run", "a=2;a?", "--controller", "no"), "no: there is no such folder"),
        (("run", "a=2;a?", "--budget", "much"), "is no amount of dollars"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    refused: Callable[..., str], arguments: tuple[str, ...], said: str
) -> None:
    assert said in refused("corl", *arguments)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('style = "compact"', "", "use the style compact (--prompt compact, or style in the pool"),
        ("low =", "cheap =", "in the mode cheap, style compact, has others, such as p"),
    ],
)
def test_what_a_pool_s_controller_cannot_read_is_refused_everywhere(
    refused: Callable[..., str], pool_file: Path, before: str, after: str, said: str
) -> None:
    Path("pool.toml").write_text(pool_file.read_text().replace(before, after))
    assert said in refused("corl", "train", "--pool", "pool.toml", "--out", "x")
    assert not Path("x").exists()
    writer = pool_file.parent / "controller"
    assert said in refused("corl", "evaluate", writer, "--pool", "pool.toml")
    assert said in refused("corl", "run", "a=2;a?", "--controller", writer, "--pool", "pool.toml")


def test_the_options_default_to_what_a_training_does_by_itself() -> None:
    given = {
        name: one.default
        for command in (cli.train, cli.warm)
        for name, one in inspect.signature(command).parameters.items()
    }
    assert TrainingPlan() == TrainingPlan(
        reward=given["reward"],
        sampler=given["sampler"],
        allocation=given["allocation"],
        course=TrainingSchedule(given["updates"], given["prompts"], given["rollouts"]),
        settings=Settings(given["advantage"]),
        seed=given["seed"],
    )
    assert WarmStartPlan() == WarmStartPlan(
        given["lora"], given["questions"], replace(COURSE, steps=given["steps"]), given["seed"]
    )


def test_a_controller_and_a_pool_without_its_experts_are_refused(
    refused: Callable[..., str], pool_file: Path
) -> None:
    shipped = str(WEIGHTS / "corl-four")
    for command in (("evaluate", shipped), ("run", "a=2;a?", "--controller", shipped)):
        told = refused("corl", *command, "--pool", "two")
        assert "learned to call products, sums, and the pool two has small, large" in told
    assert "learned to call" in refused("corl", "evaluate", shipped, "--pool", pool_file)


def test_a_training_that_is_not_over_is_no_controller(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "half" / ".training").mkdir(parents=True)
    told = refused("corl", "evaluate", tmp_path / "half")
    assert "holds a training that is not over; the command that began it goes on" in told


def test_a_question_that_the_controller_cannot_read_is_refused(
    refused: Callable[..., str], pool_file: Path, tmp_path: Path
) -> None:
    told = refused("corl", "run", "What is 2+2?", "--pool", pool_file)
    assert "'What is 2+2?' has others, such as W" in told
    listed = pool_file.parent / "questions.jsonl"
    text = pool_file.read_text().replace(str(listed), str(tmp_path / "own.jsonl"))
    rows = [
        {"question": f"say {n}, a={n};a?", "gold": str(n), "split": part}
        for n, part in enumerate(SPLITS, start=1)
    ]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "pool.toml").write_text(text)
    told = refused("corl", "evaluate", "--pool", tmp_path / "pool.toml", "--n", 2)
    assert "a?' has others, such as" in told


@pytest.mark.slow
def test_it_is_said_what_a_hard_budget_was_and_that_questions_were_fewer(
    farthing: Callable[..., Any], pool_file: Path
) -> None:
    chain = ("corl", "run", "b=a+1;a=2;b?", "--pool", pool_file)
    done = json.loads(farthing(*chain, "--budget", "0.5", "--json").out)
    assert done["hard_budget_usd"] == 0.5
    assert done["mode"] == "low", "of two modes the cheaper one"
    assert json.loads(farthing(*chain, "--json").out)["hard_budget_usd"] is None
    assert "no more than $0.5 could be paid, calls" in " ".join(
        farthing(*chain, "--budget", "0.5").out.split()
    )
    done = farthing("corl", "evaluate", "--pool", pool_file, "--n", 50, "--budget", "0.5")
    assert "note: 12 of the 50 questions; there are no more of the part test" in done.err
    assert "They are not held to $0.500 a question" in " ".join(done.out.split())


@pytest.mark.slow
def test_a_trained_controller_finds_its_pool_from_anywhere(
    farthing: Callable[..., Any], pool_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, anywhere = Path("made").resolve(), Path("anywhere")
    monkeypatch.chdir(pool_file.parent)
    few = ("--updates", 1, "--prompts", 2, "--rollouts", 2)
    assert farthing("corl", "train", "--pool", pool_file.name, *few, "--out", made).code == 0
    monkeypatch.chdir(made.parent)
    anywhere.mkdir()
    monkeypatch.chdir(anywhere)
    assert farthing("corl", "evaluate", made, "--n", 4).code == 0
