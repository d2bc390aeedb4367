"""`farthing demo`: the whole of it in a few minutes, with two small language models."""

from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import files
from farthing_lab.cli import gateway_demo
from farthing_lab.cli.live_demo import play


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where everything goes.")
    ] = Path("demo-out"),
    n: Annotated[
        int,
        typer.Option(min=120, metavar="N", help="Questions: a third each trains, proves, tests."),
    ] = 900,
    gateway: Annotated[
        bool,
        typer.Option(
            "--gateway",
            help="Show the gateway instead: two days of traffic, then it goes on until Ctrl-C.",
        ),
    ] = False,
    stay: Annotated[
        bool, typer.Option("--stay/--end", help="Of --gateway: whether it goes on, or ends.")
    ] = True,
) -> None:
    """Ask two small language models, learn when the expensive one is needed, and prove it.

    It takes a minute or two. Stopped, it goes on from what was collected.

    Example: farthing demo
    """
    files.check_folder(out)
    if gateway:
        gateway_demo.play(out / "gateway", stay=stay)
    else:
        play(out, n)
