"""Held against `genai-prices` itself, and against fractions."""

import math
import sys
import tomllib
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price, data_snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import UnpricedModelError
from farthing.models.base import Message, Prompt, Usage
from farthing.models.config import models_from
from farthing.models.price_list import ListPrice
from farthing.models.prices import (
    FREE,
    PriceTable,
    Rates,
    SecondPrice,
    TokenPrice,
    largest_cost_nano,
    largest_usage,
)

PUBLISHED = [
    ("openai", "gpt-4o-mini"),
    ("google", "gemini-2.5-pro"),
    ("anthropic", "claude-opus-4-1"),
]
tokens = st.integers(1, 1_000_000)


@pytest.mark.parametrize(("provider", "model"), PUBLISHED)
@given(st.integers(1, 400_000), st.integers(0, 10_000), st.floats(0, 1))
@settings(deadline=None, max_examples=25)
def test_a_published_price_is_what_genai_prices_computes(
    provider: str, model: str, n_in: int, n_out: int, cached_share: float
) -> None:
    cached = int(cached_share * n_in)
    price = PriceTable().find(model, provider=provider)
    assert price is not None
    usage = PricedUsage(input_tokens=n_in, output_tokens=n_out, cache_read_tokens=cached)
    exact = calc_price(usage, model, provider_id=provider).total_price
    used = Usage(n_in, n_out, cached_tokens=cached)
    assert price.cost_nano(used, 1.0) == math.ceil(exact * 10**9)
    assert price.cost_nano(used, 1.0) <= price.largest_nano(used, 1.0)


def test_cached_input_has_its_own_price_counted_by_hand() -> None:
    line = {"input_per_million": 2, "output_per_million": 8, "cached_input_per_million": 0.5}
    price = models_from({"prices": {"m": line}}, "f.toml").prices.find("m")
    assert price is not None
    # 300 fresh at 2,000 nano-dollars, 700 cached at 500, 10 out at 8,000
    assert price.cost_nano(Usage(1_000, 10, cached_tokens=700), 0.0) == 600_000 + 350_000 + 80_000
    assert price.cost_nano(Usage(1_000, 10), 0.0) == 2_000_000 + 80_000
    assert price.largest_nano(Usage(1_000, 10, cached_tokens=700), 0.0) == 2_080_000
    assert str(price) == "$2 in, $0.5 cached and $8 out per million tokens"


def test_the_largest_cost_holds_where_cached_input_is_dearer() -> None:
    price = TokenPrice((Rates(Decimal(2), Decimal(8), cached_input=Decimal(3)),))
    assert price.largest_nano(Usage(1_000, 10), 0.0) == 3_000_000 + 80_000


def test_a_price_without_cached_input_reads_as_it_did() -> None:
    rates = (Rates(Decimal(2), Decimal(8)), Rates(Decimal(4), Decimal(9), above=200))
    said = "$2 in and $8 out; above 200 input tokens $4 in and $9 out per million tokens"
    assert str(TokenPrice(rates)) == said


def test_a_tier_starts_above_its_number_of_tokens() -> None:
    price = PriceTable().find("gemini-2.5-pro", provider="google")
    assert isinstance(price, ListPrice)
    now = price.at()
    assert now is not None
    assert [rates.above for rates in now.rates] == [0, 200_000]
    below, above = (price.cost_nano(Usage(n, 0), 0) for n in (200_000, 200_001))
    assert below == 250_000_000
    assert above == 500_002_500


def test_a_model_without_a_published_price_is_not_free() -> None:
    snapshot = data_snapshot.get_snapshot()
    bare = [
        (provider.id, model.id)
        for provider in snapshot.providers
        for model in provider.models
        if model.get_prices(datetime.now(UTC)).output_mtok is None
    ]
    assert bare
    assert all(PriceTable().find(model, provider=provider) is None for provider, model in bare)


@given(tokens, tokens, st.decimals(0, 100, places=4), st.decimals(0, 100, places=4))
@settings(deadline=None)
def test_a_cost_is_exact_and_rounded_up(n: int, m: int, a: Decimal, b: Decimal) -> None:
    exact = (n * Fraction(a) + m * Fraction(b)) * 1_000
    assert TokenPrice((Rates(a, b),)).cost_nano(Usage(n, m), 0.0) == math.ceil(exact)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=4), st.integers(1, 500), st.data())
