"""The notes of `train`, `calibrate`, `evaluate` and `compare`: each is true, and a sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Farthing = Callable[..., Any]
OTHERS = "the bundle was trained on the models"


def log(
    path: str, n: int = 90, *, models: dict[str, str] | None = None, **more: Any
) -> tuple[str, str]:
    """Write questions that small and large answer; `models` are the models that the calls name."""
    lines = []
    for i in range(n):
        calls = [
            {"round": 1, "role": role, "answer": str(i % 7), "correct": True, "cost_usd": cost}
            for role, cost in (("small", 0.001), ("large", 0.1))
        ]
        for call in calls:
            call.update({"model": models[str(call["role"])]} if models else {})
        lines.append({"id": f"q{i}", "question": f"How much is {i}?", "calls": calls} | more)
    Path(path).write_text("\n".join(map(json.dumps, lines)))
    return "--traces", path


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["always-small", "stopping"])
def test_unknown_models_are_not_other_models(farthing: Farthing, policy: str) -> None:
    """By its own name or its role's, a model that no call names may be the one of the bundle."""
    named = {"small": "mini", "large": "maxi"}
    for trained, models, says in (
        (named, None, False),
        (None, named, False),
        (named, named, False),
        (named, named | {"large": "other"}, True),
    ):
        train = log("train.jsonl", models=trained)
        farthing("train", *train, "--policy", policy, "--out", f"b{trained is None}{says}")
        traces = log("test.jsonl", models=models)
        bundle = ("--bundle", f"b{trained is None}{says}")
        for done in (
            farthing("evaluate", *bundle, *traces),
            farthing("calibrate", *bundle, *traces, "--alpha", "0.2"),
        ):
            assert done.code == 0, done.err
            assert (OTHERS in done.err) == says, done.err
            assert (" other" in done.err) == says


def some_asked(path: str = "holes.jsonl", *, right: bool = True) -> tuple[str, str]:
    """Write 300 questions of which large was asked 200; it alone is right where `right` is not."""
    traces = log(path, 300)
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    for line in lines:
        line["calls"][0]["correct"] = right
    for line in lines[200:]:
        del line["calls"][1]
    Path(path).write_text("\n".join(map(json.dumps, lines)))
    return traces


SOME = "questions like the 200 of the 300 recorded ones that were asked of both small and large"
PARITY = ("--promise", "parity", "--epsilon", 0.3, "--delta", 0.2, "--reference", "large")


def test_a_note_says_of_which_questions_figures_are(farthing: Farthing) -> None:
    traces = some_asked()
    farthing("train", *traces, "--policy", "always-small", "--out", "b")
    compared = ("--policies", "always-small", "--splits", 2, *PARITY, "--out", "r")
    for command in (
        ("evaluate", "--bundle", "b"),
        ("compare", *compared),
        ("study", "allocate", "--budget", 1),
    ):
        done = farthing(*command, *traces)
        assert done.code == 0, done.err
        said = " ".join((done.err + done.out).split())
        assert f"ote: these figures are of {SOME} " in said, said
        assert "It is about" not in said


def test_a_certificate_says_of_which_questions_nothing_is_proved(farthing: Farthing) -> None:
    for right, says in ((True, f"It is about {SOME}."), (False, f"Nothing is proved of {SOME}.")):
        traces = some_asked(right=right)
        farthing("train", *traces, "--policy", "always-small", "--out", f"b{right}")
        done = farthing("calibrate", "--bundle", f"b{right}", *traces, *PARITY)
        assert done.code == (0 if right else 1), done.err
        whole = " ".join(done.out.split())
        assert says in whole, whole
        assert ("so large answers" in whole) == (not right)


def test_train_says_how_many_questions_are_left_out(farthing: Farthing) -> None:
    for traces, says in ((some_asked(), True), (log("whole.jsonl", 300), False)):
        done = farthing("train", *traces, "--policy", "always-small", "--out", f"b{says}")
        assert done.code == 0, done.err
        note = "note: 100 of the 300 questions lack a call of small or large and are left out\n"
        assert (note in done.err) == says, done.err
        assert ("left out" in done.err) == says
