"""A controller's training: what it asks for, that a kill costs nothing, and that it learns."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_controllers import HIGH, LOW, RULES, Perfect, Script, voice

from farthing.tasks.base import Question
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.corl import learner
from farthing_lab.corl.allocations import DUET, PromptBatch, even, knapsack, uncertain
from farthing_lab.corl.base import Mode
from farthing_lab.corl.episode import ControllerTurn, Episode, Rules, begin
from farthing_lab.corl.learner import TrainingLog, TrainingSchedule, TrainingTask, Update, learn
from farthing_lab.corl.rollouts import Asked, Experts, RolloutSampling, Voice, rollouts
from farthing_lab.lm.make import Size, network
from farthing_lab.lm.masked_ppo import MaskedTrainer, Settings
from farthing_lab.lm.supervised import Example, train
from farthing_lab.lm.supervised import TrainingCourse as Lessons
from farthing_lab.lm.symbols import encode
from farthing_lab.rl.collapse import CallPrices
from farthing_lab.rl.episode_rewards import ROUTER_R1, Outcomes
from farthing_lab.tasks.arithmetic import ARITHMETIC, Recipe, draw_of

PRICES = {"small": 700, "large": 30_000}
QUICK = Settings(advantage="gae", minibatch=4, actor_rate=1e-3)


def question(generator: np.random.Generator) -> Question:
    return next(draw_of("train", [Recipe("sums", 1, 0)], generator)).question()


def lesson(net: Any, **changed: Any) -> TrainingTask:
    made = TrainingTask(voice(net), RULES, (LOW, HIGH), Perfect(PRICES), ARITHMETIC, question)
    return replace(made, **changed)


def tiny(seed: int = 1) -> Any:
    return network(Size(1, 16), seed)


def told(log: TrainingLog) -> list[Update]:
    """Return the lines of a log but for what a clock says."""
    return [replace(one, seconds=0.0) for one in log.updates]


class KilledError(Exception):
    """Ends a training as a kill does."""


def open_in_high(outcomes: Outcomes) -> FloatArray:
    """Be worth 1 in the mode low, and every other time in high."""
    sure = outcomes.budget_nano == LOW.budget_nano
    return np.where(sure, 1.0, np.arange(len(sure)) % 2.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "rollouts_each", "changed"),
    [
        (QUICK, 1, {}),
        (replace(QUICK, advantage="shrunk"), 3, {"reward": open_in_high, "allocation": DUET}),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (
                (replace(QUICK, advantage="group"), 2, {"reward": ROUTER_R1}),
                (QUICK, 3, {"reward": open_in_high, "allocation": uncertain}),
            )
        ),
    ],
)
def test_a_killed_training_goes_on_as_if_there_was_no_kill(
    settings: Settings,
    rollouts_each: int,
    changed: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    course = TrainingSchedule(updates=4, prompts=6, rollouts=rollouts_each, warm=0.3)
    whole, other = tiny(), tiny()
    expected = learn(lesson(whole, **changed), course, settings, seed=3)

    monkeypatch.setattr(learner, "EVERY_S", 0.0)

    def kill(update: Update) -> None:
        if update.update == 3:  # the third update is lost: it was not kept yet
            raise KilledError

    folder = tmp_path / "kept"
    with pytest.raises(KilledError):
        learn(lesson(tiny(), **changed), course, settings, seed=3, folder=folder, watch=kill)
    seen: list[int] = []
    log = learn(
        lesson(other, **changed),
        course,
        settings,
        seed=99,
        folder=folder,
        watch=lambda update: seen.append(update.update),
    )
    assert seen == [3, 4]
    assert told(log) == told(expected)
    weights = other.state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in whole.state_dict().items())
    seconds = [one.seconds for one in log.updates]
    assert seconds == sorted(seconds), "the clock goes on"
    again = learn(lesson(tiny(), **changed), course, settings, seed=3, folder=folder)
    assert again == log, "it was over"


@pytest.mark.slow
def test_a_budget_below_any_price_is_named_when_nobody_calls(tmp_path: Path) -> None:
    """A network that never ends a turn well: no calls, no reward."""

    def mute(
        speaker: Voice, rules: Rules, asked: Sequence[Asked], experts: Experts, generator: Any
    ) -> list[Episode]:
        played = rollouts(speaker, rules, asked, experts, generator)
        return [replace(one, answer=None, calls=()) for one in played]

    broke = (Mode("low", 100), Mode("high", 200))
    taught = lesson(
        tiny(), modes=broke, sampler=mute, prices=CallPrices(700, {"low": 100, "high": 200})
    )
    course = TrainingSchedule(updates=30, prompts=2, rollouts=1)
    log = learn(taught, course, QUICK, seed=0, folder=tmp_path / "kept")
    assert len(log.updates) == 20
    assert log.stopped == (
        "No episode called an expert in the last 20 updates, and the reward is 0: the budgets of "
        "modes low ($0.0000001) and high ($0.0000002) are below the price of any call "
        "($0.0000007). Raise them, or choose cheaper experts."
    )
    again = learn(taught, course, QUICK, seed=0, folder=tmp_path / "kept")
    assert (len(again.updates), again.stopped) == (20, log.stopped)


def scripted(turns: dict[str, str]) -> Any:
    """Return a sampler that plays episodes by what is written down for each mode."""

    def play(
        speaker: Voice, rules: Rules, asked: Sequence[Asked], experts: Experts, generator: Any
    ) -> list[Episode]:
        script = Script(lambda text: _next(turns, text))
        return rollouts(replace(speaker, network=script), rules, asked, experts, generator,
                        RolloutSampling(temperature=0.0))  # fmt: skip

    return play


def _next(turns: dict[str, str], text: str) -> str:
    if text.endswith("</reply>"):
        return f"<answer>{text[-9]}</answer>"
    return turns[text.partition(":")[0]]


def test_plug_ins_are_called_with_what_they_promise() -> None:
    seen: dict[str, list[Any]] = {"sampler": [], "reward": [], "draw": [], "allocation": []}
    sampler = scripted({"low": "<answer>4</answer>", "high": "<call>large</call>"})

    def sampled(*given: Any) -> list[Episode]:
        seen["sampler"].append(given)
        return list(sampler(*given))

    def rewarded(outcomes: Outcomes) -> FloatArray:
        seen["reward"].append(outcomes)
        return np.linspace(0.0, 1.0, len(outcomes.correct))

    def drawn(generator: np.random.Generator) -> Question:
        seen["draw"].append(generator)
        return question(generator)

    def allocated(prompts: PromptBatch, of: int) -> IntArray:
        seen["allocation"].append((len(prompts), of, prompts.chance))
        return np.array([5, 0, 2, 3, 0])

    taught = lesson(tiny(), sampler=sampled, reward=rewarded, draw=drawn, allocation=allocated)
    log = learn(taught, TrainingSchedule(updates=2, prompts=5, rollouts=2), QUICK, seed=0)

    [generator] = {id(one) for one in seen["draw"]}
    assert len(seen["draw"]) == 10
    (n, of, chance), _ = seen["allocation"]
    assert (n, of, chance.tolist()) == (5, 10, [0.5] * 5)
    for given in seen["sampler"]:
        assert given[:2] == (taught.voice, taught.rules)
        assert (given[3], id(given[4])) == (taught.experts, generator)
        asked = given[2]
        assert [len(asked), len(set(asked))] == [10, 3]
        places = [0] * 5 + [5] * 2 + [7] * 3
        assert [asked.index(one) for one in asked] == places, "one mode a prompt"
    first, second = seen["reward"]
    for outcomes, given in zip((first, second), seen["sampler"], strict=True):
        budgets = [mode.budget_nano for _, mode in given[2]]
        assert outcomes.budget_nano.tolist() == budgets
        assert outcomes.well_formed.all()
        calling = np.array([mode is HIGH for _, mode in given[2]])
        assert ((outcomes.cost_nano >= 30_000) == calling).all()
        assert outcomes.correct[calling].all()
    assert first.recent.cost_nano.tolist() == []
    assert second.recent.cost_nano.tolist() == first.cost_nano.tolist()
    assert [one.reward for one in log.updates] == pytest.approx([0.5, 0.5])


@pytest.mark.slow
def test_prompts_whose_outcome_is_open_get_more_episodes() -> None:
    """In low all earn something, in high every other one does; the total is kept."""
    shares: list[tuple[int, float]] = []

    def noted(*given: Any) -> list[Episode]:
        modes = [mode for _, mode in given[2]]
        prompts = {mode: len({text for text, m in given[2] if m is mode}) for mode in (LOW, HIGH)}
        each = {mode: modes.count(mode) / prompts[mode] for mode in (LOW, HIGH)}
        shares.append((len(modes), each[HIGH] / each[LOW]))
        return rollouts(*given)

    for allocation in (even, uncertain):
        shares.clear()
        taught = lesson(tiny(), sampler=noted, reward=open_in_high, allocation=allocation)
        learn(taught, TrainingSchedule(updates=4, prompts=10, rollouts=4), QUICK, seed=0)
        assert [n for n, _ in shares] == [40] * 4
        assert shares[0][1] == 1.0, "nothing is known yet"
        ratios = [ratio for _, ratio in shares[1:]]
        assert all(ratio == 1.0 if allocation is even else ratio > 1.5 for ratio in ratios)


@pytest.mark.slow
def test_of_each_prompt_is_expected_what_its_kind_earned_and_took_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two episodes of the mean of all are added; at first nothing is known."""
    seen: list[tuple[FloatArray, FloatArray]] = []
    update = MaskedTrainer.update

    def noted(trainer: Any, batch: Any, *rest: Any) -> Any:
        seen.append((batch.prior.numpy(), batch.reward.numpy()))
        return update(trainer, batch, *rest)

    monkeypatch.setattr(MaskedTrainer, "update", noted)
    modes: list[FloatArray] = []
    written: list[FloatArray] = []
    lengths: list[FloatArray] = []

    def sampled(*given: Any) -> list[Episode]:
        modes.append(np.array([mode is HIGH for _, mode in given[2]]))
        made = rollouts(*given)
        written.append(np.array([sum(len(s.ids) for s in one.segments) for one in made]))
        return made

    def shared(prompts: PromptBatch, episodes: int) -> IntArray:
        lengths.append(prompts.length.repeat(4))
        return even(prompts, episodes)

    taught = lesson(tiny(), sampler=sampled, reward=open_in_high, allocation=shared)
    settings = replace(QUICK, advantage="shrunk")
    learn(taught, TrainingSchedule(updates=2, prompts=6, rollouts=4), settings, seed=0)
    (nothing, reward), (expected, _) = seen
    assert not nothing.any()
    assert (lengths[0] == 1.0).all()
    for high in (True, False):
        for known, of, said in ((reward, modes[0], expected), (written[0], modes[0], lengths[1])):
            own = known[of == high]
            mean = (own.sum() + 2 * known.mean()) / (len(own) + 2)
            assert said[modes[1] == high] == pytest.approx(mean)


