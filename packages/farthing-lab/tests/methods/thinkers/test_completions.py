"""Completions are read as thoughts, and thoughts as tokens' advantages."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from farthing.errors import InputError
from farthing_lab.lm.symbols import END, FIRST, NUMBERS, PAD, encode, tokenizer
from farthing_lab.methods.thinkers.adactrl import AdaCtrl
from farthing_lab.methods.thinkers.baselines import LengthPenalty, RightAlone
from farthing_lab.methods.thinkers.brpo import Brpo
from farthing_lab.methods.thinkers.cib import Cib
from farthing_lab.methods.thinkers.completions import NOBODY, Completions, Reading, told_rows
from farthing_lab.methods.thinkers.e1 import E1
from farthing_lab.methods.thinkers.hbpo import Hbpo
from farthing_lab.methods.thinkers.in_trl import ThinkerReward, over_tokens
from farthing_lab.tasks.arithmetic import ARITHMETIC

READING = Reading(ARITHMETIC, tokenizer(FIRST), tuple(encode("<answer>")), cap=8)
"""A thought of the embedded networks ends with `<answer>`."""


def written(*texts: str, gold: str = "4", **columns: Any) -> Completions:
    ids = [encode(text) for text in texts]
    prompts = ["b=a;a=4;b?"] * len(texts)
    return Completions.of(prompts, ids, {"gold": [gold] * len(texts), **columns})


def test_a_thought_is_what_stands_before_its_end() -> None:
    some = written("a=4;<answer>4<end>", "a=4;a=4", "<answer>5", f"a=4{END}", "")
    assert READING.lengths(some).tolist() == [3, 5, 0, 2, 0]
    assert [READING.right(ids, ["4"]) for ids in some.ids] == [True, False, False, False, False]
    found = READING.thoughts(some, RightAlone())
    assert found.final.tolist() == [1, 0, 0, 0, 0]
    assert found.begins.tolist() == [*(ids[0] for ids in some.ids[:4]), NOBODY]


def test_what_ends_a_thought_may_be_several_tokens() -> None:
    reading = Reading(ARITHMETIC, READING.tokenizer, tuple(encode("?!")), cap=8)
    assert reading.length(encode("a=?4?!4")) == 3
    assert reading.right(encode("a=?4?!4"), ["4"])
    assert not reading.right(encode("a=?4?"), ["4"])


def test_what_ends_a_thought_is_no_part_of_the_answer() -> None:
    assert not replace(READING, ends=tuple(encode("4"))).right(encode("a=4"), ["4"])


def test_an_answer_may_end_before_the_text_does() -> None:
    ids = encode("a=4;<answer>4;b=5")
    assert not READING.right(ids, ["4"])
    assert replace(READING, until=";").right(ids, ["4"])


def test_questions_and_modes_are_columns_of_the_data_set() -> None:
    some = written("a", "b", "c", "d", question=["y", "x", "y", "x"], told=[0, 0, 1, 1])
    assert some.group[0] == some.group[2] != some.group[1] == some.group[3]
    assert some.told.tolist() == [0, 0, 1, 1]
    alone = Completions.of(["p", "q", "p"], [[1]] * 3, {"gold": ["1", ["2", "3"], "1"]})
    assert alone.group[0] == alone.group[2] != alone.group[1]
    assert alone.gold == [("1",), ("2", "3"), ("1",)]
    with pytest.raises(InputError, match="no column 'gold'"):
        Completions.of(["p"], [[1]], {})


def test_a_question_has_a_row_for_each_mode() -> None:
    rows = told_rows([{"prompt": "b?", "gold": "4", "hops": 1}], E1())
    assert [row["prompt"] for row in rows] == ["low:b?", "medium:b?", "high:b?"]
    assert [(row["question"], row["told"], row["hops"]) for row in rows] == [
        ("0", told, 1) for told in range(3)
    ]


def test_a_thought_is_asked_where_it_has_not_ended_and_nowhere_else() -> None:
    """Cuts after 2, 4 and 8 tokens; one ends after 4 and is right, one goes on, one is short."""
    some = written("a=4;a<answer>4", "a=4;a=4;a=4;a=4;a=4", "a=")
    asked: list[tuple[int, int]] = []

    def ask(places: Sequence[tuple[int, int]]) -> list[list[int]]:
        asked.extend(places)
        return [encode("4" if row == 1 and stop >= 4 else "5") for row, stop in places]

    found = READING.right_at(some, (1 / 4, 1 / 2, 1.0), ask)
    assert asked == [(0, 2), (1, 2), (1, 4), (1, 8), (2, 1)]
    assert found.tolist() == [[0, 1, 1], [0, 1, 1], [0, 0, 0]]


def test_nobody_is_asked_where_all_have_ended() -> None:
    def ask(_: Sequence[tuple[int, int]]) -> list[list[int]]:
        raise AssertionError

    assert READING.right_at(written("<answer>4", "<answer>5"), (1.0,), ask).tolist() == [[1], [0]]


def test_each_token_has_the_advantage_of_its_part_and_the_answer_that_of_the_thoughts_end() -> None:
    """Cuts after 4 and 8 of 8 tokens."""
    some = written("a=4;a=4;<answer>4<end>", "a=4;<answer>4<end>", "a=4;" * 6)
    advantage = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = over_tokens(advantage, (0.5, 1.0), READING, some, 20)
    assert found[0].tolist() == [1] * 4 + [2] * 5 + [0] * 11
    assert found[1].tolist() == [3] * 6 + [0] * 14
    assert found[2].tolist() == [5] * 4 + [6] * 4 + [0] * 12


def test_a_reward_is_the_thinkers_own() -> None:
    texts = ("a=4;<answer>4", "a=4;a=4;<answer>4", "<answer>5")
    found = ThinkerReward(LengthPenalty(price=0.5), READING)(
        prompts=["p"] * 3, completion_ids=[encode(text) for text in texts], gold=["4"] * 3
    )
    assert found == pytest.approx([1 - 0.5 * 3 / 8, 1 - 0.5 * 6 / 8, 0.0])


def test_a_reward_knows_how_far_the_training_is_and_which_thoughts_belong_together() -> None:
    """e1 at effort 1/2: 3 tokens are more than half of the question's mean."""
    ids = [encode("a=4;<answer>4"), encode("a=4;a=<answer>4"), encode("<answer>4")]
    told = {"gold": ["4"] * 3, "question": ["q"] * 3, "told": [0, 2, 0]}
    reward = ThinkerReward(E1(), READING)
    assert reward(prompts=["p", "q", "p"], completion_ids=ids, **told) == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("thinker", [Brpo(), Hbpo()])
