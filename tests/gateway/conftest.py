"""Databases of these tests have their tables at once, and no test runs over midnight."""

from ready_tables import one_day, ready, ready_tables

__all__ = ["one_day", "ready", "ready_tables"]
