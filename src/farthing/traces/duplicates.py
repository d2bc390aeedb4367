"""Questions that stand under two ids: one log that was read twice, or a question asked again.

What asks the same is told as everywhere (`copies`). A proof counts such questions once; one log
that was read twice makes traffic look repetitive that is not, and should be left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InputError
from farthing.traces.arrays import TraceArrays
from farthing.traces.base import Trace
from farthing.traces.copies import asked_first, content_of

_MEASURED = (
    "round", "role", "answer", "input_tokens", "output_tokens", "latency_s", "confidence",
    "uncertainty",
)  # fmt: skip
"""What tells two calls apart; costs do not, as they may be worked out by another price."""
FEW = 20
"""Stored questions of which half say nothing: any log may have them again."""


@dataclass
class DuplicateCounter:
    """Counts questions that ask the same as another one, as traces pass by; empty texts do not.

    >>> from farthing.traces.base import Call
    >>> def trace(name: str, said: str) -> Trace:
    ...     return Trace(id=name, question="2 + 2?", calls=[Call(round=1, role="m", answer=said)])
    >>> repeats = DuplicateCounter()
    >>> [one.id for one in repeats.passing([trace("a", "4"), trace("b", "4"), trace("c", "5")])]
    ['a', 'b', 'c']
    >>> repeats.copies, repeats.asked_again
    (1, 1)
    """

    texts: int = 0
    """Questions that passed by and have a text."""
    copies: int = 0
    """Of these, those that ask the same as another one, with the same calls."""
    stored: int = 0
    """Of the copies, those of a question that was stored before."""
    asked_again: int = 0
    """Of the texts, those of another question with other calls."""
    pair: tuple[str, str] | None = None
    """The first copy's id, after the id of what it copies."""
    other_pair: tuple[str, str] | None = None
    """The same of a question that was asked again."""
    _noted: set[bytes] = field(default_factory=set)
    _by_calls: dict[bytes, str] = field(default_factory=dict)
    _by_content: dict[int, str] = field(default_factory=dict)

    @classmethod
    def beside(cls, stored: Iterable[Trace]) -> Self:
        """Return a counter of traces that are to stand beside others."""
        repeats = cls()
        for trace in stored:
            if content := content_of(trace):
                repeats._noted.add(repeats._note(trace, content))
        return repeats

    def passing(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """Yield traces that are to be added, and count those that repeat another one."""
        for trace in traces:
            if content := content_of(trace):
                self._count(trace, content)
            yield trace

    def refuse(self, source: str, store: str) -> None:
        """Refuse what is in the store already, under other ids.

        Some texts come again in any log; so the copies must be at least half of the questions, or
        half of what is stored.

        Raises:
            InputError: they are.
        """
        fewer = min(self.texts, max(len(self._noted), FEW))
        if self.pair is None or 2 * self.stored < fewer:
            return
        before, now = self.pair
        raise InputError(
            f"{store}: {self.stored:,} of the {self.texts:,} questions of {source} are stored "
            f"already under other ids, with the same text and the same answers ('{now}' is "
            f"'{before}' there); nothing was imported: what was imported once need not be again, "
            "and with the options of the first import (--column id=COLUMN) ids are the same"
        )

    def notes(self) -> Iterator[str]:
        """Yield a line for each way in which questions repeat others."""
        if self.pair is not None:
            yield twice(self.copies, self.pair)
        if self.other_pair is not None:
            before, now = self.other_pair
            yield (
                f"{_have(self.asked_again)} the text of another one under another id, and other "
                f"answers ('{before}' and '{now}'); calls come together where ids are the same"
            )

    def _note(self, trace: Trace, content: int) -> bytes:
        calls = _digest(content.to_bytes(8, "little"), _told(trace))
        self._by_calls.setdefault(calls, trace.id)
        self._by_content.setdefault(content, trace.id)
        return calls

    def _count(self, trace: Trace, content: int) -> None:
        self.texts += 1
        known, before = len(self._by_calls), self._by_content.get(content)
        calls = self._note(trace, content)
        if len(self._by_calls) == known:
            self.copies += 1
            self.stored += calls in self._noted
            self.pair = self.pair or (self._by_calls[calls], trace.id)
        elif before is not None:
            self.asked_again += 1
            self.other_pair = self.other_pair or (before, trace.id)


def doubt(traces: TraceArrays, records: Sequence[Trace] | None = None) -> str | None:
    """Say how many questions ask the same as another one, with the same calls; None: none does.

    Where one file was imported under two kinds of ids, that is all of them.

    Args:
        traces: the questions.
        records: what they were made of, which counts as an import does; None: of a file of arrays
            that is not known, nor what was answered, only which answers of a question are the same.
    """
    held: list[NDArray[Any]] = [traces.answer, traces.cost_nano, *traces.signals.values()]
    seen: dict[bytes, str] = {}
    copies, pair = 0, None
    first = asked_first(traces.content)
    for row in np.flatnonzero(np.bincount(first, minlength=len(first))[first] > 1).tolist():
        said = [one[row].tobytes() for one in held] if records is None else [_told(records[row])]
        name = str(traces.ids[row])
        before = seen.setdefault(_digest(traces.content[row].tobytes(), *said), name)
        if before != name:
            copies, pair = copies + 1, pair or (before, name)
    if pair is None:
        return None
    return twice(copies, pair, "answers" if records is not None else "pattern of answers")


def twice(copies: int, pair: tuple[str, str], same: str = "answers") -> str:
    """Say that questions are there twice, and what follows.

    >>> twice(1, ("a", "b")).partition("; ")[0]
    "1 question stands here twice, with the same text and answers under two ids ('a' and 'b')"
    """
    stand = "question stands" if copies == 1 else "questions stand"
    return (
        f"{copies:,} {stand} here twice, with the same text and {same} under two ids "
        f"('{pair[0]}' and '{pair[1]}'); a proof counts each of them once, and a proof per request "
        "each time; if one log was read twice, leave one of each out"
    )


def _have(n: int) -> str:
    return f"{n:,} question has" if n == 1 else f"{n:,} questions have"


def _told(trace: Trace) -> bytes:
    return repr(sorted(_values(trace))).encode()


def _values(trace: Trace) -> Iterator[tuple[str, ...]]:
    for call in trace.calls:
        yield tuple(repr(getattr(call, name)) for name in _MEASURED)


def _digest(*parts: bytes) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()
