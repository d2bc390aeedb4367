"""A policy that decides by confidences promises nothing of replies that come without them."""

import asyncio
from decimal import Decimal

import numpy as np
import pytest

import farthing as ft
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import ScriptedModel

PRICES = {"small": "0.0001", "medium": "0.0002", "large": "0.002"}


@pytest.fixture(scope="module")
def questions() -> ft.Traces:
    rng = np.random.default_rng(0)
    rows = []
    for i in range(400):
        hard = i % 4 == 0
        for model, price in PRICES.items():
            right = model == "large" or rng.random() > 0.5 * hard
            rows.append(
                {
                    "id": f"q{i}",
                    "gold": ["1"],
                    "independent": True,
                    "model": model,
                    "answer": "1" if right else str(rng.integers(2, 5)),
                    "confidence": float(np.clip(rng.normal(0.9 - 0.4 * hard, 0.1), 0, 1)),
                    "cost_usd": float(price),
                }
            )
    return ft.from_records(rows)


def models() -> dict[str, ScriptedModel]:
    free = Rates(Decimal(0), Decimal(0))
    return {
        name: ScriptedModel(
            lambda prompt: "Answer: 1", name=name, price=TokenPrice((free,), request=Decimal(price))
        )
        for name, price in PRICES.items()
    }


@pytest.mark.parametrize(
    ("method", "holds"), [("conformal-arbitrage", False), ("agreement-cascade", True)]
)
def test_it_says_so_and_ends_the_promise(questions: ft.Traces, method: str, holds: bool) -> None:
    train, held_out = questions.split(0.5, 0.5)
    policy = ft.fit(method, train).calibrate(held_out, ft.Parity("large", 0.2))
    answer = asyncio.run(policy.answer("a question", models()))
    assert answer.guaranteed == holds
    said = "decides by the confidence of answers" in answer.promise
    assert said != holds
