"""A recommendation on one screen: money first, then what is proved, then what was tried."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from rich.console import Group
from rich.text import Text

from farthing.money import significant
from farthing.process.value import AnswerFigures
from farthing.recommendation.record import Recommendation
from farthing.reports.table import Table
from farthing.traces.thinking import is_thought

SHOWN = 6
"""Of those that were tried."""


@dataclass(frozen=True)
class OfTraffic:
    """Questions that passed through a gateway."""

    requests: int
    """All that were exported."""


def screen(
    found: Recommendation,
    source: str,
    out: str | None,
    traffic: OfTraffic | None = None,
    following: str | None = None,
) -> Group:
    """Say what is paid today, what would be paid, what is proved, and what to do next.

    `out` is where the bundle is; None: it was not written. `following` is the next command, where
    it is known.
    """
    return Group(
        Text(f"{source}: {advice(found)}", style="bold", overflow="fold"),
        Text(""),
        models(found),
        Text(""),
        *(Text(line) for line in _lines(found)),
        *(Text(line) for line in _of_traffic(found, traffic)),
        Text(""),
        Text(_next(found, out, traffic) if following is None else following),
    )


def advice(found: Recommendation) -> str:
    """Say what to do, in a few words."""
    if found.found.value.instead is not None and not found.found.value.one_answer:
        return f"use {found.found.value.instead} alone; nothing learned here does better"
    if found.nothing_cheaper:
        return f"keep asking {found.reference}; nothing cheaper is proved"
    if (alone := _only_asks(found)) is not None:
        unlike = "" if found.name == f"always-{alone}" else f"; that is all that {found.name} asks"
        return f"use {alone} alone{unlike}"
    return f"use {found.name}"


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
    headings = ("", "USD a question", found.measure, "median s", "95 % in s")
    return Table.of(headings, lines, bold=(0,))


def _row(label: str, figures: AnswerFigures) -> tuple[str, ...]:
    times = ("–", "–") if figures.latency_s is None else map(significant, figures.latency_s)
    return (label, significant(figures.cost_usd), f"{figures.accuracy:.3f}", *times)


def _lines(found: Recommendation) -> Iterator[str]:
    """Yield the saving, the proof, what came of it, and who was tried."""
    value, certificate, judged = found.found.value, found.certificate, found.found.judged
    theirs = found.models.get(found.reference or "")
    if found.guessed and theirs is not None:
        cost = significant(theirs.cost_usd)
        yield f"You pay ${cost} a question today if it is {found.reference} that you pay for."
    if found.nothing_cheaper:
        yield f"Nothing is saved: {found.reference} answers every question."
    else:
        yield " ".join(value.findings())
    if certificate is not None:
        yield f"Promise: {certificate.sentence()}"
        yield f"In plain words: {certificate.plain_language()}"
    if judged is not None:
        yield judged.sentence()
    yield questions(found)
    tried = ", ".join(
        f"{trial.name} ${significant(trial.expected_usd)}" for trial in found.trials[:SHOWN]
    )
    more = f" and {len(found.trials) - SHOWN} more" if len(found.trials) > SHOWN else ""
    yield f"Tried, with the cost of a question that was expected: {tried}{more}."
    yield from evidence(found)
    yield from (f"Note: {note.rstrip('.')}." for note in found.notes)


def tried(found: Recommendation) -> Table:
    """Return the methods that were tried, the cheapest expected first."""
    headings = ("", "expected USD a question", f"expected {found.measure}", "share of the risk")
    lines = [
        (
            trial.name,
            significant(trial.expected_usd),
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
        bought = ", ".join(f"${significant(cost)} with {n:,}" for n, cost in found.curve)
        yield f"More training questions, and what a question then costs: {bought}."
    beside = [f"{trial.name} {float(trial.share):.2g}" for trial in found.trials if trial.share]
    if len(beside) > 1:
        yield f"Tested together, each at its share of the risk of error: {', '.join(beside)}."
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


def _of_traffic(found: Recommendation, traffic: OfTraffic | None) -> Iterator[str]:
    """Say what questions that prove take of a gateway's traffic, where more of them are needed."""
    prove, certificate = found.sizes["prove"], found.certificate
    if traffic is not None and prove and certificate is not None and not certificate.promises:
        yield (
            f"A calibration question takes about {ceil(traffic.requests / prove):,} requests of "
            f"such traffic: of {traffic.requests:,}, {sum(found.sizes.values()):,} were answered "
            f"by every model, and {prove:,} of those prove. A larger `share` under [record] has "
            "more of them tried."
        )


def _next(found: Recommendation, out: str | None, traffic: OfTraffic | None) -> str:
    """Say what to do now, with a gateway or without one."""
    if traffic is None and out is None:
        return "Next: give --out FOLDER to keep the bundle (in Python, save it)."
    if traffic is None and is_thought(found.bundle.origin.roles):
        return (
            f'Next: farthing ask job.toml --bundle {out} "a question", with an [agents.thought] in '
            "job.toml that is stopped at these cuts."
        )
    if traffic is None:
        return (
            f'Next: farthing ask job.toml --bundle {out} "a question", with your models in '
            "job.toml."
        )
    if found.certificate is None or not found.certificate.promises:
        return (
            "Next: let the gateway record more, then run both commands again. Until something is "
            f"proved its strongest model answers{'' if out is None else ', whatever is in ' + out}."
        )
    if out is None:
        return "Next: give --out FOLDER to keep the bundle, for the gateway to read."
    return (
        f"Next: `bundle = \"{out}\"` in the policy's section of the gateway's configuration; "
        "farthing serve --watch reads it by itself."
    )
