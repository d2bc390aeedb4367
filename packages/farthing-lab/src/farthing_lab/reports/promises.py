"""What a comparison found under its promise, in plain English."""

from fractions import Fraction
from math import isnan

from farthing.promises import wording
from farthing.promises.base import Promise
from farthing.promises.certificate import Population
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.texts import Goal, hundredths
from farthing.recommendation.base import FELL_BACK, Comparison, Row
from farthing.reports.base import thousand
from farthing.reports.payer import in_percent
from farthing_lab.comparison.names import KEPT, SAVED, SOLVABLE_ONLY
from farthing_lab.comparison.rows import best, mean_of, means_of, promised

NO_CERTIFICATE = (
    "A comparison's winner carries no certificate: run `farthing recommend` or `calibrate`."
)


SAME = 1e-9
"""Costs that differ by this share alone are the same."""


def asked_of(comparison: Comparison, alpha: Fraction) -> Promise:
    """Return what the rows of one alpha promise; where nothing else is proved, coverage."""
    if comparison.promise is not None:
        return comparison.promise.at(alpha)
    population: Population = "solvable" if SOLVABLE_ONLY in comparison.notes else "all"
    return Coverage(1 - alpha, population=population)


def goal_of(comparison: Comparison, alpha: Fraction) -> Goal:
    """Return what the rows of one alpha are held to beside money."""
    return asked_of(comparison, alpha).goal()


def claim(comparison: Comparison, alpha: Fraction) -> str:
    """Say in one plain sentence what is promised of new questions; how sure is said beside it."""
    return asked_of(comparison, alpha).claim(alone=bool(comparison.reference))


def how_sure(comparison: Comparison, row: Row | None) -> str:
    """Say how sure a promise is, and in how many splits a row kept it."""
    delta = None if comparison.promise is None else comparison.promise.sure
    if delta is None:
        return f"{wording.ON_AVERAGE[0].upper()}{wording.ON_AVERAGE[1:]}."
    sure, failed = wording.of_hundred(1 - delta), wording.of_hundred(delta)
    said = (
        f"You may be {sure} % sure: at most {failed} of 100 draws of calibration questions prove "
        "what is not so."
    )
    if row is None:
        return said
    kept = hundredths(mean_of(row, KEPT))
    return f"{said} Here it was kept on the test questions of {kept} of the splits."


def in_plain_words(comparison: Comparison, alpha: Fraction) -> str:
    """Say what the promise means, and how sure it is; empty where nobody kept it."""
    delta = None if comparison.promise is None else comparison.promise.sure
    if delta is None or best(comparison, alpha) is None:
        return ""
    first, semicolon, rest = claim(comparison, alpha)[:-1].partition(";")
    return f"The promise means: {first}, {wording.how_sure(delta)}{semicolon}{rest}."


def sentence(comparison: Comparison, alpha: Fraction) -> str:
    """Say who wins under the promise, and by how much."""
    promise, row = comparison.promise, best(comparison, alpha)
    if promise is None:
        return ""
    under = promise.at(alpha).under()
    if row is None:
        return f"{under} {_nobody(comparison, alpha, promise)}"
    today = comparison.today if promise.held_to_reference else None
    if today is not None and mean_of(row, "cost_usd") >= today.cost_usd * (1 - SAME):
        return (  # the winner is the reference that it is held against, or costs no less
            f"{under} no policy is proved that costs less than always "
            f"{today.role} on average: {thousand(today.cost_usd)} per 1,000 questions."
        )
    text = (
        f"{under} {row.label} {promise.wins}: {thousand(mean_of(row, 'cost_usd'))} per "
        f"1,000 questions, {promise.result(means_of(row))}"
    )
    if SAVED in row.intervals:
        text += f"; {saving(row, comparison.reference)}"
    if back := mean_of(row, FELL_BACK):
        text += f"; on {hundredths(back)} of the splits nothing was proved"
    return f"{text}."


def saving(row: Row, reference: str) -> str:
    """Say what a row saves on asking the reference for everything, with its interval.

    >>> found = {SAVED: [0.5]}
    >>> row = Row("a", "A", Fraction(1, 10), "proved", found, intervals={SAVED: (0.4, 0.6)})
    >>> saving(row, "large")
    'saved on always large: 50.0 % (95 % interval 40.0 % to 60.0 %)'
    """
    low, high = row.intervals[SAVED]
    saved = mean_of(row, SAVED)
    what = "saved on" if saved >= 0 else "more than"
    if saved < 0:
        saved, low, high = -saved, -high, -low
    within = "" if isnan(low) else f" (95 % interval {in_percent(low)} to {in_percent(high)})"
    return f"{what} always {reference}: {in_percent(saved)}{within}"


def _nobody(comparison: Comparison, alpha: Fraction, promise: Promise) -> str:
    rows = promised(comparison, alpha)
    if not rows:
        return "no policy could run."
    never = all(mean_of(row, FELL_BACK) == 1 for row in rows)
    seldom = all(mean_of(row, FELL_BACK) >= 0.5 for row in rows)
    n = f"{comparison.sizes['calibrate']:,} calibration questions"
    if promise.held_to_reference:
        why = f"{n} prove no policy" if never else "no policy kept the promise on average"
    else:
        why = f"{n} prove nothing of any policy" if never else "no policy kept it on average"
        if seldom and not never:
            why = f"{n} prove nothing on half of the splits or more"
    return f"{why}: {promise.otherwise}."
