"""What who pays is told of a comparison first."""

from fractions import Fraction
from math import isnan

from farthing.promises import wording
from farthing.promises.texts import signed
from farthing.recommendation.base import GAINED, SAVED, Comparison, Row
from farthing.reports.base import best, mean_of
from farthing.reports.payer import NOT_ALONE, Offer, in_percent, paid, within_ends
from farthing_lab.reports import promises, summary
from farthing_lab.reports.promises import goal_of


def offer(comparison: Comparison, alpha: Fraction) -> Offer:
    """Return what the first screen of a report says about one alpha."""
    row, today = best(comparison, alpha), comparison.today
    saved, within = _saved(row)
    ours = theirs = None
    if today is not None:
        theirs = paid(f"Always {today.role}", today.cost_usd, today.accuracy)
    if row is not None:
        ours = paid(row.label, mean_of(row, "cost_usd"), mean_of(row, "accuracy"))
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


def _saved(row: Row | None) -> tuple[str, str]:
    """Return what is saved and its interval, or why that is not known."""
    if row is None:
        return "–", "nobody wins"
    if SAVED not in row.intervals:
        return "–", f"the models were {NOT_ALONE}"
    return in_percent(mean_of(row, SAVED)), within_ends(row.intervals[SAVED], in_percent)


def _gained(row: Row) -> str:
    gained = mean_of(row, GAINED)
    if isnan(gained):
        return ""
    return f"accuracy {signed(gained)} ({within_ends(row.intervals[GAINED], signed)})"
