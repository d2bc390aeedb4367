"""How many tokens a reply in pieces can have so far: no more than its text has bytes.

That bounds what a provider charges for a stream that is left, if what it writes is what it sends.
A model that thinks in silence writes more; of a model that is not known to write nothing of the
kind, the text is no bound.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from farthing.models.base import Usage
from farthing.models.thinking import NONE, effort_of

AHEAD = 64
"""Tokens that a provider may write before it notices that nobody listens, beside one piece."""
_SILENT = ("reasoning", "reasoning_effort", "thinking", "enable_thinking", "prediction")
"""Parameters that ask for tokens which nobody is shown."""
_THOUGHT = re.compile(rb'"reasoning_tokens"\s*:\s*[1-9]')


@dataclass
class HiddenTokens:
    """Whether a model shows all that it writes, as far as its whole streams tell."""

    known: bool | None = None
    """None: no whole stream of it was seen yet."""

    def learn(self, usage: Usage, counts: bytes, text: int) -> None:
        """Compare what a whole stream was charged with its text; once it hid something, it may.

        Args:
            usage: as the provider counted it.
            counts: the same, as it came.
            text: the most tokens that the text can have.
        """
        hidden = usage.output_tokens > text or _THOUGHT.search(counts) is not None
        self.known = self.known is not False and not hidden


@dataclass
class StreamedTokens:
    """The text of one reply so far."""

    tokens: int = 0
    """The most that it can have."""
    longest: int = 0
    """The most that one of its pieces can have."""

    def add(self, choices: Sequence[Any]) -> None:
        """Count a piece."""
        piece = sum([max(1, _length(one)) for one in choices])
        self.tokens += piece
        self.longest = max(self.longest, piece)

    def bound(self, most: Usage) -> Usage:
        """Return the most that it took if it is left now.

        Args:
            most: what it could have taken as a whole.
        """
        output = min(most.output_tokens, self.tokens + self.longest + AHEAD)
        return Usage(most.input_tokens, output, estimated=True)


def is_silent(wanted: Mapping[str, Any]) -> bool:
    """Return whether a request asks for tokens that nobody is shown.

    >>> is_silent({"reasoning_effort": "high"}), is_silent({"temperature": 1.0})
    (True, False)
    """
    return any(wanted.get(name) for name in _SILENT) or effort_of(wanted) not in {None, NONE}


def _length(value: Any) -> int:
    """Return the bytes of all texts in a choice.

    >>> _length({"index": 0, "delta": {"content": "\u20ac", "role": "user"}})
    7
    """
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, dict):
        return sum(map(_length, value.values()))
    return sum(map(_length, value)) if isinstance(value, list) else 0
