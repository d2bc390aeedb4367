"""`farthing generate`: made-up traces with a known optimum."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import files
from farthing.cli.completion import begun
from farthing.cli.console import interruptible, remark
from farthing.cli.options import Seed
from farthing.reports.table import counted


def presets(typed: str) -> list[str]:
    """Offer the names of presets to the Tab key."""
    from farthing_lab.generator.presets import PRESETS

    return begun(sorted(PRESETS), typed)


def generate(
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Which pair of agents to imitate.",
            autocompletion=presets,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="A .jsonl or .jsonl.gz file.")],
    n: Annotated[int, typer.Option("--n", min=1, metavar="N", help="Number of questions.")] = 1400,
    seed: Seed = 0,
    horizon: Annotated[
        int | None, typer.Option(min=1, metavar="T", help="Rounds of each question.")
    ] = None,
) -> None:
    """Write traces of a generator whose optimum is known.

    They are made up, after the paper's published figures, and are no recordings.

    Example: farthing generate --preset hotpotqa-llama2-7b --n 1400 --out made-up.jsonl.gz
    """
    import numpy as np

    from farthing.traces.files import check_suffix, write_traces
    from farthing_lab.generator import presets
    from farthing_lab.generator.generate import generate_traces

    check_suffix(out)
    files.check_file(out)
    config = presets.preset(preset).config
    if horizon is not None:
        config = replace(config, rounds=horizon)
    with interruptible("nothing was written"):
        write_traces(out, generate_traces(config, n, np.random.default_rng(seed)))
    questions, rounds = counted(n, "generated question"), counted(config.rounds, "round")
    remark(f"wrote {questions} of {rounds} to {out}")
