"""Copies: questions that ask the same under other ids, and so are no independent draws.

A division of questions keeps copies together, and a proof counts one of them, which chance draws.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InputError
from farthing.traces.arrays import NO_SPLIT, SPLITS, IntArray, TraceArrays
from farthing.traces.base import Trace

Content = NDArray[np.uint64]
"""[n] the mark of what each question asks (`content_of`)."""
NO_TEXT = 0
_ANY = 0
"""The seed of what is drawn among copies, which is always the same."""


def content_of(trace: Trace) -> int:
    r"""Return the mark, in 64 bits, of everything that was asked; 0 where no text was recorded.

    Copies share their text with its line breaks, the system prompt, what was said before, the
    options and the accepted answers. Two puzzles that differ in white space are no copies.

    >>> from farthing.traces.base import Call
    >>> def mark(text: str, **more: str) -> int:
    ...     return content_of(Trace(id="q", question=text, calls=[Call(round=1, role="m")], **more))
    >>> mark("a b") == mark("a b"), mark("a b") == mark("a\nb"), mark("")
    (True, False, 0)
    >>> mark("Which?", options="A B") == mark("Which?", options="A C")
    False
    """
    if not trace.question.strip():
        return NO_TEXT
    parts = (trace.question, trace.system_prompt, trace.history, trace.options, *trace.gold)
    digest = blake2b(digest_size=8)
    for part in parts:
        encoded = b"" if part is None else part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return int.from_bytes(digest.digest(), "little") or 1


def asked_first(content: Content) -> IntArray:
    """Return the first question that asks the same as each, [n]: itself where it is no copy.

    >>> asked_first(np.array([7, 5, 7, 0, 0, 5], np.uint64)).tolist()
    [0, 1, 0, 3, 4, 1]
    """
    found = np.arange(len(content))
    asks = np.flatnonzero(content != NO_TEXT)
    _, first, which = np.unique(content[asks], return_index=True, return_inverse=True)
    found[asks] = asks[first][which]
    return found


def check_every_request(traces: TraceArrays) -> None:
    """Refuse questions that stand for several requests, of which one reply a model is known.

    Raises:
        InputError: an import left out what a model said when it was asked again.
    """
    several = traces.requests > 1
    if several.any():
        raise InputError(
            f"{int(several.sum()):,} of {len(traces):,} questions stand for "
            f"{int(traces.requests[several].sum()):,} requests, and an import kept the first reply "
            "of each model alone, so a promise per request cannot be tested; give every request an "
            "id of its own (traces import --column id=COLUMN, or Farthing's own form), or leave "
            "--per request out"
        )


def n_distinct(content: Content) -> int:
    """Return how many questions there are if each is counted once.

    >>> n_distinct(np.array([7, 5, 7, 0, 0], np.uint64))
    4
    """
    return len(np.unique(asked_first(content)))


def one_of_each(content: Content) -> IntArray:
    """Return one row of each distinct question, in ascending order; chance draws it among copies.

    The lots are always the same and depend on no answer and no grade.

    >>> one_of_each(np.array([7, 5, 7, 0, 0], np.uint64)).tolist()
    [1, 2, 3, 4]
    """
    first, order = asked_first(content), np.random.default_rng(_ANY).permutation(len(content))
    _, drawn = np.unique(first[order], return_index=True)
    return np.sort(order[drawn])


def said(requests: int, distinct: int) -> str:
    """Say how many questions are distinct; empty where all are.

    >>> said(2_000, 400)
    '2,000 requests, 400 distinct questions'
    """
    if requests == distinct:
        return ""
    return f"{requests:,} requests, {distinct:,} distinct questions"


def note(requests: int, distinct: int) -> str:
    """Say how many questions are distinct, and what follows; empty where all are.

    >>> note(2_000, 400)
    '2,000 requests, 400 distinct questions; those that ask the same do the same'
    """
    some = said(requests, distinct)
    return f"{some}; those that ask the same do the same" if some else ""


@dataclass(frozen=True)
class Together:
    """Some questions, of which copies stay together."""

    rows: IntArray
    """All of them, in ascending order."""
    distinct: IntArray
    """One of each that ask the same, which chance drew, in ascending order."""
    _drawn: IntArray
    """[len(rows)] the row that was drawn among those that ask the same."""

    @classmethod
    def of(cls, content: Content, rows: IntArray) -> Self:
        """Find the copies among some questions.

        Args:
            content: [n] of all questions.
            rows: some of them, in ascending order.
        """
        drawn, first = one_of_each(content[rows]), asked_first(content[rows])
        of_first = np.arange(len(rows))
        of_first[first[drawn]] = drawn
        return cls(rows, rows[drawn], rows[of_first[first]])

    def all_of(self, distinct: IntArray) -> IntArray:
        """Return some distinct questions and their copies, in ascending order.

        >>> some = Together.of(np.array([7, 5, 7, 5, 3], np.uint64), np.arange(5))
        >>> some.distinct.tolist(), some.all_of(np.array([4, 2])).tolist()
        ([2, 3, 4], [0, 2, 4])
        """
        return self.rows[np.isin(self._drawn, distinct)]

    @property
    def said(self) -> str:
        """How many there are, and how many of them are distinct; empty where all are."""
        return said(len(self.rows), len(self.distinct))


def agreed_marks(split: NDArray[np.int8], content: Content) -> NDArray[np.int8]:
    """Return the part that each question is marked for, [n]; a copy that has no mark follows.

    Copies that are marked for several parts do what the first of these does, to train before to
    calibrate before to test, so that nothing is proved or measured on what has trained.

    Args:
        split: [n] index into `SPLITS`; -1 where the file names none.
        content: [n] what is asked.

    >>> agreed_marks(np.array([0, -1, -1, 2, 1]), np.array([7, 7, 5, 3, 3], np.uint64)).tolist()
    [0, 0, -1, 1, 1]
    """
    first = asked_first(content)
    agreed = np.full(len(split), len(SPLITS), dtype=np.int8)
    marked = split != NO_SPLIT
    np.minimum.at(agreed, first[marked], split[marked])
    found: NDArray[np.int8] = np.where(agreed == len(SPLITS), np.int8(NO_SPLIT), agreed)[first]
    return found