@pytest.mark.slow
def test_knapsack_and_duet_leave_alone_what_is_certain() -> None:
    """In low all earn something, so there is nothing to compare."""
    for allocation in (knapsack, DUET):
        modes: list[list[Mode]] = []

        def noted(*given: Any) -> list[Episode]:
            modes.append([mode for _, mode in given[2]])  # noqa: B023
            return rollouts(*given)

        taught = lesson(tiny(), sampler=noted, reward=open_in_high, allocation=allocation)
        learn(taught, TrainingSchedule(updates=6, prompts=10, rollouts=4), QUICK, seed=0)
        of_high = [some.count(HIGH) / len(some) for some in modes]
        assert np.mean(of_high[3:]) > 0.6
        assert allocation is DUET or [len(some) for some in modes] == [40] * 6


def test_hooks_change_what_is_sampled() -> None:
    def only_pad(logits: Any, _: Any) -> Any:
        return logits * 0.0 + logits.new_full(logits.shape, -100.0).index_fill(
            1, torch.tensor([0]), 0.0
        )

    speaker = voice(tiny(), hooks=(only_pad,))
    log = learn(
        lesson(tiny(), voice=speaker),
        TrainingSchedule(updates=1, prompts=2, rollouts=1),
        QUICK,
        seed=0,
    )
    assert (log.updates[0].malformed, log.updates[0].tokens) == (1.0, 2 * 3 * 12)


