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
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from farthing.methods.agents.budget_mem.memory import (
    Line,
    Memory,
    distinct,
    leads,
    lines_of,
    reached,
)

MODULES = ("search", "link", "filter", "rank", "read")
TIERS = ("low", "mid", "high")
_FOUND = (2, 6, 12)
"""Paragraphs that the tiers of `search` return at most."""
_LINKED = (0, 4, 12)
"""The same of `link`: two for each name."""
_READ = (40, 120, 480)
"""Tokens that the tiers of `read` hand over."""


class Search(Protocol):
    """Finds paragraphs; `LocalSearch.find` is one."""

    def __call__(self, query: str, top: int | None = None, /) -> Sequence[tuple[str, str]]:
        """Return (title, text) of the best paragraphs, best first."""
        ...


@dataclass(frozen=True)
class Prices:
    """What modules cost, in nano-dollars; those with three figures in each tier."""

    paragraph: int = 5_000
    """A paragraph that is searched for: $5 a million."""
    filter_token: tuple[int, int, int] = (0, 20, 60)
    rank_token: tuple[int, int, int] = (0, 10, 40)
    read_token: int = 150
    """A token for whoever answers: $0.15 a million."""


PRICES = Prices()


def largest_nano(module: int, tier: int, memory: Memory, prices: Prices = PRICES) -> int:
    """Return the most that a tier can cost now, in nano-dollars.

    >>> from farthing.methods.agents.budget_mem.memory import line_of
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


def rest_nano(module: int, prices: Prices = PRICES) -> int:
    """Return what the cheapest tiers of all modules after this one can cost, in nano-dollars."""
    return _READ[0] * prices.read_token if module < len(MODULES) - 1 else 0


def least_nano(prices: Prices = PRICES) -> int:
    """Return what a question costs at most where every module takes its low tier."""
    return _FOUND[0] * prices.paragraph + rest_nano(0, prices)


def run(
    module: int, tier: int, memory: Memory, search: Search, prices: Prices = PRICES
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


def _search(tier: int, memory: Memory, search: Search) -> list[tuple[str, str]]:
    question = memory.question
    found = list(search(question.text, min(_FOUND[tier], 6)))
    if tier == 2:
        for name in sorted(question.names)[:2]:
            found += search(name, 3)
    return found


def _link(tier: int, memory: Memory, search: Search) -> tuple[Memory, int]:
    paid, asked = 0, list[str]()
    for _ in range(tier):
        names = leads(memory, 2 if tier == 1 else 3, asked)
        asked += names
        for name in names:
            found = search(name, 2)
            paid += len(found)
            memory = Memory(memory.question, (*memory.lines, *lines_of(found)))
    return memory, paid


def _filter(tier: int, memory: Memory) -> tuple[Line, ...]:
    if tier == 0:
        return memory.lines
    words = reached(memory, tier)
    return tuple(line for line in memory.lines if len(line.words & words) >= tier)


def _rank(tier: int, memory: Memory) -> tuple[Line, ...]:
    if tier == 0:
        return memory.lines
    words = reached(memory, tier)
    return tuple(sorted(distinct(memory.lines), key=lambda line: -len(line.words & words)))


def _first(lines: Sequence[Line], tokens: int) -> tuple[Line, ...]:
    """Return lines from the first on, as long as they fit."""
    kept = list[Line]()
    for line in lines:
        tokens -= line.tokens
        if tokens < 0:
            break
        kept.append(line)
    return tuple(kept)
