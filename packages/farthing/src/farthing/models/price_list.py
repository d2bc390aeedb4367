"""The published prices of `genai-prices`, each a function of when a call is made and at what tier.

A list says from which day on a price applies, in which hours of each day, and what it is at another
tier than the standard one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, StartDateConstraint, TieredPrices, TimeOfDateConstraint

from farthing.models.base import Usage
from farthing.models.prices import CHEAPER_TIERS, SURCHARGES, Rates, TokenPrice

_PLAIN = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok")
_KINDS = {
    "input_audio_mtok": "audio_input",
    "cache_audio_read_mtok": "audio_cached",
    "output_audio_mtok": "audio_output",
    "output_reasoning_mtok": "reasoning_tokens",
    "input_image_mtok": "input_image_tokens",
    "output_image_mtok": "output_image_tokens",
    "input_video_mtok": "input_video_tokens",
    "output_video_mtok": "output_video_tokens",
    "output_citation_mtok": "output_citation_tokens",
}
"""What a price list calls a kind of token, to the name of its count."""
_COUNTED = {*_PLAIN, *_KINDS, "requests_kcount", "cache_image_read_mtok"}
_TOOLS = "_kcount"
"""How prices of a thousand uses of a tool end, which a request takes none of unasked."""
_SEARCHES = "sonar"
"""Models that search unasked."""
_BEIJING = timedelta(hours=8)
_DEEPSEEK_WEEKENDS = date(2026, 8, 23)
"""From this day on DeepSeek's weekends in Beijing have no dearer hours (its pricing page), which
the list has no words for."""
_STEP = timedelta(minutes=30)


@dataclass(frozen=True, eq=False)
class ListPrice:
    """The published price of one model: whole, or not there."""

    info: ModelInfo = field(repr=False)
    own: bool
    """Whether who sells it is whose list it is, so that the list's tiers are theirs."""

    def __str__(self) -> str:
        """Say the figures of now, outside the hours in which they are others, and in those."""
        now = datetime.now(UTC)
        usual = str(self.at(_usual(self.info, now)))
        days = (now, now + timedelta(days=2))  # at a weekend some have no dearer hours
        others = {
            str(self.at(day.replace(hour=one.start_time.hour)))
            for one in _hours(self.info)
            for day in days
        }
        return "; at other hours ".join([usual, *sorted(others - {usual})])

    @lru_cache(maxsize=4096)  # noqa: B019 - one object for each model there is
    def _at(self, when: datetime, tier: str | None) -> TokenPrice | None:
        when = when if _has_hours(self.info, when) else _usual(self.info, when)
        if tier is None:
            return _token_price(self.info, self.info.get_prices(when))
        context = {"service_tier": tier, "processing": tier, "speed": tier}
        listed = self.info.price_variants if self.own else None
        variants = [one for one in listed or () if one.when.items() <= context.items()]
        if not variants:
            return None
        # What a tier cost before it was listed is nowhere said: as it has since then.
        starts = [getattr(one.constraint, "start_date", date.min) for one in variants]
        first = datetime.combine(min(starts), time(), UTC)
        return _token_price(self.info, self.info.get_prices(max(when, first), context))

    def at(self, when: datetime | None = None, tier: str | None = None) -> TokenPrice | None:
        """Return the price at a time, or now; None where the list has none of the tier."""
        utc = (when or datetime.now(UTC)).astimezone(UTC)
        return self._at(utc.replace(second=0, microsecond=0), tier)

    def cost_nano(self, usage: Usage, seconds: float, at: datetime | None = None) -> int:
        """Return the price of a call in nano-dollars, from its tokens, its tier and its time."""
        price = self.at(at, usage.tier) or self.at(at)
        return 0 if price is None else price.cost_nano(usage, seconds)

    def largest_nano(self, usage: Usage, seconds: float, at: datetime | None = None) -> int:
        """Return the most that a call can cost, at any time from its beginning to its end."""
        began, most = at or datetime.now(UTC), timedelta(seconds=min(seconds, 86_400.0))
        steps = most // _STEP + 1 if _hours(self.info) else 1
        times = [began + most, *(began + step * _STEP for step in range(steps))]
        prices = [self.at(when, tier) for when in times for tier in {None, usage.tier}]
        return max(one.largest_nano(usage, seconds) for one in prices if one is not None)

    def unpriced(self, usage: Usage, at: datetime | None = None) -> tuple[str, ...]:
        """Return the names of what such a call took that nobody knows the price of."""
        plain = usage.tier in CHEAPER_TIERS | SURCHARGES.keys()
        price = self.at(at, None if plain else usage.tier)
        if price is None:
            return (f"service_tier {usage.tier}",)
        return price.unpriced(replace(usage, tier=None))


