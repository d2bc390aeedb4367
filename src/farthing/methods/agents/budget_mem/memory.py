"""What is found before an answer: lines of text, and how each stands to the question."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

_SENTENCE = re.compile(r"[^.!?]+[.!?]?")
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"\b[A-Z]\w+(?: [A-Z]\w+)*")
_SILENT = """
a an and are as at be by did do does for from had has have how in is it its of on once or
that the they this to until was were what when where which who whom whose why with
"""
_STOP = frozenset(_SILENT.split())


@dataclass(frozen=True)
class Line:
    """One sentence of a document."""

    text: str
    words: frozenset[str]
    """Its words in small letters, without those that say nothing."""
    names: frozenset[str]
    """Runs of words with a capital letter."""
    tokens: int
    """Counted as words, one more for the line."""


@lru_cache(maxsize=100_000)
def line_of(text: str) -> Line:
    """Read a sentence.

    >>> found = line_of("The mayor of Torva is Ada Marek.")
    >>> sorted(found.names), sorted(found.words), found.tokens
    (['Ada Marek', 'Torva'], ['ada', 'marek', 'mayor', 'torva'], 8)
    """
    words = _WORD.findall(text)
    names = frozenset(name for name in _NAME.findall(text) if name.lower() not in _STOP)
    said = frozenset(word.lower() for word in words) - _STOP
    return Line(text, said, names, len(words) + 1)


def lines_of(paragraphs: Iterable[tuple[str, str]]) -> tuple[Line, ...]:
    """Cut paragraphs, (title, text), into their sentences."""
    return tuple(
        line_of(sentence.strip())
        for _, text in paragraphs
        for sentence in _SENTENCE.findall(text)
        if sentence.strip()
    )


@dataclass(frozen=True)
class Memory:
    """What was found for a question so far."""

    question: Line
    lines: tuple[Line, ...] = ()

    @property
    def tokens(self) -> int:
        """Length of all lines."""
        return sum(line.tokens for line in self.lines)

    @property
    def text(self) -> str:
        """All lines, as whoever answers reads them."""
        return " ".join(line.text for line in self.lines)


def distinct(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Leave out lines that were there before."""
    return tuple({line.text: line for line in lines}.values())


def reached(memory: Memory, hops: int) -> frozenset[str]:
    """Return the question's words, and those of names that lines about them lead to.

    A line is about what was reached if it has two of its words; then its names are reached.
    """
    words = memory.question.words
    for _ in range(hops):
        about = [line for line in memory.lines if len(line.words & words) >= 2]
        names = {word.lower() for line in about for name in line.names for word in name.split()}
        words |= names
    return words


def leads(memory: Memory, most: int, asked: Sequence[str] = ()) -> list[str]:
    """Return names that the question does not have, from the lines that are most about it.

    Args:
        memory: what was found.
        most: how many names at most.
        asked: names that were followed already.
    """
    words = memory.question.words | {w.lower() for name in asked for w in name.split()}
    best = sorted(memory.lines, key=lambda line: -len(line.words & words))
    known = {*memory.question.names, *asked}
    found: dict[str, None] = {}
    for line in best:
        if len(line.words & words) < 2 or len(found) >= most:
            break
        found |= dict.fromkeys(sorted(line.names - known))
    return list(found)[:most]
