"""Databases for a test: a file, or a schema on a PostgreSQL server."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
import pytest

from farthing_gateway.storage.migrations import migrate

ROOT = Path(__file__).parents[4]
NUMBERS = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the address of a server: the one that is named, or a private one."""
    named = os.environ.get("FARTHING_TEST_POSTGRES")
    if named:
        yield named
        return
    script = str(ROOT / ".ci/postgres")
    with TemporaryDirectory(prefix="farthing-postgres-", ignore_cleanup_errors=True) as folder:
        started = subprocess.run(
            [script, "start", folder], capture_output=True, text=True, check=False, timeout=120
        )
        if started.returncode:
            pytest.skip(
                f"{started.stderr.strip()}; name a server in FARTHING_TEST_POSTGRES, such as "
                "postgresql://user@localhost/database"
            )
        yield started.stdout.strip()
        subprocess.run([script, "stop", folder], check=True, timeout=60)


@pytest.fixture
def schema(postgres: str) -> Iterator[str]:
    """Return the address of a schema of its own on the server."""
    name = f"farthing_{os.getpid()}_{next(NUMBERS)}"
    asyncio.run(_execute(postgres, f"CREATE SCHEMA {name}"))
    yield f"{postgres}{'&' if '?' in postgres else '?'}search_path={name}"
    asyncio.run(_execute(postgres, f"DROP SCHEMA {name} CASCADE"))


@pytest.fixture(params=["sqlite", "postgres"])
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where a database without tables is, or will be: a file, or a schema on the server."""
    if request.param == "sqlite":
        return str(tmp_path / "farthing.db")
    return str(request.getfixturevalue("schema"))


@pytest.fixture
def where(bare: str) -> str:
    """Return where a gateway's database is."""
    asyncio.run(migrate(bare))
    return bare


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
