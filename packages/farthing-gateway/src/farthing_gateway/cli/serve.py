"""`farthing serve`: the gateway that any OpenAI client can point to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli.console import remark


def serve(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A TOML file, or a bundle of `try`.")
    ],
    record: Annotated[
        bool,
        typer.Option(
            "--record",
            help="Record traffic, and try each policy's other models on a sample.",
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Read bundles again when they change.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Overrides the configuration file.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Overrides the file; 0: a free port.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes; overrides the file.")
    ] = None,
) -> None:
    """Serve OpenAI's chat completions: spend less, keep the promise, never overspend.

    Point any OpenAI client to the address that is shown. Ctrl-C ends it in order: requests under
    way are finished.

    Example: farthing serve serve.toml --record --watch
    """
    from farthing_gateway.config import ConfigSource, ServeConfig
    from farthing_gateway.quick_config import config_file
    from farthing_gateway.server import serve as run

    source = ConfigSource(config_file(config), record, host, port, workers)

    def ready(read: ServeConfig, url: str, notes: Sequence[str]) -> None:
        for line in [*notes, f"serving at {url}"]:
            remark(line)
        if read.has_page:
            remark(f"the page is at {url.removesuffix('/v1')}/admin")

    run(source, watch=watch, ready=ready)
