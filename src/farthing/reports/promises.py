"""What a comparison under another promise than coverage found, in plain English."""

from fractions import Fraction
from math import isnan

from farthing.money import significant
from farthing.process.value import signed
from farthing.promises import wording
from farthing.promises.base import Population
from farthing.promises.levels import exact_level, exact_margin
from farthing.recommendation.base import (
    ANSWERED,
    FELL_BACK,
    KEPT,
    REALISED,
    SAVED,
    SOLVABLE_ONLY,
    Comparison,
    Row,
)
from farthing.recommendation.promises import Agreement, Budget, Parity, Promise, Selective
from farthing.reports.base import best, decimal, mean_of, promised, thousand

NO_CERTIFICATE = (
    "A comparison's winner carries no certificate: run `farthing recommend` or `calibrate`."
)


SAME = 1e-9
"""Costs that differ by this share alone are the same."""


def claim(comparison: Comparison, alpha: Fraction) -> str:
    """Say in one plain sentence what is promised of new questions; how sure is said beside it."""
    promise = comparison.promise
    match promise:
        case Parity():
            alone = " alone" if comparison.reference else "'s first answer"
            return (
                f"Of 100 questions {_fewer(promise)} are answered right than by "
                f"{promise.reference}{alone}."
            )
        case Agreement():
            same = wording.of_hundred(1 - exact_level(promise.epsilon))
            return (
                f"Of 100 questions at least {same} are answered as {promise.reference} would have "
                "answered them."
            )
        case Selective():
            wrong = wording.of_hundred(alpha)
            return f"At most {wrong} of 100 answers that are given are wrong; others are withheld."
        case Budget():
            usd = significant(1_000 * float(promise.usd))
            return (
                f"A thousand questions cost less than ${usd} on average; how many are answered "
                "right is not promised."
            )
    population: Population = "solvable" if SOLVABLE_ONLY in comparison.notes else "all"
    return wording.of_hundred_covered(alpha, population).replace(f", {wording.ON_AVERAGE}", "")


def how_sure(comparison: Comparison, row: Row | None) -> str:
    """Say how sure a promise is, and in how many splits a row kept it."""
    delta = _delta(comparison.promise)
    if delta is None:
        return f"{wording.ON_AVERAGE[0].upper()}{wording.ON_AVERAGE[1:]}."
    sure, failed = wording.of_hundred(1 - delta), wording.of_hundred(delta)
    said = (
        f"You may be {sure} % sure: at most {failed} of 100 draws of calibration questions prove "
        "what is not so."
    )
    if row is None:
        return said
    kept = _hundred(mean_of(row, KEPT))
    return f"{said} Here it was kept on the test questions of {kept} of the splits."


def in_plain_words(comparison: Comparison, alpha: Fraction) -> str:
    """Say what the promise means, and how sure it is; empty where nobody kept it."""
    delta = _delta(comparison.promise)
    if delta is None or best(comparison, alpha) is None:
        return ""
    first, semicolon, rest = claim(comparison, alpha)[:-1].partition(";")
    return f"The promise means: {first}, {wording.how_sure(delta)}{semicolon}{rest}."


def sentence(comparison: Comparison, alpha: Fraction) -> str:
    """Say who wins under the promise, and by how much."""
    promise, row = comparison.promise, best(comparison, alpha)
    if row is None:
        return f"{_under(promise, alpha)} {_nobody(comparison, alpha)}"
    if (today := comparison.today) is not None and _is_today(row, comparison):
        return (
            f"{_under(promise, alpha)} no policy is proved that costs less than always "
            f"{today.role} on average: {thousand(today.cost_usd)} per 1,000 questions."
        )
    wins = {
        Selective: "answers most of those that kept the promise",
        Budget: "is right most often of those that kept it",
    }.get(type(promise), "is the cheapest that kept the promise")
    text = (
        f"{_under(promise, alpha)} {row.label} {wins}: {thousand(mean_of(row, 'cost_usd'))} per "
        f"1,000 questions, {_figure(promise, row)}"
    )
    if SAVED in row.intervals:
        text += f"; {saving(row, comparison.reference)}"
    if back := mean_of(row, FELL_BACK):
        text += f"; on {_hundred(back)} of the splits nothing was proved"
    return f"{text}."


def _is_today(row: Row, comparison: Comparison) -> bool:
    """Return whether the winner costs no less than the reference that it is held against."""
    if comparison.today is None or not isinstance(comparison.promise, Parity | Agreement):
        return False
    return mean_of(row, "cost_usd") >= comparison.today.cost_usd * (1 - SAME)


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


def _hundred(share: float) -> str:
    return f"{100 * share:.0f} %"


def in_percent(share: float) -> str:
    """Write a share in percent with one decimal.

    >>> in_percent(0.9012), in_percent(-0.2)
    ('90.1 %', '−20.0 %')
    """
    written = f"{abs(100 * share):.1f}"
    return f"{'−' if share < 0 and float(written) else ''}{written} %"


def _delta(promise: Promise | None) -> Fraction | None:
    match promise:
        case Parity() | Agreement() | Selective() | Budget():
            return exact_level(promise.delta, "delta")
    return None


def _under(promise: Promise | None, alpha: Fraction) -> str:
    match promise:
        case Parity():
            return f"Under parity with {promise.reference}{_margin(promise)},"
        case Agreement():
            level = decimal(1 - exact_level(promise.epsilon))
            return f"Under agreement with {promise.reference} of {level},"
        case Selective():
            return f"With answers right at {decimal(1 - alpha)},"
        case Budget():
            return f"Under ${significant(float(promise.usd))} a question,"
    return ""


def _fewer(promise: Parity) -> str:
    """Say how many of a hundred questions may be lost, or must be won."""
    epsilon = exact_margin(promise.epsilon)
    if not epsilon:
        return "more"
    number = wording.of_hundred(abs(epsilon))
    return f"at most {number} fewer" if epsilon > 0 else f"over {number} more"


def _margin(promise: Parity) -> str:
    epsilon = exact_margin(promise.epsilon)
    sign = "minus" if epsilon > 0 else "plus"
    return f" {sign} {decimal(abs(epsilon))}" if epsilon else ""


def _figure(promise: Promise | None, row: Row) -> str:
    accuracy, realised = mean_of(row, "accuracy"), mean_of(row, REALISED)
    known = "" if isnan(accuracy) else f"accuracy {accuracy:.3f}"
    match promise:
        case Parity():
            said = f"{signed(realised)} beside {promise.reference}"
            return f"{known} ({said})" if known else said
        case Agreement():
            said = f"agreement {realised:.3f}"
            return f"{said}, {known}" if known else said
        case Selective():
            given = _hundred(mean_of(row, ANSWERED))
            return f"{given} of them answered, and {realised:.3f} of the answers right"
    return known


def _nobody(comparison: Comparison, alpha: Fraction) -> str:
    """Say why nobody won, and what to do."""
    promise, rows = comparison.promise, promised(comparison, alpha)
    if not rows:
        return "no policy could run."
    never = all(mean_of(row, FELL_BACK) == 1 for row in rows)
    seldom = all(mean_of(row, FELL_BACK) >= 0.5 for row in rows)
    n = f"{comparison.sizes['calibrate']:,} calibration questions"
    if isinstance(promise, Parity | Agreement):
        said = f"{n} prove no policy" if never else "no policy kept the promise on average"
        return f"{said}: ask {promise.reference} for everything, or record more questions."
    said = f"{n} prove nothing of any policy" if never else "no policy kept it on average"
    if seldom and not never:
        said = f"{n} prove nothing on half of the splits or more"
    return f"{said}: record more questions, or ask for less."