@pytest.mark.slow
def test_modes_are_drawn_for_each_prompt_and_all_come() -> None:
    modes: Counter[str] = Counter()
    pairs: list[Asked] = []
    sampler = scripted(dict.fromkeys(("low", "medium", "high"), "<answer>4</answer>"))

    def sampled(*given: Any) -> list[Episode]:
        pairs.extend(given[2])
        modes.update(mode.name for _, mode in given[2])
        return list(sampler(*given))

    three = (LOW, Mode("medium", 5_000), HIGH)
    log = learn(
        lesson(tiny(), modes=three, sampler=sampled),
        TrainingSchedule(updates=1, prompts=120, rollouts=1),
        QUICK,
        seed=1,
    )
    assert set(modes) == {"low", "medium", "high"}
    assert min(modes.values()) > 25
    assert set(log.updates[0].by_mode) == set(modes)


@pytest.mark.slow
def test_the_figures_of_an_update_are_those_of_its_episodes() -> None:
    sampler = scripted({"low": "<call>sums</call>", "high": "<call>large</call>"})
    broke = replace(HIGH, budget_nano=30_000)  # no room for the controller's own words
    taught = lesson(tiny(), sampler=sampler, modes=(LOW, broke))
    [one] = learn(
        taught, TrainingSchedule(updates=1, prompts=40, rollouts=1), QUICK, seed=0
    ).updates
    share = one.call_ratio
    assert 0.2 < share < 0.8
    assert one.calls == share
    assert one.malformed == pytest.approx(1 - share)
    assert one.over_budget == pytest.approx(share + (1 - share) * (one.over_budget > share))
    assert one.by_mode["high"] == [1.0, 0.0], "called, and too dear"
    assert one.by_mode["low"][0] == 0.0
    assert one.accuracy >= share
    assert one.cost_usd > share * 30_000 / 1e9
    assert one.tokens == 40 * 6


