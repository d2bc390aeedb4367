"""The notes of comparisons and studies: each is true, and a sentence."""

from collections.abc import Callable
from typing import Any

import pytest
from noted_logs import PARITY, says_of_which_questions, some_asked, unknown_are_not_others

Farthing = Callable[..., Any]


@pytest.mark.slow
def test_unknown_models_are_not_other_models(farthing: Farthing) -> None:
    unknown_are_not_others(farthing, "stopping")


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "--policies", "always-small", "--splits", 2, *PARITY, "--out", "r"),
        ("study", "allocate", "--budget", 1),
    ],
)
def test_a_note_says_of_which_questions_figures_are(
    farthing: Farthing, command: tuple[object, ...]
) -> None:
    says_of_which_questions(farthing(*command, *some_asked()))
