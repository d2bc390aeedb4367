"""What makes and changes the tables of a gateway's database, by Alembic: a file a version.

It happens once: before the workers of a gateway start, and by `farthing gateway migrate`. Whoever
opens a database looks at its version alone (`storage.database.check_version`).
"""

import asyncio
from pathlib import Path

from farthing.errors import StoreError
from farthing_gateway.storage.database import (
    SCHEMES,
    VERSION,
    check_not_newer,
    connect,
    named,
    version_of,
)


async def migrate(where: str) -> str | None:
    """Bring the tables of a database to this version, and make an SQLite file that is not there.

    Args:
        where: the path of an SQLite file, or the URL of a PostgreSQL database.

    Returns:
        The version that it had; None: it had none.

    Raises:
        StoreError: a newer Farthing wrote it, or it cannot be reached or written.
    """
    on_server = where.startswith(SCHEMES)
    if not on_server and not Path(where).is_file():
        _make_private(where)
    database = await connect(where)
    try:
        found = await version_of(database, where)
    finally:
        await database.aclose()
    if found == VERSION:
        return found
    check_not_newer(named(where), found)
    if on_server:
        from farthing_gateway.storage.migrations.running_postgres import (  # noqa: PLC0415 - an extra
            upgrade_server,
        )

        await upgrade_server(where)
    else:
        from farthing_gateway.storage.migrations.running import (  # noqa: PLC0415 - Alembic takes long to load
            upgrade_file,
        )

        await asyncio.to_thread(upgrade_file, where)
    return found


def _make_private(path: str) -> None:
    """Make a file that nobody else may read: it will hold what users wrote."""
    try:
        Path(path).touch(mode=0o600)
    except OSError as problem:
        raise StoreError(
            f"{path}: cannot be made ({(problem.strerror or '').lower()}); check its folder"
        ) from problem