def test_what_no_reward_stands_for_is_refused(thinker: Any) -> None:
    with pytest.raises(InputError, match=f"{type(thinker).__name__} is no reward"):
        ThinkerReward(thinker, READING)


def test_a_reward_has_no_prior() -> None:
    with pytest.raises(InputError, match="reads a prior"):
        ThinkerReward(Cib(), READING)(prompts=["p"], completion_ids=[[4]], gold=["4"])


def test_a_tag_is_the_first_token() -> None:
    thinker = AdaCtrl(easy=NUMBERS["low:"], hard=NUMBERS["high:"])
    ids = [encode("low:a=4;<answer>4"), encode("high:a=4;<answer>4"), [NUMBERS[PAD]]]
    found = ThinkerReward(thinker, READING)(prompts=["p"] * 3, completion_ids=ids, gold=["4"] * 3)
    assert found[0] > found[1] > found[2]


def test_tags_are_tokens_of_the_tokenizer_at_hand() -> None:
    thinker = AdaCtrl.of(READING.tokenizer, "low:", "high:")
    assert thinker == AdaCtrl()
    with pytest.raises(InputError, match="'a=4' is 2 tokens; add it to the tokenizer as one"):
        AdaCtrl.of(READING.tokenizer, "a=4")
    other = tokenizer(FIRST)
    other.add_tokens(["[Easy]", "[Hard]"])
    some, reading = written("a=4;<answer>4"), replace(READING, tokenizer=other)
    with pytest.raises(InputError, match=r"give AdaCtrl.of\(tokenizer\)"):
        reading.thoughts(some, AdaCtrl())
    assert reading.thoughts(some, AdaCtrl.of(other)).final.tolist() == [1]


def test_an_answer_after_the_cap_comes_too_late() -> None:
    some = written("a=4;a=4;<answer>4", "a=4;a=4;a=4;<answer>4")
    assert READING.lengths(some).tolist() == [6, 9]
    found = READING.thoughts(some, RightAlone())
    assert (found.final.tolist(), found.length.tolist()) == ([1, 0], [6, 8])


@pytest.mark.parametrize("gold", [None, 4, "", [], [None], [""], ["4", 4]])
def test_a_row_without_an_accepted_answer_is_named(gold: Any) -> None:
    with pytest.raises(InputError, match="row 1: 'gold' is "):
        Completions.of(["a", "b"], [[1], [1]], {"gold": ["4", gold]})


@pytest.mark.parametrize("told", [["low:"], [-1], [3], [0.5]])
def test_a_mode_that_is_none_is_refused(told: Any) -> None:
    with pytest.raises(InputError, match="'told' is "):
        READING.thoughts(written("a=4;<answer>4", told=told), E1())


@pytest.mark.parametrize("change", [{"ends": ()}, {"cap": 0}, {"cap": -3}])
def test_a_reading_that_reads_nothing_is_refused(change: Any) -> None:
    with pytest.raises(InputError, match="give the tokens that end a thought, and a cap"):
        replace(READING, **change)


def test_a_conversation_is_told_its_mode_in_its_last_message() -> None:
    asked = [{"role": "system", "content": "s"}, {"role": "user", "content": "2+2?"}]
    rows = told_rows([{"prompt": asked, "gold": "4"}], E1())
    assert [row["prompt"][0] for row in rows] == [asked[0]] * 3
    assert [row["prompt"][1]["content"] for row in rows] == [f"{mode}2+2?" for mode in E1().modes]
    assert asked[1]["content"] == "2+2?"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"length": np.array([9, 1])}, "0 to 8 tokens"),
        ({"length": np.array([-1, 1])}, "0 to 8 tokens"),
        ({"right": np.array([[np.nan], [1.0]])}, "0 or 1"),
        ({"right": np.array([[5.0], [1.0]])}, "0 or 1"),
        ({"group": np.array([0])}, "a row for each thought"),
    ],
)
def test_what_no_thoughts_are_is_refused(change: Any, says: str) -> None:
    some = READING.thoughts(written("a=4;<answer>4", "a=4;<answer>5"), RightAlone())
    with pytest.raises(InputError, match=says):
        replace(some, **change)
