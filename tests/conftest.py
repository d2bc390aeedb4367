"""What tests of every room may use."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from chat_server import Endpoint


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Serve chat completions on a local socket; see `models/chat_server.py`."""
    with Endpoint() as server:
        yield server


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `extras` where a package is missing, and fail it under `-m extras`."""
    wanted = [package for mark in item.iter_markers("extras") for package in mark.args]
    missing = [package for package in wanted if find_spec(package) is None]
    if missing and item.config.getoption("markexpr") == "extras":
        pytest.fail(f"not installed: {', '.join(missing)}", pytrace=False)
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: make check-extras")
