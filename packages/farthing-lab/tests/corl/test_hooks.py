"""Hooks of a controller's logits: what they do, and that training is of what was drawn."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_controllers import HIGH, LOW, RULES, Perfect, Script, voice

from farthing import plugins
from farthing_lab.corl.base import Segment
from farthing_lab.corl.episode import Episode
from farthing_lab.corl.hooks import LogitsHook, ThinkingLimit, no_calls
from farthing_lab.corl.rollouts import Sampler, Voice, rollouts, trajectory
from farthing_lab.lm.make import Size, network
from farthing_lab.lm.masked_ppo import (
    EpisodeBatch,
    Learners,
    MaskedTrainer,
    Settings,
    UpdateFigures,
)
from farthing_lab.lm.symbols import NUMBERS, decode, encode
from farthing_lab.models.generation import Context

ASKED = [(text, mode) for text in ("a=4;a?", "a=4;b=a+1;b?") for mode in (LOW, HIGH)] * 4
PRICES = {"small": 700, "large": 30_000}
CALL = NUMBERS["<call>"]


@pytest.fixture(params=plugins.names("logits_hooks"))
def hook(request: Any) -> LogitsHook:
    loaded: LogitsHook = plugins.load("logits_hooks", request.param)
    return loaded


def uneven() -> Any:
    """Return a random network whose probabilities are far from even."""
    net = network(Size(1, 16), 1)
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(2.0)
    return net


def speaker(hook: LogitsHook) -> Voice:
    bare = voice(uneven(), max_tokens=40)
    return replace(bare, hooks=(hook(bare),))


def play(speaker: Voice, sampler: Sampler = rollouts) -> list[Episode]:
    return sampler(speaker, RULES, ASKED, Perfect(PRICES), np.random.default_rng(0))


def update(speaker: Voice, episodes: Sequence[Episode], settings: Settings) -> UpdateFigures:
    """Learn from episodes, under the hooks of a voice."""
    made = [trajectory(one, 0.0, speaker.encode, speaker.layout) for one in episodes]
    parts = [
        (one.prompt_ids, one.response_ids, one.response_mask, one.response_logprobs or ())
        for one in made
    ]
    reward = np.linspace(0.0, 1.0, len(made))
    batch = EpisodeBatch.of(parts, reward, [at // 4 for at in range(len(made))])
    learners = Learners.of(speaker.network, settings, speaker.hooks)
    return MaskedTrainer(learners, settings).update(batch, 1.0, np.random.default_rng(0))


def cut_off(*given: Any) -> list[Episode]:
    """Play episodes that the sampler itself ends, in the midst of their first turn."""
    word = Segment("environment", ";", tuple(encode(";")))
    found = []
    for one in rollouts(*given):
        first = one.segments[0]
        cut = replace(first, ids=first.ids[:3], logprobs=first.logprobs[:3])
        found.append(replace(one, segments=(cut, word)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("advantage", ["gae", "group"])
@pytest.mark.parametrize("sampler", [rollouts, cut_off])
def test_before_the_first_step_the_ratio_is_1(
    hook: LogitsHook, advantage: Any, sampler: Sampler
) -> None:
    """And nothing diverges from the reference, which is under the same hook."""
    settings = Settings(advantage=advantage, epochs=1, minibatch=999, clip=1e-4)
    speaking = speaker(hook)
    figures = update(speaking, play(speaking, sampler), settings)
    assert figures.clip_fraction == 0.0, "no ratio is further from 1 than rounding"
    assert figures.update_kl == pytest.approx(0.0, abs=1e-7)
    assert figures.kl == pytest.approx(0.0, abs=1e-6)
    assert np.isfinite(list(vars(figures).values())).all()
    unhooked = replace(speaking, hooks=(), network=uneven())
    assert update(unhooked, play(speaking, sampler), settings).clip_fraction > 0.0


def test_what_is_forced_moves_nothing() -> None:
    """A token that a hook left no choice about has no gradient: the weights stay."""

    def only_4(logits: Any, _: Sequence[Context]) -> Any:
        forced = torch.full_like(logits, -torch.inf)
        return logits + forced.index_fill(1, torch.tensor([NUMBERS["4"]]), 0.0)

    speaking = voice(uneven(), hooks=(only_4,))
    before = {name: p.clone() for name, p in speaking.network.state_dict().items()}
    figures = update(speaking, play(speaking), Settings(actor_rate=0.1, entropy=0.1))
    assert (figures.entropy, figures.clip_fraction) == (0.0, 0.0)
    after = speaking.network.state_dict()
    assert all(torch.equal(p, after[name]) for name, p in before.items())


def test_a_hook_is_given_the_same_contexts_in_training_as_in_the_roll_outs() -> None:
    seen: list[tuple[tuple[int, ...], int]] = []

    def watch(logits: Any, contexts: Sequence[Context]) -> Any:
        seen.extend((tuple(one.ids), one.begun) for one in contexts)
        return logits

    bare = voice(uneven())
    speaking = replace(bare, hooks=(watch, no_calls(bare)))
    episodes = play(speaking)
    drawn = sorted(seen)
    seen.clear()
    update(speaking, episodes, Settings(epochs=1, minibatch=5))
    # once for the reference, once for the policy
    assert sorted(seen) == sorted(drawn * 2)


def test_a_hook_leaves_what_it_is_given_and_sees_each_row_alone(hook: LogitsHook) -> None:
    made = hook(voice(None))
    contexts = [Context(encode("low:a=4;a?") + [5] * n, 4) for n in (0, 3, 31, 32, 33, 50)]
    logits = torch.randn(len(contexts), len(NUMBERS), generator=torch.Generator().manual_seed(0))
    kept = logits.clone()
    together = made(logits, contexts)
    assert torch.equal(logits, kept)
    for row, one in enumerate(contexts):
        assert torch.equal(made(logits[row : row + 1], [one])[0], together[row])


@pytest.mark.slow
def test_without_calls_nobody_is_called_in_training() -> None:
    episodes = play(speaker(no_calls))
    written = [symbol for one in episodes for s in one.segments for symbol in s.ids]
    assert CALL not in written
    bare = voice(uneven())
    assert any(CALL in s.ids for one in play(bare) for s in one.segments)


def test_where_a_tag_is_several_tokens_a_call_is_cut_off_where_it_differs_from_an_answer() -> None:
    spelt = replace(voice(None), encode=lambda text: [ord(letter) for letter in text])
    hook = no_calls(spelt)
    contexts = [Context(spelt.encode(text), 1) for text in ("a=4", "a=4<", "<c", "")]
    left = hook(torch.zeros(4, 128), contexts)
    assert (left == -torch.inf).nonzero().tolist() == [[1, ord("c")]]


def thinking(net: Any, tokens: int, **changed: Any) -> list[str]:
    """Return the first turns of a controller whose thinking is limited."""
    bare = voice(net, max_tokens=30, **changed)
    speaking = replace(bare, hooks=(ThinkingLimit(tokens)(bare),))
    return [one.segments[0].text for one in play(speaking)]


def test_thinking_ends_after_so_many_tokens() -> None:
    endless = Script(lambda _: "1" * 99)
    for text in thinking(endless, 5):
        assert text.startswith(("11111<call>1", "11111<answer>1"))
    at_once = thinking(Script(lambda _: "<answer>4</answer>"), 0)
    assert set(at_once) == {"<answer>4</answer>"}


def test_a_tag_that_is_open_in_time_is_left_alone() -> None:
    said = "1<answer>44444</answer>"
    assert set(thinking(Script(lambda _: said), 5)) == {said}


def test_a_tag_of_several_tokens_is_forced_one_by_one() -> None:
    """Every symbol is read as its letters; those of a tag have to come in their order."""
    letters = sorted(set("".join(NUMBERS)))
    spelt = {letter: at + 2 for at, letter in enumerate(letters)}

    def encode_letters(text: str) -> list[int]:
        return [spelt[letter] for letter in text]

    def decode_letters(ids: Sequence[int]) -> str:
        return "".join(letters[at - 2] for at in ids if at > 1)

    limit = ThinkingLimit(3)(voice(None, encode=encode_letters, decode=decode_letters))
    taken: list[int] = encode_letters("a=4")
    while not decode_letters(taken).endswith(("<call>", "<answer>")):
        left = limit(torch.zeros(1, 60), [Context([7, *taken], 1)])[0]
        taken.append(int(left.isfinite().nonzero().max()))
        assert len(taken) < 20
    assert decode_letters(taken) == "a=4<call>"
    assert limit(torch.zeros(1, 60), [Context([7, *taken], 1)]).isfinite().all()


def test_the_symbols_of_the_tests_are_the_project_s() -> None:
    assert decode([CALL]) == "<call>"
