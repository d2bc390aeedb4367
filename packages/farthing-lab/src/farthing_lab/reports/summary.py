"""What a comparison found, in plain English, and what to doubt about it."""

from fractions import Fraction
from math import isnan

from farthing.promises import wording
from farthing.promises.base import Promise
from farthing.promises.certificate import Population
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.texts import Goal, decimal, hundredths, percent
from farthing.recommendation.base import (
    FELL_BACK,
    OPTIMUM,
    TIMES_OPTIMUM,
    Comparison,
    Difference,
    Row,
)
from farthing.reports.base import thousand
from farthing.reports.payer import in_percent
from farthing_lab.comparison.names import KEPT, SAVED, SOLVABLE_ONLY
from farthing_lab.comparison.rows import (
    alphas,
    best,
    cheapest_promised,
    mean_of,
    means_of,
    promised,
    recommended,
    standard_error_of,
)

CHANCE = 3
"""Standard errors that a mean may fall short of a promise before chance is a poor excuse."""
SAME = 1e-9
"""Costs that differ by this share alone are the same."""
NO_CERTIFICATE = (
    "A comparison's winner carries no certificate: run `farthing recommend` or `calibrate`."
)


def asked_of(comparison: Comparison, alpha: Fraction) -> Promise:
    """Return what the rows of one alpha promise; where nothing else is proved, coverage."""
    if comparison.promise is not None:
        return comparison.promise.at(alpha)
    return Coverage(1 - alpha, population=_population(comparison))


def _population(comparison: Comparison) -> Population:
    return "solvable" if SOLVABLE_ONLY in comparison.notes else "all"


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


def finding(comparison: Comparison, alpha: Fraction) -> tuple[Row, Row | None] | None:
    """Find the cheapest of the policies with an exact promise at one alpha, and the next cheapest.

    None where no policy with a promise could run, where each can but return everything or is
    dominated by a single model, and where several cost the same.
    """
    cheapest = best(comparison, alpha)
    if cheapest is None:
        return None
    return cheapest, next(iter(recommended(comparison, alpha)[1:]), None)


def cost_difference(comparison: Comparison, row: Row, other: Row) -> Difference | None:
    """Return the paired cost difference of two rows whichever way round it was recorded."""
    for found in comparison.differences:
        if found.alpha != row.alpha or found.metric != "cost_usd":
            continue
        if (found.policy, found.other) == (row.policy, other.policy):
            return found
        if (found.policy, found.other) == (other.policy, row.policy):
            return Difference(
                found.alpha,
                row.policy,
                other.policy,
                "cost_usd",
                -found.mean,
                -found.high,
                -found.low,
            )
    return None


def sentences(comparison: Comparison) -> list[str]:
    """Say for each alpha who wins, what the promise means, and what a winner does not carry."""
    said = [
        f"{sentence(comparison, alpha)} {in_plain_words(comparison, alpha)}".rstrip()
        for alpha in alphas(comparison)
    ]
    won = any(best(comparison, alpha) is not None for alpha in alphas(comparison))
    return [*said, NO_CERTIFICATE] if won else said


def in_plain_words(comparison: Comparison, alpha: Fraction) -> str:
    """Say what the promise means, and how sure it is; empty where nobody keeps it."""
    if comparison.promise is None:
        if not cheapest_promised(comparison, alpha):
            return ""
        asked = wording.of_hundred_covered(alpha, _population(comparison))
        return f"An exact promise means: {asked}"
    delta = comparison.promise.sure
    if delta is None or best(comparison, alpha) is None:
        return ""
    first, semicolon, rest = claim(comparison, alpha)[:-1].partition(";")
    return f"The promise means: {first}, {wording.how_sure(delta)}{semicolon}{rest}."


