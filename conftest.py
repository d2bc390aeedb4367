"""Runs the Python blocks of the README and of docs/ as tests."""

import gc

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
).pytest()

collect_ignore = ["src/farthing/storage/migrations/env.py"]
"""Alembic alone runs it."""

gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for garbage: it lives to the end."""
    gc.freeze()
    gc.enable()
