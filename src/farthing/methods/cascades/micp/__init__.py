"""MiCP."""
