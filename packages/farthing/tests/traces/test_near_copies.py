"""Which questions are worded alike, and which only fill one template: both sides of the line."""

from dataclasses import replace

import numpy as np
import pytest

from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.copies import canonical, near, near_note


def asked(*texts: str, options: tuple[str, ...] = ()) -> TraceArrays:
    calls = [Call(round=1, role=role, answer="4") for role in ("small", "large")]
    beside = [*options, *[None] * len(texts)]
    return assemble(
        [
            Trace(id=f"q{i}", question=text, options=beside[i], calls=calls)
            for i, text in enumerate(texts)
        ]
    )


def are_near(one: str, other: str) -> bool:
    return near([canonical(one), canonical(other)]) == {1: 0}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Who wrote Hamlet?", "Please tell me who wrote Hamlet."),
        ("Who wrote Hamlet?", "Hamlet: who wrote it?"),
        ("Who wrote Hamlet?", "Who wrote Hamlet? Thanks in advance!"),
        ("Who wrote Hamlet?", "Quick question for my homework: who wrote Hamlet?"),
        ("Who wrote Hamlet?", "Who wrote Hammlet?"),
        ("What is the capital of France?", "France's capital is what?"),
        ("What's the boiling point of water?", "The boiling point of water is what?"),
        ("What is the boiling point of water?", "What is the boilling point of water?"),
        ("How much is 3 + 4?", "Tell me: how much is 3 + 4?"),
        ("Summarise the meeting notes", "Summarise the notes of the meeting"),
        ("How do I reset my password?", "My password, how do I reset it?"),
    ],
)
def test_the_same_words_in_another_order_or_with_filler_are_near(one: str, other: str) -> None:
    assert are_near(one, other)
    assert are_near(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is 3+4?", "What is 5+9?"),
        ("What is 3+4?", "What is 3*4?"),
        ("What is 3+4?", "What is 3+4+5?"),
        ("What is 7 minus 3?", "What is 3 minus 7?"),
        ("What is the 2nd prime?", "What is the 3rd prime?"),
        ("Who wrote Hamlet?", "Who wrote Faust?"),
        ("Who wrote Hamlet?", "Who wrote Hamlet's music?"),
        ("When was Hamlet written?", "Where was Hamlet written?"),
        ("What is the capital of France?", "What is the population of France?"),
        ("What is the capital of Guinea?", "What is the capital of Equatorial Guinea?"),
        ("What is the largest city of France?", "What is the second largest city of France?"),
        ("What is the capital of Austria?", "What is the capital of Australia?"),
        ("Which is true of birds?", "Which is not true of birds?"),
        ("Can birds fly?", "Birds can't fly?"),
        ("Who is the king?", "Who is the king of France?"),
        ("What is the formula of sodium sulfate?", "What is the formula of sodium sulfite?"),
        ("What is f(x)?", "What is g(x)?"),
        ("Which glider moves in this grid: ❌✅❌", "Which glider moves in this grid: ✅❌❌"),
        ("Given q and ¬r, what follows?", "Given q and r, what follows?"),
        ("Fill in the sudoku: _ 2 _", "Fill in the sudoku: 2 _ _"),
        ("What does >+++<.--. print?", "What does >++<.---. print?"),
        ("What is pH?", "What is pOH? What is pH?"),
        ("Is the god just?", "Is the dog just?"),
        ("Which trait is paternal?", "Which trait is parental?"),
        ("Who wrote Hamlet?", "Seen in 1996: who wrote Hamlet?"),
        ("Why?", "Our bill is high. Why?"),
    ],
)
def test_another_filling_of_a_template_is_not(one: str, other: str) -> None:
    assert not are_near(one, other)
    assert not are_near(other, one)


def test_a_thousand_fillings_of_one_template_are_none() -> None:
    rng = np.random.default_rng(0)
    syllables = ["ka", "lo", "mi", "ru", "te", "so", "ne", "vi"]
    names = sorted({"".join(rng.choice(syllables, 4)) for _ in range(1_400)})[:1_000]
    sums = [f"How much is {i} + {2 * i + 1}?" for i in range(1_000)]
    books = [f"Who wrote the book {name} of Rome?" for name in names]
    for template in (sums, books):
        assert near([canonical(text) for text in template]) == {}


def test_a_note_counts_them_and_names_examples() -> None:
    texts = ["Who wrote Hamlet?", "Who wrote Faust?", "How much is 3 + 4?"]
    again = [f"Please, {text}" for text in texts]
    assert near_note(asked(*texts)) == ""
    assert near_note(asked(*texts, "who wrote HAMLET")) == ""  # a copy, which is not independent
    assert near_note(asked(*texts, *again)) == (
        "worded much like another question, yet counted as independent of it: 3 ('q0' and 'q3', "
        "'q1' and 'q4', 'q2' and 'q5'); if they ask the same, import them with --cluster COLUMN, "
        "which they share"
    )
    assert "independent of it: 1 ('q0' and 'q3'); if" in near_note(asked(*texts, again[0]))
    assert near_note(replace(asked(*texts, *again), question=None)) == ""


def test_texts_that_options_tell_apart_are_left_out() -> None:
    which, please = "Which of these melts?", "Which of these melts, please?"
    assert near_note(asked(which, which, please, options=("A ice", "A tin", "A ice"))) == ""
    assert near_note(asked(which, please, options=("A ice", "A ice")))
