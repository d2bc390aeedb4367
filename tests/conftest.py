"""What tests of every room may use."""

from collections.abc import Iterator

import pytest
from chat_server import Endpoint


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Serve chat completions on a local socket; see `models/chat_server.py`."""
    with Endpoint() as server:
        yield server
