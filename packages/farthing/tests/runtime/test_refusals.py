"""Requests that a model refuses for good: recorded where it answers others, and only there."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from farthing.errors import BadRequestError, ModelError
from farthing.models.base import Prompt
from farthing.models.scripted import ScriptedModel
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.collect import CollectionProgress, collect
from farthing.runtime.journal import StoreJournal
from farthing.runtime.meter import Meter
from farthing.runtime.protocol import Dialogue, Independent, RecordingPlan
from farthing.runtime.refusals import IN_A_ROW
from farthing.tasks.base import Question
from farthing.tasks.text import TEXT
from farthing.traces.store import Store

Says = Callable[[int], str | ModelError]


def number(prompt: Prompt) -> int:
    return int(re.findall(r"Number (\d+)\?", prompt.messages[-1].content)[0])


def recorded(
    store: Store, says: Says, numbers: range, *, dialogue: bool = False
) -> CollectionProgress:
    """Record questions of one model, one after another."""
    journal = StoreJournal(store, 10**12, "test")
    agents = (BaseAgent(ScriptedModel(lambda prompt: says(number(prompt))), role="m"),)
    plan = Dialogue(agents, 1) if dialogue else Independent(agents, 1, TEXT)
    questions = [Question(f"q{k}", f"Number {k}?") for k in numbers]

    async def run() -> CollectionProgress:
        meter = Meter(journal)
        return await collect(questions, RecordingPlan(plan, TEXT), journal, meter, at_once=1)

    return asyncio.run(run())


def refusing(when: Callable[[int], bool]) -> Says:
    return lambda k: BadRequestError(f"not {k}") if when(k) else f"Answer: {k}"


@pytest.mark.parametrize("refused", [lambda k: k % 10 == 3, lambda k: k < 4, lambda k: k > 35])
def test_a_few_refusals_are_results(tmp_path: Path, refused: Callable[[int], bool]) -> None:
    with Store.open(tmp_path / "a.db") as store:
        done = recorded(store, refusing(refused), range(40))
        traces = {trace.id: trace for trace in store.traces()}
    assert (done.left, done.failed, done.unanswered) == (0, {}, {("m", "bad_request"): 4})
    for k in range(40):
        (call,) = traces[f"q{k}"].calls
        assert (call.answer is None) is (call.error is not None) is refused(k)


def test_what_is_refused_for_all_is_not_recorded(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        done = recorded(store, refusing(lambda _: True), range(10))
        assert (done.done, len(done.failed), list(store.traces())) == (0, 10, [])


def test_a_model_that_answers_no_more_is_not_asked_on(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        done = recorded(store, refusing(lambda k: k >= 10), range(100))
        assert len(list(store.traces())) == 10
    assert done.stopped == f"m refused the latest {IN_A_ROW} requests"
    assert (done.done, len(done.failed)) == (10, IN_A_ROW)


def test_what_a_model_answered_before_says_nothing_of_refusals_now(tmp_path: Path) -> None:
    """A parameter may be wrong since: what nobody answers is unknown, not without an answer."""
    with Store.open(tmp_path / "a.db") as store:
        recorded(store, refusing(lambda _: False), range(5))
        done = recorded(store, refusing(lambda _: True), range(5, 8))
        assert (len(done.failed), len(list(store.traces()))) == (3, 5)
        recorded(store, refusing(lambda k: k < 8), range(5, 10))
        assert len(list(store.traces())) == 10


def test_in_a_dialogue_the_rest_of_the_calls_is_lacking(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        done = recorded(store, refusing(lambda k: k == 3), range(6), dialogue=True)
        assert list(done.failed) == ["q3"]
        assert len(list(store.traces())) == 5
