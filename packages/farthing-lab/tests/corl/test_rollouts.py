"""Episodes sampled in batches: what is read and written, what is paid, and what is refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tiny_controllers import HIGH, LOW, PRICE, RULES, Perfect, Script, voice

from farthing import plugins
from farthing.models.base import Usage
from farthing_lab.corl.base import Mode
from farthing_lab.corl.episode import Episode
from farthing_lab.corl.rollouts import Asked, Layout, RolloutSampling, Voice, rollouts, trajectory
from farthing_lab.lm.make import Size, network
from farthing_lab.lm.symbols import NUMBERS, encode
from farthing_lab.models.generation import Context
from farthing_lab.tasks.arithmetic import solve

QUESTIONS = ["a=4;a?", "a=4;b=a+1;b?", "c=7;b=c*3;c?", "j=0;j?", "a=1;b=2;c=3;d=4;d?"]
ASKED: list[Asked] = [(text, mode) for text in QUESTIONS for mode in (LOW, HIGH)]
GREEDY = RolloutSampling(temperature=0.0)
PRICES = {"small": 700, "large": 30_000}


def play(
    speaker: Voice,
    asked: list[Asked],
    experts: Perfect,
    sampling: RolloutSampling = GREEDY,
    seed: int = 0,
) -> list[Episode]:
    return rollouts(speaker, RULES, asked, experts, np.random.default_rng(seed), sampling)


def caller(text: str) -> str:
    """Call small, then large, then answer what was replied last."""
    replies = text.count("</reply>")
    return ["<call>small</call>", "<call>large</call>", f"<answer>{text[-9]}</answer>"][replies]


def ids_of(speaker: Voice, episode: Episode) -> list[int]:
    made = trajectory(episode, 0.0, speaker.encode, speaker.layout)
    return [*made.prompt_ids, *made.response_ids]


def test_each_turn_is_given_all_that_was_written_before() -> None:
    script = Script(caller)
    [episode] = play(voice(script), [("a=4;a?", HIGH)], Perfect(PRICES))
    begun = encode("high:a=4;a?")
    first = [*encode("<call>small</call>"), *encode("<reply>4</reply>")]
    second = [*encode("<call>large</call>"), *encode("<reply>4</reply>")]
    assert script.seen == [begun, [*begun, *first], [*begun, *first, *second]]
    assert (episode.answer, episode.ended_by, episode.turns) == ("4", "answer", 3)
    assert [(c.turn, c.expert, c.asked, c.reply) for c in episode.calls] == [
        (1, "small", "a=4;a?", "4"),
        (2, "large", "a=4;a?", "4"),
    ]


def test_what_was_sampled_is_not_read_anew() -> None:
    """`a` and `=` that were sampled apart stay two tokens, though their text is one."""
    apart = [NUMBERS["a"], NUMBERS["="], *encode("<call>small</call>")]
    turns = iter([apart, encode("<answer>4</answer>")])
    script = Script(lambda _: next(turns))
    [episode] = play(speaker := voice(script), [("a=4;a?", HIGH)], Perfect(PRICES))
    assert episode.segments[0].text == "a=<call>small</call>"
    assert len(encode(episode.segments[0].text)) == len(apart) - 1
    assert script.seen[1] == [*encode("high:a=4;a?"), *apart, *encode("<reply>4</reply>")]
    assert ids_of(speaker, episode)[: len(script.seen[1])] == script.seen[1]


class Recorded:
    """A network that notes each prompt it is given, by its ids."""

    def __init__(self, net: Any, seen: list[list[int]]) -> None:
        self.net, self.seen = net, seen
        self.forward = net.forward

    def __call__(self, **given: Any) -> Any:
        if given["past_key_values"] is None:
            rows = zip(given["input_ids"].tolist(), given["attention_mask"].tolist(), strict=True)
            self.seen += [ids[mask.index(1) :] for ids, mask in rows]
        return self.net(**given)

    def parameters(self) -> Any:
        return self.net.parameters()


def chatty(seed: int) -> Any:
    """Return a random network: it needs `tags` to speak."""
    return network(Size(1, 16), seed)


def tags(logits: Any, contexts: Sequence[Context]) -> Any:
    """Make a call or an answer likely, so that episodes have turns."""
    raised = logits.clone()
    for row, one in enumerate(contexts):
        last = one.ids[-1]
        if last == NUMBERS["<call>"]:
            raised[row, [NUMBERS["small"], NUMBERS["large"]]] += 6
        elif last in {NUMBERS["small"], NUMBERS["large"]}:
            raised[row, NUMBERS["</call>"]] += 6
        elif last == NUMBERS["<answer>"]:
            raised[row, NUMBERS["4"]] += 6
        elif last == NUMBERS["4"]:
            raised[row, NUMBERS["</answer>"]] += 3
        else:
            raised[row, [NUMBERS["<call>"], NUMBERS["<answer>"]]] += 2.5
    return raised


@pytest.mark.parametrize("layout", [Layout(), Layout(before_reply="=!", after_reply=";")])
def test_the_ids_of_an_episode_are_what_the_network_was_given(layout: Layout) -> None:
    seen: list[list[int]] = []
    speaker = voice(Recorded(chatty(1), seen), layout=layout, hooks=(tags,))
    episodes = play(speaker, ASKED * 3, Perfect(PRICES), RolloutSampling())
    assert {e.ended_by for e in episodes} == {"answer", "turns"}
    assert any(e.calls for e in episodes)
    assert any(e.malformed for e in episodes)
    expected = []
    for episode in episodes:
        made = trajectory(episode, 0.0, speaker.encode, layout)
        turn = [
            at for at, own in enumerate(made.response_mask)
            if own and (at == 0 or not made.response_mask[at - 1])
        ]  # fmt: skip
        expected += [[*made.prompt_ids, *made.response_ids[:at]] for at in turn]
        assert len(turn) == episode.turns
        assert made.response_logprobs is not None
    assert sorted(seen) == sorted(expected)


@pytest.mark.parametrize("name", plugins.names("samplers"))
def test_a_sampler_plays_an_episode_for_each_question_in_order(name: str) -> None:
    speaker = voice(chatty(1), hooks=(tags,))
    sampler = plugins.load("samplers", name)
    episodes = sampler(speaker, RULES, ASKED, Perfect(PRICES), np.random.default_rng(0))
    assert [(one.question, one.mode) for one in episodes] == ASKED
    for one in episodes:
        made = trajectory(one, 0.0, speaker.encode, speaker.layout)
        assert made.response_logprobs is not None
        assert sum(made.response_mask) > 0


def test_costs_are_prices_times_tokens() -> None:
    script = Script(caller)
    experts = Perfect(PRICES)
    [episode] = play(voice(script), [("a=4;a?", LOW)], experts)
    read = [len(ids) for ids in script.seen]
    # low: a= 4 ; a ?  |  <call> small </call>  |  <reply> 4 </reply>  |  <answer> 4 </answer>
    assert read == [6, 12, 18]
    own = 50 * (6 + 12 + 18) + 200 * (3 + 3 + 3)
    assert episode.own_nano == own
    assert episode.cost_nano == own + 700 + 30_000
    assert [call.cost_nano for call in episode.calls] == [700, 30_000]
    assert episode.over_budget
    assert PRICE.cost_nano(Usage(6, 3), 0.0) == 6 * 50 + 3 * 200


def test_the_symbol_that_ends_a_turn_is_paid_and_not_read() -> None:
    script = Script(lambda _: "4<end>")
    [episode] = play(voice(script), [("a=4;a?", LOW)], Perfect(PRICES))
    assert [s.text for s in episode.segments if s.author == "controller"] == ["4"] * 3
    assert [s.ids for s in episode.segments if s.ids] == [tuple(encode("4<end>"))] * 3
    assert episode.own_nano == sum(50 * len(ids) + 200 * 2 for ids in script.seen)


def test_a_turn_ends_at_its_most_tokens() -> None:
    script = Script(lambda _: "1" * 50)
    [episode] = play(voice(script, max_tokens=5), [("a=4;a?", LOW)], Perfect(PRICES))
    assert [len(s.ids) for s in episode.segments if s.ids] == [5] * 3
    assert (episode.malformed, episode.ended_by, episode.answer) == (3, "turns", None)


@pytest.mark.parametrize(
    ("turn", "told"),
    [("4<end>", "!neither"), ("<call>sums</call>", "!unknown"), ("<reply>4</reply><end>", "!reply"),
     ("<call><answer>small<end>", "!two")],
)  # fmt: skip
def test_a_malformed_turn_is_told_and_the_episode_goes_on(turn: str, told: str) -> None:
    turns = iter([turn, "<answer>4</answer>"])
    experts = Perfect(PRICES)
    [episode] = play(voice(Script(lambda _: next(turns))), [("a=4;a?", LOW)], experts)
    assert episode.segments[1].text == f"<reply>{told}</reply>"
    assert (episode.malformed, episode.answer, episode.calls) == (1, "4", ())
    assert sum(map(len, experts.asked)) == 0


def test_calls_of_a_batch_are_made_together_and_go_to_whom_they_name() -> None:
    def one_call(text: str) -> str:
        if text.endswith("</reply>"):
            return f"<answer>{text[-9]}</answer>"
        return f"<call>{'small' if text.startswith('low') else 'large'}</call>"

    experts = Perfect(PRICES)
    episodes = play(voice(Script(one_call)), ASKED, experts)
    assert experts.asked[0] == [("small" if mode is LOW else "large", text) for text, mode in ASKED]
    answers = [solve(text) for text, _ in ASKED]
    assert [e.answer for e in episodes] == answers
    assert [(e.question, e.mode) for e in episodes] == ASKED


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("together", [1, 4])
def test_episodes_do_not_depend_on_the_batch(together: int, temperature: float) -> None:
    def told(sampling: RolloutSampling) -> list[Any]:
        episodes = play(voice(chatty(2), hooks=(tags,)), ASKED, Perfect(PRICES), sampling)
        return [(e.segments[0].ids, [s.text for s in e.segments], e.cost_nano) for e in episodes]

    sampled = RolloutSampling(temperature, together=together)
    assert told(sampled) == told(RolloutSampling(temperature))


@pytest.mark.slow
def test_equal_seeds_play_equal_episodes_and_others_do_not() -> None:
    def told(seed: int) -> list[Any]:
        speaker = voice(chatty(2), hooks=(tags,))
        return play(speaker, ASKED, Perfect(PRICES), RolloutSampling(), seed)

    assert told(1) == told(1) != told(2)


@pytest.mark.parametrize("hard", [0, 1_000, 8_500, 34_000, 10**6])
def test_no_episode_costs_more_than_the_hard_limit(hard: int) -> None:
    experts = Perfect(PRICES)
    speaker = voice(chatty(1), hooks=(tags,))
    episodes = play(speaker, ASKED * 4, experts, RolloutSampling(hard_nano=hard))
    assert all(e.cost_nano <= hard for e in episodes)
    refused = sum(e.refused for e in episodes)
    assert {e.ended_by for e in episodes} <= {"answer", "turns", "budget"}
    if hard == 10**6:
        assert refused == 0
    if hard == 8_500:
        assert refused > 0
        assert any(call.expert == "small" for e in episodes for call in e.calls)


def test_a_refused_call_is_told_and_not_made() -> None:
    experts = Perfect(PRICES)
    sampling = RolloutSampling(temperature=0.0, hard_nano=20_000)
    turns = iter(["<call>large</call>", "<call>small</call>", "<answer>4</answer>"])
    [episode] = play(voice(Script(lambda _: next(turns))), [("a=4;a?", LOW)], experts, sampling)
    assert episode.segments[1].text == "<reply>!money</reply>"
    assert (episode.refused, [c.expert for c in episode.calls]) == (1, ["small"])
    assert experts.asked == [[], [("small", "a=4;a?")], []]


def test_a_turn_that_cannot_be_paid_ends_the_episode() -> None:
    """The most that a turn can cost: 6 tokens read, 12 written."""
    script = Script(lambda _: "<answer>4</answer>")
    most = 6 * 50 + 12 * 200
    for hard, ended in ((most - 1, "budget"), (most, "answer")):
        sampling = RolloutSampling(temperature=0.0, hard_nano=hard)
        [episode] = play(voice(script), [("a=4;a?", LOW)], Perfect(PRICES), sampling)
        assert (episode.ended_by, episode.turns) == (ended, int(ended == "answer"))
    assert len(script.seen) == 1


def test_what_was_spent_counts_against_the_next_call() -> None:
    """Two calls of 30,000 each would fit 50,000 alone, and do not together."""
    experts = Perfect({"small": 30_000, "large": 30_000})
    sampling = RolloutSampling(temperature=0.0, hard_nano=50_000)
    [episode] = play(voice(Script(caller)), [("a=4;a?", LOW)], experts, sampling)
    assert (episode.refused, [call.expert for call in episode.calls]) == (1, ["small"])
    assert 30_000 < episode.cost_nano <= 50_000


def test_what_was_spent_counts_against_the_next_turn() -> None:
    """A call of 30,000 and the first turn's 2,700 leave the second turn less than it can cost."""
    experts = Perfect({"small": 30_000, "large": 30_000})
    sampling = RolloutSampling(temperature=0.0, hard_nano=30_000 + 6 * 50 + 12 * 200)
    [episode] = play(voice(Script(caller)), [("a=4;a?", LOW)], experts, sampling)
    assert (episode.ended_by, episode.turns, len(episode.calls)) == ("budget", 1, 1)
    assert 30_000 < episode.cost_nano <= 32_700


def test_a_mode_s_budget_limits_nothing() -> None:
    [episode] = play(voice(Script(caller)), [("a=4;a?", Mode("low", 0))], Perfect(PRICES))
    assert len(episode.calls) == 2
