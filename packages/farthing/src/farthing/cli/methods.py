"""`farthing methods`: every method there is, from its card."""

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rich.text import Text

from farthing import plugins
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
    "thinker": "teach a model to think no longer than it must",
}
"""What systems of a kind do."""


def methods(as_json: Json = False) -> None:
    """List every method: what it does, in which action spaces, and what it needs.

    Policies first, then systems of other kinds, such as allocators and pacers, with the pages that
    say how to use them. Those of other packages that are installed stand last, under their names.

    Example: farthing methods --json
    """
    from farthing.methods.cards import cards, systems

    found, others = cards(), systems()
    if as_json:
        pages = [{**_common(card), "page": card.page or None} for card in others]
        show_json([*map(_record, found), *pages])
        return
    show(_table([*found, *others]))
    show(Text("Train one: farthing train --policy NAME; hold several together: farthing compare."))


def _record(card: "Method") -> dict[str, Any]:
    return {
        **_common(card),
        "action_spaces": list(card.action_spaces),
        "needs": list(card.needs),
        "replayable": card.replayable,
    }


def _common(card: "Method | SystemCard") -> dict[str, Any]:
    return {
        "name": card.name,
        "label": card.label,
        "kind": card.kind,
        "package": _package(card),
        "paper": card.paper or None,
        "meaning": card.meaning,
        "extras": list(card.extras),
    }


def _package(card: "Method | SystemCard") -> str | None:
    group = "methods" if card.kind == "policy" else f"{card.kind}s"
    return plugins.package_of(group, card.name)


def _table(found: "list[Method | SystemCard]") -> Table:
    ours = [card for card in found if _package(card) in plugins.OURS]
    others = [(str(_package(card)), card) for card in found if card not in ours]
    lines: list[tuple[str, ...]] = []
    sections: list[int] = []
    for kind, of_kind in groupby(ours, key=lambda card: card.kind):
        cards = list(of_kind)
        if kind != "policy":
            pages = ", ".join(sorted({getattr(card, "page", "") for card in cards} - {""}))
            sections.append(len(lines))
            lines.append((f"{kind}s".capitalize(), f"{MEANING[kind]}: {pages}", "", ""))
        lines += map(_line, cards)
    for package, of_package in groupby(sorted(others, key=itemgetter(0)), key=itemgetter(0)):
        sections.append(len(lines))
        lines.append((package, "Another package's", "", ""))
        lines += [_line(card) for _, card in of_package]
    headings, layout = (
        ("Method", "What it does", "Asks in", "arXiv"),
        ("word", "prose", "word", "word"),
    )
    return Table.of(headings, lines, bold=sections, layout=layout, rules=sections)


def _line(card: "Method | SystemCard") -> tuple[str, str, str, str]:
    needs = getattr(card, "needs", ())
    meaning = f"{card.meaning} (needs {', '.join(needs)})" if needs else card.meaning
    space = next(iter(getattr(card, "action_spaces", ())), "")
    return card.name, meaning, space, card.paper or "–"
