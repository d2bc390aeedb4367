"""Runs the Python blocks of the README and of docs/ as tests."""

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
).pytest()

collect_ignore = ["src/farthing/storage/migrations/env.py"]
"""Alembic alone runs it."""
