"""`farthing sample-log`: a log to try everything on."""

from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import files
from farthing.cli.console import remark


def sample_log(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The .jsonl file to write.")] = Path(
        "tickets.jsonl"
    ),
) -> None:
    """Write a sample log: 2,000 support tickets, each answered by three models.

    It is made up, in the form of LiteLLM's spend log: tickets, answers, tokens, costs; some calls
    are lacking or failed, and nobody graded an answer.

    Example: farthing sample-log
    """
    from farthing.traces.sample import write_sample_log

    files.check_file(file)
    write_sample_log(file)
    remark(f"{file}: 2,000 support tickets, made up; three models answered, nobody graded")
    remark(f"Next: farthing recommend {file}")
