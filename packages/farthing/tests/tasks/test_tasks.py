"""What every registered task keeps to, built-in or not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing import plugins
from farthing.tasks.base import Task

EXACT = [name for name in plugins.names("tasks") if name != "math"]
REPLIES = st.one_of(
    st.text(max_size=40),
    st.text("0123456789.,-+%$/eE# ", max_size=15),
    st.text("abcABC().: *\n", max_size=12),
    st.sampled_from(["The answer is B.", "the a an", "(b) foo", "#### 1,200", "İstanbul", "ΑΣ'"]),
)


@pytest.mark.parametrize("name", plugins.names("tasks"))
def test_a_registered_task_has_what_a_task_needs(name: str) -> None:
    task = plugins.load("tasks", name)
    assert isinstance(task, Task)
    assert task.name in plugins.names("tasks")
    assert not task.grade(None, ["1"])
    assert not task.grade("  ", ["  ", ""])
    assert task.grade("7", ["8", "7"])
    assert not task.grade("7", [])


@pytest.mark.parametrize("name", EXACT)
@settings(deadline=None, max_examples=150)
@given(answer=REPLIES)
def test_normalising_twice_changes_nothing(name: str, answer: str) -> None:
    task = plugins.load("tasks", name)
    once = task.normalise(answer)
    assert task.normalise(once) == once


@pytest.mark.parametrize("name", EXACT)
@settings(deadline=None, max_examples=80)
@given(answer=REPLIES, others=st.lists(REPLIES, max_size=3))
def test_an_accepted_answer_is_right(name: str, answer: str, others: list[str]) -> None:
    task = plugins.load("tasks", name)
    assert task.grade(answer, [*others, answer]) == bool(answer.strip())