def answered(text: str, known: Sequence[float]) -> Episode:
    play = begin(RULES, "a=4;a?", LOW)
    return play.wrote(ControllerTurn(text, 1, tuple(encode(text)), tuple(known))).episode()


def test_a_sampler_that_does_not_say_how_likely_it_was_is_refused() -> None:
    def silent(_: Any, __: Any, asked: Sequence[Asked], *___: Any) -> list[Episode]:
        return [answered("<answer>4</answer>", ()) for _ in asked]

    with pytest.raises(ValueError, match="log-probabilities"):
        learn(
            lesson(tiny(), sampler=silent),
            TrainingSchedule(updates=1, prompts=2, rollouts=1),
            QUICK,
            seed=0,
        )


def warm(net: Any) -> Any:
    """Teach a network to guess, to call now and then, and to repeat a reply; it never solves."""

    def shown(generator: np.random.Generator) -> Example:
        asked = f"high:{question(generator).text}"
        guess = f"<answer>{generator.integers(10)}</answer><end>"
        call, reply = "<call>small</call>", f"<reply>{guess[8]}</reply>"
        if generator.random() < 0.5:
            return Example(encode(f"{asked}{call}{reply}"), encode(guess))
        return Example(encode(asked), encode(call if generator.random() < 0.3 else guess))

    train(net, shown, Lessons(steps=240, batch=24, warm=10), seed=0)
    return net


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "each"),
    [
        (
            Settings(
                advantage="gae", actor_rate=3e-3, critic_rate=3e-3, kl=0.001, epochs=2, minibatch=64
            ),
            1,
        ),
        (Settings("group", actor_rate=3e-3, kl=0.001, epochs=2, minibatch=64), 4),
    ],
    ids=["gae", "group"],
)
def test_a_controller_learns_to_call_whom_it_pays_to_call(settings: Settings, each: int) -> None:
    net = warm(network(Size(1, 32), 1))
    rules = replace(RULES, experts=RULES.experts[:1], most_turns=2)
    taught = lesson(net, rules=rules, modes=(HIGH,))
    course = TrainingSchedule(updates=30, prompts=64 // each, rollouts=each)
    log = learn(taught, course, settings, seed=0)
    reward, calls = (
        np.array([getattr(one, name) for one in log.updates]) for name in ("reward", "call_ratio")
    )
    # 5 updates are 320 episodes: a mean's standard error is 0.028 at most
    assert reward[-5:].mean() > reward[:5].mean() + 0.3
    assert calls[-5:].mean() > calls[:5].mean() + 0.3
    assert log.stopped == ""
