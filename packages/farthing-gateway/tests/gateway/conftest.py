"""Databases of these tests have their tables at once."""

from ready_tables import ready, ready_tables

__all__ = ["ready", "ready_tables"]
