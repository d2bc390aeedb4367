"""Modes of a thinker are operating points, and its dearest is what they are held against."""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from farthing.errors import InputError
from farthing.models.prices import Rates, TokenPrice
from farthing.promises.kinds.parity import Parity
from farthing.tasks.base import Question
from farthing_lab.corl.certificate import (
    CHOOSING,
    Answered,
    Certified,
    EmbeddedThinker,
    ModalThinker,
    certify_modes,
)
from farthing_lab.corl.pool import GeneratedQuestions
from farthing_lab.lm.make import Size, network
from farthing_lab.lm.overthinking import RECIPES
from farthing_lab.lm.symbols import NUMBERS, encode
from farthing_lab.methods.thinkers.training import length, think

ASKED = Parity(epsilon=Fraction("0.02"), delta=Fraction("0.1"))
QUESTIONS = GeneratedQuestions(RECIPES)
MODES = ("low", "medium", "high")
COST = {"low": 100, "medium": 200, "high": 300}


class Scripted:
    """Is right on all questions but a share of them, which depends on the mode."""

    def __init__(self, **wrong: float) -> None:
        self.wrong, self.asked = wrong, dict[str, int]()

    def __call__(self, mode: str, questions: Sequence[Question]) -> list[Answered]:
        self.asked[mode] = self.asked.get(mode, 0) + len(questions)
        most = len(questions) * self.wrong.get(mode, 0.0)
        return [
            Answered("?" if at < most else one.gold[0], COST[mode], COST[mode] // 10)
            for at, one in enumerate(questions)
        ]


def certified(play: Any, n: int = 400) -> Certified:
    return certify_modes(ModalThinker("thinker", MODES, play), QUESTIONS, ASKED, n=n)


@pytest.mark.slow
def test_low_within_two_points_of_high_is_proved_where_it_is_so() -> None:
    play = Scripted(low=0.005)
    found = certified(play)
    assert found.mode is not None
    assert (found.mode.name, found.recorded.reference) == ("low", "high")
    assert found.certificate.promises
    assert found.found.value.saved == pytest.approx(2 / 3)
    assert play.asked == dict.fromkeys(MODES, CHOOSING + 2 * 400)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "chosen"),
    [({"low": 0.03}, "medium"), ({"low": 0.03, "medium": 0.03}, None)],
)
def test_a_mode_that_loses_more_is_not_promised(
    wrong: dict[str, float], chosen: str | None
) -> None:
    found = certified(Scripted(**wrong))
    assert (found.mode and found.mode.name) == chosen
    assert found.certificate.promises == (chosen is not None)


def test_a_single_mode_is_refused() -> None:
    with pytest.raises(InputError, match="brpo has one mode"):
        ModalThinker("brpo", ("high",), Scripted())


def test_a_networks_answer_and_price_are_those_of_its_thought() -> None:
    """One pass over prompt, thought and the opened answer; each token has its price."""
    net = network(Size(1, 16), 1).eval()
    price = TokenPrice((Rates(Decimal("0.3"), Decimal("1.2")),))
    some = QUESTIONS.sample("test", 5, 0)
    found = EmbeddedThinker(net, price, cap=12, seed=3)("low", some)
    prompts = [encode(f"low:{one.text}") for one in some]
    drawn = think(net, prompts, 12, np.random.default_rng(3))
    for prompt, thought, one in zip(prompts, drawn, found, strict=True):
        stop = length(thought, 12)
        tokens = torch.tensor([[*prompt, *thought.ids[:stop], NUMBERS["<answer>"]]])
        odds = net(tokens).logits[0, -1, [NUMBERS[digit] for digit in "0123456789"]]
        assert one.answer == str(int(odds.argmax()))
        assert one.tokens == stop + 4
        assert one.cost_nano == len(prompt) * 300 + (stop + 4) * 1200
