"""The log of a server: each record in one line, without what a client may have sent."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _InOneLine(logging.Formatter):
    """Names an error that comes with a record; its traceback may hold what a client sent."""

    def format(self, record: logging.LogRecord) -> str:
        said = " ".join(record.getMessage().split())
        error = record.exc_info[1] if record.exc_info else None
        return said if error is None else f"{said}: {type(error).__name__}"


@contextmanager
def in_one_line() -> Iterator[None]:
    """Write all warnings of the process to stderr this way while the block runs."""
    handler, root = logging.StreamHandler(), logging.getLogger()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_InOneLine())
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
