"""The table of docs/research/methods.md names all that is registered, its paper and its gain."""

import re
from pathlib import Path

from farthing import plugins
from farthing.methods.cards import cards, systems

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/research/methods.md").read_text()
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]


def named() -> set[str]:
    """Return what stands in backticks in the first cell of a row."""
    return {name for row in ROWS for name in re.findall(r"`([^`]+)`", row[0])}


def test_every_policy_and_system_has_a_row() -> None:
    registered = {card.name for card in cards()} | {card.name for card in systems()}
    assert registered - named() == set()


def test_every_part_of_a_controllers_training_has_a_row() -> None:
    parts = {
        name
        for group in ("rewards", "samplers", "logits_hooks", "allocations")
        for name in plugins.names(group)
    }
    assert parts - named() == set()


def test_every_row_says_what_the_method_is_held_to_and_what_it_gained() -> None:
    assert [row[0] for row in ROWS if any(not cell.strip(" |") for cell in row)] == []


def test_the_page_of_every_system_exists_and_names_it() -> None:
    for card in systems():
        page = (ROOT / card.page).read_text()
        assert f"`{card.name}`" in page, card.name


def test_papers_are_those_of_the_cards() -> None:
    """A row of each registered system names the paper of its card."""
    papers = {card.name: card.paper for card in cards()} | {s.name: s.paper for s in systems()}
    first = [row[0] for row in ROWS]
    for name, paper in papers.items():
        assert any(f"`{name}`" in cell and paper in cell for cell in first), name
