"""Every method there is, by name: built-in and third-party ones register alike.

A package adds one with one line in its `pyproject.toml`::

    [project.entry-points."farthing.methods"]
    mine = "my_package:CARD"
"""

from inspect import getdoc
from typing import Any

from farthing import plugins
from farthing.errors import UnknownNameError
from farthing.methods.base import Method, Saveable, SystemCard, load, place_of
from farthing.process.base import Policy

GROUP = "methods"
SYSTEMS = ("allocators", "bandits", "planners", "estimators", "agents", "thinkers")
"""Groups whose entry points are cards of systems that are no policies."""


def cards() -> list[Method]:
    """Return every card, in the order in which tables list them.

    >>> [card.name for card in cards()][:2]
    ['random', 'llm-policy-guide']
    """
    found = [plugins.load(GROUP, name) for name in plugins.names(GROUP)]
    return sorted(found, key=lambda card: (card.place, card.name))


def card(name: str) -> Method:
    """Return the card of a method."""
    found: Method = plugins.load(GROUP, name)
    return found


def policy_class(name: str) -> type[Saveable]:
    """Return the class of the policies that a method makes."""
    found: type[Saveable] = load(card(name).policy)
    return found


def name_of(policy: Policy) -> str:
    """Return the name of a method that makes policies of this class: the first in the alphabet."""
    place = place_of(type(policy))
    names = sorted(card.name for card in cards() if card.policy_place == place)
    if not names:
        raise UnknownNameError("method", place, plugins.names(GROUP))
    return names[0]


def systems() -> list[SystemCard]:
    """Return the cards of all that is no policy, kind by kind, in the order of tables.

    A pacer is registered as itself, since money lies below methods; its card is made of it.

    >>> [card.name for card in systems() if card.kind == "allocator"][:2]
    ['lagrangian', 'rco']
    """
    pacers = [_of_pacer(name) for name in plugins.names("pacers")]
    found = [plugins.load(group, name) for group in SYSTEMS for name in plugins.names(group)]
    return sorted([*found, *pacers], key=lambda card: (card.kind, card.place, card.name))


def system(kind: str, name: str) -> Any:
    """Return what a card of a kind makes: for `allocator` an `Allocator`, for `pacer` a pacer."""
    found = plugins.load(f"{kind}s", name)
    return load(found.make) if isinstance(found, SystemCard) else found


def _of_pacer(name: str) -> SystemCard:
    pacer = plugins.load("pacers", name)
    said = getattr(pacer, "meaning", "") or (getdoc(pacer) or "").partition("\n")[0]
    return SystemCard(
        name=name,
        label=name,
        meaning=said.rstrip("."),
        kind="pacer",
        make=plugins.target("pacers", name),
        paper=getattr(pacer, "paper", ""),
        page="docs/research/pacing.md",
    )
