"""The price of a model with one for each use of what its provider runs, such as a search."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from farthing.models.base import Usage
from farthing.models.prices import Price
from farthing.money import nano_from_usd


@dataclass(frozen=True)
class ToolPrice:
    """A model's price, and that of each use which it does not name.

    >>> from farthing.models.prices import FREE
    >>> ToolPrice(FREE, Decimal("0.01")).cost_nano(Usage(9, 9, units=(("web_searches", 2),)), 1.0)
    20000000
    """

    listed: Price
    usd: Decimal
    """For one use, in dollars."""

    def __str__(self) -> str:
        """Say every figure; equal prices read alike."""
        return f"{self.listed}, and ${self.usd.normalize():f} for a use of the provider's tools"

    def cost_nano(self, usage: Usage, seconds: float, at: datetime | None = None) -> int:
        """Return the price of a call in nano-dollars."""
        rest, own = self._parts(usage, at)
        return self.listed.cost_nano(rest, seconds, at) + own

    def largest_nano(self, usage: Usage, seconds: float, at: datetime | None = None) -> int:
        """Return the most that a call can cost that takes no more than this."""
        rest, own = self._parts(usage, at)
        return self.listed.largest_nano(rest, seconds, at) + own

    def unpriced(self, usage: Usage, at: datetime | None = None) -> tuple[str, ...]:
        """Return the names of what such a call took that nobody knows the price of."""
        return self.listed.unpriced(self._parts(usage, at)[0], at)

    def _parts(self, usage: Usage, at: datetime | None) -> tuple[Usage, int]:
        """Return what the list prices, and what the uses cost that it does not, in nano-dollars."""
        unlisted = {one for one in self.listed.unpriced(usage, at) if not one.endswith("_tokens")}
        uses = sum(some for name, some in usage.units if name in unlisted)
        rest = tuple(one for one in usage.units if one[0] not in unlisted)
        return replace(usage, units=rest), nano_from_usd(self.usd * uses)
