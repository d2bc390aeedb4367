"""What a recommendation says: the money, the promise, what to do next; details where asked for."""

from collections.abc import Iterator
from math import ceil
from textwrap import shorten

from rich.console import Group
from rich.text import Text

from farthing.money import significant
from farthing.process.value import AnswerFigures
from farthing.promises.certificate import AskedOf
from farthing.promises.texts import percent
from farthing.recommendation.record import Recommendation
from farthing.reports.base import thousand
from farthing.reports.payer import in_percent
from farthing.reports.table import Table
from farthing.traces.pool import is_thought

MONTH = 30
"""Days."""
WIDTH = 80
"""Columns that a caveat may take."""
UNCOUNTED = "It assumes a first proof on these questions; only a store (.db) counts proofs."


def screen(
    found: Recommendation,
    source: str,
    out: str | None,
    traffic: int | None = None,
    following: str | None = None,
    *,
    counted: bool = False,
    details: bool = False,
) -> Group:
    """Say what is paid today, what would be paid, what is proved, and what to do next.

    Args:
        found: the recommendation.
        source: what the questions are called.
        out: where the bundle is; None: it was not written.
        traffic: how many requests were exported, where they passed through a gateway.
        following: what to do next, where that is known; empty: the caller says so.
        counted: whether a store counts the proofs on these questions.
        details: whether to add what was tried.
    """
    if following is None:
        more = "--details adds the methods tried, the sizes, the exact promise and all notes."
        following = f"{_next(found, out, traffic)}\n{more}"
    caveats = [shorten(f"Note: {note}", WIDTH, placeholder=" ...") for note in found.caveats]
    parts = (money(found), [*_promise(found, traffic, counted=counted), *caveats], [following])
    lines = [line for part in map(list, parts) if any(part) for line in ("", *part)]
    title = Text(f"{source}: {advice(found)}", style="bold", overflow="fold")
    return Group(title, *map(Text, lines), *(("", in_detail(found)) if details else ()))


def in_detail(found: Recommendation) -> Group:
    """Say what was tried on which questions, what exactly is promised, and what to doubt."""
    certificate, judged = found.certificate, found.found.judged
    parts = [questions(found)]
    parts += [certificate.sentence()] if certificate else []
    parts += [judged.sentence()] if judged else []
    parts += [*evidence(found), *(f"Note: {note.rstrip('.')}." for note in found.notes)]
    methods = (tried(found), "") if found.trials else ()
    return Group(models(found), "", *methods, *map(Text, parts))


def advice(found: Recommendation) -> str:
    """Say what to do, in a few words."""
    value = found.found.value
    if value.instead is not None and not value.one_answer:
        return f"use {value.instead} alone; nothing learned here does better"
    if found.nothing_cheaper:
        return f"no saving is proved; keep asking {found.reference}"
    low, high = found.found.saved_within or (0.0, 0.0)
    if value.saved is not None and low <= 0 <= high:
        return f"no saving is proved; {found.name} may cost as much as {found.reference}"
    if (alone := _only_asks(found)) is not None:
        unlike = "" if found.name == f"always-{alone}" else f"; that is all that {found.name} asks"
        return f"use {alone} alone{unlike}"
    if value.saved is None:
        return f"use {found.name}"
    saved = f"save {value.saved:.0%}" if low > 0 else f"pay {-value.saved:.0%} more"
    return f"use {found.name} and {saved}".replace("%", " %")


def _only_asks(found: Recommendation) -> str | None:
    """Return the model that answers everything under what is recommended; None where several do."""
    yours = found.found.value.yours
    total = (yours.cost_nano, yours.right)
    same = [
        name
        for name, each in found.models.items()
        if each and (each.cost_nano, each.right) == total
    ]
    return same[0] if len(same) == 1 else None


def money(found: Recommendation) -> Iterator[str]:
    """Yield what is paid today, what would be, and what that saves, each a month where known."""
    value, theirs = found.found.value, found.models.get(found.reference or "")
    rate = MONTH * found.requests_per_day if found.requests_per_day else None
    if theirs is not None:
        yield f"You pay        {_paid(theirs.cost_usd, rate)} ({found.reference} alone)"
    if not found.nothing_cheaper:
        yield f"You would pay  {_paid(value.yours.cost_usd, rate)} ({found.name})"
    if value.missing:
        yield f"{value.missing}."
    elif value.saved is not None and found.found.saved_within and not found.nothing_cheaper:
        ends = " to ".join(in_percent(end) for end in found.found.saved_within)
        within = f"{ends}, {percent(found.found.confidence)} confidence"
        less = rate and theirs and rate * (theirs.cost_usd - value.yours.cost_usd)
        a_month = f", ${significant(less)} a month" if less and less > 0 else ""
        yield f"Saved          {in_percent(value.saved)} ({within}){a_month}"
    if rate:
        yield f"A month is {MONTH} days at this log's rate, {rate / MONTH:,.0f} requests a day."


def _paid(usd: float, rate: float | None) -> str:
    each = f"{thousand(usd)} per 1,000 requests"
    return each if rate is None else f"{each}, ${significant(rate * usd)} a month"


