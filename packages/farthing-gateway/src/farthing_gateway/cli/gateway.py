"""`farthing gateway`: look after a gateway's database, and have it read its configuration again."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli.command import PlainGroup, takes_options
from farthing.cli.console import remark
from farthing.errors import InputError
from farthing_gateway.cli.gateway_database import GatewayDatabase

app = typer.Typer(
    cls=PlainGroup,
    help="Look after a gateway: its database, its configuration.",
    no_args_is_help=True,
)


@app.callback()
def gateway() -> None:
    """Look after a gateway: its database, its configuration."""


@app.command()
@takes_options
def migrate(where: GatewayDatabase) -> None:
    """Make or change the tables of a gateway's database, before its servers start.

    `farthing serve` does it by itself. Where several servers share a database, it is done once.

    Example: farthing gateway migrate --config serve.toml
    """
    from farthing_gateway.storage.database import VERSION, named
    from farthing_gateway.storage.migrations import migrate as run

    place = where.path
    found = asyncio.run(run(place))
    from_ = "" if found in {None, VERSION} else f", from {found}"
    state = "were already" if found == VERSION else "are now"
    remark(f"{named(place)}: its tables {state} of version {VERSION}{from_}")


@app.command(name="reload")
@takes_options
def reload_config(
    where: GatewayDatabase,
    pid_file: Annotated[
        Path | None,
        typer.Option("--pid-file", metavar="FILE", help="The gateway's pid file; overrides both."),
    ] = None,
) -> None:
    """Have a running gateway read its configuration again; no request is lost.

    New workers start with it, and take over once all are ready. Where it is wrong, what was read
    before goes on. Address, port, database and pid file stay until the gateway starts again.

    Example: farthing gateway reload --config serve.toml
    """
    from farthing_gateway.reloading import ask_to_reload

    found = ask_to_reload(where.pid_file if pid_file is None else pid_file)
    if not found.taken:
        raise InputError(f"{found.says}; what was read before goes on")
    for line in (*found.notes, found.says):
        remark(line)
