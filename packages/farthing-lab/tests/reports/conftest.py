"""A comparison made by hand."""

from made_comparison import comparison, hostile, proved

__all__ = ["comparison", "hostile", "proved"]
