"""What calls cost: the user's own prices first, then the published ones of `genai-prices`.

Prices are decimals in USD, costs are integer nano-dollars, rounded up (see `money.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from farthing.errors import UnpricedModelError
from farthing.models.base import Prompt, Usage, characters
from farthing.money import nano_from_usd

TOKENS_PER_MESSAGE = 8
"""Most tokens that a chat template puts around a message."""
TOKENS_PER_PROMPT = 64
"""Most tokens that a chat template adds by itself, such as a default system message."""
_MILLION = 1_000_000
_LEAST = Decimal("0.001")
"""USD for a million tokens that no list is below, and which at none is the price of one."""


CHEAPER_TIERS = frozenset({"flex", "batch"})
"""At these a call costs no more than at the standard one."""
SURCHARGES = {"us": Decimal("1.1")}
"""Anthropic's inference in the US alone costs so often what tokens do elsewhere."""


class Price(Protocol):
    """What calls to one model cost."""

    def cost_nano(self, usage: Usage, seconds: float, at: datetime | None = None) -> int:
        """Return the price of a call in nano-dollars, from its tokens and its duration.

        Args:
            usage: what it took; counts that `unpriced` names are left out.
            seconds: how long.
            at: when it was made; None: now.
        """
        ...

    def largest_nano(self, usage: Usage, seconds: float, at: datetime | None = None) -> int:
        """Return the most that a call can cost that takes no more than this of either.

        Its tier and its kinds of tokens are what it may be served at and made of.

        Raises:
            UnpricedModelError: it costs by what nobody can bound; the message names that.
        """
        ...

    def unpriced(self, usage: Usage, at: datetime | None = None) -> tuple[str, ...]:
        """Return the names of what such a call took that nobody knows the price of."""
        ...


