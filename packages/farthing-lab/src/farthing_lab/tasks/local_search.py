"""Search in paragraphs at hand: BM25 over a corpus file, or over what came with a question.

It is built on `bm25s`, which scores with sparse matrices and needs nothing but numpy.
"""

import asyncio
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from farthing.errors import InputError, MissingExtraError
from farthing.tasks.base import Question
from farthing.tasks.questions import read_rows
from farthing.tasks.tools import Tool, Toolbox, ToolReply

_WORD = r"(?u)\b\w+\b"
PURPOSE = "searches an encyclopedia for a name or a few words, and shows the best paragraphs."


class LocalSearch:
    """A BM25 index over paragraphs; safe to use many times at once.

    >>> tool = LocalSearch([("Lisbon", "The capital of Portugal."), ("Oslo", "In Norway.")])
    >>> asyncio.run(tool.run("capital of Portugal")).text
    'Lisbon: The capital of Portugal.'
    """

    name = "search"
    purpose = PURPOSE

    def __init__(
        self, paragraphs: Sequence[tuple[str, str]], *, top: int = 3, cost_nano: int = 0
    ) -> None:
        """Build the index.

        Args:
            paragraphs: (title, text) of each.
            top: most paragraphs in a reply.
            cost_nano: price of one use, in nano-dollars.
        """
        try:
            self._bm25s = import_module("bm25s")
        except ImportError as error:
            raise MissingExtraError("searching paragraphs", "search", "farthing-lab") from error
        self.cost_nano = cost_nano
        self._top = top
        self._paragraphs = [(title, text) for title, text in paragraphs]
        words = self._words([f"{title}: {text}" for title, text in paragraphs])
        if not any(words):
            raise InputError("there is nothing to search in; give paragraphs with words in them")
        self._index = self._bm25s.BM25()
        self._index.index(words, show_progress=False)

    async def run(self, query: str) -> ToolReply:
        started = time.perf_counter()
        found = await asyncio.to_thread(self.find, query)
        shown = "\n".join(f"{title}: {text}" for title, text in found)
        text = shown or "Nothing was found; try other words."
        return ToolReply(text, self.cost_nano, time.perf_counter() - started)

    def find(self, query: str, top: int | None = None) -> list[tuple[str, str]]:
        """Return (title, text) of the best paragraphs that share a word with the query, best first.

        Args:
            query: a few words.
            top: most paragraphs; None: as the tool has it.
        """
        (words,) = self._words([query])
        if not words:
            return []
        most = min(self._top if top is None else top, len(self._paragraphs))
        places, scores = self._index.retrieve([words], k=most, show_progress=False)
        return [self._paragraphs[i] for i, s in zip(places[0], scores[0], strict=True) if s > 0]

    def _words(self, texts: list[str]) -> list[list[str]]:
        words: list[list[str]] = self._bm25s.tokenize(
            texts, token_pattern=_WORD, return_ids=False, show_progress=False
        )
        return words


def read_corpus(path: str | Path) -> list[tuple[str, str]]:
    """Read the (title, text) pairs of a corpus: JSON Lines with the fields `title` and `text`."""
    return [(row.text("title"), row.text("text")) for row in read_rows(path)]


def own_paragraphs(*, top: int = 3, cost_nano: int = 0) -> Toolbox:
    """Return a toolbox that searches the paragraphs which came with each question.

    A question without any has no tools.
    """

    def tools(question: Question) -> Sequence[Tool]:
        if not question.paragraphs:
            return ()
        return (LocalSearch(question.paragraphs, top=top, cost_nano=cost_nano),)

    return tools
