"""The paper trains its controller by PPO with a value model; does that learn it here, and as soon?

    .venv/bin/python benchmarks/corl_value_model.py OUT [--pools two,four] [--seeds 3]
        [--processes 1] [--device cpu] [--updates 48 --prompts 32 --minibatch 16]

Both kinds of advantage, by a value model (`gae`) and by comparison with other episodes of the same
question (`group`), train each pool's controller with each seed, in courses as long as those of the
controllers that ship. Then each answers fresh questions in every mode by its likeliest tokens. What
is in OUT is not run again; `--draw` runs nothing. Records go to
`benchmarks/results/corl_value_model.json`, the picture to `docs/images/corl_value_model.svg`. Pool
`two` takes 81 minutes of a core, `four` some four hours. `--processes` says how many train at once,
`--device cuda` where the controller learns.
"""

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure

from farthing.reports.style import STYLE, WIDTH
from farthing_lab.corl.evaluation import evaluate, mean
from farthing_lab.corl.learner import TrainingSchedule, Update
from farthing_lab.corl.pool import built_in
from farthing_lab.corl.rollouts import PoolSession
from farthing_lab.corl.training import TrainingPlan, train
from farthing_lab.lm.masked_ppo import Settings
from farthing_lab.reports.corl import evaluation_record

RESULTS = Path(__file__).parent / "results" / "corl_value_model.json"
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "corl_value_model.svg"
KINDS = {"group": "#0072b2", "gae": "#d55e00"}
"""Kind of advantage, and its colour."""
COURSES = {"two": 80, "four": 240}
"""Updates in each pool."""
Record = dict[str, Any]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--pools", default="two,four")
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--updates", type=int, help=f"{COURSES} unless given")
    arguments.add_argument("--prompts", type=int, default=64)
    arguments.add_argument("--minibatch", type=int, default=32)
    arguments.add_argument("--questions", type=int, default=500)
    arguments.add_argument("--processes", type=int, default=1)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--draw", action="store_true")
    given = arguments.parse_args()
    pools, seeds = given.pools.split(","), range(given.seeds)
    jobs = [(given, pool, seed, kind) for pool in pools for seed in seeds for kind in KINDS]
    if not given.draw:
        with ProcessPoolExecutor(given.processes, get_context("spawn")) as processes:
            list(processes.map(one, *zip(*jobs, strict=True)))
    files = [file for pool in pools for file in sorted(given.out.glob(f"{pool}-*-*.json"))]
    records = [json.loads(file.read_text()) for file in files]
    RESULTS.write_text("[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n")
    draw(records)
    for pool in pools:
        show([record for record in records if record["pool"] == pool])


def one(given: argparse.Namespace, pool: str, seed: int, kind: Any) -> None:
    """Train a controller, judge it, and keep the record; what is there already stays."""
    folder, kept = (given.out / f"{pool}-{kind}-{seed}{end}" for end in ("", ".json"))
    if kept.exists():
        return
    torch.set_num_threads(1)
    began = time.process_time()
    course = TrainingSchedule(updates=given.updates or COURSES[pool], prompts=given.prompts)
    settings = Settings(advantage=kind, minibatch=given.minibatch)
    plan = TrainingPlan(course=course, settings=settings, seed=seed)
    with PoolSession.of(built_in(pool), given.device) as opened:
        log = train(opened, plan, folder, watch=lambda update: told(folder.name, update))
        seconds = time.process_time() - began
        found = evaluation_record(evaluate(opened, given.questions, seed=100 + seed))
    record = {
        "pool": pool,
        "advantage": kind,
        "seed": seed,
        "episodes": given.prompts * course.rollouts,
        "processor_seconds": round(seconds, 1),
        "learned": [
            {
                "reward": round(update.reward, 4),
                "calls": {mode: round(calls, 4) for mode, (calls, _) in update.by_mode.items()},
            }
            for update in log.updates
        ],
        "modes": {
            name: {
                **{key: mode[key] for key in ("accuracy", "call_ratio", "over_budget", "reward")},
                "cost_usd": mode["cost_usd"],
                "best_plan": mode["best_plan"]["reward"],
            }
            for name, mode in found["modes"].items()
        },
    }
    kept.write_text(json.dumps(record, indent=1) + "\n")
    rewards = {name: mode["reward"] for name, mode in record["modes"].items()}
    print(f"{folder.name}: {seconds:.0f} s, {rewards}", flush=True)


def told(name: str, update: Update) -> None:
    """Print every twentieth update."""
    if update.update % 20 == 0:
        print(f"{name}: {update.update}, {update.seconds:.0f} s, {update.reward:.3f}", flush=True)


def show(records: Sequence[Record]) -> None:
    """Print what each kind comes to in each mode, and the pairs of seeds."""
    kinds = {kind: [r for r in records if r["advantage"] == kind] for kind in KINDS}
    print(f"\n== pool {records[0]['pool']}, {len(kinds['gae'])} seeds")
    for mode in records[0]["modes"]:
        rewards = {}
        for kind, some in kinds.items():
            of = [record["modes"][mode] for record in some]
            rewards[kind] = np.array([one["reward"] for one in of])
            told = ("accuracy", "call_ratio", "over_budget", "reward", "best_plan")
            figures = "  ".join(f"{key} {np.round([one[key] for one in of], 3)}" for key in told)
            cost = np.round([1_000 * one["cost_usd"] for one in of], 4)
            print(f"{mode:7} {kind:6} {figures}  USD per 1,000 {cost}")
        pairs = min(len(some) for some in rewards.values())
        apart = mean(rewards["gae"][:pairs] - rewards["group"][:pairs])
        print(
            f"{mode:7} gae less group: {apart.value:+.3f} ({apart.low:+.3f} to {apart.high:+.3f})"
        )
    for kind, some in kinds.items():
        spent = sum(record["processor_seconds"] for record in some)
        print(f"{kind}: {spent / 60:.0f} minutes of a core")


def draw(records: Sequence[Record]) -> None:
    """Draw the reward of each training's episodes, and how far its modes' calls are apart."""
    pools = list(dict.fromkeys(record["pool"] for record in records))
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 2.6 * len(pools)), layout="constrained")
        panels = figure.subplots(len(pools), 2, squeeze=False)
        for row, pool in zip(panels, pools, strict=True):
            for record in (one for one in records if one["pool"] == pool):
                colour, label = KINDS[record["advantage"]], record["advantage"]
                first = {"label": label} if record["seed"] == 0 else {}
                row[0].plot(*_smooth([u["reward"] for u in record["learned"]]), c=colour, **first)
                apart = [u["calls"]["high"] - u["calls"]["low"] for u in record["learned"]]
                row[1].plot(*_smooth(apart), c=colour)
            row[0].set(xlabel="update", ylabel=f"reward, pool {pool}")
            row[1].set(xlabel="update", ylabel="calls, high less low")
            row[0].legend()
        figure.savefig(PICTURE, metadata={"Date": None})


def _smooth(values: Sequence[float], width: int = 5) -> tuple[Any, Any]:
    """Return the last of every `width` updates, and their mean."""
    whole = np.array(values[: len(values) // width * width]).reshape(-1, width)
    return np.arange(1, len(whole) + 1) * width, whole.mean(axis=1)


if __name__ == "__main__":
    main()
