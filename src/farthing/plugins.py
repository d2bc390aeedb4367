"""Look things up by name: built-in and third-party ones register alike, as entry points.

The groups are `methods`, `allocators`, `pacers`, `bandits`, `planners`, `estimators`, `agents`,
`guarantees`, `tasks`, `questions`, `importers`, `models`, `studies`, and of a controller's training
`rewards`, `samplers`, `logits_hooks` and `allocations`. A package adds to one with a line in its
`pyproject.toml`::

    [project.entry-points."farthing.tasks"]
    trivia = "my_package.trivia:TRIVIA"
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from farthing.errors import UnknownNameError


@cache
def _registered(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"farthing.{group}")}


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


def _point(group: str, name: str) -> EntryPoint:
    registered = _registered(group)
    if name not in registered:
        raise UnknownNameError(_one_of(group), name, registered)
    return registered[name]


def _one_of(group: str) -> str:
    named = group.replace("_", " ")
    return named.removesuffix("ies") + "y" if named.endswith("ies") else named.removesuffix("s")
