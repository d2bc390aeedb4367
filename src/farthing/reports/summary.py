"""What a comparison found, in plain English, and what to doubt about it."""

from dataclasses import dataclass
from fractions import Fraction

from farthing.experiments.base import Comparison, Difference, Row
from farthing.reports.base import alphas, cheapest_promised, decimal, mean_of, percent, thousand


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
    with a promise could run.
    """
    promised = cheapest_promised(comparison, alpha)
    if not promised:
        return None
    rest = [row for row in promised[1:] if against in (None, row.policy)]
    other = rest[0] if rest else None
    return Finding(
        alpha,
        promised[0],
        other,
        cost_difference(comparison, promised[0], other) if other else None,
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
    """Say for each alpha who is cheapest at the promised coverage, and by how much."""
    return [sentence(comparison, alpha) for alpha in alphas(comparison)]


def sentence(comparison: Comparison, alpha: Fraction) -> str:
    """Say who is cheapest at one alpha, and by how much."""
    found = finding(comparison, alpha)
    if found is None:
        return f"At alpha = {decimal(alpha)} no policy with an exact promise took part."
    return _sentence(found, comparison)


def setting(comparison: Comparison) -> str:
    """Say what was compared on what."""
    sizes = comparison.sizes
    seeds = len(comparison.seeds)
    return (
        f"{len({row.policy for row in comparison.rows})} policies on {comparison.source}: trained "
        f"on {sizes['train']:,} questions, threshold set on {sizes['calibrate']:,}, judged on "
        f"{sizes['test']:,}; {comparison.splits} random divisions into the last two, "
        f"{seeds} training seed{'s' if seeds > 1 else ''}."
    )


def promise(alpha: Fraction) -> str:
    """Say what a split-conformal threshold promises."""
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
        (
            f"One draw of {comparison.sizes['calibrate']:,} calibration questions may land above "
            "or below the promise: look at the spread of the boxes, not at their middle alone."
        ),
        (
            "Policies marked “no promise” are shown with what they happened to reach; a lower cost "
            "at a lower coverage is no saving."
        ),
    ]
    if len(comparison.seeds) == 1:
        found.append("One training seed: how much luck there is in training is not visible here.")
    if comparison.optimum:
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


def _sentence(found: Finding, comparison: Comparison) -> str:
    best, other = found.cheapest, found.other
    text = (
        f"At alpha = {decimal(found.alpha)} {best.label} is the cheapest policy with a promise: "
        f"{thousand(mean_of(best, 'cost_usd'))} per 1,000 questions at a coverage of "
        f"{mean_of(best, 'coverage'):.3f} ({float(1 - found.alpha):g} promised)"
    )
    if other is None:
        return f"{text}; no other policy here makes one."
    text += f", {_by_how_much(found, other)}"
    tops = [cost for cost, coverage in comparison.optimum if coverage >= 1 - found.alpha]
    if tops and min(tops) > 0:
        text += f", and {mean_of(best, 'cost_usd') / min(tops):.2f} times the known optimum"
    return f"{text}."


def _by_how_much(found: Finding, other: Row) -> str:
    base = mean_of(other, "cost_usd")
    less = base - mean_of(found.cheapest, "cost_usd")
    share = f"{less / base:.1%}" if base > 0 else "0 %"
    text = f"{share.replace('%', ' %')} less than {other.label}, the next cheapest"
    if found.difference is None:
        return text
    low, high = -found.difference.high, -found.difference.low
    verdict = "" if low > 0 else ", which includes none at all"
    return (
        f"{text} (saving {thousand(-found.difference.mean)}; "
        f"95 % interval {thousand(low)} to {thousand(high)}{verdict})"
    )
