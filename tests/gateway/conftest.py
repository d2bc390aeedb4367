"""Every database that a gateway may keep its things in; one suite runs over all of them."""

import asyncio
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = os.environ.get("FARTHING_TEST_POSTGRES")
"""URL of a PostgreSQL database that tests may write to."""


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the path or URL of an empty database."""
    if request.param == "sqlite":
        yield str(tmp_path / "farthing.db")
    elif SERVER is None:
        pytest.skip("needs a PostgreSQL server: set FARTHING_TEST_POSTGRES to a database's URL")
    else:
        schema = f"test_{secrets.token_hex(8)}"
        asyncio.run(_run(SERVER, f"CREATE SCHEMA {schema}"))
        yield f"{SERVER}{'&' if '?' in SERVER else '?'}search_path={schema}"
        asyncio.run(_run(SERVER, f"DROP SCHEMA {schema} CASCADE"))


async def _run(url: str, statement: str) -> None:
    import asyncpg  # noqa: PLC0415 - only where there is a server

    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()
