"""A pool of tiny random networks, and controllers that write what a table says."""

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from farthing.experiments.corl.questions import Drawn
from farthing.lm.make import write
from farthing.lm.symbols import FIRST, NUMBERS, SYMBOLS, WHOLE
from farthing.lm.tiny import Size, network
from farthing.tasks.arithmetic import Recipe

SIZE = Size(pairs=1, width=8, heads=2)
PRICES = {"controller": 0.1, "small": 1.0, "large": 10.0}
"""USD per million tokens read; four times that for those written."""
TOML = """
[pool]
task = "arithmetic"
questions = "{folder}/questions.jsonl"
controller = "writer"
style = "compact"
most_turns = 3
max_tokens = 12

[modes]
high = 0.0005
low = 0.00002

[models.writer]
provider = "embedded"
model = "controller"
folder = "{folder}"

[models.small]
provider = "embedded"
model = "small"
folder = "{folder}"

[models.large]
provider = "embedded"
model = "large"
folder = "{folder}"
"""


def write_pool(folder: Path) -> Path:
    """Write networks, questions and a pool; return the pool's file."""
    for seed, name in enumerate(PRICES):
        template = WHOLE if name == "controller" else FIRST
        write(network(SIZE, seed), template, folder / name, {})
    listed = [
        {
            "name": name,
            "meaning": "random",
            "input_per_million": usd,
            "output_per_million": 4 * usd,
            "parameters": 1,
        }
        for name, usd in PRICES.items()
    ]
    (folder / "models.json").write_text(json.dumps(listed))
    drawn = Drawn((Recipe("affine", 1), Recipe("affine", 2)))
    lines = [
        {"id": q.id, "question": q.text, "gold": q.gold, "group": q.group, "split": q.split}
        for part, n in (("train", 20), ("calibrate", 12), ("test", 12))
        for q in drawn.sample(part, n, seed=3)  # type: ignore[arg-type]
    ]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    file = folder / "pool.toml"
    file.write_text(TOML.format(folder=folder))
    return file


class Table(torch.nn.Module):
    """Writes, after each symbol, the one that a table has for it."""

    def __init__(self, after: dict[str, str]) -> None:
        super().__init__()
        logits = np.zeros((len(SYMBOLS), len(SYMBOLS)))
        for symbol, following in after.items():
            logits[NUMBERS[symbol], NUMBERS[following]] = 9.0
        self.table = torch.nn.Parameter(torch.tensor(logits))

    def forward(self, input_ids: Any, **_: Any) -> Any:
        return SimpleNamespace(
            logits=self.table[input_ids], past_key_values=SimpleNamespace(layers=[])
        )


def calls(expert: str, *notes: str) -> Table:
    """Return a controller that takes notes, calls an expert, and answers 4 whatever the reply."""
    asking = dict(pairwise(["?", *notes, "<call>", expert, "</call>"]))
    return Table({**asking, "</reply>": "<answer>", **ANSWERS})


def answers() -> Table:
    """Return a controller that answers 4 at once."""
    return Table({"?": "<answer>", **ANSWERS})


ANSWERS = {"<answer>": "4", "4": "</answer>"}
