import pytest

from farthing.tasks.text import TEXT, normalise


@pytest.mark.parametrize(
    ("answer", "same"),
    [
        ("Paris.", " paris"),
        ('"Tea for  Two"', "tea for two"),
        ("STRASSE", "straße"),
        ("1989", "1989"),
    ],
)
def test_what_counts_as_the_same(answer: str, same: str) -> None:
    assert TEXT.grade(answer, [same])


@pytest.mark.parametrize(
    ("answer", "other"), [("-5", "5"), ("C++", "C"), ("$5", "5"), (".5", "5"), ("!!", "??")]
)
def test_what_stays_different(answer: str, other: str) -> None:
    assert not TEXT.grade(answer, [other])


def test_an_answer_of_punctuation_stays_an_answer() -> None:
    assert normalise(' "?" ') == '"?"'
