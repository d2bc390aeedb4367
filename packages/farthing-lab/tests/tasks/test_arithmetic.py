"""Questions made by program are held to an interpreter of their text that knows nothing of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError, QuestionFormatError
from farthing.tasks.questions import QuestionRow
from farthing_lab.tasks.arithmetic import (
    ARITHMETIC,
    KINDS,
    LONGEST,
    ChainProblem,
    Recipe,
    draw,
    draw_of,
    part_of,
    question,
    solve,
)

RECIPES = st.builds(Recipe, st.sampled_from(KINDS), st.integers(1, LONGEST), st.integers(0, 2))


def by_python(text: str) -> str:
    """Let Python work the statements out, whichever can be, until the question is answered."""
    *lines, asked = text.split(";")
    values: dict[str, int] = {}
    while asked[0] not in values:
        for line in lines:
            target, right = line.split("=")
            names = [c for c in right if c.isalpha()]
            if all(name in values for name in names):
                values[target] = eval(right, {}, dict(values)) % 10
    return str(values[asked[0]])


@settings(max_examples=60, deadline=None)
@given(RECIPES, st.integers(0, 2**32))
def test_the_answer_is_that_of_the_statements(recipe: Recipe, seed: int) -> None:
    problem = draw(recipe, np.random.default_rng(seed))
    assert problem.answer == by_python(problem.text) == solve(problem.text)
    assert len(problem.text.split(";")) == recipe.hops + recipe.distractors + 2


@settings(max_examples=60, deadline=None)
@given(RECIPES, st.integers(0, 2**32))
def test_each_line_of_the_reasoning_follows(recipe: Recipe, seed: int) -> None:
    problem = draw(recipe, np.random.default_rng(seed))
    back, *lines, last = problem.reasoning.split(";")
    assert last == ""
    assert [line[0] for line in lines] == list(reversed(back))
    worth: dict[str, int] = {}
    for line in lines:
        target, *sides = line.split("=")
        values = {eval(side, {}, dict(worth)) % 10 for side in sides}
        assert len(values) == 1
        assert "=".join(line.split("=")[:2]) in problem.text.split(";")
        worth[target] = values.pop()
    assert lines[-1][-1] == problem.answer


@pytest.mark.slow
def test_a_guess_is_right_one_time_in_ten_whatever_the_length() -> None:
    generator = np.random.default_rng(5)
    for kind in KINDS:
        for hops in (1, 6):
            answers = [int(draw(Recipe(kind, hops), generator).answer) for _ in range(2_000)]
            counts = np.bincount(answers, minlength=10)
            assert ((counts - 200) ** 2 / 200).sum() < 33.7  # chi-square, 9 degrees, p = 1e-4


def test_parts_are_of_the_text_and_keep_their_shares() -> None:
    generator = np.random.default_rng(1)
    parts = [draw(Recipe("affine", 3), generator).part for _ in range(3_000)]
    shares = [parts.count(part) / 3_000 for part in ("train", "calibrate", "test")]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.03)
    drawn = draw_of("test", [Recipe("sums", 2), Recipe("products", 4)], generator)
    some = [next(drawn) for _ in range(50)]
    assert {one.part for one in some} == {part_of(one.text) for one in some} == {"test"}
    assert {one.recipe.kind for one in some} == {"sums", "products"}


def test_a_problem_is_a_question_of_the_task() -> None:
    problem: ChainProblem = draw(Recipe("products", 3), np.random.default_rng(2))
    asked = problem.question()
    assert (asked.text, asked.gold, asked.group) == (problem.text, (problem.answer,), "products-3")
    assert asked.split == problem.part
    thought = f"{problem.reasoning}<answer>{problem.answer}</answer>"
    assert ARITHMETIC.grade(thought, asked.gold)
    assert not ARITHMETIC.grade(problem.reasoning[:-2], asked.gold)


def test_what_is_wrong_with_a_question_is_said() -> None:
    for text, said in (
        ("a=4;b=a*3", "does not end with a letter and a question mark"),
        ("a=4;b=a/3;b?", "'b=a/3' is no statement"),
        ("b=a*3+5;b?", "no statement says what 'a' is worth"),
        ("a=b+1;b=a+1;a?", "go round in a circle at 'a'"),
    ):
        with pytest.raises(InputError, match=said.replace("?", "[?]")):
            solve(text)
        with pytest.raises(QuestionFormatError, match="question"):
            question(QuestionRow({"question": text}, "q.jsonl, line 1", "q", 1))
    with pytest.raises(InputError, match="0 hops"):
        Recipe("sums", 0)


def test_rows_need_no_gold() -> None:
    read = question(QuestionRow({"question": "c=b*7+2;a=4;b=a*3+5;c?"}, "q.jsonl, line 1", "q", 1))
    assert (read.id, read.gold) == ("q-1", ("1",))


def test_a_row_s_part_group_and_id_are_kept() -> None:
    said = {"question": "a=4;b=a*3;b?", "split": "test", "group": "short", "id": "mine"}
    read = question(QuestionRow(said, "q.jsonl, line 1", "q", 1, split="train"))
    assert (read.id, read.group, read.split, read.gold) == ("mine", "short", "test", ("2",))
