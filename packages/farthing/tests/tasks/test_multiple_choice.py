import pytest

from farthing.tasks.multiple_choice import MULTIPLE_CHOICE, normalise


@pytest.mark.parametrize(
    "reply",
    [
        *("B", "b", " (b) ", "B.", "**B**", "[B]", "B: foo", "(b) foo\nbecause", "B) foo"),
        *("The answer is B", "the answer is b.", "Answer: (B) foo", "My choice: B"),
        "Option B is right",
        "First A looks right.\nThe correct answer is B, since A fails.",
    ],
)
def test_a_letter_is_read(reply: str) -> None:
    assert normalise(reply) == "B"
    assert MULTIPLE_CHOICE.grade(reply, ["B"])
    assert not MULTIPLE_CHOICE.grade(reply, ["A"])


@pytest.mark.parametrize("reply", ["Paris", "The answer is a dog", "I do not know", "Z", "AB"])
def test_what_chooses_no_letter_stays_text(reply: str) -> None:
    assert normalise(reply) == reply.casefold()
