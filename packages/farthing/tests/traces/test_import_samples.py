"""Several answers of one model as samples, where the user says that they are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from farthing.errors import InputError
from farthing.traces.base import Trace
from farthing.traces.importers.base import Options
from farthing.traces.importers.read import Supplied, read_foreign
from farthing.traces.trace_kind import shape_of


def as_samples(tmp_path: Path, name: str, content: Any) -> list[Trace]:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_foreign([path], None, Supplied(options=Options(samples=True))).traces


SAMPLES = "id,model,answer,right\n" + "".join(
    f"q{i},small,{answer},{answer == 'a'}\n" for answer in "aba" for i in (1, 2)
)


def test_several_answers_of_one_model_are_samples_where_the_user_says_so(tmp_path: Path) -> None:
    traces = as_samples(tmp_path, "a.csv", SAMPLES)
    assert [shape_of(trace) for trace in traces] == ["samples"] * 2
    for trace in traces:
        found = [(call.round, call.role, call.answer, call.correct) for call in trace.calls]
        assert found == [(1, "small", "a", True), (2, "small", "b", False), (3, "small", "a", True)]
    said = read_foreign([tmp_path / "a.csv"])
    assert [len(trace.calls) for trace in said.traces] == [1, 1]
    assert any("--samples keeps all" in note for note in said.notes)


def test_epochs_of_an_eval_log_are_samples(tmp_path: Path) -> None:
    samples = [
        {
            "id": i,
            "epoch": epoch,
            "input": f"{i} + {i}?",
            "target": str(2 * i),
            "output": {"choices": [{"message": {"content": str(2 * i + epoch - 1)}}]},
            "scores": {"match": {"value": "C" if epoch == 1 else "I"}},
        }
        for epoch in (1, 2)
        for i in (1, 2)
    ]
    about = {"model": "openai/gpt-4o", "task": "sums"}
    log = {"version": 2, "status": "success", "eval": about, "samples": samples}
    traces = as_samples(tmp_path, "a.json", log)
    found = [[(call.round, call.answer, call.correct) for call in t.calls] for t in traces]
    assert found == [[(1, "2", True), (2, "3", False)], [(1, "4", True), (2, "5", False)]]
    assert [shape_of(trace) for trace in traces] == ["samples"] * 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (SAMPLES + "q2,large,a,True\n", "line 8, model: is 'large' and before it was 'small'"),
        (SAMPLES + "q2,small,a,True\n", "line 3, row: is of samples of which 'q1' has 3 and 'q2'"),
        ("id,model,answer\nq1,small,a\n", "line 2, row: stands for 1 samples of 'q1' alone"),
    ],
)
def test_what_is_no_set_of_samples_is_refused(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        as_samples(tmp_path, "a.csv", content)


def test_completions_of_one_prompt_are_samples(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": "2 + 2?"}]
    rows = [
        {
            "object": "chat.completion",
            "model": "m",
            "messages": asked,
            "choices": [{"message": {"content": said}}],
        }
        for said in "44"
    ]
    (trace,) = as_samples(tmp_path, "a.json", rows)
    assert [(call.round, call.answer) for call in trace.calls] == [(1, "4"), (2, "4")]


def test_samples_that_a_file_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "2 + 2?"}]
    logged = {"request_id": "r", "call_type": "acompletion", "model": "m", "spend": 0.1}
    row = {**logged, "messages": messages, "response": {"choices": [{"message": {"content": "4"}}]}}
    with pytest.raises(InputError, match=r"litellm does not say .* reads inspect, openai, table"):
        as_samples(tmp_path, "a.json", [row])
    choices = [{"message": {"content": one}} for one in "ab"]
    stored = {"object": "chat.completion", "model": "m", "messages": messages, "choices": choices}
    with pytest.raises(InputError, match=r"choices: are 2 in one reply"):
        as_samples(tmp_path, "b.json", [stored])
