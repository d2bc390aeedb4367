"""A pool of tiny random networks, and controllers that write what a table says."""

import json
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from farthing.models.base import Prompt
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import ScriptedModel
from farthing_lab.corl.pool import GeneratedQuestions, built_in
from farthing_lab.corl.rollouts import FrozenExperts, PoolSession, Voice
from farthing_lab.lm import symbols
from farthing_lab.lm.make import Size, network, write
from farthing_lab.lm.symbols import FIRST, NUMBERS, SYMBOLS, WHOLE
from farthing_lab.tasks.arithmetic import Recipe, normalise, solve

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


def dollars(usd: str) -> TokenPrice:
    """Return a price of so much a million tokens, read or written."""
    return TokenPrice((Rates(Decimal(usd), Decimal(usd)),))


def right(prompt: Prompt) -> str:
    return f"<answer>{solve(prompt.messages[-1].content)}</answer>"


def four(_: Prompt) -> str:
    return "<answer>4</answer>"


def scripted_pool(network: Any, small: Callable[[Prompt], Any] = four) -> PoolSession:
    """Return the pool `two` with a small expert that says 4, and a large one that is right."""
    pool = built_in("two")
    models = {
        "small": ScriptedModel(small, name="small", price=dollars("10")),
        "large": ScriptedModel(right, name="large", price=dollars("100")),
    }
    ends = frozenset({symbols.NUMBERS[symbols.END]})
    price = dollars("0.1")
    voice = Voice(network, symbols.encode, symbols.decode, ends, price=price, max_tokens=9)
    experts = FrozenExperts(models, 200, normalise)
    return PoolSession(pool, voice, None, experts, pool.rules, pool.grader())


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
    drawn = GeneratedQuestions((Recipe("affine", 1), Recipe("affine", 2)))
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
