"""Somebody who looks at the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from made_traffic import call
from page_running import (
    NO_BUNDLE,
    Browser,
    made_key,
    now,
    page,
    put,
    spend,
    traffic,
    watched,
)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """Somebody with an admin key, two weeks after the gateway began."""
    where = str(tmp_path / "gateway.db")
    put(where, *traffic(700, now()), later=(call("tiny"),))
    spend(where, 15.0, "key:shop")
    made_key(where, "shop", "call", usd=20.0)
    owner = made_key(where, "owner", "admin")
    with page(tmp_path, NO_BUNDLE, watched(now())) as running:
        found = Browser(running)
        found.login(owner)
        yield found
