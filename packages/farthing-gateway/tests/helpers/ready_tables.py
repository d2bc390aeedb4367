"""A new database of a test gets the tables that a migration made once, and no migration more."""

import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from sqlalchemy import Engine, event

from farthing_gateway.storage.migrations import running, running_postgres
from farthing_gateway.storage.migrations.running import upgrade_file
from farthing_gateway.storage.migrations.running_postgres import upgrade_server

EMPTY = """SELECT current_schema() IS NOT NULL AND NOT EXISTS (
    SELECT FROM pg_tables WHERE schemaname = current_schema())"""
LONGEST = timedelta(seconds=30)


def ready_file(folder: Path) -> Callable[[str], None]:
    """Return what brings the tables of a file to this version, and copies those of an empty one."""
    ready = folder / "ready.db"

    def upgrade(path: str) -> None:
        if Path(path).stat().st_size:
            upgrade_file(path)
            return
        if not ready.exists():
            upgrade_file(str(ready))
        shutil.copyfile(ready, path)

    return upgrade


def ready_schema() -> Callable[[str], Awaitable[None]]:
    """Return what does so on a server: what the first migration executed is executed again."""
    changes: list[tuple[str, tuple[Any, ...]]] = []

    def note(*told: Any) -> None:
        _, _, statement, parameters, *_ = told
        if not statement.lstrip().startswith("SELECT"):
            changes.append((statement, tuple(parameters)))

    async def upgrade(url: str) -> None:
        connection = await asyncpg.connect(url)
        try:
            empty = await connection.fetchval(EMPTY)
            if empty and changes:
                async with connection.transaction():
                    for statement, parameters in changes:
                        await connection.execute(statement, *parameters)
                return
        finally:
            await connection.close()
        if not empty:
            await upgrade_server(url)
            return
        event.listen(Engine, "before_cursor_execute", note)
        try:
            await upgrade_server(url)
        finally:
            event.remove(Engine, "before_cursor_execute", note)

    return upgrade


@pytest.fixture(scope="session")
def ready(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Callable[[str], None], Callable[[str], Awaitable[None]]]:
    """Return both, for all tests of this process."""
    return ready_file(tmp_path_factory.mktemp("ready")), ready_schema()


@pytest.fixture(scope="module", autouse=True)
def ready_tables(
    ready: tuple[Callable[[str], None], Callable[[str], Awaitable[None]]],
) -> Iterator[None]:
    """Let gateways of this process begin with them; `test_migrations.py` migrates each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "upgrade_file", ready[0])
        patch.setattr(running_postgres, "upgrade_server", ready[1])
        yield


@pytest.fixture(autouse=True)
def one_day() -> None:
    """Begin after midnight where a test might not end before it: what is spent is spent by day."""
    now = datetime.now(UTC)
    tomorrow = (now + LONGEST).replace(hour=0, minute=0, second=0, microsecond=0)
    if tomorrow > now:
        time.sleep((tomorrow - now).total_seconds())
