"""Which learning-rate schedule learns most from few updates? UBA beside REX, linear and cosine.

    .venv/bin/python benchmarks/schedules.py [--of fine-tuning] [--steps 320] [--seeds 3]
    .venv/bin/python benchmarks/schedules.py --of thinker --overthinker FOLDER [--steps 30]
    .venv/bin/python benchmarks/schedules.py --of critics [--steps 2000]

With a tenth, a quarter and all of the steps; the rate falls to nothing by the last of them. A line
for each schedule, its lead over the first paired by seed.

`fine-tuning`: a small network learns chains of one and two sums; the figure is the loss on fresh
chains, in nats a symbol. `thinker`: `length-penalty` trains the network that overthinks, which
`benchmarks/thinkers.py` makes; the figure is the area there. `critics`: the value networks of CCPO,
whose rate does not fall else; the figure is the cost over the known optimum's, a mean of presets.
"""

import argparse
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch
from discount import PRESETS, over_optimum
from thinkers import TEST_SEED, caps, evaluated, kept, questions
from torch.nn.functional import cross_entropy

from farthing_lab.lm.make import Size, network
from farthing_lab.lm.supervised import BUCKET, SKIP, Example, TrainingCourse, padded, train
from farthing_lab.lm.symbols import END, encode
from farthing_lab.methods.ccpo.learner import CcpoConfig
from farthing_lab.methods.thinkers.base import UNTOLD
from farthing_lab.methods.thinkers.evaluation import area, points_of
from farthing_lab.methods.thinkers.training import ThinkingCourse
from farthing_lab.rl.schedules import ScheduleName
from farthing_lab.tasks.arithmetic import Part, Recipe, draw_of

RECIPES = (Recipe("sums", 1, 1), Recipe("sums", 2, 0))
SHARES = (0.1, 0.25, 1.0)
FRESH = 256
ALPHA = Fraction(1, 10)
FALLING: tuple[ScheduleName, ...] = ("rex", "uba", "linear", "cosine")
Figure = Callable[[int, ScheduleName, int], float]
"""Steps, schedule, seed; less is better."""


def examples(part: Part, count: int, seed: int) -> list[Example]:
    drawn = draw_of(part, RECIPES, np.random.default_rng(seed))
    problems = [next(drawn) for _ in range(count)]
    ends = f"<answer>{{}}</answer>{END}"
    return [
        Example(encode(one.text), encode(one.reasoning + ends.format(one.answer)))
        for one in problems
    ]


@torch.no_grad()
def loss_of(steps: int, schedule: ScheduleName, seed: int) -> float:
    """Train a network, and return its loss on fresh chains."""
    net, known = network(Size(1, 32), seed), examples("train", 4_000, seed)
    course = TrainingCourse(steps=steps, batch=24, warm=8, schedule=schedule)
    with torch.enable_grad():
        train(net, lambda rng: known[int(rng.integers(len(known)))], course, seed=seed)
    symbols, targets = padded(examples("test", FRESH, 0))
    logits = net.eval()(symbols).logits
    return float(cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=SKIP))


def thinker(overthinker: Path) -> Figure:
    """Return what is left of the area to 1, after a training of a copy of the overthinker."""
    net = kept(overthinker)
    before = points_of(net, questions(), UNTOLD, caps(ThinkingCourse().cap), TEST_SEED)
    whole = max(one.tokens.mean() for one in before)

    def left(steps: int, schedule: ScheduleName, seed: int) -> float:
        course = ThinkingCourse(updates=steps, schedule=schedule)
        points = evaluated("length-penalty", net, course, seed)
        found = points[-1]
        print(f"  right {found.right.mean():.3f}  tokens {found.tokens.mean():.1f}", flush=True)
        return 1.0 - area(points, whole)

    return left


def cost_of(steps: int, schedule: ScheduleName, seed: int) -> float:
    """Train CCPO, and return its cost over the optimum's."""
    config = CcpoConfig(updates=steps, critic_schedule=schedule)
    return float(np.mean([over_optimum(config, name, ALPHA, seed) for name in PRESETS]))


def table(
    figure: Figure, names: Sequence[ScheduleName], budgets: Sequence[int], seeds: int
) -> None:
    """Print a line for each number of steps and schedule."""
    for steps in budgets:
        base = np.zeros(0)
        for name in names:
            found = np.array([figure(steps, name, seed) for seed in range(seeds)])
            base = found if name == names[0] else base
            lead = base - found
            error = lead.std(ddof=1) / np.sqrt(len(lead))
            print(
                f"{steps:4} steps  {name:8} {found.mean():.4f} {np.round(found, 4)}"
                f"  lead over {names[0]} {lead.mean():+.4f} ± {error:.4f}",
                flush=True,
            )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument(
        "--of", choices=("fine-tuning", "thinker", "critics"), default="fine-tuning"
    )
    arguments.add_argument("--steps", type=int)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--overthinker", type=Path, default=Path("overthinker"))
    given = arguments.parse_args()
    torch.set_num_threads(1)
    if given.of == "fine-tuning":
        steps = given.steps or 320
        budgets = [max(BUCKET, round(share * steps / BUCKET) * BUCKET) for share in SHARES]
        table(loss_of, FALLING, budgets, given.seeds)
        return
    steps = given.steps or (30 if given.of == "thinker" else 2_000)
    budgets = [round(share * steps) for share in SHARES]
    if given.of == "thinker":
        table(thinker(given.overthinker), FALLING, budgets, given.seeds)
    else:
        table(cost_of, ("constant", *FALLING), budgets, given.seeds)


if __name__ == "__main__":
    main()
