"""Runs the Python blocks of README and docs as tests, and holds what tests of each package use."""

import gc
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from chat_server import Endpoint
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
).pytest()

collect_ignore = ["packages/farthing-gateway/src/farthing_gateway/storage/migrations/env.py"]
"""Alembic alone runs it."""

gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for garbage: it lives to the end."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Serve chat completions on a local socket; `chat_server.py` of the core's tests does it."""
    with Endpoint() as server:
        yield server


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `extras` where a package is missing; fail it where it was asked for."""
    wanted = [package for mark in item.iter_markers("extras") for package in mark.args]
    missing = [package for package in wanted if find_spec(package) is None]
    if missing and item.config.getoption("markexpr").startswith(("extras", "clients")):
        pytest.fail(f"not installed: {', '.join(missing)}", pytrace=False)
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: make check-extras")
