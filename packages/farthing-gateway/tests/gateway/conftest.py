"""Databases of these tests have their tables at once, and no test runs over midnight."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from ready_tables import ready, ready_tables

__all__ = ["ready", "ready_tables"]
LONGEST = timedelta(seconds=30)


@pytest.fixture(autouse=True)
def one_day() -> None:
    """Begin after midnight where a test might not end before it: what is spent is spent by day."""
    now = datetime.now(UTC)
    tomorrow = (now + LONGEST).replace(hour=0, minute=0, second=0, microsecond=0)
    if tomorrow > now:
        time.sleep((tomorrow - now).total_seconds())
