"""A trace keeps what was asked beside the text, so that no other question is taken for a copy."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from farthing.runtime.rounds import record
from farthing.runtime.under_way import blank
from farthing.tasks.base import Question
from farthing.traces.base import Call, Trace
from farthing.traces.copies import content_of

QUESTION = Question("a", "Which?", gold=("A",), choices=("Oslo", "Rome"))
TASK: Any = SimpleNamespace(name="mmlu")


def collected(question: Question) -> Trace:
    async def calls(question: Question, clients: object) -> list[Call]:
        return [Call(round=1, role="m")]

    plan: Any = SimpleNamespace(calls=calls, independent=True)
    nobody: Any = None
    return asyncio.run(record(question, plan, TASK, nobody))


def live(question: Question) -> Trace:
    orchestrator: Any = SimpleNamespace(task=TASK, plan=SimpleNamespace(independent=True))
    return blank(question, orchestrator)


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