def sentence(comparison: Comparison, alpha: Fraction) -> str:
    """Say who wins at one alpha, and by how much."""
    if comparison.promise is not None:
        return _under(comparison, alpha, comparison.promise)
    found = finding(comparison, alpha)
    return f"At alpha = {decimal(alpha)} " + (
        _nobody(comparison, alpha) if found is None else _cheapest(comparison, *found)
    )


def _under(comparison: Comparison, alpha: Fraction, promise: Promise) -> str:
    """Say who wins under a promise that is proved."""
    row, under = best(comparison, alpha), promise.at(alpha).under()
    if row is None:
        return f"{under} {_nobody_under(comparison, alpha, promise)}"
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


def _nobody_under(comparison: Comparison, alpha: Fraction, promise: Promise) -> str:
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


def reached(comparison: Comparison, alpha: Fraction) -> str:
    """Say what coverage the policies with an exact promise came to, held against the promise.

    Empty under another promise: the table has a column for it.
    """
    if comparison.promise is not None:
        return ""
    rows = promised(comparison, alpha)
    if not rows:
        return ""
    level = float(1 - alpha)
    means = [mean_of(row, "coverage") for row in rows]
    low, high = f"{min(means):.3f}", f"{max(means):.3f}"
    text = (
        f"Policies with an exact promise came to {low if low == high else f'{low} to {high}'} "
        f"on average; {level:g} is promised"
    )
    if min(means) >= level:
        return f"{text}."
    if comparison.splits * len(comparison.seeds) == 1:
        return f"{text}, and a single division says little of it."
    if all(
        level - mean_of(row, "coverage") <= CHANCE * standard_error_of(row, "coverage")
        for row in rows
    ):
        return f"{text}: what is missing is within the noise of {comparison.splits} divisions."
    return f"{text}: more is missing than the noise of {comparison.splits} divisions explains."


def optimum_played(comparison: Comparison) -> str:
    """Say what the row of the known optimum can show and what not; empty without that row."""
    if not any(row.policy == OPTIMUM for row in comparison.rows):
        return ""
    return (
        "The dashed line is what the optimal policy pays in expectation over all questions that "
        "the generator could make. The row “Optimum (known)” plays that policy on the "
        f"{comparison.sizes['calibrate'] + comparison.sizes['test']:,} questions here, with a "
        "threshold calibrated like everybody’s. It tells only a few situations apart, so that many "
        "questions share a score; where the threshold falls among them, a lot decides. Its cost "
        "and its coverage here are those of few questions, and no other row is ranked against "
        "it: how near a policy comes to the optimum is in the column “Cost, × optimum”, at the "
        "policy’s own coverage, on fresh questions."
    )


def setting(comparison: Comparison) -> str:
    """Say what was compared on what."""
    sizes = comparison.sizes
    seeds = len(comparison.seeds)
    calibrated = "threshold set" if comparison.promise is None else "promise proved"
    return (
        f"{len({row.policy for row in comparison.rows})} policies on {comparison.source}: trained "
        f"on {sizes['train']:,} questions, {calibrated} on {sizes['calibrate']:,}, judged on "
        f"{sizes['test']:,}; {comparison.splits} random divisions into the last two, "
        f"{seeds} training seed{'s' if seeds > 1 else ''}."
    )


def promise(comparison: Comparison, alpha: Fraction) -> str:
    """Say what a split-conformal threshold promises, or the proof of another promise."""
    if comparison.promise is not None:
        return f"{claim(comparison, alpha)} {how_sure(comparison, None)}"
    return (
        f"For a new question of the same kind, the set of answers contains a right one with "
        f"probability at least {percent(1 - alpha)}, unless none of the recorded answers is right "
        f"(such a question counts as covered). The promise is an average over questions and over "
        f"calibration draws; it is not a promise for each question or each group of them."
    )


