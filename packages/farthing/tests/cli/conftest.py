"""The command line run in this process."""

from command_line import farthing, imported, pool, refused

__all__ = ["farthing", "imported", "pool", "refused"]
