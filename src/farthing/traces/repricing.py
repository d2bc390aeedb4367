"""What recorded calls would cost at the prices of today."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from farthing.models.prices import Price, charge_nano
from farthing.models.thinking import split_name
from farthing.money import nano_from_usd, usd_from_nano
from farthing.traces.base import Call, Trace
from farthing.traces.kept_usage import usage_of


@dataclass
class Repriced:
    """The calls of one model."""

    calls: int = 0
    recorded_nano: int = 0
    """What those of `priced` are recorded at, in nano-dollars."""
    listed_nano: int = 0
    """What they cost at the prices of today."""
    priced: int = 0
    """Of the calls those that have a recorded cost, tokens and a price."""
    dearer: int = 0
    cheaper: int = 0

    def add(self, recorded: int | None, listed: int | None) -> None:
        """Count a call; None: that is not known."""
        self.calls += 1
        if recorded is None or listed is None:
            return
        self.priced += 1
        self.recorded_nano += recorded
        self.listed_nano += listed
        self.dearer += listed > recorded
        self.cheaper += listed < recorded

    def to_json(self) -> dict[str, float]:
        """Return its figures, of money in US dollars."""
        return {
            "calls": self.calls,
            "priced": self.priced,
            "recorded_usd": usd_from_nano(self.recorded_nano),
            "today_usd": usd_from_nano(self.listed_nano),
            "dearer": self.dearer,
            "cheaper": self.cheaper,
        }


def reprice(
    traces: Iterable[Trace],
    own: Mapping[str, Price],
    published: Callable[[str], Price | None],
    at: datetime | None = None,
) -> dict[str, Repriced]:
    """Return what the calls of each model would cost, whatever failed left out.

    Args:
        traces: whose calls.
        own: prices of one's own, by model.
        published: from a model's name to its list price; None: it has none.
        at: when they are made; None: now.
    """
    prices: dict[str, Price | None] = {}
    found: dict[str, Repriced] = {}
    for call in (call for trace in traces for call in trace.calls if call.error is None):
        name = split_name(call.model or call.role)[0]
        if name not in prices:
            prices[name] = own.get(name) or published(name)
        recorded = None if call.cost_usd is None else nano_from_usd(call.cost_usd)
        found.setdefault(name, Repriced()).add(recorded, _nano(call, prices[name], at))
    return found


def _nano(call: Call, price: Price | None, at: datetime | None) -> int | None:
    usage = usage_of(call)
    return None if usage is None else charge_nano(price, usage, call.latency_s or 0.0, at)
