"""Look things up by name: built-in and third-party ones register alike, as entry points.

The groups are `methods`, `allocators`, `pacers`, `bandits`, `planners`, `estimators`, `agents`,
`thinkers`, `guarantees`, `tasks`, `questions`, `importers`, `models`, `sections` (of a job's
agents), `engines` (of a collection), `studies`, and of a controller's training `rewards`,
`samplers`, `logits_hooks` and `allocations`; `commands`, `servers` (which serve a bundle) and
`deciders` (of a gateway's policy) are how the project's packages meet. A package adds to one with a
line in its `pyproject.toml`::

    [project.entry-points."farthing.tasks"]
    trivia = "my_package.trivia:TRIVIA"

What stands in a script or a notebook is registered with `add`, for this process.
"""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from farthing.errors import InputError, MissingPackageError, UnknownNameError

GATEWAY, LAB = "farthing-gateway", "farthing-lab"
OURS = frozenset({"farthing", GATEWAY, LAB})
"""The packages that register what is built in."""
_BROUGHT_BY = {"sections": LAB, "engines": LAB, "deciders": LAB}
"""Group to the package that brings what is asked for there, where it is not installed."""


@dataclass(frozen=True)
class Added:
    """What this process registered, which reads as an entry point does."""

    name: str
    thing: Any
    value: str = ""

    def load(self) -> Any:
        """Return it."""
        return self.thing


_ADDED: dict[str, dict[str, Added]] = {}


@cache
def _registered(group: str) -> dict[str, EntryPoint | Added]:
    installed = {point.name: point for point in entry_points(group=f"farthing.{group}")}
    return installed | _ADDED.get(group, {})


def add(group: str, name: str, thing: Any) -> None:
    """Register something under a name in this process; another of that name takes its place.

    Raises:
        InputError: an installed package has registered the name.

    >>> add("tasks", "shouting", object())
    >>> "shouting" in names("tasks")
    True
    >>> remove("tasks", "shouting")
    """
    if isinstance(_registered(group).get(name), EntryPoint):
        raise InputError(f"there is a {_one_of(group)} '{name}' already; give yours another name")
    _ADDED.setdefault(group, {})[name] = Added(name, thing)
    _registered.cache_clear()


def remove(group: str, name: str) -> None:
    """Forget what this process registered under a name; nothing is done where it did not."""
    _ADDED.get(group, {}).pop(name, None)
    _registered.cache_clear()


def package_of(group: str, name: str) -> str | None:
    """Return the package that registered a name; None where this process did.

    >>> package_of("tasks", "text")
    'farthing'
    """
    point = _point(group, name)
    return point.dist.name if isinstance(point, EntryPoint) and point.dist else None


def names(group: str) -> list[str]:
    """Return every name registered under a group (`tasks`, `methods`, ...), sorted.

    >>> "hotpotqa" in names("tasks")
    True
    """
    return sorted(_registered(group))


def load(group: str, name: str) -> Any:
    """Load what is registered under a name.

    Raises:
        UnknownNameError: nothing has that name; the message lists the names there are.
    """
    return _point(group, name).load()


def target(group: str, name: str) -> str:
    """Return where what is registered under a name stands, `module:name`, without loading it.

    Raises:
        UnknownNameError: nothing has that name; the message lists the names there are.
    """
    return _point(group, name).value


def name_of(group: str, kind: type) -> str:
    """Return the name that a class is registered under (of several, the first in the alphabet).

    Raises:
        UnknownNameError: it is not registered; the message lists the names there are.
    """
    target = f"{kind.__module__}:{kind.__qualname__}"
    for name, point in sorted(_registered(group).items()):
        if point.value == target:
            return name
    raise UnknownNameError(_one_of(group), target, _registered(group))


def _point(group: str, name: str) -> EntryPoint | Added:
    registered = _registered(group)
    if name not in registered and group in _BROUGHT_BY:
        raise MissingPackageError(f"{_one_of(group)} '{name}'", _BROUGHT_BY[group])
    if name not in registered:
        raise UnknownNameError(_one_of(group), name, registered, more_names())
    return registered[name]


def more_names() -> str:
    """Return where more names come from, to end a message; empty where all are installed."""
    more = f"; more come with {LAB}; in a clone: pip install ./packages/{LAB}"
    return "" if "compare" in _registered("commands") else more


def _one_of(group: str) -> str:
    named = group.replace("_", " ")
    return named.removesuffix("ies") + "y" if named.endswith("ies") else named.removesuffix("s")
