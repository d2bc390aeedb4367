"""An episode step by step: every branch, and what of it reaches a trainer."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.errors import InputError
from farthing_lab.corl.base import Expert, MadeCall, Mode
from farthing_lab.corl.episode import ControllerTurn, Episode, Rules, begin

RULES = Rules((Expert("small"), Expert("large")), "plain", most_turns=3)
MODE = Mode("low", 10)


def start(rules: Rules = RULES) -> Episode:
    return begin(rules, "2 + 2?", MODE)


def call(play: Episode, reply: str = "4", cost: int = 5, error: str = "") -> MadeCall:
    assert play.asked is not None
    return MadeCall(play.turns, play.asked.expert, play.asks, reply, cost, error=error)


def last(play: Episode) -> str:
    assert play.segments[-1].author == "environment"
    return play.segments[-1].text


def test_an_answer_ends_it() -> None:
    play = start().wrote(ControllerTurn("<answer>4</answer>", 3))
    episode = play.episode()
    assert (episode.answer, episode.ended_by, episode.turns) == ("4", "answer", 1)
    assert (episode.cost_nano, episode.own_nano, episode.over_budget) == (3, 3, False)


def test_a_call_asks_the_episode_s_question_or_one_of_its_own() -> None:
    assert start().wrote(ControllerTurn("<call>small</call>")).asks == "2 + 2?"
    assert start().wrote(ControllerTurn("<call>small: 1 + 1?</call>")).asks == "1 + 1?"


def test_the_reply_is_the_environment_s_and_everything_is_paid() -> None:
    play = start().wrote(ControllerTurn("<call>large</call>", 3))
    play = play.heard("It is <answer>4</answer>", call(play, cost=9))
    assert last(play) == "<reply>It is 4</reply>"
    assert [message.role for message in play.messages] == ["user", "assistant", "user"]
    episode = play.wrote(ControllerTurn("<answer>4</answer>", 2)).episode()
    assert (episode.cost_nano, episode.own_nano, episode.over_budget) == (14, 5, True)
    assert [one.expert for one in episode.calls] == ["large"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<call>tiny</call>", "no expert tiny; there are small, large"),
        ("<call>small", "not closed"),
        ("<call>small</call><call>large</call>", "at a time"),
        ("<call></call>", "Nothing stands"),
        ("4", "Write one call or one answer"),
        ("<reply>4</reply>", "Only experts"),
    ],
)
def test_what_is_malformed_is_answered_and_counted(text: str, said: str) -> None:
    play = start().wrote(ControllerTurn(text, 1))
    assert said in last(play)
    assert play.malformed == 1
    assert play.asked is None
    again = play.wrote(ControllerTurn(text, 1)).wrote(ControllerTurn(text, 1)).episode()
    assert (again.malformed, again.ended_by, again.answer) == (3, "turns", None)
    assert again.segments[-1].author == "controller"


def test_a_failed_call_is_data_and_a_message() -> None:
    play = start().wrote(ControllerTurn("<call>small</call>"))
    play = play.heard("", call(play, "", 4, error="timeout"))
    assert last(play) == "<reply>!The call of small failed.</reply>"
    assert play.calls[0].error == "timeout"
    assert play.stop("failure", 2).episode().cost_nano == 6


def test_a_reply_of_nothing_is_said_to_be_one() -> None:
    play = start().wrote(ControllerTurn("<call>small</call>"))
    assert (
        last(play.heard(" <answer></answer>! ", call(play)))
        == "<reply>!small said nothing.</reply>"
    )


def test_a_refused_call_costs_nothing_and_is_counted() -> None:
    play = start().wrote(ControllerTurn("<call>large</call>", 1)).refuse()
    assert "cannot pay for large" in last(play)
    episode = play.stop("budget").episode()
    assert (episode.refused, episode.calls, episode.cost_nano) == (1, (), 1)


def test_the_last_turn_calls_nobody() -> None:
    rules = Rules(RULES.experts, most_turns=1)
    play = start(rules).wrote(ControllerTurn("<call>large</call>"))
    assert play.asked is None
    assert play.episode().ended_by == "turns"


def test_brief_messages_for_models_of_few_symbols() -> None:
    rules = Rules(RULES.experts, "compact")
    assert (
        last(start(rules).wrote(ControllerTurn("<call>tiny</call>"))) == "<reply>!unknown</reply>"
    )


def test_steps_out_of_turn_are_refused() -> None:
    play = start()
    with pytest.raises(ValueError, match="no call"):
        play.heard("4", MadeCall(1, "small", "?", "4", 0))
    with pytest.raises(ValueError, match="no call"):
        play.refuse()
    with pytest.raises(ValueError, match="no call"):
        _ = play.asks
    with pytest.raises(ValueError, match="not ended"):
        play.episode()
    with pytest.raises(ValueError, match="not the controller's turn"):
        play.wrote(ControllerTurn("<call>small</call>")).wrote(ControllerTurn("<answer>4</answer>"))
    with pytest.raises(ValueError, match="not the controller's turn"):
        play.wrote(ControllerTurn("<answer>4</answer>")).wrote(ControllerTurn("<answer>4</answer>"))


def test_rules_are_checked() -> None:
    with pytest.raises(InputError, match="give 1 or more"):
        Rules((), most_turns=0)
    with pytest.raises(InputError, match="name them apart"):
        Rules((Expert("small"), Expert("small")))


TEXT = st.lists(
    st.sampled_from(
        ["<call>", "</call>", "small", "large", ": a?", "<answer>", "</answer>", "<reply>", "so "]
    )
    | st.text(max_size=4),
    max_size=5,
).map("".join)
CALL = st.sampled_from(["<call>small</call>", "<call>large: a?</call>"])
STEP = st.tuples(TEXT | CALL, TEXT, st.sampled_from(["reply", "fail", "refuse"]))


@pytest.mark.slow
@given(st.lists(STEP, min_size=3, max_size=3))
def test_whatever_is_written_an_episode_is_sound(steps: list[tuple[str, str, str]]) -> None:
    play = start()
    for text, reply, what in steps:
        if play.over:
            break
        play = play.wrote(ControllerTurn(text, 2))
        if play.asked is not None and what == "refuse":
            play = play.refuse()
        elif play.asked is not None:
            play = play.heard(reply, call(play, reply, error="timeout" if what == "fail" else ""))
    episode = play.episode()
    authors = [segment.author for segment in episode.segments]
    assert authors[0] == authors[-1] == "controller"
    assert all(a != b for a, b in pairwise(authors))
    assert authors.count("controller") == episode.turns <= 3
    assert episode.cost_nano == 2 * episode.turns + 5 * len(episode.calls)
    told = authors.count("environment")
    assert len(episode.calls) + episode.refused <= told <= episode.turns - 1
    assert episode.malformed + len(episode.calls) + episode.refused >= told
    assert (episode.answer is None) == (episode.ended_by != "answer")
    if episode.answer is not None:
        assert episode.segments[-1].text.count(episode.answer) >= 1
