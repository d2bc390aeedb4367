"""What a controller is told, in each style."""

import pytest

from farthing.errors import InputError
from farthing.models.base import Message
from farthing.traces.trace_kind import CONTROLLER
from farthing_lab.corl.base import Expert, Mode, Segment
from farthing_lab.corl.episode import STYLES, Episode, Rules, prompt

MODE = Mode("medium", 1_500_000)
EXPERTS = (Expert("small", "$0.1 in and $0.4 out per million tokens"), Expert("large"))
QUESTION = "c=b*7+2;a=4;b=a*3+5;c?"


def text(style: str) -> str:
    [message] = prompt(style, MODE, EXPERTS, QUESTION)  # type: ignore[arg-type]
    assert message.role == "user"
    return message.content


def test_the_compact_prompt_is_the_mode_and_the_question() -> None:
    assert text("compact") == "medium:c=b*7+2;a=4;b=a*3+5;c?"


@pytest.mark.parametrize("style", ["plain", "forbidding"])
def test_both_others_say_budget_prices_experts_and_syntax(style: str) -> None:
    said = text(style)
    for part in ("medium", "$0.0015", QUESTION, "<call>NAME</call>", "<answer>ANSWER</answer>"):
        assert part in said
    assert "- small: $0.1 in and $0.4 out per million tokens\n- large: price unknown" in said


def test_the_default_forbids_nothing_and_the_other_one_does() -> None:
    forbids = ("do not call", "avoid", "must not", "only if")
    assert not any(word in text("plain").casefold() for word in forbids)
    assert all(word in text("forbidding").casefold() for word in ("do not call", "avoid"))


def test_a_style_that_there_is_not_is_refused() -> None:
    assert STYLES == ("compact", "plain", "forbidding")
    with pytest.raises(InputError, match="give one of compact, plain, forbidding"):
        text("loud")


def test_a_conversation_is_the_prompt_and_who_wrote_what() -> None:
    begun = (Message("user", "q"),)
    segments = (
        Segment("controller", "<call>small</call>"),
        Segment("environment", "<reply>4</reply>"),
    )
    episode = Episode(Rules(EXPERTS), "q", MODE, begun, segments)
    assert [message.role for message in episode.messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize("name", ["", " ", "a<b", "two\nlines", " small", CONTROLLER, "exit-x"])
def test_names_that_no_call_can_hold_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="an expert is called"):
        Expert(name)


def test_a_mode_has_a_name_and_no_debt() -> None:
    with pytest.raises(InputError, match="below"):
        Mode("low", -1)
    with pytest.raises(InputError, match="no name"):
        Mode(" ", 1)
