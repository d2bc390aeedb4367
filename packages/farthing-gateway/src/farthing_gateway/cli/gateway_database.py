"""The options that say which gateway a command is about: its database, or its configuration."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from farthing.errors import ConfigError, InputError
from farthing.models.toml import read_toml
from farthing_gateway.config import pid_file_beside, placed_database


@dataclass(frozen=True)
class GatewayDatabase:
    """Which database of a gateway a command is about."""

    database: Annotated[
        str | None,
        typer.Option("--database", metavar="FILE|URL", help="An SQLite file or a PostgreSQL URL."),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="The configuration that names it."),
    ] = None

    @property
    def path(self) -> str:
        """The path or URL that was given, or that `database` under `[serve]` says."""
        if self.config is None or self.database is not None:
            return self._given
        named = self._said("database")
        if named is None:
            raise ConfigError(
                str(self.config), "serve.database", "is missing; name a file or a URL"
            )
        return placed_database(named, self.config.absolute().parent)

    @property
    def pid_file(self) -> Path:
        """The pid file of the gateway, as `pid_file` under `[serve]` or its database says."""
        given = self._said("pid_file") if self.database is None else None
        if given is not None and self.config is not None:
            return self.config.absolute().parent / given
        found = pid_file_beside(self.path)
        if found is None:
            raise InputError(
                "a gateway with PostgreSQL is found by the pid_file that [serve] names, or "
                "--pid-file; SIGHUP to its first process does the same"
            )
        return found

    @property
    def _given(self) -> str:
        if self.database is None or self.config is not None:
            raise InputError("give the gateway's database: --database farthing.db, or its --config")
        return self.database

    def _said(self, field: str) -> str | None:
        serve = {} if self.config is None else read_toml(self.config).get("serve")
        said = serve.get(field) if isinstance(serve, dict) else None
        return said if isinstance(said, str) and said else None
