"""`farthing demo`: the whole of it in a minute, on made-up questions."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import files
from farthing.cli.compare import generated, run
from farthing.cli.console import remark

PRESET = "hotpotqa-llama2-7b"
POLICIES = (
    "random",
    "fixed",
    "uala",
    "cpo",
    "cpo-batch",
    "cpo-online",
    "ccpo",
    "stopping",
    "lookahead",
    "optimum",
)
"""Two trainings of a quarter of a minute, two of a second or two, and what needs none."""


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where the report goes.")
    ] = Path("demo-out"),
) -> None:
    """Compare policies on made-up questions, in about a minute, and write a report.

    Example: farthing demo
    """
    from farthing.experiments.plan import Plan

    files.check_folder(out)
    dataset, sizes = generated(PRESET, None, 0, {})
    run(dataset, Plan((Fraction(1, 10),), POLICIES, sizes=sizes), out)
    remark(
        f"""
What you see: what each policy paid, and how near it came to the 0.9 asked for.
Look at {out / "report.html"}: costs, spread, training, known optimum.
Your own: farthing compare --traces runs.jsonl.gz --alpha 0.1 --out report"""
    )
