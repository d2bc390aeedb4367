"""`farthing methods`: every method there is, from its card."""

from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.text import Text

from farthing.cli.console import show, show_json
from farthing.cli.options import Json
from farthing.reports.table import Table

if TYPE_CHECKING:
    from farthing.methods.base import Method, SystemCard

MEANING = {
    "agent": "work with tools or a memory, within a budget",
    "allocator": "share one budget among the items of a batch",
    "bandit": "learn whom to ask from grades as they come",
    "estimator": "say how likely a model is right",
    "pacer": "spread a day's budget over the day",
    "planner": "simulate what may follow before they act",
}
"""What systems of a kind do."""


def methods(as_json: Json = False) -> None:
    """List every method: what it does, in which action spaces, and what it needs.

    Policies first, then systems of other kinds, such as allocators and pacers, with the pages that
    say how to use them. Those of other packages that are installed stand beside the built-in ones.

    Example: farthing methods --json
    """
    from farthing.methods.cards import cards, systems

    found, others = cards(), systems()
    if as_json:
        show_json([*map(_record, found), *map(_system_record, others)])
        return
    show(_table(found, others))
    show(Text("Train one: farthing train --policy NAME; hold several together: farthing compare."))


def _record(card: "Method") -> dict[str, Any]:
    return {
        **_common(card),
        "action_spaces": list(card.action_spaces),
        "needs": list(card.needs),
        "replayable": card.replayable,
    }


def _system_record(card: "SystemCard") -> dict[str, Any]:
    return {**_common(card), "page": card.page or None}


def _common(card: "Method | SystemCard") -> dict[str, Any]:
    return {
        "name": card.name,
        "label": card.label,
        "kind": card.kind,
        "paper": card.paper or None,
        "meaning": card.meaning,
        "extras": list(card.extras),
    }


def _table(found: "list[Method]", others: "list[SystemCard]") -> Table:
    """Return one table, a section for each kind."""
    lines, kinds = [], []
    for card in found:
        needs = f" (needs {', '.join(card.needs)})" if card.needs else ""
        spaces = ", ".join(card.action_spaces[:1])
        lines.append((card.name, f"{card.meaning}{needs}", spaces, card.paper or "–"))
    for kind, systems in groupby(others, key=lambda other: other.kind):
        of_kind = list(systems)
        pages = ", ".join(sorted({other.page for other in of_kind if other.page}))
        kinds.append(len(lines))
        lines.append((f"{kind}s".capitalize(), f"{MEANING[kind]}: {pages}", "", ""))
        lines += [(other.name, other.meaning, "", other.paper or "–") for other in of_kind]
    headings, layout = (
        ("Method", "What it does", "Asks in", "arXiv"),
        ("word", "prose", "word", "word"),
    )
    return Table.of(headings, lines, bold=kinds, layout=layout, rules=kinds)
