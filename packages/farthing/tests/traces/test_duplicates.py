"""Questions that stand under two ids are counted, and said."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import replace as replaced

import farthing as ft
from farthing.errors import InputError
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.copies import DuplicateCounter, repetition


def question(name: str, text: str, *answers: str, latency_s: float | None = None) -> Trace:
    """Return a question that was put to as many models as there are answers."""
    calls = [
        Call(round=1, role=f"model-{i}", answer=answer, latency_s=latency_s, cost_usd=0.001)
        for i, answer in enumerate(answers)
    ]
    return Trace(id=name, question=text, calls=calls)


def many(n: int, prefix: str = "q") -> list[Trace]:
    return [question(f"{prefix}{i}", f"How much is {i} + {i}?", str(2 * i), "7") for i in range(n)]


def passed(repeats: DuplicateCounter, traces: list[Trace]) -> DuplicateCounter:
    assert list(repeats.count(traces)) == traces
    return repeats


def test_a_second_import_under_other_ids_is_refused() -> None:
    repeats = passed(DuplicateCounter.beside(many(40)), many(40, "other"))
    with pytest.raises(InputError) as refusal:
        repeats.refuse("calls.csv", "y.db")
    assert str(refusal.value).startswith(
        "y.db: 40 of the 40 questions of calls.csv are stored already under other ids, with the "
        "same text and the same answers ('other0' is 'q0' there); nothing was imported"
    )


@pytest.mark.parametrize(
    ("stored", "fresh", "refused"),
    [(40, 400, True), (400, 40, True), (10, 400, True), (9, 400, False), (1, 400, False)],
)
def test_half_of_either_is_a_second_import_and_less_is_a_note(
    stored: int, fresh: int, refused: bool
) -> None:
    repeats = passed(DuplicateCounter.beside(many(stored)), many(fresh, "other"))
    assert (repeats.copies, repeats.stored) == (min(stored, fresh),) * 2
    if refused:
        with pytest.raises(InputError, match="stored already"):
            repeats.refuse("calls.csv", "y.db")
    else:
        repeats.refuse("calls.csv", "y.db")
        (note,) = repeats.notes()
        assert note.startswith(f"{stored} question")


def test_other_answers_or_times_are_another_asking() -> None:
    stored = [question("a", "2 + 2?", "4", latency_s=1.0)]
    for again in (
        question("b", "2 + 2?", "5", latency_s=1.0),
        question("b", "2 + 2?", "4", latency_s=2.0),
    ):
        repeats = passed(DuplicateCounter.beside(stored), [again])
        repeats.refuse("calls.csv", "y.db")
        (note,) = repeats.notes()
        assert note.startswith("1 question has the text of another one under another id, and other")
        assert "('a' and 'b')" in note


def test_what_asks_the_same_is_told_as_everywhere() -> None:
    """To the letter, with the options and what was said before; no text is none, gold may come."""
    one = question("a", "2 + 2?", "4")
    assert passed(DuplicateCounter(), [one, replaced(one, id="b")]).copies == 1
    for other in (
        {"question": "2 +\n2?"},
        {"options": "A 4, B 5"},
        {"history": "Hello"},
        {"system_prompt": "Be brief."},
        {"question": "2 + 2"},
    ):
        two = [one, replaced(one, id="b", **other)]
        counted = passed(DuplicateCounter(), two)
        assert (counted.copies, counted.asked_again) == (0, 0)
        assert repetition(assemble(two), two) is None
    later = replaced(one, id="b", gold=["4"])
    assert passed(DuplicateCounter(), [one, later]).copies == 1
    assert repetition(assemble([one, later]), [one, later]) is not None
    silent = [question("a", "", "4"), question("b", " ", "4")]
    assert passed(DuplicateCounter(), silent).copies == 0
    assert repetition(assemble(silent), silent) is None


def test_it_is_said_who_stands_there_twice() -> None:
    records = [*many(3), *many(2, "other")]
    traces = assemble(records)
    said = repetition(traces, records)
    assert said is not None
    assert said.startswith("2 questions stand here twice")
    assert "('q0' and 'other0')" in said
    assert repetition(assemble(many(3)), many(3)) is None
    unknown = replace(traces, content=np.zeros(5, dtype=np.uint64))
    assert repetition(unknown, records) is None


def test_python_warns_of_records_that_stand_there_twice() -> None:
    calls = [{"round": 1, "role": role, "answer": "4", "cost_usd": 0.1} for role in ("a", "b")]
    records = [{"id": name, "question": "2 + 2?", "calls": calls} for name in ("x", "y")]
    with pytest.warns(UserWarning, match="1 question stands here twice"):
        ft.from_records(records)
