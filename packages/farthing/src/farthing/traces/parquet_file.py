"""A Parquet file of any length: divided and read in batches, as if it were in memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np

from farthing.errors import TraceFormatError
from farthing.traces.arrays import IntArray, TraceArrays, joined
from farthing.traces.parquet import CHUNK_ROWS, iter_parquet
from farthing.traces.pool import cascade, cheapest_first, is_pool
from farthing.traces.splits import Outline

BATCH = 32_768
"""Questions in a batch: enough to be quick, few enough to be held at any time."""

Report = Callable[[int], None]
"""Is told how many questions were read since the last time."""


def ignore(_: int) -> None:
    """Report to nobody."""


@dataclass(frozen=True)
class ChunkedTraces:
    """A file that is gone through from start to end, as often as needed."""

    path: str | Path
    rows: int
    """Questions that are read at a time."""
    order: tuple[int, ...] | None
    """Of a pool that is asked in turn: the places of its models by their mean cost over the whole
    file."""
    report: Report

    @classmethod
    def open(
        cls,
        path: str | Path,
        rows: int = CHUNK_ROWS,
        report: Report = ignore,
        *,
        side_by_side: bool = False,
    ) -> Self:
        """Look at a file; of a pool of models, go through it once for their mean costs.

        Args:
            path: the file.
            rows: questions that are read at a time.
            report: is told how many were read.
            side_by_side: whether the models of a pool are played in any order, as recorded.
        """
        chunks = iter_parquet(path, rows)
        first = next(chunks, None)
        if first is None:
            problem = "is empty; a trace file has a row a question"
            raise TraceFormatError(str(path), 1, "file", problem)
        in_turn = is_pool(first) and not side_by_side
        order = cheapest_first(chain([first], chunks)) if in_turn else None
        return cls(path, rows, order, report)

    @property
    def first(self) -> TraceArrays:
        """The first question, as it is played."""
        return self.played(next(iter_parquet(self.path, 1)))

    def played(self, recorded: TraceArrays) -> TraceArrays:
        """Return questions as policies play them: those of a pool as a cascade."""
        return recorded if self.order is None else cascade(recorded, self.order)

    def outline(self) -> Outline:
        """Return of every question what a division looks at."""
        complete, split, content, partly = [], [], [], False
        for chunk in self._chunks():
            lot = not np.isnan(chunk.asked_probability).all()
            partly |= is_pool(chunk) and (lot or not chunk.made.all())
            complete.append(self.played(chunk).complete)
            split.append(chunk.split)
            content.append(chunk.content)
        content_of = np.concatenate(content)
        return Outline(np.concatenate(complete), np.concatenate(split), content_of, partly)

    def batches(self, index: IntArray, size: int = BATCH) -> Iterator[TraceArrays]:
        """Read the questions at an index in ascending order, so many at a time, as recorded."""
        start, waiting = 0, 0
        held: list[TraceArrays] = []
        for chunk in self._chunks():
            first, last = np.searchsorted(index, (start, start + len(chunk)))
            held.append(chunk.take(index[first:last] - start))
            start, waiting = start + len(chunk), waiting + int(last - first)
            while waiting >= size:
                whole = joined(held)
                yield whole.rows(slice(size))
                held, waiting = [whole.rows(slice(size, None))], waiting - size
        if waiting:
            yield joined(held)

    def _chunks(self) -> Iterator[TraceArrays]:
        for chunk in iter_parquet(self.path, self.rows):
            yield chunk
            self.report(len(chunk))
