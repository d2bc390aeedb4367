"""What a controller writes is read alike in its training and live, however its turns end."""

import asyncio
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from controller_pool import Table
from tiny_controllers import HIGH, PRICE, RULES, Perfect, voice

from farthing.models.prices import FREE
from farthing.models.scripted import ScriptedModel
from farthing.runtime.agents.base import PlainAgent
from farthing.tasks.base import Question
from farthing_lab.corl.episode import Episode
from farthing_lab.corl.live import Controller, ControllerSampling
from farthing_lab.corl.rollouts import RolloutSampling, rollouts
from farthing_lab.lm.symbols import END, NUMBERS, WHOLE, said, tokenizer
from farthing_lab.models.local import LocalModel
from farthing_lab.tasks.arithmetic import ARITHMETIC

QUESTION = "a=4;a?"
WITHIN = {"?": "<call>", "<call>": "small", "small": END, "</reply>": "<answer>"}
"""Ends by itself within a call, then within an answer."""
WHOLLY = {**WITHIN, "small": "</call>", "<answer>": "7", "7": "</answer>"}
WRITES: dict[str, dict[str, str]] = {
    "closes its tags": WHOLLY,
    "ends within a call": {**WHOLLY, "small": END},
    "ends within an answer": {**WHOLLY, "7": END},
    "ends within each": {**WITHIN, "<answer>": "7", "7": END},
    "ends with nothing in a tag": {"?": "<call>", "<call>": END, "</reply>": "<answer>"},
    "says neither": {"?": "7", "7": END, "</reply>": "7"},
    "closes what is not open": {"?": "</call>", "</reply>": "</answer>"},
    "opens two": {"?": "<answer>", "<answer>": "<call>", "<call>": "7", "7": END, "</reply>": "7"},
    "calls nobody that there is": {"?": "<call>", "<call>": "sums", "sums": END, "</reply>": "7"},
    "makes up a reply": {"?": "<reply>", "<reply>": "7", "7": "</call>", "</reply>": "7"},
    "never ends": {"?": "7", "7": "7", "</reply>": "7"},
    "never ends a call": {"?": "<call>", "<call>": "small", "small": "small", "</reply>": "7"},
}


def network(after: dict[str, str]) -> Any:
    made: Any = Table(after)
    made.config = SimpleNamespace(max_position_embeddings=512)
    made.generation_config = SimpleNamespace(eos_token_id=NUMBERS[END])
    return made


def in_training(after: dict[str, str]) -> Episode:
    experts = Perfect({"small": 0, "large": 0}, says=lambda _: "4")
    [episode] = rollouts(
        voice(network(after), decode=said),
        RULES,
        [(QUESTION, HIGH)],
        experts,
        np.random.default_rng(0),
        RolloutSampling(temperature=0.0),
    )
    return episode


def live(after: dict[str, str]) -> Episode:
    model = LocalModel(network(after), tokenizer(WHOLE), "tiny", price=PRICE)
    experts = [
        PlainAgent(ScriptedModel(lambda _: "4", name=name, price=FREE), name)
        for name in RULES.names
    ]
    controller = Controller(model, experts, RULES, ARITHMETIC, sampling=ControllerSampling(12))

    async def play() -> Episode:
        try:
            return (await controller.answer(Question("q", QUESTION), HIGH)).episode
        finally:
            await model.aclose()

    return asyncio.run(play())


@pytest.mark.parametrize("after", WRITES.values(), ids=WRITES)
def test_a_turn_is_read_alike_in_training_and_live(after: dict[str, str]) -> None:
    torch.set_num_threads(1)
    trained, asked = in_training(after), live(after)
    for one in (trained, asked):
        assert one.turns == len([s for s in one.segments if s.author == "controller"])

    def read(one: Episode) -> dict[str, Any]:
        calls = [(call.turn, call.expert, call.asked, call.reply) for call in one.calls]
        return {
            **{name: getattr(one, name) for name in ("answer", "ended_by", "turns", "malformed")},
            "texts": [(segment.author, segment.text) for segment in one.segments],
            "calls": calls,
        }

    assert read(trained) == read(asked)


def test_a_controller_that_ends_within_its_tags_has_closed_them() -> None:
    episode = in_training(WRITES["ends within each"])
    assert [one.text for one in episode.segments] == [
        "<call>small</call>",
        "<reply>4</reply>",
        "<answer>7</answer>",
    ]
    assert (episode.answer, episode.malformed) == ("7", 0)
    assert episode.segments[0].ids[-1] == NUMBERS[END], "what was sampled stays"
