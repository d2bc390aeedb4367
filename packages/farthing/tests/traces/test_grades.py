"""Named grades against plain loops, and every way of filling in what nobody graded."""

from itertools import product

import pytest

from farthing.errors import InputError, UnknownNameError
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.fingerprint import fingerprint
from farthing.traces.grades.overlay import at_worst, check_graded, graded, same_as
from farthing.traces.pool import cascade


def asked(
    *questions: tuple[tuple[str | None, bool | None], ...], independent: bool = True
) -> TraceArrays:
    """Return questions put to a cheap, a middling and a strong model: answer and grade of each."""
    return assemble(
        [
            Trace(
                id=f"q{i}",
                independent=independent,
                calls=[
                    Call(round=1, role=role, model=role, answer=said, correct=right, cost_usd=cost)
                    for (role, cost), (said, right) in zip(MODELS, question, strict=True)
                ],
            )
            for i, question in enumerate(questions)
        ]
    )


MODELS = (("cheap", 0.001), ("middling", 0.002), ("strong", 0.01))


def test_an_answer_is_the_same_where_the_task_says_so_and_a_missing_one_never_is() -> None:
    traces = asked(
        (("Paris.", None), ("Rome", None), ("paris", None)),
        ((None, None), ("Rome", None), (None, None)),
    )
    same = graded(traces, "same as strong")
    assert same.correct[:, 0].tolist() == [[True, False, True], [False, False, False]]
    assert not same.ungraded.any()
    assert same.grade == "same as strong"
    assert traces.ungraded[:, 0].tolist() == [[True, True, True], [False, True, False]]
    # A pool that is asked in turn keeps what its names said.
    assert cascade(same).correct[:, :, 0].tolist() == same.correct[:, 0].tolist()


def test_what_was_right_does_not_matter_for_what_is_the_same() -> None:
    known = asked((("4", False), ("5", True), ("4", False)))
    unknown = asked((("4", None), ("5", None), ("4", None)))
    one, other = (graded(traces, same_as("strong")) for traces in (known, unknown))
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(known) != fingerprint(unknown)
    assert fingerprint(one) != fingerprint(known)


def test_a_grade_that_cannot_be_read_is_refused() -> None:
    traces = asked((("4", None), ("5", True), ("4", None)))
    with pytest.raises(InputError, match=r"1 of 1 questions have answers that nobody graded"):
        check_graded(traces)
    with pytest.raises(UnknownNameError, match="stronger"):
        graded(traces, "same as stronger")
    with pytest.raises(InputError, match="'better' cannot be read"):
        graded(traces, "better")
    with pytest.raises(InputError, match="cannot be read"):
        graded(graded(traces, "same as strong"), "right")


def test_a_reference_that_saw_what_it_is_compared_with_is_refused() -> None:
    calls = [Call(round=1, role=role, answer="4", correct=True) for role in ("base", "guide")]
    dialogue = assemble([Trace(id="q", calls=calls)])
    with pytest.raises(InputError, match="saw one another"):
        graded(dialogue, "same as guide")
    assert graded(dialogue, "same as base").correct.all()
    apart = assemble([Trace(id="q", calls=calls, independent=True)])
    assert graded(apart, "same as guide").correct.all()


def losses(traces: TraceArrays, place: int) -> tuple[int, int]:
    """Return how many questions a model loses against the strong one, and how many it wins."""
    ours, theirs = traces.correct[:, 0, place], traces.correct[:, 0, 2]
    return int((theirs & ~ours).sum()), int((ours & ~theirs).sum())


def test_at_worst_no_way_of_grading_loses_more_or_wins_less() -> None:
    """Every grade that each distinct answer may have, of questions with every pattern of three."""
    patterns = [("a", "a", "a"), ("a", "b", "a"), ("a", "b", "b"), ("a", "a", "b"), ("a", "b", "c")]
    for words in patterns:
        distinct = sorted(set(words))
        for known in product([None, False, True], repeat=len(distinct)):
            half = dict(zip(distinct, known, strict=True))
            partly = asked(tuple((word, half[word]) for word in words))
            worst = at_worst(partly, "strong")
            assert not worst.ungraded.any()
            for full in product([False, True], repeat=len(distinct)):
                told = dict(zip(distinct, full, strict=True))
                if any(half[word] not in (None, told[word]) for word in distinct):
                    continue
                truth = asked(tuple((word, told[word]) for word in words))
                for place in (0, 1):
                    (lost, won), (most, least) = losses(truth, place), losses(worst, place)
                    assert most - least >= lost - won


def test_one_graded_answer_grades_all_that_are_the_same() -> None:
    traces = asked((("4", True), ("4.", None), ("5", None)))
    assert at_worst(traces, "strong").correct[0, 0].tolist() == [True, True, True]
    # The strong one's 5 is not known to be wrong, so it counts as right.
    wrong = asked((("5", False), ("4", None), ("5", None)))
    assert at_worst(wrong, "strong").correct[0, 0].tolist() == [False, False, False]
