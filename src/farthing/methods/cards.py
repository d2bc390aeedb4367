"""Every method there is, by name: built-in and third-party ones register alike.

A package adds one with one line in its `pyproject.toml`::

    [project.entry-points."farthing.methods"]
    mine = "my_package:CARD"
"""

from farthing import plugins
from farthing.errors import UnknownNameError
from farthing.methods.base import Method, Saveable, load
from farthing.process.base import Policy

GROUP = "methods"


def cards() -> list[Method]:
    """Return every card, in the order in which tables list them.

    >>> [card.name for card in cards()][:2]
    ['random', 'llm-policy-guide']
    """
    found = [plugins.load(GROUP, name) for name in plugins.names(GROUP)]
    return sorted(found, key=lambda card: (card.place, card.name))


def card(name: str) -> Method:
    """Return the card of a method.

    Raises:
        UnknownNameError: nothing has that name; the message lists the names there are.
    """
    found: Method = plugins.load(GROUP, name)
    return found


def policy_class(name: str) -> type[Saveable]:
    """Return the class of the policies that a method makes.

    Raises:
        UnknownNameError: there is no such method.
    """
    found: type[Saveable] = load(card(name).policy)
    return found


def name_of(policy: Policy) -> str:
    """Return the name of a method that makes policies of this class: the first in the alphabet.

    Raises:
        UnknownNameError: none does.
    """
    place = f"{type(policy).__module__}:{type(policy).__qualname__}"
    names = sorted(one.name for one in cards() if one.policy == place)
    if not names:
        raise UnknownNameError("method", place, plugins.names(GROUP))
    return names[0]