@settings(deadline=None)
def test_no_call_costs_more_than_the_largest(
    texts: list[str], max_tokens: int, data: st.DataObject
) -> None:
    """A tier that is cheaper by the token does not fool the bound."""
    prompt = Prompt(tuple(Message("user", text) for text in texts), max_tokens)
    price = TokenPrice(
        (Rates(Decimal(3), Decimal(9)), Rates(Decimal(1), Decimal(2), 80)), Decimal("0.001")
    )
    most = sum(len(text.encode()) for text in texts) + 8 * len(texts) + 64
    assert largest_usage(prompt).input_tokens == most
    used = Usage(data.draw(st.integers(0, most)), data.draw(st.integers(0, max_tokens)))
    largest = largest_cost_nano(price, "m", prompt, 10.0)
    assert price.cost_nano(used, 1.0) <= largest
    seconds = SecondPrice(Decimal("0.01"))
    assert seconds.cost_nano(used, data.draw(st.floats(0, 10))) <= largest_cost_nano(
        seconds, "m", prompt, 10.0
    )


def test_the_users_price_comes_first() -> None:
    table = PriceTable({"gpt-4o-mini": FREE})
    assert table.find("gpt-4o-mini", provider="openai") is FREE


def test_an_address_tells_the_provider_and_a_name_alone_is_no_price() -> None:
    table = PriceTable()
    assert table.find("gpt-4o-mini", url="https://api.openai.com/v1") is not None
    assert table.find("gpt-4o-mini", url="http://localhost:8000/v1") is None
    assert table.find("gpt-4o-mini") is None
    assert table.find("no-such-model", provider="openai") is None
    assert table.find("gpt-4o-mini", provider="no-such-provider") is None


def test_the_line_that_an_unpriced_model_asks_for_works() -> None:
    with pytest.raises(UnpricedModelError) as caught:
        largest_cost_nano(None, "llama-3", Prompt(()), 1.0)
    lines = [part for part in str(caught.value).splitlines() if "{" in part]
    token_line, second_line = (line[line.index('"llama-3"') :] for line in lines)
    for line, kind in ((token_line, TokenPrice), (second_line, SecondPrice)):
        config = models_from(tomllib.loads("[prices]\n" + line), "job.toml")
        assert isinstance(config.prices.find("llama-3"), kind)


def test_ones_own_price_needs_no_published_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert PriceTable({"m": FREE}).find("m", provider="openai") is FREE


@pytest.mark.parametrize("cached", [None, Decimal("0.3"), Decimal(5)])
@pytest.mark.parametrize("written", [None, Decimal(1), Decimal("3.75")])
def test_what_went_into_a_cache_has_its_own_price(
    cached: Decimal | None, written: Decimal | None
) -> None:
    rates = Rates(Decimal(3), Decimal(15), cached_input=cached, cache_write=written)
    price = TokenPrice((rates,))
    per_write = Decimal("3.75") if written is None else written
    by_hand = 50 * 3 + 20 * (3 if cached is None else cached) + 30 * per_write + 7 * 15
    usage = Usage(100, 7, cached_tokens=20, cache_writes=30)
    assert price.cost_nano(usage, 0.0) == by_hand * 1_000
    # Whatever share of the input is read from the cache or written, the bound holds.
    most = price.largest_nano(Usage(100, 7, cache_writes=100), 0.0)
    splits = [(read, kept) for read in range(0, 101, 10) for kept in range(0, 101 - read, 10)]
    costs = [
        price.cost_nano(Usage(100, 7, cached_tokens=read, cache_writes=kept), 0.0)
        for read, kept in splits
    ]
    assert max(costs) == most


def test_published_prices_of_what_goes_into_a_cache() -> None:
    price = PriceTable().find("claude-sonnet-4-5", provider="anthropic")
    assert price is not None
    extra = price.cost_nano(Usage(1_000, 0, cache_writes=1_000), 0.0)
    assert extra == 1_000 * 3_750
