r"""Equivalence, also outside the main thread, and input made to hang."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from farthing.errors import MissingExtraError
from farthing_lab.tasks import mathematics
from farthing_lab.tasks.mathematics import MATHEMATICS

EQUIVALENT = [
    (r"\frac{1}{2}", "0.5"),
    (r"$\dfrac12$", "1/2"),
    (r"\boxed{\frac{\sqrt{2}}{2}}", r"1/\sqrt{2}"),
    ("(x+1)^2", "x^2+2x+1"),
    (r"\{1, 2\}", r"\{2,1\}"),
    (r"(-\infty, 3]", r"(-\infty,3]"),
    ("The answer is $4$", "4"),
    (r"\text{Monday}", "monday"),
    ("3{,}000", "3000"),
]
DIFFERENT = [
    (r"\frac{1}{2}", "0.25"),
    ("(1, 2]", "[1,2)"),
    ("x^2", "x^3"),
    ("a cat", "a tac"),
    ("I cannot say", "5"),
]
EXPLOSIVE = ["9^{9^{9^9}}", "9^9^9", "(10^9)!", "2^{1000000000}", "9**9**9", "1" * 400]


@pytest.mark.parametrize(("answer", "gold"), EQUIVALENT)
def test_equivalent_answers_are_right(answer: str, gold: str) -> None:
    assert MATHEMATICS.grade(answer, [gold])
    assert MATHEMATICS.grade(gold, [answer])


@pytest.mark.parametrize(("answer", "gold"), DIFFERENT)
def test_different_answers_are_wrong(answer: str, gold: str) -> None:
    assert not MATHEMATICS.grade(answer, [gold])
    assert not MATHEMATICS.grade(gold, [answer])


def test_normalising_twice_changes_nothing() -> None:
    answers = {answer for pair in EQUIVALENT + DIFFERENT for answer in pair}
    for answer in sorted(answers):
        once = MATHEMATICS.normalise(answer)
        assert MATHEMATICS.normalise(once) == once


def test_it_works_outside_the_main_thread() -> None:
    mathematics._normalise.cache_clear()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(MATHEMATICS.grade, r"\frac{3}{4}", ["0.75"]).result()
        assert not pool.submit(MATHEMATICS.grade, "x+1", ["x+2"]).result()


def test_what_would_never_finish_is_compared_as_text() -> None:
    begin = time.perf_counter()
    for answer in EXPLOSIVE:
        assert MATHEMATICS.grade(answer, [answer])
        assert not MATHEMATICS.grade(answer, ["7"])
    assert time.perf_counter() - begin < 30


@pytest.fixture
def _without_math_verify(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "math_verify", None)
    mathematics._library.cache_clear()
    mathematics._normalise.cache_clear()
    yield
    mathematics._library.cache_clear()


@pytest.mark.usefixtures("_without_math_verify")
def test_without_the_library_the_extra_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install .*\[math\]"):
        MATHEMATICS.grade("1", ["1"])
