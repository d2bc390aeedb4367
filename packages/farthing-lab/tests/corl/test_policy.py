"""The card of controllers, and what ships of one."""

import numpy as np
import pytest

from farthing.errors import InputError, UnknownNameError
from farthing.methods.base import Dataset
from farthing.methods.cards import card, name_of, policy_class
from farthing.recommendation.candidates import single_candidate, unavailable
from farthing_lab.corl.base import Expert, Mode
from farthing_lab.corl.episode import Rules
from farthing_lab.corl.policy import ControllerPolicy
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

RULES = Rules((Expert("small", "$1 a call"), Expert("large")), "compact", most_turns=3)
POLICY = ControllerPolicy(RULES, (Mode("low", 10), Mode("high", 900)))


def test_one_policy_serves_every_mode_by_its_name() -> None:
    assert [POLICY.mode(name).budget_nano for name in ("low", "high")] == [10, 900]
    with pytest.raises(UnknownNameError, match="unknown mode 'hihg'; did you mean 'high'"):
        POLICY.mode("hihg")


def test_its_card_says_text_and_that_no_recording_replays_it() -> None:
    assert card("corl").action_spaces == ("text",)
    assert not card("corl").replayable
    assert policy_class("corl").__name__ == "ControllerPolicy"
    assert name_of(POLICY) == "corl"  # type: ignore[arg-type]  # no `decide`: it decides in text


def test_on_recorded_questions_it_says_why_it_cannot_run() -> None:
    config = preset("hotpotqa-llama2-7b").config
    traces = generate(config, 20, np.random.default_rng(0))
    dataset = Dataset("generated", traces)
    assert "corl" in unavailable(dataset)["what experts reply depends on what it writes"]
    with pytest.raises(InputError, match="'corl' cannot run: what experts reply"):
        single_candidate(dataset, "corl")
