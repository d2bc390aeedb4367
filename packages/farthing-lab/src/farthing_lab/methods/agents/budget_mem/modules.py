"""Five memory modules, each in three tiers: low, mid and high; what each costs, at most and really.

| module | low | mid | high |
| --- | --- | --- | --- |
| search | 2 paragraphs | 6 paragraphs | 6, and 3 for each of 2 names in the question |
| link | nothing | 2 names that lines about the question lead to | 3 names, and 3 from there |
| filter | all lines stay | lines with a word of what is reached | lines with two such words |
| rank | as found | repeated lines go, best lines first | the same, along two links |
| read | 40 tokens | 120 tokens | 480 tokens |

Search and link pay for each paragraph that is returned, the others for each token that they look
at. The modules are plain code; the prices stand for what hosted ones charge, and can be set.

What they work on is a `Memory`: lines of text, and how each stands to the question.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

_SENTENCE = re.compile(r"[^.!?]+[.!?]?")
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"\b[A-Z]\w+(?: [A-Z]\w+)*")
_SILENT = """
a an and are as at be by did do does for from had has have how in is it its of on once or
that the they this to until was were what when where which who whom whose why with
"""
_STOP = frozenset(_SILENT.split())


@dataclass(frozen=True)
class Sentence:
    """One sentence of a document."""

    text: str
    words: frozenset[str]
    """Its words in small letters, without those that say nothing."""
    names: frozenset[str]
    """Runs of words with a capital letter."""
    tokens: int
    """Counted as words, one more for the line."""


@lru_cache(maxsize=100_000)
def line_of(text: str) -> Sentence:
    """Read a sentence.

    >>> found = line_of("The mayor of Torva is Ada Marek.")
    >>> sorted(found.names), sorted(found.words), found.tokens
    (['Ada Marek', 'Torva'], ['ada', 'marek', 'mayor', 'torva'], 8)
    """
    words = _WORD.findall(text)
    names = frozenset(name for name in _NAME.findall(text) if name.lower() not in _STOP)
    said = frozenset(word.lower() for word in words) - _STOP
    return Sentence(text, said, names, len(words) + 1)


def lines_of(paragraphs: Iterable[tuple[str, str]]) -> tuple[Sentence, ...]:
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

    question: Sentence
    lines: tuple[Sentence, ...] = ()

    @property
    def tokens(self) -> int:
        return sum(line.tokens for line in self.lines)

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)


def distinct(lines: Iterable[Sentence]) -> tuple[Sentence, ...]:
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

    At most so many; those in `asked` were followed already.
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


MODULES = ("search", "link", "filter", "rank", "read")
TIERS = ("low", "mid", "high")
_FOUND = (2, 6, 12)
"""Paragraphs that the tiers of `search` return at most."""
_LINKED = (0, 4, 12)
"""The same of `link`: two for each name."""
_READ = (40, 120, 480)
"""Tokens that the tiers of `read` hand over."""


class ParagraphSearch(Protocol):
    """Finds paragraphs; `LocalSearch.find` is one."""

    def __call__(self, query: str, top: int | None = None, /) -> Sequence[tuple[str, str]]:
        """Return (title, text) of the best paragraphs, best first."""
        ...


@dataclass(frozen=True)
class ModulePrices:
    """What modules cost, in nano-dollars; those with three figures in each tier."""

    paragraph: int = 5_000
    """A paragraph that is searched for: $5 a million."""
    filter_token: tuple[int, int, int] = (0, 20, 60)
    rank_token: tuple[int, int, int] = (0, 10, 40)
    read_token: int = 150
    """A token for whoever answers: $0.15 a million."""


PRICES = ModulePrices()


def largest_nano(module: int, tier: int, memory: Memory, prices: ModulePrices = PRICES) -> int:
    """Return the most that a tier can cost now, in nano-dollars.

    >>> from farthing_lab.methods.agents.budget_mem.modules import line_of
    >>> [largest_nano(0, tier, Memory(line_of("Who?"))) for tier in range(3)]
    [10000, 30000, 60000]
    """
    match MODULES[module]:
        case "search":
            return _FOUND[tier] * prices.paragraph
        case "link":
            return _LINKED[tier] * prices.paragraph
        case "filter":
            return memory.tokens * prices.filter_token[tier]
        case "rank":
            return memory.tokens * prices.rank_token[tier]
        case _:
            return min(memory.tokens, _READ[tier]) * prices.read_token


def rest_nano(module: int, prices: ModulePrices = PRICES) -> int:
    """Return what the cheapest tiers of all modules after this one can cost, in nano-dollars."""
    return _READ[0] * prices.read_token if module < len(MODULES) - 1 else 0


def least_nano(prices: ModulePrices = PRICES) -> int:
    """Return what a question costs at most where every module takes its low tier."""
    return _FOUND[0] * prices.paragraph + rest_nano(0, prices)


def run(
    module: int, tier: int, memory: Memory, search: ParagraphSearch, prices: ModulePrices = PRICES
) -> tuple[Memory, int]:
    """Run a tier; return what is then remembered, and what it cost in nano-dollars."""
    match MODULES[module]:
        case "search":
            found = _search(tier, memory, search)
            return Memory(memory.question, lines_of(found)), len(found) * prices.paragraph
        case "link":
            linked, paragraphs = _link(tier, memory, search)
            return linked, paragraphs * prices.paragraph
        case "filter":
            kept = _filter(tier, memory)
        case "rank":
            kept = _rank(tier, memory)
        case _:
            kept = _first(memory.lines, _READ[tier])
            cost = sum(line.tokens for line in kept) * prices.read_token
            return Memory(memory.question, kept), cost
    return Memory(memory.question, kept), largest_nano(module, tier, memory, prices)


def _search(tier: int, memory: Memory, search: ParagraphSearch) -> list[tuple[str, str]]:
    question = memory.question
    found = list(search(question.text, min(_FOUND[tier], 6)))
    if tier == 2:
        for name in sorted(question.names)[:2]:
            found += search(name, 3)
    return found


def _link(tier: int, memory: Memory, search: ParagraphSearch) -> tuple[Memory, int]:
    paid, asked = 0, list[str]()
    for _ in range(tier):
        names = leads(memory, 2 if tier == 1 else 3, asked)
        asked += names
        for name in names:
            found = search(name, 2)
            paid += len(found)
            memory = Memory(memory.question, (*memory.lines, *lines_of(found)))
    return memory, paid


def _filter(tier: int, memory: Memory) -> tuple[Sentence, ...]:
    if tier == 0:
        return memory.lines
    words = reached(memory, tier)
    return tuple(line for line in memory.lines if len(line.words & words) >= tier)


def _rank(tier: int, memory: Memory) -> tuple[Sentence, ...]:
    if tier == 0:
        return memory.lines
    words = reached(memory, tier)
    return tuple(sorted(distinct(memory.lines), key=lambda line: -len(line.words & words)))


def _first(lines: Sequence[Sentence], tokens: int) -> tuple[Sentence, ...]:
    kept = list[Sentence]()
    for line in lines:
        tokens -= line.tokens
        if tokens < 0:
            break
        kept.append(line)
    return tuple(kept)
