"""Plain text: case, white space, quotes and closing punctuation do not matter."""

from farthing.tasks.base import ExactMatch

_QUOTES = "\"'`“”‘’ "
_CLOSING = _QUOTES + ".,;:!?"


def normalise(answer: str) -> str:
    """Fold case, join white space, drop enclosing quotes and closing punctuation.

    An answer of nothing but such signs is kept, so that it stays an answer. Signs inside or before
    an answer are kept too: -5 and 5 differ, and so do C and C++.

    >>> normalise('  "The  Eiffel Tower." ')
    'the eiffel tower'
    """
    folded = " ".join(answer.casefold().split())
    return folded.lstrip(_QUOTES).rstrip(_CLOSING) or folded


TEXT = ExactMatch("text", normalise)
