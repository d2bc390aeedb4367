"""The command line run in this process."""

from command_line import farthing, imported, pool, refused, runs

__all__ = ["farthing", "imported", "pool", "refused", "runs"]
