"""The task of `parts.py`, recorded: each part answered several times by each embedded model.

.venv/bin/python benchmarks/parts.py collect FOLDER [--tasks 160] [--samples 5]
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from farthing.traces.files import from_records
from farthing.traces.jsonl import write_traces
from farthing_lab.lm.make import CONTEXT, NETWORKS
from farthing_lab.lm.symbols import END, NUMBERS, encode, said
from farthing_lab.models.embedded import WEIGHTS
from farthing_lab.models.generation import GenerationRow, generate
from farthing_lab.models.weights import load as load_weights
from farthing_lab.tasks.arithmetic import ARITHMETIC, Recipe, draw_of

PARTS: dict[str, tuple[Any, range]] = {
    "short": ("affine", range(1, 5)),
    "long": ("affine", range(3, 8)),
    "sum": ("sums", range(2, 8)),
    "product": ("products", range(2, 8)),
}
"""Kind of the chains, and their lengths, each as often."""
MODELS = ("small", "sums", "products", "large")
SEED = 1_000_003


def collect(folder: Path, tasks: int, samples: int) -> None:
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    price = {one.name: one.price for one in NETWORKS}
    for part, (kind, hops) in PARTS.items():
        recipes = [Recipe(kind, n) for n in hops]
        drawn = draw_of("test", recipes, np.random.default_rng([7, len(part), len(hops)]))
        problems = [next(drawn) for _ in range(tasks)]
        for model in MODELS:
            file = folder / f"{part}-{model}.jsonl.gz"
            if file.exists():
                continue
            network, _ = load_weights(str(WEIGHTS / model), "float32")
            network.eval()
            began, lines = time.monotonic(), []
            for round_ in range(samples + 1):
                rows = [
                    GenerationRow(
                        ids := encode(one.text),
                        CONTEXT - len(ids),
                        0.0 if round_ == samples else 1.0,
                        seed=SEED * round_ + i,
                        ends=frozenset({NUMBERS[END]}),
                    )
                    for i, one in enumerate(problems)
                ]
                done = [
                    one
                    for at in range(0, tasks, 120)
                    for one in generate(network, rows[at : at + 120])
                ]
                for i, (problem, row, got) in enumerate(zip(problems, rows, done, strict=True)):
                    answer = ARITHMETIC.normalise(said(got.ids))[:12]
                    usd = (len(row.ids) * price[model][0] + len(got.ids) * price[model][1]) / 1e6
                    line = {
                        "id": f"task-{i}",
                        "round": round_ + 1,
                        "role": "worker",
                        "model": model,
                        "task": "arithmetic",
                        "question": problem.text,
                        "gold": [problem.answer],
                        "group": str(problem.recipe.hops),
                        "answer": answer,
                        "correct": answer == problem.answer,
                        "independent": True,
                        "input_tokens": len(row.ids),
                        "output_tokens": len(got.ids),
                        "cost_usd": usd,
                    }
                    lines.append(line)
            kept = [one for one in lines if one["round"] <= samples]
            greedy = [{**one, "round": 1} for one in lines if one["round"] > samples]
            write_traces(folder / f"{part}-{model}-likeliest.jsonl.gz", from_records(greedy))
            write_traces(file, from_records(kept))
            right = np.mean([one["correct"] for one in kept])
            best = np.mean([one["correct"] for one in greedy])
            words = np.mean([one["output_tokens"] for one in kept])
            print(
                f"{part} {model}: {right:.3f} at temperature 1, {best:.3f} at 0, {words:.0f} "
                f"symbols, {time.monotonic() - began:.0f} s",
                flush=True,
            )
    lines = []
    for part, (_, hops) in PARTS.items():
        lines += [f"[parts.{part}]", f"credit = {np.mean(hops):g}", f"[parts.{part}.models]"]
        lines += [f'{model} = "{part}-{model}.jsonl.gz"' for model in MODELS] + [""]
    (folder / "parts.toml").write_text("\n".join(lines))
