"""Where a pool's questions come from: how often each kind comes, and of which part."""

from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from farthing.errors import InputError
from farthing.tasks.base import Question
from farthing_lab.corl.pool import GeneratedQuestions, ListedQuestions
from farthing_lab.tasks.arithmetic import Recipe, part_of

OFTEN, RARE = Recipe("affine", 2), Recipe("sums", 1)
DRAWN = GeneratedQuestions((OFTEN,) * 4 + (RARE,))
OF_RARE = "sums-1"


def test_rare_kinds_are_learned_from_more_than_they_are_asked() -> None:
    generator = np.random.default_rng(0)
    learned = Counter(DRAWN.draw("train", generator).group for _ in range(400))
    assert 96 <= learned[OF_RARE] <= 171  # of 133, four standard errors either way
    asked = DRAWN.sample("test", 50, seed=0)
    for n in range(5, 55, 5):
        assert Counter(one.group for one in asked[:n])[OF_RARE] == n // 5


@pytest.mark.parametrize("part", ["train", "calibrate", "test"])
def test_questions_are_of_the_part_that_is_asked_for(part: str) -> None:
    generator = np.random.default_rng(1)
    drawn = [DRAWN.draw(part, generator) for _ in range(9)]  # type: ignore[arg-type]
    found = [*drawn, *DRAWN.sample(part, 9, 1)]  # type: ignore[arg-type]
    assert {one.split for one in found} == {part_of(one.text) for one in found} == {part}


def test_a_larger_sample_begins_with_a_smaller_one() -> None:
    listed = ListedQuestions(tuple(DRAWN.sample("test", 12, 3)))
    for source in (DRAWN, listed):
        texts = [one.text for one in source.sample("test", 8, 5)]
        assert [one.text for one in islice(source.sample("test", 12, 5), 8)] == texts
        assert [one.text for one in source.sample("test", 8, 6)] != texts


def test_where_a_file_names_no_part_its_text_says_which() -> None:
    listed = ListedQuestions(tuple(Question(str(k), f"what is {k}?") for k in range(200)))
    sizes = {part: len(listed.sample(part, 200, 0)) for part in ("train", "calibrate", "test")}
    assert sum(sizes.values()) == 200
    assert 137 <= sizes["train"] <= 183  # of 160, four standard errors either way
    with pytest.raises(InputError, match="has none to test"):
        ListedQuestions(tuple(listed.sample("train", 200, 0))).draw(
            "test", np.random.default_rng(0)
        )


def test_questions_that_ask_the_same_are_in_one_part() -> None:
    one = Question("a", "what is 2?", ("2",), split="test")
    follows, other = replace(one, id="b", split=None), replace(one, id="c", gold=("3",), split=None)
    listed = ListedQuestions((one, follows, replace(other, split="train")))
    assert [each.id for each in listed.sample("test", 9, 0)] in (["a", "b"], ["b", "a"])
    assert [each.id for each in listed.sample("train", 9, 0)] == ["c"]
    ListedQuestions((replace(one, choices=("2", "3")), replace(one, id="d", split="train")))
    with pytest.raises(
        InputError, match=r"^'d' is marked train and 'a', which asks the same, test"
    ):
        ListedQuestions((one, replace(one, id="d", split="train")))
