"""Logs in which calls are missing or models go unnamed, and what notes say of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def unknown_are_not_others(farthing: Farthing, policy: str) -> None:
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


def says_of_which_questions(done: Any) -> None:
    """See that a command that read `some_asked` says of which questions its figures are."""
    assert done.code == 0, done.err
    said = " ".join((done.err + done.out).split())
    assert f"ote: these figures are of {SOME} " in said, said
    assert "It is about" not in said
