"""The log of a server: a line that comes again and again is written once, and then as a sum.

Whoever logs of a model or a policy says so as `extra=about(name)`: names may differ in numbers
alone, and the lines of each are summed apart.
"""

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

WINDOW_S = 10.0
"""Seconds in which lines that differ in their numbers alone are summed."""
MOST_KINDS = 100
"""Kinds of lines that are counted at any moment; each further line is written."""
_NUMBERS = re.compile(r"\d+")
_Kind = tuple[str, str]
"""Whom a line is about, where it is about somebody, and the line without its numbers."""


def about(name: str) -> dict[str, str]:
    """Return what a record is given that is about a model or a policy."""
    return {"about": name}


class SummedLines(logging.StreamHandler):  # type: ignore[type-arg] # generic in stubs alone
    """Writes a line to stderr at once, and what is like it as a sum at the end of its window.

    Where it is closed before, the sum is written then.

    An error that comes with a record is named, without its traceback: that may hold what a client
    sent, and fills a log where a database is away.
    """

    def __init__(self, window_s: float = WINDOW_S) -> None:
        super().__init__()
        self._window_s = window_s
        self._again: dict[_Kind, int] = {}
        """A kind of line to how often it came again in its window."""
        self._last: dict[_Kind, str] = {}
        """The last of these."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or count it."""
        said = self.format(record)
        kind = getattr(record, "about", ""), _NUMBERS.sub("#", said)
        if kind in self._again:
            self._again[kind] += 1
            self._last[kind] = said
            return
        super().emit(record)
        if len(self._again) == MOST_KINDS:
            return
        self._again[kind] = 0
        within = f"in {self._window_s:g} s"
        ends = threading.Timer(self._window_s, self._sum, (kind, within))
        ends.daemon = True
        ends.start()

    def format(self, record: logging.LogRecord) -> str:
        """Return a record in one line."""
        said = " ".join(record.getMessage().split())
        error = record.exc_info[1] if record.exc_info else None
        return said if error is None else f"{said}: {type(error).__name__}"

    def close(self) -> None:
        """Write the sums of the windows that have not ended."""
        for kind in list(self._again):
            self._sum(kind, "until the end")
        super().close()

    def _sum(self, kind: _Kind, within: str) -> None:
        self.acquire()
        try:
            if again := self._again.pop(kind, 0):
                last = self._last.pop(kind)
                text = f"{again:,} more {within}, the last of them: {last}"
                self.stream.write(text + self.terminator)
                self.flush()
        finally:
            self.release()


@contextmanager
def summed_lines() -> Iterator[None]:
    """Write all logs of the process this way while the block runs."""
    handler, root = SummedLines(), logging.getLogger()
    handler.setLevel(logging.WARNING)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
