"""Measuring a network: it is asked questions of its own part, and what it wrote is graded."""

from typing import Any

import pytest
import torch

from farthing_lab.lm import make as measuring
from farthing_lab.lm.make import LENGTHS, NETWORKS, Size, alone, answered, measure, network
from farthing_lab.lm.symbols import MODES, NUMBERS, SYMBOLS
from farthing_lab.models.generation import Context
from farthing_lab.tasks.arithmetic import part_of, solve


@pytest.mark.parametrize("controls", [False, True])
def test_who_is_right_on_half_of_it_is_measured_so(
    controls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def half(_: Any, texts: list[str], hooks: list[Any]) -> list[str]:
        assert hooks == ([alone] if controls else [])
        questions = [text.removeprefix(MODES[-1]) if controls else text for text in texts]
        asked.extend(questions)
        digits = [int(solve(text)) for text in questions]
        return [f"<answer>{(d + at % 2) % 10}</answer>" for at, d in enumerate(digits)]

    monkeypatch.setattr(measuring, "answered", half)
    found = list(measure(None, 6, seed=1, controls=controls))
    assert [(one.kind, one.hops) for one in found] == [
        (k, h) for k, hs in LENGTHS.items() for h in hs
    ]
    assert {(one.right, one.asked, one.symbols) for one in found} == {(3, 6, 18)}
    assert {part_of(text) for text in asked} == {"test"}
    assert len(set(asked)) > 0.9 * len(asked)


def test_a_controller_that_answers_alone_cannot_call() -> None:
    call = NUMBERS["<call>"]
    logits = torch.zeros(2, len(SYMBOLS))
    left = alone(logits, [Context([1], 1), Context([2], 1)])
    assert (left[:, call] == -torch.inf).all()
    assert left.isfinite().sum() == 2 * (len(SYMBOLS) - 1)
    assert logits.isfinite().all(), "what it is given stays"


@pytest.mark.slow
def test_answers_come_in_order_whatever_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network(Size(1, 16), 1)
    texts = ["a=4;a?", "b=1;c=b+3;c?", "d=0;d?"]
    monkeypatch.setattr(measuring, "CONTEXT", 24)
    together = answered(net, texts)
    monkeypatch.setattr(measuring, "TOGETHER", 2)
    assert answered(net, texts) == together
    assert [answered(net, [text])[0] for text in texts] == together
    assert all("<end>" not in text for text in together)


def test_every_network_is_measured_on_all_that_it_learns() -> None:
    for one in NETWORKS:
        assert all(recipe.hops in LENGTHS[recipe.kind] for recipe in one.recipes)
