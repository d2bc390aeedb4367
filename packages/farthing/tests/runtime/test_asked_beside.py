"""A trace keeps what was asked beside the text, so that no other question is taken for a copy."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from farthing.runtime.protocol import trace_of
from farthing.tasks.base import Question
from farthing.traces.base import Call, Trace
from farthing.traces.copies import content_of

QUESTION = Question("a", "Which?", gold=("A",), choices=("Oslo", "Rome"))
TASK: Any = SimpleNamespace(name="mmlu")


def collected(question: Question) -> Trace:
    return trace_of(question, TASK, [Call(round=1, role="m")], independent=True)


def live(question: Question) -> Trace:
    return trace_of(question, TASK, [], truncated=True)


@pytest.mark.parametrize("traced", [collected, live])
def test_options_and_paragraphs_make_another_question(traced: Any) -> None:
    one = content_of(traced(QUESTION))
    assert content_of(traced(replace(QUESTION, id="b", group="g"))) == one
    for other in (
        replace(QUESTION, choices=("Oslo", "Bern")),
        replace(QUESTION, choices=()),
        replace(QUESTION, paragraphs=(("Italy", "Rome is its capital."),)),
    ):
        assert content_of(traced(other)) != one
