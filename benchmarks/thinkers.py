"""Thinkers on a test bed whose shortest sufficient thoughts are known: accuracy against tokens.

    python benchmarks/thinkers.py [--out thinkers.jsonl] [--seeds 3]

An embedded network is taught to overthink (once; `--overthinker` keeps it). Each thinker trains it
with each seed, and is asked fresh questions at many caps, in each of its modes. What is in
the file is not run again: the one that is kept (`benchmarks/results/thinkers.jsonl`) has all of
them, and gives the table and `docs/images/thinkers.svg`. Untrained and the oracle stand beside.
`--before` trains nothing, and
prints what e1 and HBPO say of the untrained network's thoughts.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure

from farthing import plugins
from farthing.reports.style import INK, MUTED, STYLE, TARGET, WIDTH
from farthing_lab.lm.overthinking import RECIPES, overthinker, shortest
from farthing_lab.lm.symbols import FIRST, encode, tokenizer
from farthing_lab.methods.thinkers.base import UNTOLD, Thoughts, compared, mean_of
from farthing_lab.methods.thinkers.budget_guidance import BudgetGuidance
from farthing_lab.methods.thinkers.e1 import EFFORTS
from farthing_lab.methods.thinkers.evaluation import (
    Point,
    area,
    curve,
    guided_points,
    oracle_points,
    points_of,
    tokens_at,
)
from farthing_lab.methods.thinkers.hbpo import SHARES, Hbpo
from farthing_lab.methods.thinkers.training import (
    DrawnThoughts,
    ThinkingCourse,
    ThinkingUpdate,
    length,
    right_at,
    think,
    train,
)
from farthing_lab.models.weights import load
from farthing_lab.tasks.arithmetic import ChainProblem, draw_of

RESULTS = Path(__file__).parent / "results" / "thinkers.jsonl"
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "thinkers.svg"
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


def draw(records: Sequence[dict[str, Any]]) -> None:
    """Draw each method's accuracy against tokens, a line a seed, between oracle and cutting off."""
    of = {(one["method"], one["seed"]): _points(one) for one in records}
    whole = max(one.tokens.mean() for one in of["untrained", 0])
    limits = np.linspace(whole / 4, whole, 61)
    names = sorted(
        dict.fromkeys(one["method"] for one in records if one["method"] in METHODS),
        key=lambda name: -np.mean([area(of[key], whole) for key in of if key[0] == name]),
    )
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 4.2), layout="constrained")
        panels = figure.subplots(2, 5, sharex=True, sharey=True)
        for panel, name in zip(panels.flat, names, strict=True):
            panel.plot(limits, curve(of["oracle", 0], limits), c=INK, lw=1)
            panel.plot(limits, curve(of["untrained", 0], limits), c=MUTED, lw=1, ls="--")
            for key in (key for key in of if key[0] == name):
                panel.plot(limits, curve(of[key], limits), c=TARGET, lw=1)
            panel.set_title(name)
        figure.supxlabel("tokens a question, at most")
        figure.supylabel("accuracy")
        figure.savefig(PICTURE, metadata={"Date": None})


def before(network: Any, course: ThinkingCourse) -> None:
    """Print what e1 and HBPO say of thoughts of the untrained network."""
    rng = np.random.default_rng(TEST_SEED)
    source = draw_of("train", RECIPES, rng)
    problems = [one for one in [next(source) for _ in range(256)] for _ in range(course.rollouts)]
    prompts = [encode(one.text) for one in problems]
    drawn = DrawnThoughts(problems, prompts, think(network, prompts, course.cap, rng))
    lengths = np.array([length(one, course.cap) for one in drawn.thoughts])
    right = right_at(network, drawn, lengths[:, None], rng)
    group, at = np.divmod(np.arange(len(problems)), course.rollouts)
    usual, least = mean_of(lengths * 1.0, group), np.array([shortest(one) for one in problems])
    for mode, effort in enumerate(EFFORTS):
        told = at % len(EFFORTS) == mode
        paid = (right[:, 0] * (lengths <= effort * usual))[told]
        mean = mean_of(paid, group[told])
        print(
            f"e1, effort {effort}: paid {paid.mean():.3f}, comparisons that differ"
            f" {((mean > 0) & (mean < 1)).mean():.3f}, effort below the shortest sufficient thought"
            f" {(effort * usual < least)[told].mean():.3f}"
        )
    told, none = at % len(SHARES), np.zeros(len(problems), np.int64)
    some = Thoughts(lengths, course.cap, right, group, told, none, partial(np.zeros, len(none)))
    within = compared(Hbpo().earned(some), group)[:, 0]
    between = Hbpo().advantage(some)[:, 0] - within
    lowered = (within + between < 0)[right[:, 0] == 1]
    print(
        f"hbpo: within {within.std():.2f} (deviation), between {between.mean():.2f} (mean),"
        f" {between.max():.2f} (most), right thoughts below zero {lowered.mean():.2f}"
    )


def main() -> None:
    """Run what is not there yet, print the table, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--overthinker", type=Path, default=Path("overthinker"))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--before", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.before:
        before(kept(args.overthinker), ThinkingCourse())
        return
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    records = [json.loads(line) for line in lines]
    for one in runs(args, {(r["method"], r["seed"]) for r in records}):
        records.append(one)
        with args.out.open("a") as file:
            file.write(json.dumps(one) + "\n")
    table(records)
    draw(records)


if __name__ == "__main__":
    main()
