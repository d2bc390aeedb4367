"""What recorded calls would cost at the prices of today."""

from collections.abc import Callable, Iterable, Mapping

from farthing.models.prices import Price, charge_nano
from farthing.models.thinking import split_name
from farthing.money import nano_from_usd
from farthing.traces.base import Trace
from farthing.traces.kept_usage import usage_of

FIGURES = ("calls", "priced", "recorded_nano", "today_nano", "dearer", "cheaper")
"""Of a model: its calls, those that have a recorded cost, tokens and a price, what these are
recorded at and would cost today, in nano-dollars, and how many of them differ in which way."""


def reprice(
    traces: Iterable[Trace], own: Mapping[str, Price], published: Callable[[str], Price | None]
) -> dict[str, dict[str, int]]:
    """Return the figures of each model's calls, whatever failed left out.

    Args:
        traces: whose calls.
        own: prices of one's own, by model.
        published: from a model's name to its list price; None: it has none.
    """
    prices: dict[str, Price | None] = {}
    found: dict[str, dict[str, int]] = {}
    for call in (call for trace in traces for call in trace.calls if call.error is None):
        name = split_name(call.model or call.role)[0]
        if name not in prices:
            prices[name] = own.get(name) or published(name)
        figures, usage = found.setdefault(name, dict.fromkeys(FIGURES, 0)), usage_of(call)
        seconds = call.latency_s or 0.0
        now = None if usage is None else charge_nano(prices[name], usage, seconds)
        figures["calls"] += 1
        if now is None or call.cost_usd is None:
            continue
        before = nano_from_usd(call.cost_usd)
        added = {"priced": 1, "recorded_nano": before, "today_nano": now}
        for figure, some in (added | {"dearer": now > before, "cheaper": now < before}).items():
            figures[figure] += some
    return found
