"""A controller's first lesson: what it reads, what of it is learned, kills, folders."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from controller_pool import write_pool
from safetensors.torch import load_file
from tiny_controllers import Script
from tiny_models import write_weights

from farthing.errors import InputError
from farthing.models.prices import FREE, PriceTable
from farthing.tasks.base import Question
from farthing_lab.corl import learner, training
from farthing_lab.corl import pool as folders
from farthing_lab.corl.episode import Episode
from farthing_lab.corl.learner import TrainingSchedule, Update
from farthing_lab.corl.pool import read_pool
from farthing_lab.corl.rollouts import (
    ExpertReply,
    PoolSession,
    RolloutSampling,
    chat_layout,
    load_voice,
    rollouts,
)
from farthing_lab.lm import supervised
from farthing_lab.lm.masked_ppo import Settings
from farthing_lab.lm.supervised import BUCKET, TrainingProgress
from farthing_lab.lm.symbols import decode
from farthing_lab.models.local import LocalSettings

PLAN = training.WarmStartPlan(
    lora=2, questions=12, course=replace(training.COURSE, steps=2 * BUCKET, batch=4)
)


@pytest.fixture(scope="module")
def pool_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pool(tmp_path_factory.mktemp("corl"))


class Known:
    """Experts of whom `small` says 3 and `large` fails on what begins with b."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def ask(self, calls: Sequence[tuple[str, str]]) -> list[ExpertReply]:
        self.asked += calls
        return [
            ExpertReply("", 9, error="gone")
            if name == "large" and text[0] == "b"
            else ExpertReply("3", 5)
            for name, text in calls
        ]


QUESTIONS = [
    Question("1", "a=4;a?", ("4",)),
    Question("2", "b=7;b?", ("7",)),
    Question("3", "c=7;c?", ()),
]


def known(opened: PoolSession) -> PoolSession:
    experts: Any = Known()
    return replace(opened, experts=experts)


def said(episode: Episode) -> str:
    return "".join(segment.text for segment in episode.segments)


def test_there_is_an_episode_for_each_question_and_each_way(pool_file: Path) -> None:
    with PoolSession.of(read_pool(pool_file)) as opened:
        found = training.demonstrations(known(opened), QUESTIONS, seed=0)
    by_small = "<call>small</call><reply>3</reply><answer>3</answer>"
    by_large = "<call>large</call><reply>3</reply><answer>3</answer>"
    assert [(one.question, said(one)) for one in found] == [
        ("a=4;a?", "<answer>4</answer>"),
        ("a=4;a?", by_small),
        ("a=4;a?", by_large),
        ("b=7;b?", "<answer>7</answer>"),
        ("b=7;b?", by_small),  # large fails there
        ("c=7;c?", by_small),  # nobody knows what is right
        ("c=7;c?", by_large),
    ]
    assert all(one.ended_by == "answer" and not one.malformed for one in found)


def test_nothing_tells_it_when_to_call(pool_file: Path) -> None:
    many = [Question(str(k), "a=4;a?", ("4",)) for k in range(400)]
    with PoolSession.of(read_pool(pool_file)) as opened:
        found = training.demonstrations(known(opened), many, seed=1)
    counts = Counter((said(one)[:11], one.mode.name) for one in found)
    assert len(counts) == 6
    assert max(counts.values()) - min(counts.values()) < 80  # 200 each, 10 either way


def test_what_it_reads_is_what_an_episode_gives_it(pool_file: Path) -> None:
    """The same turns, written by a network in a roll-out, have the same tokens and contexts."""
    with PoolSession.of(read_pool(pool_file)) as pool:
        opened = known(pool)
        for one in training.demonstrations(opened, QUESTIONS[:1], seed=0):
            [example] = training.examples_of(opened, [one])
            turns = iter([s.text for s in one.segments if s.author == "controller"])
            script = Script(lambda _, turns=turns: next(turns))  # type: ignore[misc]
            voice = replace(opened.voice, network=script, max_tokens=20)
            asked = [(one.question, one.mode)]
            generator, greedily = np.random.default_rng(0), RolloutSampling(temperature=0.0)
            [played] = rollouts(voice, opened.rules, asked, opened.experts, generator, greedily)
            assert (said(played), played.calls) == (said(one), one.calls)
            assert script.seen[0] == example.prompt
            whole = example.prompt + example.answer
            assert all(whole[: len(context)] == context for context in script.seen)
            assert example.mask is not None
            learned = [
                token for token, own in zip(example.answer, example.mask, strict=True) if own
            ]
            own_text = "".join(s.text for s in one.segments if s.author == "controller")
            assert decode(learned) == own_text


def test_in_the_compact_style_a_conversation_is_a_line_a_message(
    pool_file: Path, tmp_path: Path
) -> None:
    weights = write_weights(tmp_path / "llama")
    with PoolSession.of(read_pool(pool_file)) as opened:
        assert training._compact(opened) is opened, "an embedded model reads no lines"
        voice, tokenizer = load_voice(weights, FREE, 9)
        chatty = replace(opened, voice=voice, tokenizer=tokenizer)
        plain = replace(chatty, pool=replace(opened.pool, style="plain"))
        before = tokenizer.chat_template
        training._compact(plain)
        assert tokenizer.chat_template == before, "other styles keep the model's own"
        layout = training._compact(chatty).voice.layout
    assert (layout.before_reply, layout.after_reply) == ("\n", "\n")
    assert chat_layout(tokenizer, weights).before_reply == "\n"


