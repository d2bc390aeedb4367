"""A policy's day: which of its modes answers next, so that the day's money lasts the day.

A pacer sees what was spent and what modes cost and are worth, never the question. So a reply keeps
the promise of the bundle that gave it, whichever that is. Each worker paces its share of the day;
that the whole is never exceeded is the ledger's business.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from farthing import plugins
from farthing.budgets.pacing.base import Option, Pacer, PacingState, begin, choose, release, settle
from farthing.money import nano_from_usd
from farthing_gateway.bundles import ServedMode
from farthing_gateway.config_sections import PacingSection
from farthing_gateway.pacers.bidding import Bidding

HOURS = 24
ENOUGH = 200
"""Requests of a day from which on its hours say how the next one goes."""
NOTHING = Option(0.0, 0, 0)
"""What is reserved where nothing is left: the ledger decides."""


@dataclass(frozen=True)
class Paced:
    """The mode that answers a request, and what is reserved for it."""

    mode: ServedMode
    option: Option
    day: date


@dataclass
class Pace:
    """Where a worker's share of a day stands."""

    pacer: Pacer
    budget_nano: int
    requests: int
    day: date = date.min
    state: PacingState = field(default_factory=lambda: PacingState(budget_nano=1, requests=1))
    hours: list[int] = field(default_factory=lambda: [0] * HOURS)
    """Requests of each hour of the day."""
    usual: list[int] | None = None
    """Those of the day before; None: not known."""
    options: list[Option] = field(default_factory=list)
    """Of the request before."""

    @classmethod
    def of(cls, section: PacingSection, workers: int) -> "Pace":
        """Return a worker's pace."""
        budget = nano_from_usd(section.usd_per_day) // workers
        pacer: Pacer = plugins.load("pacers", section.pacer)
        return cls(pacer, max(1, budget), max(1, section.requests // workers))

    def choose(self, modes: Sequence[ServedMode], now: datetime | None = None) -> Paced:
        """Return the mode that answers next, its cost reserved; the cheapest where nothing fits."""
        now = now or datetime.now(UTC)
        self._begin(now)
        self.hours[now.hour] += 1
        priced = [(_option(one), one) for one in modes]
        priced.sort(key=lambda pair: pair[0].expected_nano)
        options = [option for option, _ in priced]
        self._learn(options)
        chosen = choose(self.pacer, self.state, options, self._gone(now))
        if chosen is None:
            return Paced(priced[0][1], NOTHING, self.day)
        self.state = chosen.state
        return Paced(priced[chosen.index][1], chosen.option, self.day)

    def settle(self, paced: Paced, spent_nano: int | None, now: datetime | None = None) -> None:
        """Put what a request cost in place of its reservation; None: it came to nothing.

        What was begun on another day was that day's, and is not counted on this one.
        """
        now = now or datetime.now(UTC)
        if paced.day != self.day:
            return
        if spent_nano is None:
            self.state = release(self.state, paced.option)
        else:
            gone = self._gone(now)
            self.state = settle(self.pacer, self.state, paced.option, spent_nano, gone)

    def _learn(self, options: list[Option]) -> None:
        """Tell a pacer that looks ahead what requests can be answered in: all have the same."""
        knows_more = isinstance(self.pacer, Bidding) and options != self.options
        if knows_more and any(option.expected_nano for option in options):
            self.pacer = Bidding().taught([options])
        self.options = options

    def _begin(self, now: datetime) -> None:
        if now.date() == self.day:
            return
        first = self.day == date.min
        yesterday = None if first else self.state
        self.state = begin(self.pacer, self.budget_nano, self.requests, yesterday)
        self.usual = self.hours if sum(self.hours) >= ENOUGH else self.usual
        self.day, self.hours = now.date(), [0] * HOURS

    def _gone(self, now: datetime) -> float:
        within = (now.minute + now.second / 60) / 60
        usual = self.usual or [1] * HOURS
        return (sum(usual[: now.hour]) + usual[now.hour] * within) / sum(usual)


def _option(loaded: ServedMode) -> Option:
    """Return a mode as a pacer sees it; what a bundle does not say of itself counts as nothing."""
    value = loaded.value
    nano = 0 if value is None else value.yours.cost_nano // value.yours.questions
    worth = float(loaded.reliability or 0) if value is None else value.yours.accuracy
    return Option(min(1.0, worth), nano, nano)
