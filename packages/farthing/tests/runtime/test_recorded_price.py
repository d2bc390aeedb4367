"""A promise from a log ends where a model's price is far from what the log paid."""

import asyncio
import json
from decimal import Decimal

import pytest

import farthing as ft
from farthing.models.adaptive import Gate, Noticed
from farthing.models.prices import Rates, SecondPrice, TokenPrice
from farthing.models.rate_limit import Limited, RateLimiter, RateLimits
from farthing.models.retry import Retrying
from farthing.models.scripted import ScriptedModel

pytestmark = pytest.mark.filterwarnings("ignore")


class Sold(ScriptedModel):
    """A model that says what it costs, as those do that are asked over a network."""

    def __init__(self, name: str, price: TokenPrice | SecondPrice) -> None:
        super().__init__(lambda _: "a", name=name, price=price)
        self.price = price


def priced(times: str) -> TokenPrice:
    return TokenPrice((Rates(Decimal(times), 4 * Decimal(times)),))


def _opened(model: Sold) -> Retrying:
    """Return a model as a configuration opens it: what limits and repeats its calls is around."""
    return Retrying(Noticed(Limited(model, RateLimiter(RateLimits(concurrent=1))), Gate(1)))


CACHED = TokenPrice((Rates(Decimal(8), Decimal(4), cached_input=Decimal("0.8")),))


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> ft.Policy:
    """Return a policy of a log whose calls cost $1 and $4 a million tokens."""
    rows = [
        {"question": f"q{i}", "model": model, "answer": "a", "cost": cost, "prompt_tokens": 1000}
        | {"completion_tokens": 100, "system_prompt": "", "temperature": 0, "max_tokens": 16}
        for i in range(60)
        for model, cost in (("small", 0.0014), ("large", 0.014))
    ]
    log = tmp_path_factory.mktemp("log") / "calls.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ft.fit("always-small", ft.read_traces(log), grade="same as large")


@pytest.mark.parametrize(
    ("price", "says"),
    [
        (priced("1"), None),
        (priced("1.9"), None),
        (CACHED, None),  # all of it may have been in the cache
        (SecondPrice(Decimal(1)), None),
        (priced("100"), "cost $0.0014 in the bundle's traces"),
        (priced("0.01"), "cost $0.0014 in the bundle's traces"),
    ],
)
def test_a_price_far_from_the_recorded_one_ends_the_promise(
    policy: ft.Policy, price: TokenPrice | SecondPrice, says: str | None
) -> None:
    sold = {"small": Sold("small", price), "large": Sold("large", priced("10"))}
    models = {name: _opened(one) for name, one in sold.items()}
    answer = asyncio.run(policy.answer("Where?", models))
    assert ("in the bundle's traces, and at the price" in str(answer)) == (says is not None)
    if says is not None:
        assert says in str(answer)
        assert answer.provenance == "changed"
