"""`--traces A --traces B`: calls of a question come together, or one line says why not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logs_by_model import AGREEMENT, BOTH, as_one, logs, one_call, several_are_as_one

import farthing as ft
from farthing.errors import InputError

Farthing = Callable[..., Any]
Refused = Callable[..., str]
__all__ = ["logs"]
COMMANDS = (
    ("recommend", *AGREEMENT),
    ("train", "--policy", "always-small", "--grade", "same as large", "--out", "c"),
    ("calibrate", "--bundle", "b", *AGREEMENT),
    ("evaluate", "--bundle", "b"),
    ("check", "--bundle", "b", "--new", "joined.jsonl"),
)


@pytest.mark.slow
@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    "command", COMMANDS, ids=[" ".join(map(str, command[:2])) for command in COMMANDS]
)
def test_several_files_are_what_one_of_them_all_is(
    farthing: Farthing, command: tuple[object, ...]
) -> None:
    several_are_as_one(farthing, command)


@pytest.mark.slow
@pytest.mark.usefixtures("logs")
def test_files_of_every_kind_are_joined(farthing: Farthing) -> None:
    as_one(farthing)
    whole = ft.read_traces("joined.jsonl").arrays
    assert farthing("traces", "import", "small.csv", "--store", "small.db").code == 0
    assert farthing("traces", "export", "--store", "small.db", "--out", "small.jsonl").code == 0
    for small in ("small.csv", "small.jsonl", "small.db"):
        for order in ([small, "large.csv"], ["large.csv", small]):
            found = ft.read_traces([Path(name) for name in order]).arrays
            ids = found.ids.tolist()
            assert sorted(ids) == sorted(whole.ids.tolist())
            assert found.roles == whole.roles == ("small", "large")
            found = found.take(np.array([ids.index(name) for name in whole.ids.tolist()]))
            assert (found.made == whole.made).all()
            assert (found.cost_nano == whole.cost_nano).all()
            assert (found.answer == whole.answer).all()
    assert int(whole.made[:, 0, 1].sum()) == 80


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"question": "2 + 3?"}, "question is '2 + 2?' in the one and '2 + 3?' in the other"),
        ({"gold": ["5"]}, "gold is a list in the one and a list in the other"),
        ({"group": "words"}, "group is 'sums' in the one and 'words' in the other"),
        ({"split": "test"}, "split is 'train' in the one and 'test' in the other"),
        ({"task": "gsm8k"}, "task is 'text' in the one and 'gsm8k' in the other"),
        ({"answer": "5"}, "answer of the call of small in round 1 is '4' in the one and '5' in"),
        (
            {"correct": False},
            "correct of the call of small in round 1 is True in the one and False",
        ),
        (
            {"cost_usd": 0.002},
            "cost_usd of the call of small in round 1 is 0.001 in the one and 0.0",
        ),
        (
            {"latency_s": 1.5},
            "latency_s of the call of small in round 1 is None in the one and 1.5",
        ),
    ],
)
def test_files_that_contradict_each_other_are_refused(
    refused: Refused, changes: dict[str, Any], says: str
) -> None:
    Path("a.jsonl").write_text(json.dumps(one_call()))
    Path("b.jsonl").write_text(json.dumps(one_call(**changes)))
    two = ("--traces", "a.jsonl", "--traces", "b.jsonl")
    for command in (("recommend",), ("train", "--out", "b")):
        said = refused(*command, *two)
        assert f"farthing: question 'q1' of a.jsonl and b.jsonl: {says}" in said
    with pytest.raises(InputError, match=r"question 'q1' of a\.jsonl and b\.jsonl"):
        ft.read_traces(["a.jsonl", "b.jsonl"])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_one_file_leaves_unsaid_another_may_say(farthing: Farthing) -> None:
    del farthing
    unsaid = one_call(role="large", question="", gold=[], group=None, split=None)
    Path("a.jsonl").write_text(json.dumps(unsaid))
    Path("b.jsonl").write_text(json.dumps(one_call()))
    arrays = ft.read_traces(["a.jsonl", "b.jsonl"]).arrays
    assert arrays.question is not None
    assert arrays.question.tolist() == ["2 + 2?"]
    assert (arrays.group_names, arrays.split.tolist()) == (("sums",), [0])
    assert sorted(arrays.roles) == ["large", "small"]
    again = ft.read_traces(["b.jsonl", "a.jsonl"]).arrays
    assert len(again) == 1


def test_files_of_other_shapes_or_twice_the_same_are_refused(
    refused: Refused, runs: Path, pool: Path
) -> None:
    said = refused("recommend", "--traces", pool, "--traces", runs)
    assert f"question 'q0' of {pool} and '" in said
    assert "have the shapes 'pool' and 'paper'; give files of one shape" in said
    assert "is given twice" in refused("recommend", "--traces", pool, "--traces", pool)
    missing = refused("recommend", "--traces", pool, "--traces", "absent.jsonl")
    assert "absent.jsonl" in missing


@pytest.mark.usefixtures("logs")
def test_what_cannot_join_files_refuses_a_second_one(farthing: Farthing, refused: Refused) -> None:
    as_one(farthing)
    trained = ("--policy", "always-small", "--grade", "same as large", "--out", "b")
    assert farthing("train", "--traces", "joined.jsonl", *trained).code == 0
    said = refused("grade", "--bundle", "b", *BOTH, *AGREEMENT[2:])
    assert "small.csv, large.csv: these are 2 files of traces, and grade reads one" in said
    Path("g.jsonl").write_text("")
    said = refused("calibrate", "--bundle", "b", *BOTH, *AGREEMENT, "--grades", "g.jsonl")
    assert "and --grades reads one; import them into one store first" in said
