"""Which database of a gateway a command is about."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from farthing.errors import ConfigError, InputError

DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", metavar="FILE|URL", help="The gateway's SQLite file or PostgreSQL."),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The gateway's configuration, which names it."),
]


def database_of(database: str | None, config: Path | None) -> str:
    """Return the path or URL that was given, or that `database` under `[serve]` says.

    Raises:
        InputError: nothing says it, or both do.
        ConfigError: the configuration cannot be read, or names none.
    """
    from farthing.gateway.config import placed_database
    from farthing.models.toml import read_toml

    if (database is None) == (config is None):
        raise InputError("give the gateway's database: --database farthing.db, or its --config")
    if config is None:
        return database or ""
    serve = read_toml(config).get("serve")
    named = serve.get("database") if isinstance(serve, dict) else None
    if not isinstance(named, str) or not named:
        raise ConfigError(str(config), "serve.database", "is missing; name a file or a URL")
    return placed_database(named, config.absolute().parent)


def date_of(text: str | None) -> datetime | None:
    """Read a date, or a moment, of the option `--since`; without a zone it is UTC.

    >>> date_of("2026-11-01").isoformat()
    '2026-11-01T00:00:00+00:00'

    Raises:
        InputError: it is neither.
    """
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--since {text}: is no date; write it as 2026-11-01") from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
