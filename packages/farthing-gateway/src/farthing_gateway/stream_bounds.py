"""How many tokens a reply in pieces can have so far: no more than its text has bytes.

That bounds what a provider charges for a stream that is left, if what it writes is what it sends.
A model that thinks in silence writes more; of a model that is not known to write nothing of the
kind, the text is no bound.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from farthing.models.base import Usage
from farthing.models.thinking import NONE, effort_of

AHEAD = 64
"""Tokens that a provider may write before it notices that nobody listens, beside one piece."""
ENOUGH = 20
"""Whole streams that show all their tokens before the next is taken to: a model may think at times,
and then hides some with a chance of about one in so many."""
_LABELS = ("role", "type", "id", "finish_reason", "stop_reason", "native_finish_reason")
"""Fields of a piece that are no text of its model."""
_SILENT = ("reasoning", "reasoning_effort", "thinking", "enable_thinking", "prediction")
"""Parameters that ask for tokens which nobody is shown."""


@dataclass
class HiddenTokens:
    """Whether a model shows all that it writes, as far as its whole replies tell."""

    _shown: int = 0
    _hides: bool = False

    @property
    def known(self) -> bool | None:
        """None: too few whole streams of it were seen."""
        return False if self._hides else (self._shown >= ENOUGH or None)

    def learn(self, usage: Usage, heard: "StreamedTokens | None" = None) -> None:
        """Compare what a whole stream was charged, or another reply, with what was `heard` of it.

        Once a model hid something, it may again.
        """
        hidden = heard is not None and not heard.can_have(usage.output_tokens)
        self._hides = self._hides or hidden or bool(usage.reasoning_tokens)
        self._shown += heard is not None


@dataclass
class StreamedTokens:
    """The text of one reply so far; it is counted where somebody asks."""

    _pieces: list[Sequence[Any]] = field(default_factory=list)

    def add(self, said: Sequence[Any]) -> None:
        """Keep what a piece says: values, or JSON that is not decoded."""
        if said:
            self._pieces.append(said)

    @property
    def tokens(self) -> int:
        """The most that it can have."""
        return sum(self._sizes)

    def can_have(self, tokens: int) -> bool:
        """Return whether it can have so many tokens; whatever is said is one at least."""
        return sum(map(len, self._pieces)) >= tokens or self.tokens >= tokens

    def __len__(self) -> int:
        return len(self._pieces)

    def wrote(self, since: int) -> bool:
        """Return whether a piece from one on has a text of the model."""
        said = (one for pieces in self._pieces[since:] for one in pieces)
        return any(_size(one, _LABELS) for one in said)

    def bound(self, most: Usage) -> Usage:
        """Return the most that it took if it is left now.

        Args:
            most: what it could have taken as a whole.
        """
        sizes = self._sizes
        output = min(most.output_tokens, sum(sizes) + max(sizes, default=0) + AHEAD)
        return Usage(most.input_tokens, output, estimated=True)

    @property
    def _sizes(self) -> list[int]:
        return [sum(max(1, _size(one)) for one in said) for said in self._pieces]


def is_silent(wanted: Mapping[str, Any]) -> bool:
    """Return whether a request asks for tokens that nobody is shown.

    >>> is_silent({"reasoning_effort": "high"}), is_silent({"temperature": 1.0})
    (True, False)
    """
    return any(wanted.get(name) for name in _SILENT) or effort_of(wanted) not in {None, NONE}


def _size(said: Any, but: Sequence[str] = ()) -> int:
    if not isinstance(said, msgspec.Raw):
        return _length(said, but)
    try:
        return _length(msgspec.json.decode(said), but)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return len(bytes(said))


def _length(value: Any, but: Sequence[str] = ()) -> int:
    """Return the bytes of all texts in a choice, but for those of some fields.

    >>> _length({"index": 0, "delta": {"content": "\u20ac", "role": "user"}})
    7
    """
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, dict):
        return sum(_length(inner, but) for name, inner in value.items() if name not in but)
    return sum(_length(one, but) for one in value) if isinstance(value, list) else 0
