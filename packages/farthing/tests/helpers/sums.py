"""Sums as questions for two or three models behind a server, asked by the command line."""

import json
from pathlib import Path

from farthing.cli import main

PRICES = {"small": (0.1, 0.4), "large": (2.5, 10), "huge": (25, 100)}
"""USD for a million input and output tokens."""
JOB = """
task = "gsm8k"
questions = "questions.jsonl"
rounds = {rounds}
at_once = 1  # traces are stored in the order in which they are done, and drawn from in that order
mode = "{mode}"
agents.base.model = "small"
agents.guide.model = "large"
"""
MODEL = """
models.{name} = {{ provider = "openai-compatible", model = "{name}", url = "{url}" }}
prices.{name} = {{ input_per_million = {paid}, output_per_million = {earned} }}
"""


def farthing(*arguments: object) -> int:
    """Run a command and return its exit code."""
    return main._run([str(argument) for argument in arguments])


def write_job(folder: Path, url: str, *, questions: int, rounds: int, mode: str) -> None:
    """Ask what k + k is, from k = 100 on."""
    lines = [
        json.dumps({"id": f"q{k}", "question": f"What is {k} + {k}?", "gold": [str(2 * k)]})
        for k in range(100, 100 + questions)
    ]
    (folder / "questions.jsonl").write_text("\n".join(lines))
    models = (
        MODEL.format(name=name, url=url, paid=paid, earned=earned)
        for name, (paid, earned) in PRICES.items()
    )
    (folder / "job.toml").write_text(JOB.format(rounds=rounds, mode=mode) + "".join(models))
