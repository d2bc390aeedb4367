"""Where the parts of a chart lie, in percent of its area: drawn as SVG that stretches.

Percentages need no script and no style of its own, which a strict Content-Security-Policy forbids,
and text keeps its size at any width. Every chart has its figures in a table beside it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from farthing_gateway.admin.figures import Slot


@dataclass(frozen=True)
class Tick:
    """A line across a chart, and the value that it stands for."""

    at: float
    """From the top or the left, in percent."""
    value: float


@dataclass(frozen=True)
class Bar:
    """A slot: what was paid, and on top of it what was saved, or paid beyond the strongest."""

    slot: Slot
    x: float
    width: float
    paid_y: float
    paid_height: float
    rest_y: float
    rest_height: float


@dataclass(frozen=True)
class Bars:
    """A chart of slots."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]


def bars(slots: Sequence[Slot], *, compared: bool) -> Bars:
    """Return a bar for each slot; its whole height is the dearer of what was and would be paid.

    Args:
        slots: in their order.
        compared: of the requests of which it is known what the strongest would have cost; else all
            that was paid, without what was saved.

    >>> from farthing_gateway.admin.figures import EVER
    >>> drawn = bars([Slot(EVER, 40, 60), Slot(EVER, 50, -25)], compared=True)
    >>> [(bar.paid_height, bar.rest_height) for bar in drawn.bars]
    [(40.0, 60.0), (25.0, 25.0)]
    """
    if not compared:
        paid_saved = [(slot.cost_nano, 0) for slot in slots]
    else:
        paid_saved = [(slot.compared_nano, slot.saved_nano) for slot in slots]
    wholes = [max(paid, paid + saved) for paid, saved in paid_saved]
    values, top = scale(max([*wholes, 0]))
    step = 100 / max(1, len(slots))
    drawn = []
    for at, (slot, (cost, saved), whole) in enumerate(zip(slots, paid_saved, wholes, strict=True)):
        paid = 100 * min(cost, cost + saved) / top
        rest = 100 * whole / top - paid
        place = (step * (at + 0.15), step * 0.7)
        drawn.append(Bar(slot, *place, 100 - paid, paid, 100 - paid - rest, rest))
    return Bars(tuple(drawn), tuple(Tick(100 - 100 * one / top, one) for one in values))


def scale(most: float, lines: int = 5) -> tuple[list[float], float]:
    """Return round values from 0 on for lines across a chart, and the value at its end.

    >>> scale(87.0)
    ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], 100.0)
    >>> scale(0.0)
    ([0.0], 1.0)
    """
    if most <= 0:
        return [0.0], 1.0
    raw = most / lines
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(nice * power for nice in (1, 2, 5, 10) if nice * power >= raw * (1 - 1e-9))
    number = math.ceil(most / step * (1 - 1e-9))
    return [step * at for at in range(number + 1)], step * number


@dataclass(frozen=True)
class Span:
    """An interval of shares on a line from `low` to 1, and marks on it; in percent."""

    x: float
    width: float
    mark: float
    """The share itself."""
    promised: float | None


def span(low: float, share: float, high: float, promised: float | None) -> Span:
    """Return an interval on a line that begins below all of it.

    >>> span(0.9, 0.95, 1.0, 0.9)
    Span(x=50.0, width=50.0, mark=75.0, promised=50.0)
    """
    first = floor_of([low, share, promised if promised is not None else 1.0])

    def place(value: float) -> float:
        return round(100 * (value - first) / (1 - first), 2)

    width = place(high) - place(low)
    return Span(place(low), width, place(share), None if promised is None else place(promised))


def floor_of(shares: Sequence[float]) -> float:
    """Return where an axis of shares begins: a round tenth well below the least, 0.9 at most.

    >>> floor_of([0.93, 1.0]), floor_of([0.9]), floor_of([0.02])
    (0.9, 0.8, 0.0)
    """
    least = min([*shares, 1.0])
    return max(0.0, math.ceil(10 * least - 1 - 1e-9) / 10)
