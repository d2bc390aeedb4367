"""All or nothing, for steps that may be part of a larger transaction."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def atomic(connection: sqlite3.Connection) -> Iterator[None]:
    """Make a block all or nothing; blocks nest, and the outermost one commits."""
    connection.execute("SAVEPOINT atomic")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK TO atomic")
        connection.execute("RELEASE atomic")
        raise
    connection.execute("RELEASE atomic")
