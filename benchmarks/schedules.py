"""Which learning-rate schedule learns most from few updates? UBA beside REX, linear and cosine.

    .venv/bin/python benchmarks/schedules.py [--steps 320] [--seeds 3]

A small network learns chains of one and two sums, with a tenth, a quarter and all of the steps; the
rate falls to nothing by the last of them. The figure is the loss on fresh chains, in nats a symbol.
A line for each schedule, its lead over REX paired by seed.
"""

import argparse

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from farthing.lm.networks import Size, network
from farthing.lm.supervised import BUCKET, SKIP, Example, TrainingCourse, padded, train
from farthing.lm.symbols import END, encode
from farthing.rl.schedules import SCHEDULES
from farthing.tasks.arithmetic import Part, Recipe, draw_of

RECIPES = (Recipe("sums", 1, 1), Recipe("sums", 2, 0))
SHARES = (0.1, 0.25, 1.0)
FRESH = 256


def examples(part: Part, count: int, seed: int) -> list[Example]:
    drawn = draw_of(part, RECIPES, np.random.default_rng(seed))
    problems = [next(drawn) for _ in range(count)]
    ends = f"<answer>{{}}</answer>{END}"
    return [
        Example(encode(one.text), encode(one.reasoning + ends.format(one.answer)))
        for one in problems
    ]


@torch.no_grad()
def loss_of(steps: int, schedule: str, seed: int) -> float:
    """Train a network, and return its loss on fresh chains."""
    net, known = network(Size(1, 32), seed), examples("train", 4_000, seed)
    course = TrainingCourse(steps=steps, batch=24, warm=8, schedule=schedule)
    with torch.enable_grad():
        train(net, lambda rng: known[int(rng.integers(len(known)))], course, seed=seed)
    symbols, targets = padded(examples("test", FRESH, 0))
    logits = net.eval()(symbols).logits
    return float(cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=SKIP))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--steps", type=int, default=320)
    arguments.add_argument("--seeds", type=int, default=3)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    for share in SHARES:
        steps = max(BUCKET, round(share * given.steps / BUCKET) * BUCKET)
        base = np.zeros(0)
        for name in SCHEDULES:
            found = np.array([loss_of(steps, name, seed) for seed in range(given.seeds)])
            base = found if name == "rex" else base
            lead = base - found
            error = lead.std(ddof=1) / np.sqrt(len(lead))
            print(
                f"{steps:4} steps  {name:7} loss {found.mean():.4f} {np.round(found, 4)}"
                f"  lead over rex {lead.mean():+.4f} ± {error:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
