"""Thinkers on a test bed whose shortest sufficient thoughts are known: accuracy against tokens.

    python benchmarks/thinkers.py --out thinkers.jsonl --seeds 3

An embedded network is taught to overthink (once; `--overthinker` keeps it). Each thinker trains it
with each seed, and is asked fresh questions at many caps, in each of its modes. What is in
the file is not run again. Untrained and the oracle stand beside.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch

from farthing import plugins
from farthing.lm.overthinking import RECIPES, overthinker
from farthing.lm.symbols import FIRST, encode, tokenizer
from farthing.methods.thinkers.base import UNTOLD
from farthing.methods.thinkers.budget_guidance import BudgetGuidance
from farthing.methods.thinkers.evaluation import (
    Point,
    area,
    guided_points,
    oracle_points,
    points_of,
    tokens_at,
)
from farthing.methods.thinkers.training import ThinkingCourse, ThinkingUpdate, think, train
from farthing.models.weights import load
from farthing.tasks.arithmetic import ChainProblem, draw_of

METHODS = (
    *("right-alone", "length-penalty", "hbpo", "brpo", "budget-guidance", "elastic", "e1", "cib"),
    *("adactrl", "thinkdial"),
)
ASKED = 240
"""Fresh questions; the same for all."""
FITTED = 400
"""Thoughts that Budget Guidance's predictor is fitted to."""
TEST_SEED = 17
ENOUGH = (0.7, 0.85)
"""Accuracies at which tokens are compared."""


def caps(cap: int) -> list[int]:
    """Return where thoughts are cut."""
    return [round(share * cap) for share in np.geomspace(1 / 12, 1, 24)]


def questions() -> list[ChainProblem]:
    """Return the questions that all are asked."""
    drawn = draw_of("test", RECIPES, np.random.default_rng(TEST_SEED))
    return [next(drawn) for _ in range(ASKED)]


def evaluated(name: str, network: Any, course: ThinkingCourse, seed: int) -> list[Point]:
    """Train a copy of the network by a thinker, and return its points."""
    problems, net = questions(), deepcopy(network)
    thinker = plugins.load("thinkers", name).make
    if isinstance(thinker, BudgetGuidance):
        rng = np.random.default_rng(seed)
        drawn = draw_of("train", RECIPES, rng)
        prompts = [encode(next(drawn).text) for _ in range(FITTED)]
        ids = [one.ids for one in think(net, prompts, course.cap, rng)]
        predictor = thinker.fit(net, list(zip(prompts, ids, strict=True)), seed)
        return guided_points(net, predictor, problems, caps(course.cap), TEST_SEED)
    train(net, thinker, course, seed=seed, watch=_say)
    modes = thinker.modes
    return [
        one for mode in modes for one in points_of(net, problems, mode, caps(course.cap), TEST_SEED)
    ]


def _say(update: ThinkingUpdate) -> None:
    said = f"right {update.right:.3f}  tokens {update.length:5.1f}  kl {update.kl:.3f}"
    print(f"  {update.update:3}  {said}", flush=True)


def kept(folder: Path) -> Any:
    """Return the overthinker, made where it is not there."""
    if not folder.exists():
        net = overthinker(watch=lambda p: print(f"  step {p.step} loss {p.loss:.3f}", flush=True))
        net.save_pretrained(folder)
        tokenizer(FIRST).save_pretrained(folder)
    return load(str(folder), "float32")[0]


def record(name: str, seed: int, seconds: float, points: Sequence[Point]) -> dict[str, Any]:
    """Return what a run came to, as JSON values."""
    said = [
        {
            "name": one.name,
            "tokens": round(float(one.tokens.mean()), 2),
            "right": round(float(one.right.mean()), 4),
        }
        for one in points
    ]
    return {"method": name, "seed": seed, "seconds": round(seconds, 1), "points": said}


def runs(args: argparse.Namespace, done: set[tuple[str, int]]) -> Iterator[dict[str, Any]]:
    """Yield what each run came to that is not there yet."""
    network, course = kept(args.overthinker), ThinkingCourse(updates=args.updates)
    if ("untrained", 0) not in done:
        began = time.monotonic()
        points = points_of(network, questions(), UNTOLD, caps(course.cap), TEST_SEED)
        yield record("untrained", 0, time.monotonic() - began, points)
        yield record("oracle", 0, 0.0, oracle_points(questions(), caps(course.cap)))
    for seed in range(args.seeds):
        for name in args.methods.split(","):
            if (name, seed) not in done:
                print(f"{name}, seed {seed}", flush=True)
                began = time.monotonic()
                points = evaluated(name, network, course, seed)
                yield record(name, seed, time.monotonic() - began, points)


def _points(said: dict[str, Any]) -> list[Point]:
    """Return points of one question each, which has their means."""
    return [
        Point(one["name"], np.array([one["tokens"]]), np.array([one["right"]]))
        for one in said["points"]
    ]


def table(records: Sequence[dict[str, Any]]) -> None:
    """Print what each method does with whole thoughts, its area, and its tokens where it is enough.

    A method reads its tokens off the same caps as the oracle; between them nothing is filled in.
    """
    of = {(one["method"], one["seed"]): _points(one) for one in records}
    untrained, oracle = of["untrained", 0], of["oracle", 0]
    whole = max(one.tokens.mean() for one in untrained)
    print("method            right    tokens   area (se)      oracle tokens at .7, .85          s")
    for name in dict.fromkeys(method for method, _ in of):
        each = [points for (method, _), points in of.items() if method == name]
        areas = np.array([area(points, whole) for points in each])
        error = areas.std(ddof=1) / np.sqrt(len(areas)) if len(areas) > 1 else 0.0
        last = [points[-1] for points in each]
        right = np.mean([one.right.mean() for one in last])
        tokens = np.mean([one.tokens.mean() for one in last])
        over = [
            [tokens_at(points, level) / tokens_at(oracle, level) for points in each]
            for level in ENOUGH
        ]
        spent = np.mean([one["seconds"] for one in records if one["method"] == name])
        said = "  ".join(f"{np.round(some, 2)!s:20}" for some in over)
        print(
            f"{name:16} {right:.3f}  {tokens:6.1f}   {areas.mean():.3f} ({error:.3f})   {said}"
            f" {spent:5.0f}"
        )


def main() -> None:
    """Run what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("thinkers.jsonl"))
    parser.add_argument("--overthinker", type=Path, default=Path("overthinker"))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    before = args.out.read_text().splitlines() if args.out.exists() else []
    records = [json.loads(line) for line in before]
    for one in runs(args, {(r["method"], r["seed"]) for r in records}):
        records.append(one)
        with args.out.open("a") as file:
            file.write(json.dumps(one) + "\n")
    table(records)


if __name__ == "__main__":
    main()
