"""What a question asks, as a mark: questions of one mark are copies (`traces.copies`).

What joins too much costs draws, and what joins too little makes proofs false. So how a text is
typed does not count, and a cluster that the user names joins whatever it holds.
"""

import unicodedata
from collections.abc import Iterable
from hashlib import blake2b
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from farthing.traces.base import Trace

Content = NDArray[np.uint64]
"""[n] the mark of what each question asks (`contents_of`)."""
NO_TEXT = 0
_TYPED = str.maketrans("‘’‚‛“”„‐‒–—−", "''''\"\"\"-----")
_TYPED |= {ord(digit): f"^{unicodedata.normalize('NFKC', digit)}" for digit in "⁰¹²³⁴⁵⁶⁷⁸⁹"}
_TYPED |= dict.fromkeys([0xAD, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F)], "")
_TYPED |= dict.fromkeys([*range(0x2060, 0x2070), *range(0xFE00, 0xFE10)], "")
"""Quotes and dashes as keyboards have them; exponents, which are no digits of their base; nothing
for what is not seen."""
_SENTENCES = {"Po", "Pi", "Pf", "Pd"}
"""Kinds of characters that end sentences, quote or part; brackets and symbols do not."""
_MEANT = frozenset("#%&*@/\\")
"""What may be a part of a name or an amount."""


def canonical(text: str) -> str:
    r"""Return what a text says, however it is typed; empty where it says nothing.

    Unicode forms, case, white space and punctuation at the ends do not count; what stands within
    does. A text of punctuation alone is kept.

    >>> canonical(" Who\u00a0wrote\n\u201cFaust\u201d?") == canonical('WHO wrote "Faust')
    True
    >>> [canonical(text) for text in ("-5?", "5!", "2\u00b3", "C#", "?!")]
    ['-5', '5!', '2^3', 'c#', '?!']
    """
    said = text.casefold()
    if not text.isascii():
        said = unicodedata.normalize("NFKC", text.translate(_TYPED)).casefold()
        said = unicodedata.normalize("NFKC", said)
    said = " ".join(said.split())
    start, end = 0, len(said)
    while start < end and _says_nothing(said[start], said[start + 1 : start + 2], "-.!"):
        start += 1
    while start < end and _says_nothing(said[end - 1], said[start : end - 1][-1:], "-!"):
        end -= 1
    return said[start:end] or said


def _says_nothing(mark: str, beside: str, of_numbers: str) -> bool:
    """Return whether a character at an end may go, beside another one."""
    if mark in _MEANT or (mark in of_numbers and beside.isdigit()):
        return False
    return mark == " " or category(mark) in _SENTENCES


def content_of(trace: Trace) -> int:
    r"""Return the mark, in 64 bits, of everything that was asked; 0 where no text was recorded.

    Copies have the same text, system prompt, history and options, however these are typed
    (`canonical`). Accepted answers do not count.

    >>> from farthing.traces.base import Call
    >>> def mark(text: str, **more: str) -> int:
    ...     return content_of(Trace(id="q", question=text, calls=[Call(round=1, role="m")], **more))
    >>> mark("A b.") == mark("a\nb "), mark("a b") == mark("a, b"), mark(" ")
    (True, False, 0)
    >>> mark("Which?", options="A B") == mark("Which?", options="A C")
    False
    """
    asked = canonical(trace.question)
    beside = (trace.system_prompt, trace.history, trace.options)
    return _mark(asked, *(canonical(part or "") for part in beside)) if asked else NO_TEXT


def _mark(*parts: str) -> int:
    found = digest(*(part.encode("utf-8", "surrogatepass") for part in parts))
    return int.from_bytes(found[:8], "little") or 1


def contents_of(traces: Iterable[Trace]) -> Content:
    """Return the marks of questions, [n], of which those of one cluster have one.

    A cluster joins questions and parts none: where two share a question, all of both are joined.
    """
    each = [(content_of(one), _mark(one.cluster) if one.cluster else NO_TEXT) for one in traces]
    joined: dict[int, int] = {}

    def root(mark: int) -> int:
        while mark in joined:
            mark = joined[mark]
        return mark

    for text, cluster in each:
        if cluster and text:
            ours, theirs = root(cluster), root(text)
            if theirs != text:  # the text is of a cluster already
                ours, theirs = sorted((ours, theirs))
            if ours != theirs:
                joined[theirs] = ours
    return np.array([root(cluster or text) for text, cluster in each], dtype=np.uint64)


def to_the_letter(trace: Trace) -> bytes:
    """Return the digest of what was asked, as it was typed; accepted answers do not count."""
    asked = (trace.question, trace.system_prompt, trace.history, trace.options)
    return digest(*((part or "").encode("utf-8", "surrogatepass") for part in asked))


def digest(*parts: bytes) -> bytes:
    """Return 16 bytes that tell these parts from any others."""
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.digest()
