"""What calls cost: the user's own prices first, then the published ones of `genai-prices`.

Prices are decimals in USD, costs are integer nano-dollars, rounded up (see `money.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from farthing.errors import UnpricedModelError
from farthing.models.base import Prompt, Usage, characters
from farthing.money import nano_from_usd

TOKENS_PER_MESSAGE = 8
"""Most tokens that a chat template puts around a message."""
TOKENS_PER_PROMPT = 64
"""Most tokens that a chat template adds by itself, such as a default system message."""
_MILLION = 1_000_000


class Price(Protocol):
    """What calls to one model cost."""

    def cost_nano(self, usage: Usage, seconds: float) -> int:
        """Return the price of a call in nano-dollars, from its tokens and its duration."""
        ...

    def largest_nano(self, usage: Usage, seconds: float) -> int:
        """Return the most that a call can cost that takes no more than this of either."""
        ...


@dataclass(frozen=True)
class Rates:
    """Prices of tokens in USD per million, from some number of input tokens on."""

    input: Decimal
    output: Decimal
    above: int = 0
    """They apply to the whole call once it has more input tokens than this."""
    cached_input: Decimal | None = None
    """Of input tokens that the provider read from its cache; None: they cost what others do."""
    cache_write: Decimal | None = None
    """Of input tokens that went into its cache; None: a quarter more than others."""

    def __str__(self) -> str:
        cached = "" if self.cached_input is None else f", {_usd(self.cached_input)} cached"
        tier = f"above {self.above} input tokens " if self.above else ""
        return f"{tier}{_usd(self.input)} in{cached} and {_usd(self.output)} out"

    def per_million(self, usage: Usage) -> Decimal:
        """Return a million times the price of these tokens, in USD."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = usage.input_tokens - usage.cached_tokens - usage.cache_writes
        read = fresh * self.input + usage.cached_tokens * cached
        return read + usage.cache_writes * self._writes + usage.output_tokens * self.output

    def largest_per_million(self, usage: Usage) -> Decimal:
        """Return the same, however many of the input tokens are from the cache.

        As many may go into it as `cache_writes` says.
        """
        dearest = max(self.input, self.cached_input or self.input)
        more = usage.cache_writes * max(Decimal(0), self._writes - dearest)
        return usage.input_tokens * dearest + more + usage.output_tokens * self.output

    @property
    def _writes(self) -> Decimal:
        return self.input * 5 / 4 if self.cache_write is None else self.cache_write


@dataclass(frozen=True)
class TokenPrice:
    """So much per million tokens; a long prompt may be dearer by the token.

    >>> TokenPrice((Rates(Decimal("0.15"), Decimal("0.60")),)).cost_nano(Usage(1_000, 100), 2.5)
    210000
    """

    rates: tuple[Rates, ...]
    """The first applies from 0 tokens on, the others above ever more."""
    request: Decimal = Decimal(0)
    """USD for each call, whatever its length."""

    def __str__(self) -> str:
        """Say every figure; equal prices read alike."""
        extra = f", and {_usd(self.request)} a call" if self.request else ""
        return f"{'; '.join(map(str, self.rates))} per million tokens{extra}"

    def cost_nano(self, usage: Usage, seconds: float) -> int:  # noqa: ARG002 - the protocol's
        """Return the price of a call in nano-dollars, from its tokens."""
        reached = [rates for rates in self.rates if usage.input_tokens > rates.above]
        rates = reached[-1] if reached else self.rates[0]
        return self._nano(rates.per_million(usage))

    def largest_nano(self, usage: Usage, seconds: float) -> int:  # noqa: ARG002 - the protocol's
        """Return the most that a call can cost that has no more tokens than these."""
        reached = [rates for rates in self.rates[1:] if usage.input_tokens > rates.above]
        tiers = (self.rates[0], *reached)
        return self._nano(max(rates.largest_per_million(usage) for rates in tiers))

    def _nano(self, per_million: Decimal) -> int:
        return nano_from_usd(per_million / _MILLION + self.request)


@dataclass(frozen=True)
class SecondPrice:
    """So much per second, as one pays for the machine that a model runs on.

    >>> SecondPrice(Decimal("0.0005")).cost_nano(Usage(1_000, 100), 2.5)
    1250000
    """

    second: Decimal
    """USD per second."""

    def __str__(self) -> str:
        """Say the figure; equal prices read alike."""
        return f"{_usd(self.second)} a second"

    def cost_nano(self, usage: Usage, seconds: float) -> int:  # noqa: ARG002 - the protocol's
        """Return the price of a call in nano-dollars, from its duration."""
        return nano_from_usd(self.second * Decimal(repr(float(seconds))))

    def largest_nano(self, usage: Usage, seconds: float) -> int:
        """Return the most that a call can cost that takes no longer than this."""
        return self.cost_nano(usage, seconds)


FREE = TokenPrice((Rates(Decimal(0), Decimal(0)),))
"""Costs nothing, and is known to."""


@dataclass(frozen=True)
class PriceTable:
    """The user's own prices by model name, on top of the published ones."""

    own: Mapping[str, Price] = field(default_factory=dict)

    def find(
        self, model: str, *, provider: str | None = None, url: str | None = None
    ) -> Price | None:
        """Return what a model costs; None where neither the user nor `genai-prices` says.

        A name alone does not make a price: a model at an unknown address may cost anything. The URL
        tells who sells it where no provider is named, in the words of `genai-prices`.
        """
        if model in self.own:
            return self.own[model]
        if provider is None and url is None:
            return None
        return _published(model, provider, url)