def charge_nano(
    price: Price | None, usage: Usage, seconds: float, at: datetime | None = None
) -> int | None:
    """Return what a call cost, in nano-dollars: as billed where its reply says so, else as listed.

    None where nobody knows: the model has no price, or a count of the call has none.

    >>> price, sound = TokenPrice((Rates(Decimal(1), Decimal(2)),)), Usage(9, 0, audio_input=9)
    >>> charge_nano(price, Usage(1_000, 0), 0.0), charge_nano(price, sound, 0.0)
    (1000000, None)
    """
    if usage.billed_nano is not None:
        return usage.billed_nano
    if price is None or usage.unknown or price.unpriced(usage, at):
        return None
    return price.cost_nano(usage, seconds, at)


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
    cache_write_hour: Decimal | None = None
    """Of those that went into it for an hour; None: twice what others cost."""
    more: tuple[tuple[str, Decimal], ...] = ()
    """Of tokens of other kinds, by the names of their counts: `audio_input`, `reasoning_tokens`."""

    def __str__(self) -> str:
        cached = "" if self.cached_input is None else f", {_usd(self.cached_input)} cached"
        tier = f"above {self.above} input tokens " if self.above else ""
        return f"{tier}{_usd(self.input)} in{cached} and {_usd(self.output)} out"

    def per_million(self, usage: Usage) -> Decimal:
        """Return a million times the price of these tokens, in USD."""
        kept = usage.cache_writes + usage.cache_writes_hour
        fresh = usage.input_tokens - usage.cached_tokens - kept
        read = fresh * self.input + usage.cached_tokens * self._cached
        written = usage.cache_writes * self._writes + usage.cache_writes_hour * self._hour
        return read + written + usage.output_tokens * self.output + sum(self._beyond(usage))

    def largest_per_million(self, usage: Usage) -> Decimal:
        """Return the same, however many of the input tokens are from the cache.

        As many may go into it as `cache_writes` and `cache_writes_hour` say; any may be of any kind
        that has a price, where of sound some may be.
        """
        kinds = [
            (name, rate)
            for name, rate in self.more
            if not name.startswith("audio") or getattr(usage, name)
        ]
        dearest = max(self.input, self._cached, *(rate for name, rate in kinds if not _out(name)))
        more = usage.cache_writes * max(Decimal(0), self._writes - dearest)
        more += usage.cache_writes_hour * max(Decimal(0), self._hour - dearest)
        output = max(self.output, *(rate for name, rate in kinds if _out(name)), Decimal(0))
        return usage.input_tokens * dearest + more + usage.output_tokens * output

    def _beyond(self, usage: Usage) -> Iterator[Decimal]:
        """Yield what tokens of each kind cost beyond what they are counted as, a million times."""
        rates, units = dict(self.more), dict(usage.units)
        sound = rates.get("audio_input")
        if sound is not None:
            again = rates.get("audio_cached", max(sound, self._cached))
            yield (usage.audio_input - usage.audio_cached) * (sound - self.input)
            yield usage.audio_cached * (again - self._cached)
        for name, rate in rates.items():
            if not name.startswith("audio_") or name == "audio_output":
                some = units.get(name) or vars(usage).get(name) or 0
                yield some * (rate - (self.output if _out(name) else self.input))

    @property
    def _cached(self) -> Decimal:
        return self.input if self.cached_input is None else self.cached_input

    @property
    def _writes(self) -> Decimal:
        return self.input * 5 / 4 if self.cache_write is None else self.cache_write

    @property
    def _hour(self) -> Decimal:
        return self.input * 2 if self.cache_write_hour is None else self.cache_write_hour


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
    units: tuple[tuple[str, Decimal], ...] = ()
    """USD for one of what is no token, by name: `web_searches`."""
    needs: tuple[str, ...] = ()
    """Of these names those that any call takes some of, and nobody bounds how many."""
    writes_unasked: bool = False
    """Whether input may go into the provider's cache, at its price, though nobody asks for it."""
    use: Decimal | None = None
    """USD for one use of any other tool that the provider runs; None: nobody says."""

    def __str__(self) -> str:
        """Say every figure; equal prices read alike."""
        extra = f", and {_usd(self.request)} a call" if self.request else ""
        return f"{'; '.join(map(str, self.rates))} per million tokens{extra}"

    def cost_nano(self, usage: Usage, seconds: float, at: datetime | None = None) -> int:  # noqa: ARG002 - the protocol's
        """Return the price of a call in nano-dollars, from its tokens."""
        reached = [rates for rates in self.rates if usage.input_tokens > rates.above]
        rates = reached[-1] if reached else self.rates[0]
        return self._nano(rates.per_million(usage), usage)

    def largest_nano(self, usage: Usage, seconds: float, at: datetime | None = None) -> int:  # noqa: ARG002 - the protocol's
        """Return the most that a call can cost that has no more tokens than these."""
        if self.needs:
            raise UnpricedModelError(
                f"the model is paid by {', '.join(self.needs)} as well, and nothing bounds how "
                "many a request takes; give it a price of your own under [prices]"
            )
        if self.writes_unasked:
            rest = usage.input_tokens - usage.cache_writes_hour
            usage = replace(usage, cache_writes=max(usage.cache_writes, rest))
        reached = [rates for rates in self.rates[1:] if usage.input_tokens > rates.above]
        tiers = (self.rates[0], *reached)
        return self._nano(max(rates.largest_per_million(usage) for rates in tiers), usage)

    def unpriced(self, usage: Usage, at: datetime | None = None) -> tuple[str, ...]:  # noqa: ARG002 - the protocol's
        """Return the names of what such a call took that nobody knows the price of.

        >>> TokenPrice((Rates(Decimal(1), Decimal(2)),)).unpriced(Usage(9, 0, tier="priority"))
        ('service_tier priority',)
        """
        known = {name for name, _ in (*self.rates[0].more, *self.units)}
        taken = {name for name, some in usage.units if some and not name.endswith("_tokens")}
        taken -= set() if self.use is None else dict(usage.uses).keys()
        taken |= {name for name in ("audio_input", "audio_output") if getattr(usage, name)}
        taken |= {"output_citation_tokens"} & dict(usage.units).keys()
        missing = set(self.needs) - dict(usage.units).keys()
        tier = usage.tier is not None and usage.tier not in CHEAPER_TIERS | SURCHARGES.keys()
        own = (f"service_tier {usage.tier}",) if tier else ()
        return (*own, *sorted(taken - known | missing))

    def _nano(self, per_million: Decimal, usage: Usage) -> int:
        usd, other = dict(self.units), self.use or Decimal(0)
        beside = self.request + sum(some * usd.get(name, other) for name, some in usage.uses)
        times = SURCHARGES.get(usage.tier or "", Decimal(1))
        return nano_from_usd(per_million * times / _MILLION + beside)


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

    def cost_nano(self, usage: Usage, seconds: float, at: datetime | None = None) -> int:  # noqa: ARG002 - the protocol's
        """Return the price of a call in nano-dollars, from its duration."""
        return nano_from_usd(self.second * Decimal(repr(float(seconds))))

    def largest_nano(self, usage: Usage, seconds: float, at: datetime | None = None) -> int:
        """Return the most that a call can cost that takes no longer than this."""
        return self.cost_nano(usage, seconds, at)

    def unpriced(self, usage: Usage, at: datetime | None = None) -> tuple[str, ...]:  # noqa: ARG002 - the protocol's
        """Return nothing: time is all that it costs."""
        return ()


def token_price(usd: Sequence[Decimal]) -> TokenPrice:
    """Return a price of USD per million tokens read, written, cached, and put into the cache.

    The last may be two, for minutes and for an hour; what is left out is as `Rates` has it.

    Raises:
        ValueError: it is so little that it must be meant for one token.

    >>> print(token_price([Decimal(3), Decimal(15), Decimal("0.3")]))
    $3 in, $0.3 cached and $15 out per million tokens
    """
    if 0 < max(usd) < _LEAST:
        raise ValueError(f"{max(usd):f} looks like a price of one token; give that of a million")
    read, written, cached, kept, hour = [*usd, None, None, None][:5]
    rates = Rates(read or Decimal(0), written or Decimal(0), 0, cached, kept, hour)
    return TokenPrice((rates,), writes_unasked=kept is not None)


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


def list_price(model: str, provider: str | None = None) -> Price | None:
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
    from farthing.models.price_list import listed  # noqa: PLC0415 - its table takes long to load

    found = listed(model, provider, url)
    return None if found is None else found.info.context_window


def _published(model: str, provider: str | None, url: str | None) -> Price | None:
    # Its table takes half a second to load: who has a table of their own need not wait.
    from farthing.models.price_list import is_whole, listed  # noqa: PLC0415

    found = listed(model, provider, url)
    return found if found is not None and is_whole(found) else None


def _out(name: str) -> bool:
    return name.startswith(("output", "reasoning")) or name.endswith("_output")


def _usd(amount: Decimal) -> str:
    return f"${amount.normalize():f}"
