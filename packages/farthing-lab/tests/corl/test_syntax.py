"""All that a controller writes is a call, an answer or a named fault; no reply passes for it."""

import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing_lab.corl.episode import (
    Ask,
    Fault,
    FinalAnswer,
    Malformed,
    Trouble,
    closed,
    expert_of,
    message,
    question_of,
    read,
    replied,
    stripped,
)

EXPERTS = ("small", "large", "ollama/llama3:8b", "small: fast")
TAGS = ("<call>", "</call>", "<answer>", "</answer>", "<reply>", "</reply>")
PIECES = st.sampled_from(
    [*TAGS, *EXPERTS, "<ca", "ll>", "<", ">", "/", "!", ":", " ", "\n", "< CALL >", "</Reply x>"]
)
SAID = st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("text", "move"),
    [
        ("<answer>4</answer>", FinalAnswer("4")),
        ("thought, a < b\n<answer> 4\n</answer>\n", FinalAnswer("4")),
        ("<call>small</call>", Ask("small")),
        ("<call> large </call> and on", Ask("large")),
        ("<call>small: what is\n2: 3?</call>", Ask("small", "what is\n2: 3?")),
        ("<call>ollama/llama3:8b</call>", Ask("ollama/llama3:8b")),
        ("<call>ollama/llama3:8b: 2?</call>", Ask("ollama/llama3:8b", "2?")),
        ("<call>small : 2?</call>", Ask("small", "2?")),
        ("<call>small: fast</call>", Ask("small: fast")),
        ("<call>tiny</call>", Malformed("unknown", "tiny")),
        ("<call>tiny: 2?</call>", Malformed("unknown", "tiny")),
        ("<call>smaller</call>", Malformed("unknown", "smaller")),
        ("<call>Small</call>", Malformed("unknown", "Small")),
        ("<call>small", Malformed("unclosed")),
        ("small</call>", Malformed("unclosed")),
        ("<call>small</answer>", Malformed("unclosed")),
        ("</call>small<call>", Malformed("unclosed")),
        ("<call>small</call></call>", Malformed("unclosed")),
        ("<call>small</call><call>large</call>", Malformed("two")),
        ("<call>small</call><answer>4</answer>", Malformed("two")),
        ("<call><call>small</call>", Malformed("two")),
        ("<call></call>", Malformed("empty")),
        ("<call>small: </call>", Malformed("empty")),
        ("<answer> \n</answer>", Malformed("empty")),
        ("", Malformed("neither")),
        ("the answer is 4", Malformed("neither")),
        ("<reply>4</reply><answer>4</answer>", Malformed("reply")),
        ("</reply>", Malformed("reply")),
    ],
)
def test_a_turn_is_read(text: str, move: object) -> None:
    assert read(text, EXPERTS) == move


@given(SAID)
def test_reading_is_total_and_names_experts_that_there_are(text: str) -> None:
    move = read(text, EXPERTS)
    if isinstance(move, Ask):
        assert move.expert in EXPERTS
        assert move.question is None or move.question.strip() == move.question != ""
    elif isinstance(move, FinalAnswer):
        assert move.text.strip() == move.text != ""
    else:
        assert message(move.fault, move.name, EXPERTS, brief=False).startswith("<reply>!")


@given(st.text(max_size=30), st.sets(st.text(max_size=5)))
def test_both_parsers_are_total(call: str, experts: set[str]) -> None:
    expert = expert_of(call, experts)
    assert expert is None or expert in experts
    if expert is not None:
        question_of(call, expert)


@given(SAID)
def test_nothing_that_an_expert_replies_reads_as_the_controller_s(reply: str) -> None:
    inserted = replied(reply)
    assert inserted == "" or inserted.startswith("<reply>")
    inside = inserted.removeprefix("<reply>").removesuffix("</reply>")
    assert not any(tag in inside for tag in TAGS)
    assert read(inside, EXPERTS) == Malformed("neither")
    assert not inside.startswith("!")
    assert stripped(stripped(reply)) == stripped(reply)


@given(st.sampled_from(["unknown", "money", "failed"]), SAID)
def test_no_name_that_a_controller_writes_adds_a_tag_to_a_message(why: str, name: str) -> None:
    said = message(why, name, EXPERTS, brief=False)  # type: ignore[arg-type]
    assert read(said.removeprefix("<reply>").removesuffix("</reply>"), ()) == Malformed("neither")


@given(SAID)
def test_what_a_generation_stopped_at_is_put_back_once(text: str) -> None:
    whole = closed(text, "stop")
    assert closed(whole, "stop") == whole
    assert whole.startswith(text)
    assert closed(text, "length") == text


def test_a_turn_cut_off_at_its_longest_stays_unclosed() -> None:
    assert read(closed("<call>small", "length"), EXPERTS) == Malformed("unclosed")
    assert read(closed("<call>small", "stop"), EXPERTS) == Ask("small")
    assert read(closed("so <answer>4", "stop"), EXPERTS) == FinalAnswer("4")


def test_a_long_hostile_reply_is_stripped_in_good_time() -> None:
    nested = "<ca" * 2_000 + "<call>" + "ll>" * 2_000
    assert stripped(nested) == ""
    assert stripped("<" + " " * 50_000) == "<" + " " * 50_000


def test_messages_are_plain_words_or_one_word() -> None:
    assert message("two", "", EXPERTS, brief=False) == (
        "<reply>!Write one call or one answer at a time.</reply>"
    )
    assert message("unknown", "x" * 99, ("small",), brief=False) == (
        f"<reply>!There is no expert {'x' * 40}; there are small.</reply>"
    )
    assert message("failed", "small", EXPERTS, brief=True) == "<reply>!failed</reply>"


def test_each_message_of_the_environment_is_documented_as_it_is_written() -> None:
    page = (Path(__file__).parents[4] / "docs" / "research/corl.md").read_text()
    rows = re.findall(r"^\| `!(\w+)` \| (.*?) \|", page, re.MULTILINE)
    told = (*get_args(Fault), *get_args(Trouble))
    assert dict(rows) == {
        why: message(why, "NAME", ["NAMES"], brief=False).removeprefix("<reply>!")[:-8]
        for why in told
    }
