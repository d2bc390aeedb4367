"""A provider that says the question again."""

import msgspec

from farthing.models.base import Model
from farthing.models.prices import FREE, Price, PriceTable
from farthing.models.scripted import ScriptedModel


class EchoSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a model that echoes."""

    model: str = "echo"

    def price(self, prices: PriceTable) -> Price:
        """Return what the model costs; it is free unless the table says otherwise."""
        return prices.find(self.model) or FREE

    def open(self, prices: PriceTable) -> Model:
        """Return the model."""
        price = self.price(prices)
        return ScriptedModel(lambda p: p.messages[-1].content, name=self.model, price=price)
