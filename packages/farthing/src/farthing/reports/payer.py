"""What a comparison says to who pays: cost today and tomorrow, and what is promised until when."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan

from farthing.promises.texts import signed
from farthing.recommendation.record import Recommendation
from farthing.reports.base import thousand

NOT_ALONE = "not recorded alone"
UNKNOWN = "not graded"


@dataclass(frozen=True)
class Paid:
    """What answering costs, and how often the single answer is right."""

    who: str
    cost: str
    """Of a thousand questions."""
    accuracy: str


@dataclass(frozen=True)
class Offer:
    """What is paid today and tomorrow under one promise."""

    title: str
    today: Paid | None
    """The reference alone; None: it was not recorded alone."""
    tomorrow: Paid | None
    """Who wins; None: nobody does."""
    saved: str
    saved_within: str
    gained: str
    """Accuracy won or lost, with its interval; empty where it is not known."""
    promise: str
    sure: str
    until: tuple[str, ...]
    finding: str
    """The sentence that the command line prints."""


def recommended(found: Recommendation, title: str) -> Offer:
    """Return what the first screen says of a recommendation."""
    value, certificate = found.found.value, found.certificate
    theirs = found.models.get(found.reference or "")
    today = None
    if theirs is not None:
        today = paid(f"{found.reference} alone", theirs.cost_usd, theirs.accuracy)
    tomorrow = None
    if not found.nothing_cheaper:
        tomorrow = paid(found.name, value.yours.cost_usd, value.yours.accuracy)
    saved, within = "–", f"the models were {NOT_ALONE}"
    if found.nothing_cheaper:
        saved, within = in_percent(0), "nothing cheaper is proved"
    elif value.saved is not None:
        saved, within = in_percent(value.saved), ""
        if value.saved_interval is not None:
            within = within_ends(value.saved_interval, in_percent)
    gained = ""
    if value.gained is not None and value.gained_interval is not None and tomorrow:
        gained = (
            f"{found.measure} {signed(value.gained)} ({within_ends(value.gained_interval, signed)})"
        )
    return Offer(
        title=title,
        today=today,
        tomorrow=tomorrow,
        saved=saved,
        saved_within=within,
        gained=gained,
        promise=certificate.plain_language() if certificate else "Nothing is promised.",
        sure=found.found.judged.sentence() if found.found.judged else "",
        until=certificate.invalid_when if certificate else (),
        finding=f"{found.reference} answers every question, as today.",
    )


def paid(who: str, cost_usd: float, accuracy: float) -> Paid:
    """Return what one of two sides costs, and how often it is right."""
    return Paid(who, thousand(cost_usd), UNKNOWN if isnan(accuracy) else f"{accuracy:.3f}")


def within_ends(ends: tuple[float, float], write: Callable[[float], str]) -> str:
    """Write an interval; of a single split there is none."""
    low, high = ends
    return (
        "no interval of one split"
        if isnan(low)
        else f"95 % interval: {write(low)} to {write(high)}"
    )


def in_percent(share: float) -> str:
    """Write a share in percent with one decimal.

    >>> in_percent(0.9012), in_percent(-0.2)
    ('90.1 %', '−20.0 %')
    """
    written = f"{abs(100 * share):.1f}"
    return f"{'−' if share < 0 and float(written) else ''}{written} %"
