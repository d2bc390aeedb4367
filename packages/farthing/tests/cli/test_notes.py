"""The notes of `train`, `calibrate`, `evaluate` and `compare`: each is true, and a sentence."""

from collections.abc import Callable
from typing import Any

import pytest
from noted_logs import (
    PARITY,
    SOME,
    log,
    says_of_which_questions,
    some_asked,
    unknown_are_not_others,
)

Farthing = Callable[..., Any]


@pytest.mark.slow
def test_unknown_models_are_not_other_models(farthing: Farthing) -> None:
    unknown_are_not_others(farthing, "always-small")


@pytest.mark.slow
def test_a_note_says_of_which_questions_figures_are(farthing: Farthing) -> None:
    traces = some_asked()
    farthing("train", *traces, "--policy", "always-small", "--out", "b")
    says_of_which_questions(farthing("evaluate", "--bundle", "b", *traces))


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
