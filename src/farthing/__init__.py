"""Answer questions with the least LLM spending that still keeps a promise."""

__version__ = "0.1.0"
