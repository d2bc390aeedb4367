"""What `farthing corl certify` shows: money first, then what is proved, then each mode."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group
from rich.text import Text

from farthing.money import rounded_usd, significant, usd_from_nano
from farthing.process.value import AnswerFigures
from farthing.reports.table import Table
from farthing_lab.corl.certificate import Certified
from farthing_lab.corl.traces import role_of

Record = dict[str, Any]


def certified(found: Certified) -> Group:
    """Say which mode to use and what that saves, what is promised, and what came of it."""
    return Group(
        Text(_money(found), style="bold"),
        Text(""),
        _modes(found),
        Text(""),
        *(Text(line) for line in _lines(found)),
    )


def certified_record(found: Certified) -> Record:
    """Return the same as JSON values; costs are those of a question."""
    judged, value = found.found.judged, found.found.value
    return {
        "pool": found.pool,
        "mode": found.mode and found.mode.name,
        "reference": {"name": found.recorded.reference, **_figures(_theirs(found))},
        "measure": value.measure,
        "saved": value.saved,
        "saved_interval": value.saved_interval,
        "gained": value.gained,
        "gained_interval": value.gained_interval,
        "promise": found.certificate.sentence(),
        "kept": judged is None or judged.verdict == "kept",
        "verdict": judged and judged.sentence(),
        "modes": {
            mode.name: {
                "budget_usd": usd_from_nano(mode.budget_nano),
                **_figures(found.figures[role_of(mode)]),
            }
            for mode in found.recorded.modes
        },
        "questions": found.sizes,
        "outlook": found.outlook,
        "certificate": found.certificate.to_json(),
    }


def _money(found: Certified) -> str:
    reference, theirs = found.recorded.reference, _theirs(found)
    if found.mode is None:
        each = f"${significant(theirs.cost_usd)} a question"
        return f"Keep asking {reference}, {each}: nothing cheaper is proved."
    ours = found.found.value.yours
    return (
        f"Use the mode {found.mode.name}: ${significant(ours.cost_usd)} a question, where "
        f"{reference} alone costs ${significant(theirs.cost_usd)}."
    )


def _modes(found: Certified) -> Table:
    lines = []
    for mode in found.recorded.modes:
        label = f"{mode.name}, proved" if mode == found.mode else mode.name
        lines.append(_row(label, found.figures[role_of(mode)]))
    lines.append(_row(f"{found.recorded.reference} alone (reference)", _theirs(found)))
    return Table.of(("", "USD a question", found.found.value.measure), lines)


def _row(label: str, figures: AnswerFigures) -> tuple[str, str, str]:
    return label, significant(figures.cost_usd), f"{figures.accuracy:.3f}"


def _lines(found: Certified) -> Iterator[str]:
    judged, n = found.found.judged, found.sizes
    which = ""
    if found.mode is not None:
        yield found.found.value.findings()[0]
        which = f" That point is the mode {found.mode.name}."
    yield f"Promise: {found.certificate.sentence()}{which}"
    yield f"In plain words: {found.certificate.plain_language()}"
    if judged is not None:
        yield judged.sentence()
    if found.outlook:
        yield found.outlook
    yield (
        f"{n['train']:,} questions chose the reference and the order, {n['calibrate']:,} proved; "
        f"the figures are of {n['test']:,} others."
    )


def _theirs(found: Certified) -> AnswerFigures:
    return found.figures[found.recorded.reference]


def _figures(figures: AnswerFigures) -> Record:
    return {"cost_usd": rounded_usd(figures.cost_usd), "accuracy": figures.accuracy}
