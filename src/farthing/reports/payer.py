"""What a comparison says to who pays: cost today and tomorrow, and what is promised until when."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isnan

from farthing.promises import wording
from farthing.promises.texts import signed
from farthing.recommendation.base import GAINED, SAVED, Comparison, Row
from farthing.recommendation.record import Recommendation
from farthing.reports import promises, summary
from farthing.reports.base import best, mean_of, thousand
from farthing.reports.promises import goal_of

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


def offer(comparison: Comparison, alpha: Fraction) -> Offer:
    """Return what the first screen of a report says about one alpha."""
    row, today = best(comparison, alpha), comparison.today
    saved, within = _saved(row)
    ours = theirs = None
    if today is not None:
        theirs = _paid(f"Always {today.role}", today.cost_usd, today.accuracy)
    if row is not None:
        ours = _paid(row.label, mean_of(row, "cost_usd"), mean_of(row, "accuracy"))
    return Offer(
        title=goal_of(comparison, alpha).title,
        today=theirs,
        tomorrow=ours,
        saved=saved,
        saved_within=within,
        gained="" if row is None else _gained(row),
        promise=promises.claim(comparison, alpha),
        sure=promises.how_sure(comparison, row),
        until=wording.ends(None),
        finding=summary.sentence(comparison, alpha),
    )


def recommended(found: Recommendation, title: str) -> Offer:
    """Return what the first screen says of a recommendation."""
    value, certificate = found.found.value, found.certificate
    theirs = found.models.get(found.reference or "")
    today = None
    if theirs is not None:
        today = _paid(f"{found.reference} alone", theirs.cost_usd, theirs.accuracy)
    tomorrow = None
    if not found.nothing_cheaper:
        tomorrow = _paid(found.name, value.yours.cost_usd, value.yours.accuracy)
    saved, within = "–", f"the models were {NOT_ALONE}"
    if found.nothing_cheaper:
        saved, within = promises.in_percent(0), "nothing cheaper is proved"
    elif value.saved is not None:
        saved, within = promises.in_percent(value.saved), ""
        if value.saved_interval is not None:
            within = _within(value.saved_interval, promises.in_percent)
    gained = ""
    if value.gained is not None and value.gained_interval is not None and tomorrow:
        gained = (
            f"{found.measure} {signed(value.gained)} ({_within(value.gained_interval, signed)})"
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


def _paid(who: str, cost_usd: float, accuracy: float) -> Paid:
    return Paid(who, thousand(cost_usd), UNKNOWN if isnan(accuracy) else f"{accuracy:.3f}")


def _saved(row: Row | None) -> tuple[str, str]:
    """Return what is saved and its interval, or why that is not known."""
    if row is None:
        return "–", "nobody wins"
    if SAVED not in row.intervals:
        return "–", f"the models were {NOT_ALONE}"
    return promises.in_percent(mean_of(row, SAVED)), _within(
        row.intervals[SAVED], promises.in_percent
    )


def _gained(row: Row) -> str:
    gained = mean_of(row, GAINED)
    if isnan(gained):
        return ""
    return f"accuracy {signed(gained)} ({_within(row.intervals[GAINED], signed)})"


def _within(ends: tuple[float, float], write: Callable[[float], str]) -> str:
    low, high = ends
    return (
        "no interval of one split"
        if isnan(low)
        else f"95 % interval: {write(low)} to {write(high)}"
    )
