"""A long prompt may be dearer by the token: the largest cost allows for every tier it can reach."""

import asyncio
from decimal import Decimal
from itertools import accumulate

import pytest
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import BudgetError
from farthing.models.base import Message, Prompt, Usage
from farthing.models.openai_compatible import OpenAICompatibleModel, OpenAISettings
from farthing.models.prices import PriceTable, Rates, TokenPrice, largest_cost_nano
from farthing.models.scripted import ScriptedModel
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.meter import Meter, QuestionBudget
from farthing.runtime.protocol import CostBoundClient
from farthing.tasks.base import Question

RISING = TokenPrice(
    (Rates(Decimal(1), Decimal(2)), Rates(Decimal(3), Decimal(5), 200)), Decimal("0.000001")
)
SHORT = Prompt((Message("user", "x" * 100),), max_tokens=10)
LONG = Prompt((Message("user", "x" * 1_000),), max_tokens=10)
FIRST_TIER, SECOND_TIER = 1_072 * 1_000 + 20_000 + 1_000, 1_072 * 3_000 + 50_000 + 1_000
"""Nano-dollars of the long prompt: 1,000 bytes and 72 tokens of template in, 10 tokens out."""
usd = st.integers(0, 30).map(Decimal)


@st.composite
def tiered(draw: st.DrawFn) -> TokenPrice:
    """Draw one to four tiers, dearer or cheaper than the one before."""
    steps = draw(st.lists(st.integers(1, 20), max_size=3))
    starts = accumulate(steps, initial=0)
    return TokenPrice(tuple(Rates(draw(usd), draw(usd), start) for start in starts))


@given(tiered(), st.integers(0, 50), st.integers(0, 5))
@settings(deadline=None)
def test_no_shorter_call_costs_more(price: TokenPrice, n: int, m: int) -> None:
    """Counted over every number of tokens that is allowed."""
    costs = [price.cost_nano(Usage(i, j), 0.0) for i in range(n + 1) for j in range(m + 1)]
    assert price.largest_nano(Usage(n, m), 0.0) >= max(costs)


def test_a_tier_counts_once_it_can_be_reached() -> None:
    assert largest_cost_nano(RISING, "m", LONG, 1.0) == SECOND_TIER
    assert largest_cost_nano(RISING, "m", SHORT, 1.0) == 172 * 1_000 + 20_000 + 1_000
    assert RISING.largest_nano(Usage(200, 0), 0.0) == 201_000
    assert RISING.largest_nano(Usage(201, 0), 0.0) == 604_000


def test_where_a_later_tier_is_cheaper_the_first_one_counts() -> None:
    """A prompt that has few tokens for its bytes stays in it."""
    falling = TokenPrice((Rates(Decimal(3), Decimal(5)), Rates(Decimal(1), Decimal(2), 200)))
    assert falling.cost_nano(Usage(1_072, 10), 0.0) == 1_092_000
    assert largest_cost_nano(falling, "m", LONG, 1.0) == 1_072 * 3_000 + 50_000


@pytest.mark.parametrize("n", [150_000, 199_000, 201_000, 400_000])
def test_a_long_prompt_at_published_prices(n: int) -> None:
    """No token is shorter than a byte, so that a prompt of n bytes can have n of them."""
    prompt = Prompt((Message("user", "x" * n),), max_tokens=2_000)
    settings = OpenAISettings(
        model="gemini-2.5-pro", url="http://localhost/v1", price_provider="google"
    )
    price = PriceTable().find(settings.model, provider=settings.price_provider)
    model = OpenAICompatibleModel(settings, None, price)
    billed = calc_price(
        PricedUsage(input_tokens=n, output_tokens=2_000), settings.model, provider_id="google"
    )
    bill_nano = billed.total_price * 10**9
    assert bill_nano <= model.largest_cost_nano(prompt) <= bill_nano * Decimal("1.01")


def test_a_budget_that_the_first_tier_alone_would_fit_sends_nothing() -> None:
    model = ScriptedModel(lambda _: "yes", price=RISING)
    for budget_nano, sent in ((FIRST_TIER, 0), (SECOND_TIER - 1, 0), (SECOND_TIER, 1)):
        budget = QuestionBudget.of(budget_nano)
        client = Meter().client(Question("q", "?"), 1, BaseAgent(model), budget)
        asking = client.ask(model, LONG)
        if sent:
            asyncio.run(asking)
        else:
            with pytest.raises(BudgetError, match="can cost"):
                asyncio.run(asking)
        assert len(model.calls) == sent


def test_a_cost_bound_counts_the_dearer_tier() -> None:
    client = CostBoundClient()
    asyncio.run(client.ask(ScriptedModel(lambda _: "yes", price=RISING), LONG))
    assert client.largest_nano == SECOND_TIER