@pytest.mark.slow
@pytest.mark.parametrize("lora", [0, 2])
def test_it_goes_on_after_a_kill_as_if_there_was_none(
    pool_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lora: int
) -> None:
    monkeypatch.setattr(supervised, "EVERY_S", 0.0)
    plan = replace(PLAN, lora=lora)

    def killed(done: TrainingProgress) -> None:
        if done.step == BUCKET:
            raise KeyboardInterrupt

    outs = tmp_path / "whole", tmp_path / "killed"
    for out, watch in ((outs[0], None), (outs[1], killed), (outs[1], None)):
        with PoolSession.of(read_pool(pool_file)) as opened:
            if watch is None:
                assert training.warm_start(opened, plan, out).step == 2 * BUCKET
                continue
            with pytest.raises(KeyboardInterrupt):
                training.warm_start(opened, plan, out, watch)
            with pytest.raises(InputError, match=r"begun with other settings \(seed\)"):
                training.warm_start(opened, replace(plan, seed=9), out)
    file = "adapter_model.safetensors" if lora else "model.safetensors"
    whole, again = (load_file(out / file) for out in outs)
    assert whole.keys() == again.keys()
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert not (outs[1] / folders.TRAINING).exists()


@pytest.mark.slow
def test_it_learns_to_speak(pool_file: Path, tmp_path: Path) -> None:
    losses: list[float] = []
    course = replace(PLAN.course, steps=12 * BUCKET, adam=0.02)
    with PoolSession.of(read_pool(pool_file)) as opened:
        plan = replace(PLAN, lora=0, course=course)
        training.warm_start(opened, plan, tmp_path / "warm", lambda done: losses.append(done.loss))
    assert losses[-1] < 0.5 * losses[0]


@pytest.fixture(scope="module")
def taught(pool_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("taught") / "warm"
    with PoolSession.of(read_pool(pool_file)) as opened:
        training.warm_start(opened, PLAN, out)
    return out


def sampled(opened: PoolSession) -> list[Any]:
    """Return the tokens of some episodes, with their probabilities."""
    asked = [(one.text, opened.modes[0]) for one in opened.pool.questions.sample("test", 12, 0)]
    generator = np.random.default_rng(0)
    found = rollouts(opened.voice, opened.rules, asked, opened.experts, generator)
    return [(s.text, s.ids, s.logprobs) for one in found for s in one.segments]


@pytest.mark.slow
def test_its_folder_holds_the_adapter_alone_and_plays_the_same_episodes(
    pool_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "warm"
    with PoolSession.of(read_pool(pool_file)) as opened:
        training.warm_start(opened, PLAN, out)
        here = sampled(opened)
        before = sampled(replace(opened, voice=load_voice(opened.pool.weights(), FREE, 12)[0]))
    assert here != before
    names = {file.name for file in out.iterdir()}
    assert {"adapter_model.safetensors", "adapter_config.json", "tokenizer.json"} < names
    assert not names & {"model.safetensors", "config.json", "pytorch_model.bin"}
    kept = load_file(out / "adapter_model.safetensors")
    assert all("lora_" in name for name in kept)
    config = json.loads((out / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(pool_file.parent / "controller")
    found = folders.pool_of(out, None)
    assert (found.pool.name, found.card and found.card.updates) == (str(pool_file), [])
    with PoolSession.of(found.pool) as opened:
        assert sampled(opened) == here
    LocalSettings(model="writer", path=str(out)).open(PriceTable())


@pytest.mark.slow
def test_reinforcement_goes_on_from_an_adapter_and_writes_one(
    pool_file: Path, taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "EVERY_S", 0.0)
    plan = training.TrainingPlan(
        course=TrainingSchedule(3, 4), settings=Settings(minibatch=4, actor_rate=0.01)
    )

    def killed(update: Update) -> None:
        if update.update == 2:
            raise KeyboardInterrupt

    outs = tmp_path / "whole", tmp_path / "killed"
    for out, watch in ((outs[0], None), (outs[1], killed), (outs[1], None)):
        with PoolSession.of(folders.pool_to_train(str(pool_file), taught, None)) as opened:
            if watch is None:
                log = training.train(opened, plan, out)
                assert abs(log.updates[0].kl) < 1e-5, "the reference is what it began as"
                continue
            with pytest.raises(KeyboardInterrupt):
                training.train(opened, plan, out, watch)
            state = load_file(out / folders.TRAINING / "state" / "state.safetensors")
            weights = {name for name in state if "/" not in name}
            assert all(".default." in n or n.startswith("critic.head") for n in weights)
    first, again = (load_file(out / "adapter_model.safetensors") for out in outs)
    begun = load_file(taught / "adapter_model.safetensors")
    assert begun.keys() == first.keys() == again.keys()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], begun[name]) for name in first)
    config = json.loads((outs[0] / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(pool_file.parent / "controller")


@pytest.mark.slow
def test_an_adapter_is_taught_further_and_none_is_put_on_it(
    pool_file: Path, taught: Path, tmp_path: Path
) -> None:
    with PoolSession.of(read_pool(pool_file).speaking(taught)) as opened:
        training.warm_start(opened, PLAN, tmp_path / "more")
    first, more = (
        load_file(out / "adapter_model.safetensors") for out in (taught, tmp_path / "more")
    )
    assert first.keys() == more.keys()
    assert not all(torch.equal(first[name], more[name]) for name in first)


def test_without_accepted_answers_or_replies_there_is_nothing_to_learn(pool_file: Path) -> None:
    with PoolSession.of(read_pool(pool_file)) as opened:
        alone = replace(opened, rules=replace(opened.rules, most_turns=1))
        with pytest.raises(InputError, match="no question has an accepted answer"):
            training.demonstrations(known(alone), QUESTIONS[2:], seed=0)
        assert len(training.demonstrations(known(alone), QUESTIONS[:2], seed=0)) == 2
        with pytest.raises(InputError, match="'large' failed on every question: gone"):
            training.demonstrations(known(opened), QUESTIONS[1:2], seed=0)
