"""Grades that come after the traces: named, read from files, put on top of arrays."""
