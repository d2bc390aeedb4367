"""Episodes as tokens and masks."""

from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.models.base import Message
from farthing_lab.corl.base import Mode, Segment
from farthing_lab.corl.episode import Episode, Rules
from farthing_lab.corl.rollouts import (
    Layout,
    Trajectory,
    trajectory,
)

CHAT = Layout(
    begin=lambda messages: "".join(f"[{m.role}]{m.content}" for m in messages) + "[assistant]",
    before_reply="[user]",
    after_reply="[assistant]",
)


def encode(text: str) -> list[int]:
    return [ord(letter) for letter in text]


def decode(ids: Sequence[int]) -> str:
    return "".join(map(chr, ids))


def own(text: str, *, sampled: bool = True) -> Segment:
    ids = tuple(encode(text)) if sampled else ()
    return Segment("controller", text, ids, tuple(-0.5 - i for i in range(len(ids))))


def played(*written: Segment) -> Episode:
    mode, asked = Mode("low", 0), (Message("user", "low:a?"),)
    return Episode(Rules(()), "a?", mode, asked, written, ended_by="turns", turns=len(written))


EPISODE = played(own("<call>s</call>"), Segment("environment", "<reply>4</reply>"), own("<answer>"))
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@st.composite
def episodes(draw: st.DrawFn) -> Episode:
    sampled = draw(st.booleans())
    turns = draw(st.lists(st.tuples(TEXT, TEXT), max_size=4))
    pairs = [(own(a, sampled=sampled), Segment("environment", b)) for a, b in turns]
    return played(*chain.from_iterable(pairs), own(draw(TEXT), sampled=sampled))


@pytest.mark.parametrize("layout", [Layout(), CHAT])
@given(episode=episodes())
def test_the_ids_are_the_segments_in_order(layout: Layout, episode: Episode) -> None:
    made = trajectory(episode, 1.0, encode, layout)
    texts = [layout.text(one) for one in episode.segments]
    assert decode(made.response_ids) == "".join(texts)
    mask = [
        int(s.author == "controller")
        for s, t in zip(episode.segments, texts, strict=True)
        for _ in t
    ]
    assert list(made.response_mask) == mask


def test_the_controller_s_tokens_are_marked_and_no_others() -> None:
    made = trajectory(EPISODE, 0.5, encode)
    assert decode(made.prompt_ids) == "low:a?"
    assert decode(made.response_ids) == "<call>s</call><reply>4</reply><answer>"
    assert made.response_mask == (1,) * 14 + (0,) * 16 + (1,) * 8
    assert made.response_logprobs is not None
    assert made.response_logprobs[14:30] == (0.0,) * 16
    assert made.reward == 0.5


def test_what_a_chat_template_adds_is_the_environment_s() -> None:
    made = trajectory(EPISODE, 0.0, encode, CHAT)
    assert decode(made.prompt_ids) == "[user]low:a?[assistant]"
    masked = [i for i, own in zip(made.response_ids, made.response_mask, strict=True) if not own]
    assert decode(masked) == "[user]<reply>4</reply>[assistant]"


def test_sampled_ids_are_kept_even_where_the_text_encodes_otherwise() -> None:
    made = trajectory(played(Segment("controller", "ab", (900,), (-1.0,))), 0.0, encode)
    assert made.response_ids == (900,)


def test_one_segment_without_log_probabilities_leaves_none() -> None:
    mixed = played(own("a"), Segment("environment", "b"), own("c", sampled=False))
    assert trajectory(mixed, 0.0, encode).response_logprobs is None


def test_parts_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="2 tokens and 1 log-prob"):
        trajectory(played(Segment("controller", "ab", (1, 2), (-1.0,))), 0.0, encode)
    with pytest.raises(ValueError, match="lengths"):
        Trajectory((), (1,), (1, 0), None, 0.0)
    with pytest.raises(ValueError, match="lengths"):
        Trajectory((), (1,), (1,), (), 0.0)
