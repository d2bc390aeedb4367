"""What tests of every room may use."""

from collections.abc import Iterator

import pytest
from chat_server import Endpoint
from hypothesis import settings

# The same examples in every run: what passed for a change passes for it again.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Serve chat completions on a local socket; see `models/chat_server.py`."""
    with Endpoint() as server:
        yield server