def _promise(found: Recommendation, traffic: int | None, *, counted: bool) -> Iterator[str]:
    """Yield what is promised of which questions, or what would probably be proved."""
    certificate, prove = found.certificate, found.sizes["prove"]
    if certificate is None:
        yield "Nothing is promised."
    elif certificate.promises:
        yield f"Promise: {certificate.plain_language()}"
        if (asked_of := certificate.asked_of) is not None:
            yield _population(asked_of)
        if not counted:
            yield UNCOUNTED
    else:
        yield found.outlook or certificate.plain_language()
        if traffic is not None and prove:
            yield (
                f"Every model answered {sum(found.sizes.values()):,} of {traffic:,} requests, and "
                f"{prove:,} of those prove: one in some {ceil(traffic / prove):,} requests. A "
                "larger `share` under [record] takes fewer."
            )


def _population(asked_of: AskedOf) -> str:
    """Say in a line which questions a promise covers."""
    if asked_of.missing == "worst":
        return "Where a call was not recorded, the worst was assumed."
    if asked_of.weighted or asked_of.missing == "chance":
        return "It holds for all recorded questions if chance alone left calls out."
    some = f"the {asked_of.questions:,} of {asked_of.recorded:,}"
    return f"It covers questions like {some} that all models were asked."


def models(found: Recommendation) -> Table:
    """Return what a question costs with what is recommended, and with each model alone."""
    proved = found.certificate is not None and found.certificate.promises
    label = f"{found.name}, proved" if proved else found.name
    lines = [_row(label, found.found.value.yours)]
    alone = {name: each for name, each in found.models.items() if each is not None}
    for name, each in sorted(alone.items(), key=lambda item: -item[1].cost_nano):
        mark = " (guessed)" if found.guessed else " (reference)"
        label = f"{name} alone{mark if name == found.reference else ''}"
        lines.append(_row(label, each))
    for name, missing in found.models.items():
        if missing is None:
            lines.append((f"{name} alone", "not recorded", "", "", ""))
    headings = ("", "USD per 1,000", found.measure, "median s", "95 % in s")
    return Table.of(headings, lines, bold=(0,))


def _row(label: str, figures: AnswerFigures) -> tuple[str, ...]:
    times = ("–", "–") if figures.latency_s is None else map(significant, figures.latency_s)
    return (label, significant(1_000 * figures.cost_usd), f"{figures.accuracy:.3f}", *times)


def tried(found: Recommendation) -> Table:
    """Return the methods that were tried, the cheapest expected first."""
    headings = ("tried", "expected USD per 1,000", found.measure, "share of the risk")
    lines = [
        (
            trial.name,
            significant(1_000 * trial.expected_usd),
            f"{trial.accuracy:.3f}",
            f"{float(trial.share):.2g}" if trial.share else "not tested",
        )
        for trial in found.trials
    ]
    return Table.of(headings, lines)


def evidence(found: Recommendation) -> Iterator[str]:
    """Yield what trained, what was tested together, and what could not run."""
    if found.reference:
        withholds = found.certificate is not None and found.certificate.promise.withholds
        where = "nothing is answered or proved" if withholds else "nothing would be proved"
        yield f"An expected cost counts {found.reference}'s price where {where}."
    if len(found.curve) > 1:
        bought = ", ".join(f"{thousand(cost)} with {n:,}" for n, cost in found.curve)
        yield f"Cost of 1,000 requests by the number of training questions: {bought}."
    if found.skipped:
        yield "Could not run: " + "; ".join(f"{name} ({why})" for name, why in found.skipped) + "."


def questions(found: Recommendation) -> str:
    """Say how many questions trained, chose and proved, and which of them the figures are of."""
    n = found.sizes
    chose = f"{n['choose']:,} chose, " if n["choose"] else ""
    did = f"{n['train']:,} questions trained, {chose}{n['prove']:,} proved"
    if found.held_out:
        return f"{did}. The figures are of {n['report']:,} others."
    return (
        f"{did}. The figures are of those that proved; their intervals allow for the choice "
        "(approximately, by a bootstrap)."
    )


def _next(found: Recommendation, out: str | None, traffic: int | None) -> str:
    """Say what to do now, with a gateway or without one."""
    if found.certificate is None or not found.certificate.promises:
        if traffic is None:
            return "Next: record more questions, or promise less (--epsilon, --alpha)."
        return (
            "Next: let the gateway record more, then run both commands again. Until something is "
            f"proved its strongest model answers{'' if out is None else ', whatever is in ' + out}."
        )
    if out is None:
        return "Next: give --out FOLDER to keep the bundle."
    if traffic is not None:
        return (
            f"Next: `bundle = \"{out}\"` in the policy's section of the gateway's configuration; "
            "farthing serve --watch reads it by itself."
        )
    cut = "an [agents.thought] in job.toml that is stopped at these cuts"
    job = cut if is_thought(found.bundle.origin.roles) else "your models in job.toml"
    return f'Next: farthing ask job.toml --bundle {out} "a question", with {job}.'
