"""Thoughts longer than they must be, and the shortest that would do."""

import numpy as np
import pytest

from farthing_lab.lm.overthinking import (
    HABITS,
    RECIPES,
    Habits,
    examples,
    overthought,
    shortest,
    sufficient,
)
from farthing_lab.lm.symbols import NUMBERS, encode, unknown
from farthing_lab.tasks.arithmetic import ChainProblem, draw_of


def problems(count: int, seed: int = 0) -> list[ChainProblem]:
    drawn = draw_of("test", RECIPES, np.random.default_rng(seed))
    return [next(drawn) for _ in range(count)]


def test_a_thought_with_detours_begins_as_the_shortest_and_holds_its_answer() -> None:
    rng = np.random.default_rng(1)
    longer = 0
    for problem in problems(200):
        thought = overthought(problem, rng)
        at = sufficient(problem, thought)
        assert at is not None
        assert at >= shortest(problem)
        assert not unknown(thought)
        longer += len(encode(thought)) > shortest(problem)
    assert longer > 120


def test_without_habits_nothing_is_said_twice() -> None:
    rng, none = np.random.default_rng(2), Habits(0.0, 0.0, 0.0)
    for problem in problems(50):
        thought = overthought(problem, rng, none)
        assert thought == problem.reasoning
        assert sufficient(problem, thought) == shortest(problem) == len(encode(thought))


def test_no_shorter_cut_of_the_shortest_thought_would_do() -> None:
    for problem in problems(100):
        whole = encode(problem.reasoning)
        cuts = [problem.reasoning[:at] for at in range(len(problem.reasoning))]
        assert all(sufficient(problem, cut) is None for cut in cuts)
        assert shortest(problem) == len(whole)


@pytest.mark.parametrize(
    ("thought", "enough"),
    [("ba;b=9;", True), ("ba;b=a+5=8;", False), ("ba;b=a+5=9", False), ("ba;b=a+9;", False)],
)
def test_a_line_that_gives_the_letter_its_value_is_enough(thought: str, *, enough: bool) -> None:
    drawn = draw_of("test", RECIPES, np.random.default_rng(0))
    problem = next(one for one in drawn if one.text.endswith("b?"))
    said = thought.replace("9", problem.answer).replace("8", str((int(problem.answer) + 1) % 10))
    assert (sufficient(problem, said) is not None) == enough


def test_examples_are_told_every_mode_and_nothing_in_half_of_them() -> None:
    draw, rng = examples(HABITS), np.random.default_rng(3)
    drawn = [draw(rng) for _ in range(400)]
    modes = {NUMBERS[mode] for mode in ("low:", "medium:", "high:")}
    told = [one.prompt[0] for one in drawn if one.prompt[0] in modes]
    assert set(told) == modes
    assert 150 < len(told) < 250
    assert all(one.answer[-1] == NUMBERS["<end>"] for one in drawn)