def doubts(comparison: Comparison) -> list[str]:
    """Say what a careful reader should doubt."""
    found = [
        (
            f"The {comparison.splits} splits share questions, so they are not independent runs: "
            "the intervals of the paired differences are widened for that, the ± of the table "
            "is not."
        ),
    ]
    if comparison.promise is None:
        found += [
            (
                f"One draw of {comparison.sizes['calibrate']:,} calibration questions may land "
                "above or below the promise: look at the spread of the boxes, not at their middle "
                "alone."
            ),
            (
                "Policies marked “no promise” are shown with what they happened to reach; a lower "
                "cost at a lower coverage is no saving."
            ),
        ]
    else:
        found += [
            (
                f"Whether a promise was kept is judged on {comparison.sizes['test']:,} test "
                "questions, whose own luck is in it: a promise that holds for new questions may "
                "fall short there."
            ),
            "The winner was chosen by these very questions, so its figures flatter it.",
        ]
    if len(comparison.seeds) == 1:
        found.append("One training seed: how much luck there is in training is not visible here.")
    if comparison.optimum or comparison.made_up:
        found.append(
            "The traces come from a generator with known probabilities, not from recorded models; "
            "what holds there need not hold elsewhere."
        )
    if comparison.published:
        found.append(
            "The published figures were measured on the authors' own recordings; the generator was "
            "fitted to some of them, so agreement there is no replication."
        )
    return found + list(comparison.notes)


def _nobody(comparison: Comparison, alpha: Fraction) -> str:
    cheapest = recommended(comparison, alpha)
    dominated = cheapest_promised(comparison, alpha)
    if dominated and not cheapest:
        instead = ", ".join(dict.fromkeys(f"always-{row.instead}" for row in dominated))
        return (
            "no policy with a promise is recommended: a single model is cheaper, and right as "
            f"often as their sets hold a right answer. Use {instead}."
        )
    if cheapest:
        cost = mean_of(cheapest[0], "cost_usd")
        tied = [row.label for row in cheapest if mean_of(row, "cost_usd") == cost]
        return (
            f"no policy with a promise is the cheapest: {', '.join(tied)} each pay "
            f"{thousand(cost)} per 1,000 questions."
        )
    if promised(comparison, alpha):
        return (
            f"the {comparison.sizes['calibrate']:,} calibration questions are too few to promise "
            "anything tighter than everything: every policy with a promise pays for all rounds and "
            f"returns all answers. It takes {-(-1 // alpha) - 1} questions or more to do better."
        )
    return "no policy with an exact promise took part."


def _cheapest(comparison: Comparison, cheapest: Row, other: Row | None) -> str:
    text = (
        f"{cheapest.label} is the cheapest policy with a promise: "
        f"{thousand(mean_of(cheapest, 'cost_usd'))} per 1,000 questions at a coverage of "
        f"{mean_of(cheapest, 'coverage'):.3f} ({float(1 - cheapest.alpha):g} promised)"
    )
    if cheapest.for_one_answer:
        text += (
            f"; for one answer a question always-{cheapest.for_one_answer} is cheaper and at least "
            "as often right"
        )
    if other is None:
        return f"{text}; no other policy here makes one."
    base, cost = mean_of(other, "cost_usd"), mean_of(cheapest, "cost_usd")
    share = f"{(base - cost) / base:.1%}" if base > 0 else "0 %"
    text += (
        f"{'; it is' if cheapest.for_one_answer else ','} {share.replace('%', ' %')} less than "
        f"{other.label}, the next cheapest"
    )
    if (difference := cost_difference(comparison, cheapest, other)) is not None:
        low, high = -difference.high, -difference.low
        verdict = "" if low > 0 else ", so there may be no saving"
        text += (
            f" (saving {thousand(-difference.mean)}; "
            f"95 % interval {thousand(low)} to {thousand(high)}{verdict})"
        )
    times = mean_of(cheapest, TIMES_OPTIMUM)
    if not isnan(times):
        text += (
            f"; on fresh questions it pays {times:.2f} times what the known optimum pays for the "
            "same coverage"
        )
    return f"{text}."
