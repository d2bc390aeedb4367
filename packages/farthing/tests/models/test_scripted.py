"""The model that everybody's tests rely on."""

import asyncio
from decimal import Decimal

import pytest

from farthing.errors import BadRequestError, ModelTimeoutError, UnpricedModelError
from farthing.models.base import Completion, Message, Prompt, Usage
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import ScriptedModel


def ask(text: str) -> Prompt:
    return Prompt((Message("system", "be brief"), Message("user", text)), max_tokens=10)


def test_it_replies_counts_and_remembers() -> None:
    price = TokenPrice((Rates(Decimal(1), Decimal(2)),))
    model = ScriptedModel({"one two": "three four five"}, name="m", price=price)
    done = asyncio.run(model.complete(ask("one two")))
    assert (done.text, done.model, done.finish) == ("three four five", "m", "stop")
    assert done.usage == Usage(4, 3)
    assert done.cost_nano == 4 * 1_000 + 3 * 2_000
    assert done.cost_nano <= model.largest_cost_nano(ask("one two"))
    assert model.calls == [ask("one two")]


def test_failures_are_raised_afresh_and_unknown_prompts_refused() -> None:
    failure = ModelTimeoutError("late", cost_nano=3)
    model = ScriptedModel({"x": failure})
    for _ in range(2):
        with pytest.raises(ModelTimeoutError) as caught:
            asyncio.run(model.complete(ask("x")))
        assert caught.value.cost_nano == 3
        caught.value.cost_nano = 99  # as a retry does
    with pytest.raises(BadRequestError, match="nothing is written down as a reply to 'y'"):
        asyncio.run(model.complete(ask("y")))


def test_a_function_replies_with_whatever_it_likes() -> None:
    whole = Completion("x", "other", "length", Usage(1, 2), None, 0.5)
    model = ScriptedModel(lambda prompt: whole if prompt.max_tokens > 9 else "short")
    assert asyncio.run(model.complete(ask("x"))) is whole


def test_calls_wait_side_by_side() -> None:
    model = ScriptedModel(lambda _: "x", latency_s=0.1)

    async def hundred() -> float:
        clock = asyncio.get_running_loop().time
        started = clock()
        await asyncio.gather(*(model.complete(ask("x")) for _ in range(100)))
        return clock() - started

    assert 0.1 <= asyncio.run(hundred()) < 2


def test_without_a_price_there_is_no_cost() -> None:
    model = ScriptedModel(lambda _: "x", price=None)
    assert asyncio.run(model.complete(ask("x"))).cost_nano is None
    with pytest.raises(UnpricedModelError):
        model.largest_cost_nano(ask("x"))