def list_price(model: str, provider: str | None = None) -> TokenPrice | None:
    """Return the published price of a model by its name; None where none is known.

    Of calls that others recorded the address is not known. A name alone may be sold by several, or
    run on a machine of one's own: whoever uses this price says so.

    Args:
        model: its name; `SELLER/NAME` names the seller as well.
        provider: the name that `genai-prices` gives to who sells it, where that is known.

    >>> print(list_price("gpt-4o-mini-2024-07-18"))
    $0.15 in, $0.075 cached and $0.6 out per million tokens
    >>> list_price("ollama/gemma3"), list_price("gpt-4o", "ollama")
    (None, None)
    """
    seller, _, name = model.partition("/")
    if provider is None and name:
        return _published(name, seller, None)
    return _published(model, provider, None)


def unpriced(model: str) -> UnpricedModelError:
    """Say which line to add to the configuration.

    >>> print(unpriced("llama-3-8b"))  # doctest: +ELLIPSIS
    nothing says what the model 'llama-3-8b' costs; under [prices], in USD, add for instance:
    "llama-3-8b" = { input_per_million = 0.15, output_per_million = 0.60 }
    or, for a machine that is paid by time: "llama-3-8b" = { per_second = 0.0008 }
    """
    return UnpricedModelError(
        f"nothing says what the model '{model}' costs; under [prices], in USD, add for instance:\n"
        f'"{model}" = {{ input_per_million = 0.15, output_per_million = 0.60 }}\n'
        f'or, for a machine that is paid by time: "{model}" = {{ per_second = 0.0008 }}'
    )


def largest_usage(prompt: Prompt) -> Usage:
    """Return more tokens than a call can have: no tokeniser makes more of a text than its bytes.

    >>> from farthing.models.base import Message
    >>> largest_usage(Prompt((Message("user", "2 + 2?"),), max_tokens=10))
    Usage(input_tokens=78, output_tokens=10, estimated=True, cached_tokens=0)
    """
    template = TOKENS_PER_PROMPT + TOKENS_PER_MESSAGE * len(prompt.messages)
    return Usage(characters(prompt.messages) + template, prompt.max_tokens, estimated=True)


def largest_cost_nano(price: Price | None, model: str, prompt: Prompt, seconds: float) -> int:
    """Return the most that one call can cost, in nano-dollars."""
    if price is None:
        raise unpriced(model)
    return price.largest_nano(largest_usage(prompt), seconds)


def published_window(model: str, *, provider: str | None, url: str | None) -> int | None:
    """Return how many tokens a model takes in, as published with its price; None: nobody says.

    >>> published_window("gpt-4o", provider="openai", url=None)
    128000
    >>> published_window("my-own-8b", provider=None, url="http://127.0.0.1:8000/v1")
    """
    found = _calculated(model, provider, url)
    return None if found is None else found.model.context_window


def _published(model: str, provider: str | None, url: str | None) -> TokenPrice | None:
    found = _calculated(model, provider, url)
    if found is None:
        return None
    prices = found.model_price
    if prices.input_mtok is None or prices.output_mtok is None:
        return None
    requests = max(_tiers(prices.requests_kcount or Decimal(0)).values()) / 1_000
    cached = {} if prices.cache_read_mtok is None else _tiers(prices.cache_read_mtok)
    written = {} if prices.cache_write_mtok is None else _tiers(prices.cache_write_mtok)
    rates = _rates(_tiers(prices.input_mtok), _tiers(prices.output_mtok), cached, written)
    return TokenPrice(rates, requests)


def _calculated(model: str, provider: str | None, url: str | None) -> Any:
    """Return what `genai-prices` knows of a model; None where that is nothing."""
    # Its table takes half a second to load: who has a table of their own need not wait.
    from genai_prices import Usage as PricedUsage  # noqa: PLC0415
    from genai_prices import calc_price  # noqa: PLC0415

    one = PricedUsage(input_tokens=1, output_tokens=1)
    try:
        if provider is not None:
            return calc_price(one, model, provider_id=provider)
        return calc_price(one, model, provider_api_url=url)
    except LookupError:
        return None


def _usd(amount: Decimal) -> str:
    return f"${amount.normalize():f}"


def _rates(
    inputs: dict[int, Decimal],
    outputs: dict[int, Decimal],
    cached: dict[int, Decimal],
    written: dict[int, Decimal],
) -> tuple[Rates, ...]:
    return tuple(
        Rates(
            input=_at(inputs, start),
            output=_at(outputs, start),
            above=start,
            cached_input=_at(cached, start) if cached else None,
            cache_write=_at(written, start) if written else None,
        )
        for start in sorted(inputs | outputs | cached | written)
    )


def _at(tiers: dict[int, Decimal], start: int) -> Decimal:
    return tiers[max(s for s in tiers if s <= start)]


def _tiers(price: Any) -> dict[int, Decimal]:
    """Return a price of `genai-prices`, flat or tiered, by the input tokens that it starts at."""
    if isinstance(price, Decimal):
        return {0: price}
    return {0: price.base} | {tier.start: tier.price for tier in price.tiers}
