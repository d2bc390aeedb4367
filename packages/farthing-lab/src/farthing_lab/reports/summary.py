"""What a comparison found, in plain English, and what to doubt about it."""

from dataclasses import dataclass
from fractions import Fraction
from math import isnan

from farthing.promises.certificate import Population
from farthing.promises.texts import decimal, percent
from farthing.promises.wording import of_hundred_covered
from farthing.recommendation.base import OPTIMUM, TIMES_OPTIMUM, Comparison, Difference, Row
from farthing.reports.base import thousand
from farthing_lab.comparison.names import SOLVABLE_ONLY
from farthing_lab.comparison.rows import (
    alphas,
    best,
    cheapest_promised,
    mean_of,
    promised,
    recommended,
    standard_error_of,
)
from farthing_lab.reports import promises

CHANCE = 3
"""Standard errors that a mean may fall short of a promise before chance is a poor excuse."""


@dataclass(frozen=True)
class Finding:
    """The cheapest policy that promises the coverage, and the one it is held against."""

    alpha: Fraction
    cheapest: Row
    other: Row | None
    difference: Difference | None
    """Cost of the cheapest less cost of the other, where it was computed."""


def finding(comparison: Comparison, alpha: Fraction, against: str | None = None) -> Finding | None:
    """Find the cheapest of the policies with an exact promise at one alpha.

    It is held against `against`, or else against the next cheapest of them. None where no policy
    with a promise could run, where each can but return everything or is dominated by a single
    model, and where several cost the same.
    """
    cheapest = best(comparison, alpha)
    if cheapest is None:
        return None
    rest = recommended(comparison, alpha)[1:]
    other = next((row for row in rest if against in (None, row.policy)), None)
    return Finding(
        alpha, cheapest, other, cost_difference(comparison, cheapest, other) if other else None
    )


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
    return [*said, promises.NO_CERTIFICATE] if won else said


def in_plain_words(comparison: Comparison, alpha: Fraction) -> str:
    """Say what a policy with an exact promise promises; empty where nobody promises anything."""
    if comparison.promise is not None:
        return promises.in_plain_words(comparison, alpha)
    if not cheapest_promised(comparison, alpha):
        return ""
    population: Population = "solvable" if SOLVABLE_ONLY in comparison.notes else "all"
    return f"An exact promise means: {of_hundred_covered(alpha, population)}"


def sentence(comparison: Comparison, alpha: Fraction) -> str:
    """Say who is cheapest at one alpha, and by how much."""
    if comparison.promise is not None:
        return promises.sentence(comparison, alpha)
    found = finding(comparison, alpha)
    return f"At alpha = {decimal(alpha)} " + (
        _nobody(comparison, alpha) if found is None else _sentence(found)
    )


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
        return f"{promises.claim(comparison, alpha)} {promises.how_sure(comparison, None)}"
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
        *_about_promise(comparison),
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


def _about_promise(comparison: Comparison) -> list[str]:
    if comparison.promise is not None:
        tested = f"{comparison.sizes['test']:,} test questions"
        return [
            (
                f"Whether a promise was kept is judged on {tested}, whose own luck is in it: a "
                "promise that holds for new questions may fall short there."
            ),
            "The winner was chosen by these very questions, so its figures flatter it.",
        ]
    return [
        (
            f"One draw of {comparison.sizes['calibrate']:,} calibration questions may land above "
            "or below the promise: look at the spread of the boxes, not at their middle alone."
        ),
        (
            "Policies marked “no promise” are shown with what they happened to reach; a lower cost "
            "at a lower coverage is no saving."
        ),
    ]


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


def _sentence(found: Finding) -> str:
    cheapest, other = found.cheapest, found.other
    text = (
        f"{cheapest.label} is the cheapest policy with a promise: "
        f"{thousand(mean_of(cheapest, 'cost_usd'))} per 1,000 questions at a coverage of "
        f"{mean_of(cheapest, 'coverage'):.3f} ({float(1 - found.alpha):g} promised)"
    )
    if cheapest.for_one_answer:
        text += (
            f"; for one answer a question always-{cheapest.for_one_answer} is cheaper and at least "
            "as often right"
        )
    if other is None:
        return f"{text}; no other policy here makes one."
    text += f"{'; it is' if cheapest.for_one_answer else ','} {_by_how_much(found, other)}"
    times = mean_of(cheapest, TIMES_OPTIMUM)
    if not isnan(times):
        text += (
            f"; on fresh questions it pays {times:.2f} times what the known optimum pays for the "
            "same coverage"
        )
    return f"{text}."


def _by_how_much(found: Finding, other: Row) -> str:
    base = mean_of(other, "cost_usd")
    less = base - mean_of(found.cheapest, "cost_usd")
    share = f"{less / base:.1%}" if base > 0 else "0 %"
    text = f"{share.replace('%', ' %')} less than {other.label}, the next cheapest"
    if found.difference is None:
        return text
    low, high = -found.difference.high, -found.difference.low
    verdict = "" if low > 0 else ", so there may be no saving"
    return (
        f"{text} (saving {thousand(-found.difference.mean)}; "
        f"95 % interval {thousand(low)} to {thousand(high)}{verdict})"
    )
