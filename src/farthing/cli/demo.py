"""`farthing demo`: the whole of it in a few minutes, with two small language models."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import files, gateway_demo
from farthing.cli.compare import generated, run
from farthing.cli.console import remark
from farthing.cli.live_demo import play

PRESET = "hotpotqa-llama2-7b"
POLICIES = (
    "random",
    "fixed",
    "uala",
    "cpo",
    "cpo-batch",
    "cpo-online",
    "ccpo",
    "ccpo-published",
    "stopping",
    "lookahead",
    "optimum",
)
"""Three trainings of a quarter of a minute, two of a second or two, and what needs none."""


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where everything goes.")
    ] = Path("demo-out"),
    n: Annotated[
        int,
        typer.Option(min=90, metavar="N", help="Questions: a third each trains, proves, tests."),
    ] = 900,
    made_up: Annotated[
        bool,
        typer.Option(
            "--generated",
            help="Compare policies on made-up questions with a known optimum instead.",
        ),
    ] = False,
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
    elif made_up:
        _compare(out)
    else:
        play(out, n)


def _compare(out: Path) -> None:
    from farthing.comparison.plan import Plan

    dataset, sizes = generated(PRESET, None, 0, {})
    run(dataset, Plan((Fraction(1, 10),), POLICIES, sizes=sizes), out)
    remark(
        f"""
What you see: what each policy paid, and how near it came to the 0.9 asked for.
Look at {out / "report.html"}: costs, spread, training, known optimum.
Your own: farthing compare runs.jsonl.gz --alpha 0.1 --out report"""
    )