@lru_cache(maxsize=4096)
def listed(model: str, provider: str | None, url: str | None) -> ListPrice | None:
    """Return what the list says of a model; None where that is nothing."""
    try:
        seller, found = get_snapshot().find_provider_model(model, None, provider, url)
    except LookupError:
        return None
    return ListPrice(found, any(found is one for one in seller.models))


def is_whole(price: ListPrice) -> bool:
    """Return whether a list says what both input and output cost."""
    found = price.info.get_prices(datetime.now(UTC))
    return found.input_mtok is not None and found.output_mtok is not None


def _token_price(info: ModelInfo, prices: Any) -> TokenPrice:
    named = {name: _tiers(price) for name, price in vars(prices).items() if price is not None}
    asked = "claude" in info.id  # Anthropic's models write what they are asked to, others more
    if not asked and "input_mtok" in named:  # without a price of their own writes are input
        named.setdefault("cache_write_mtok", named["input_mtok"])
    starts = sorted({0, *(start for name in (*_PLAIN, *_KINDS) for start in named.get(name, ()))})
    beside = {name: max(price.values()) for name, price in named.items() if name not in _COUNTED}
    tools = {name: usd for name, usd in beside.items() if name.endswith(_TOOLS)}
    return TokenPrice(
        tuple(_rates(named, start) for start in starts),
        max(named.get("requests_kcount", {0: Decimal(0)}).values()) / 1_000,
        tuple((name.removesuffix(_TOOLS), usd / 1_000) for name, usd in tools.items()),
        tuple(
            name.removesuffix(_TOOLS)
            for name in beside
            if name not in tools or info.id.startswith(_SEARCHES)
        ),
        writes_unasked=not asked,
    )


def _rates(named: Mapping[str, Mapping[int, Decimal]], start: int) -> Rates:
    def at(name: str) -> Decimal | None:
        tiers = named.get(name)
        return None if tiers is None else tiers[max(s for s in tiers if s <= start)]

    read, written, cached, kept, hour = map(at, _PLAIN)
    # Where a list has no price of sound, it costs what text does.
    kinds = {"audio_input": read, "audio_output": written}
    kinds |= {kind: at(name) for name, kind in _KINDS.items() if name in named}
    more = tuple((name, rate) for name, rate in kinds.items() if rate is not None)
    return Rates(read or Decimal(0), written or Decimal(0), start, cached, kept, hour, more)


def _tiers(price: Any) -> dict[int, Decimal]:
    if isinstance(price, TieredPrices):
        return {0: price.base} | {tier.start: tier.price for tier in price.tiers}
    return {0: price}


def _hours(info: ModelInfo) -> list[TimeOfDateConstraint]:
    prices = info.prices if isinstance(info.prices, list) else []
    return [c for c in (one.constraint for one in prices) if isinstance(c, TimeOfDateConstraint)]


def _has_hours(info: ModelInfo, when: datetime) -> bool:
    """Return whether a model's hours apply on a day, of which its list cannot say all.

    They began with the dated price that they are hours of.
    """
    prices = info.prices if isinstance(info.prices, list) else []
    places = [i for i, one in enumerate(prices) if isinstance(one.constraint, TimeOfDateConstraint)]
    before = [one.constraint for one in prices[: min(places, default=0)]]
    there = (when + _BEIJING).date()
    weekend = there >= _DEEPSEEK_WEEKENDS and there.weekday() >= 5
    return not (weekend and info.id.startswith("deepseek")) and all(
        one.active(when) for one in before if isinstance(one, StartDateConstraint)
    )


def _usual(info: ModelInfo, when: datetime) -> datetime:
    """Return a time of the same day at which the usual price applies."""
    ends = [one.end_time for one in _hours(info)]
    return when.replace(hour=ends[-1].hour, minute=ends[-1].minute) if ends else when
