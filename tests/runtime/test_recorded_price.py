"""A promise from a log ends where a model's price is far from what the log paid."""

import asyncio
import json
from decimal import Decimal
from pathlib import Path

import pytest

import farthing as ft
from farthing.models.prices import Rates, SecondPrice, TokenPrice
from farthing.models.scripted import ScriptedModel

pytestmark = pytest.mark.filterwarnings("ignore")


def priced(times: str, cached: str | None = None) -> TokenPrice:
    rate = Decimal(times)
    part = None if cached is None else Decimal(cached)
    return TokenPrice((Rates(rate, 4 * rate, cached_input=part),))


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
        (priced("8", "0.8"), None),  # all of it may have been in the cache
        (SecondPrice(Decimal(1)), None),
        (priced("100"), "cost $0.0014 in the bundle's traces"),
        (priced("0.01"), "cost $0.0014 in the bundle's traces"),
    ],
)
def test_a_price_far_from_the_recorded_one_ends_the_promise(
    policy: ft.Policy, price: TokenPrice | SecondPrice, says: str | None
) -> None:
    models = {
        name: ScriptedModel(lambda _: "a", name=name, price=priced("10"))
        for name in ("small", "large")
    }
    models["small"] = ScriptedModel(lambda _: "a", name="small", price=price)
    answer = asyncio.run(policy.answer("Where?", models))
    assert (answer.provenance == "changed") == (says is not None)
    if says is not None:
        assert says in str(answer)
