"""Plain text: case, white space, quotes and closing punctuation do not matter.

An object or a list in JSON is compared by its value.
"""

from farthing.tasks.base import ExactMatch
from farthing.tasks.json_value import by_value

_QUOTES = "\"'`“”‘’ "
_CLOSING = _QUOTES + ".,;:!?"
_FENCE = "json "


def normalise(answer: str) -> str:
    """Fold case, join white space, drop enclosing quotes and closing punctuation.

    An answer of nothing but such signs is kept, so that it stays an answer. Signs inside or before
    an answer are kept too: -5 and 5 differ, and so do C and C++.

    >>> normalise('  "The  Eiffel Tower." '), normalise('{"b": 1.0, "a": "Yes"}')
    ('the eiffel tower', '{"a":"yes","b":1}')
    """
    folded = _folded(answer)
    plain = folded.lstrip(_QUOTES).rstrip(_CLOSING) or folded
    value = plain.removeprefix(_FENCE)  # what is left of a code fence
    found = by_value(value, _folded) if value.startswith(("{", "[")) else None
    return plain if found is None else found


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


TEXT = ExactMatch("text", normalise)
"""What a reply in plain words says."""
