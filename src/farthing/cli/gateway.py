"""`farthing gateway`: what is done for a gateway while it does not have to run."""

import asyncio

import typer

from farthing.cli.command import PlainGroup, takes_options
from farthing.cli.console import remark
from farthing.cli.options import GatewayDatabase

app = typer.Typer(cls=PlainGroup, help="Look after a gateway's database.", no_args_is_help=True)


@app.callback()
def gateway() -> None:
    """Look after a gateway's database."""


@app.command()
@takes_options
def migrate(where: GatewayDatabase) -> None:
    """Make or change the tables of a gateway's database, before its servers start.

    `farthing serve` does it by itself. Where several servers share a database, it is done once.

    Example: farthing gateway migrate --config serve.toml
    """
    from farthing.storage.database import VERSION, named
    from farthing.storage.migrations import migrate as run

    place = where.path
    found = asyncio.run(run(place))
    from_ = "" if found in {None, VERSION} else f", from {found}"
    state = "were already" if found == VERSION else "are now"
    remark(f"{named(place)}: its tables {state} of version {VERSION}{from_}")
