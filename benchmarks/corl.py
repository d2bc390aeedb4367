"""What trained controllers come to: two pools, several seeds, each claim with its interval.

    .venv/bin/python benchmarks/corl.py OUT [--pools two,four] [--seeds 3] [--questions 1000]
        [--workers 2]

OUT/POOL-SEED are controllers as `farthing corl train` writes them; those that are there already are
not trained again, and a training that was killed goes on. Each is judged on fresh questions that
nobody learned or chose from, and its record kept in OUT/POOL-SEED.json; all records that are there
go to `benchmarks/results/corl.json`, and are shown.
"""

import argparse
import json
import resource
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure

from farthing.money import usd_from_nano
from farthing.reports.style import INK, MUTED, STYLE, WIDTH
from farthing_lab.corl.evaluation import evaluate, mean
from farthing_lab.corl.learner import TrainingSchedule
from farthing_lab.corl.pool import BUILT_IN, CARD, built_in, pool_of, read_card
from farthing_lab.corl.rollouts import PoolSession
from farthing_lab.corl.training import TrainingPlan, train
from farthing_lab.reports.corl import evaluation_record
from farthing_lab.reports.training import controller_curves

RESULTS = Path(__file__).parent / "results" / "corl.json"
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "corl.svg"
UPDATES = {"two": 80, "four": 240}
HARD = 5.0
"""The hard budget of the second evaluation, in budgets of the cheapest mode."""
Record = dict[str, Any]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--pools", default="two,four")
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--questions", type=int, default=1_000)
    arguments.add_argument("--workers", type=int, default=2)
    given = arguments.parse_args()
    jobs = [(pool, seed) for seed in range(given.seeds) for pool in given.pools.split(",")]
    with ProcessPoolExecutor(given.workers, get_context("spawn"), _one_core) as pool:
        waiting = [pool.submit(one, given.out, *job, given.questions) for job in jobs]
        for job in waiting:
            job.result()
    records = [json.loads(file.read_text()) for file in sorted(given.out.glob("*-*.json"))]
    RESULTS.write_text(json.dumps(records, indent=1) + "\n")
    by_pool = {n: [r for r in records if r["pool"] == n] for n in BUILT_IN}
    by_pool = {name: some for name, some in by_pool.items() if some}
    draw(by_pool)
    for name, of_pool in by_pool.items():
        show(name, of_pool)


def _one_core() -> None:
    torch.set_num_threads(1)


def one(out: Path, pool: str, seed: int, questions: int) -> None:
    """Train a controller, judge it, and keep the record; what is there already stays."""
    folder, kept = out / f"{pool}-{seed}", out / f"{pool}-{seed}.json"
    if kept.exists():
        return
    if not (folder / CARD).exists():
        began = time.monotonic()
        plan = TrainingPlan(course=TrainingSchedule(updates=UPDATES[pool]), seed=seed)
        with PoolSession.of(built_in(pool)) as opened:
            train(opened, plan, folder)
        print(f"{folder}: {time.monotonic() - began:.0f} s", flush=True)
    card = read_card(folder)
    assert card is not None
    controller_curves(card.updates, list(card.modes_usd)).savefig(folder / "curves.png", dpi=100)
    with PoolSession.of(pool_of(folder, None).pool) as opened:
        hard = round(opened.modes[0].budget_nano * HARD)
        found = evaluation_record(evaluate(opened, questions, seed=100 + seed))
        capped = evaluation_record(evaluate(opened, questions, seed=100 + seed, hard_nano=hard))
    last = card.updates[-1]
    record = {
        **found,
        "training": {
            "seed": seed,
            "updates": len(card.updates),
            "stopped": card.stopped,
            "seconds": last["seconds"],
            "tokens_written": last["tokens"],
            "tokens_written_a_second": last["tokens"] / last["seconds"],
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "settings": card.settings["settings"],
        },
        "under_hard_budget": {
            "hard_budget_usd": usd_from_nano(hard),
            "dearest_usd": {m: one["dearest_usd"] for m, one in capped["modes"].items()},
        },
    }
    kept.write_text(json.dumps(record, indent=1) + "\n")


def show(pool: str, records: Sequence[Record]) -> None:
    """Print what the controllers of a pool come to: means over seeds, and each claim."""
    print(
        f"\n== pool {pool}, {len(records)} seeds, {records[0]['questions']:,} fresh questions each"
    )
    head = ("mode", "accuracy", "USD per 1,000", "called", "over B", "reward", "best plan")
    print("{:8}{:>18}{:>20}{:>18}{:>9}{:>18}{:>11}".format(*head))
    for mode in records[0]["modes"]:
        of = [record["modes"][mode] for record in records]
        columns = [
            _across([one[name] for one in of]) for name in ("accuracy", "call_ratio", "reward")
        ]
        cost = _across([1_000 * one["cost_usd"] for one in of], 5)
        over = max(one["over_budget"] for one in of)
        plan = np.mean([one["best_plan"]["reward"] for one in of])
        accuracy, called, reward = columns
        print(f"{mode:8}{accuracy:>18}{cost:>20}{called:>18}{over:>9.3f}{reward:>18}{plan:>11.3f}")
    for record in records:
        print(f"\nseed {record['training']['seed']}")
        for claim, value in claims(record):
            print(f"  {claim:62} {value}")


def draw(by_pool: Mapping[str, Sequence[Record]]) -> None:
    """Draw accuracy against cost: each controller's modes, each model alone, and the best plans."""
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        panels = figure.subplots(1, len(by_pool), squeeze=False)[0]
        for axes, (pool, records) in zip(panels, by_pool.items(), strict=True):
            for record in records:
                modes = list(record["modes"].values())
                _points(axes, modes, {"color": "#0072b2", "marker": "o", "label": "controller"})
            plans = [mode["best_plan"] for mode in records[0]["modes"].values()]
            _points(axes, plans, {"color": MUTED, "marker": "s", "label": "best plan"})
            others = list(records[0]["modes"].values())[-1]["baselines"]
            for name, one in others.items():
                if not name.startswith("always"):
                    axes.plot(1_000 * one["cost_usd"], one["accuracy"], "x", color=INK)
                    at = (1_000 * one["cost_usd"], one["accuracy"])
                    axes.annotate(name, at, (4, -9), textcoords="offset points", fontsize="small")
            axes.set_xscale("log")
            axes.set_title(f"Pool {pool}")
            axes.set_xlabel("USD per 1,000 questions")
            axes.set_ylim(0, 1.02)
            axes.grid(visible=True)
        panels[0].set_ylabel("Accuracy")
        handles, labels = panels[0].get_legend_handles_labels()
        named = dict(zip(labels, handles, strict=True))
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=2)
    figure.savefig(PICTURE, metadata={"Date": None})


def _points(axes: Any, of: Sequence[Record], how: Mapping[str, str]) -> None:
    cost = [1_000 * one["cost_usd"] for one in of]
    axes.plot(cost, [one["accuracy"] for one in of], linewidth=1, **how)


def claims(record: Record) -> list[tuple[str, str]]:
    """Return what is to be shown of a controller, with the figures."""
    modes = record["modes"]
    first, *_, last = modes.values()
    single = last["best_single"]
    found = [
        (f"{name} rises with the mode", _rising([one[name] for one in modes.values()]))
        for name in ("cost_usd", "call_ratio")
    ]
    found += [
        (
            f"{name}: share above B, at most 0.02",
            f"{one['over_budget']:.3f} {_ends(one['over_budget_interval'])}",
        )
        for name, one in modes.items()
    ]
    found += [
        ("low ahead of the controller alone, reward", _ahead(first, "alone")),
        (
            f"high ahead of {single['expert']} alone, accuracy",
            _signed(single["accuracy_difference"], single["accuracy_difference_interval"]),
        ),
        (
            "high dearer than that, USD per 1,000",
            _signed(
                1_000 * single["cost_difference_usd"],
                [1_000 * end for end in single["cost_difference_usd_interval"]],
                5,
            ),
        ),
    ]
    found += [
        (f"{name} ahead of {other}, reward", _ahead(one, other))
        for name, one in modes.items()
        for other in ("best plan", "random", "threshold")
    ]
    return found


def _ahead(mode: Record, of: str) -> str:
    one = mode["reward_ahead_of"][of]
    return _signed(one["value"], one["interval"])


def _rising(values: Sequence[float]) -> str:
    kept = "yes" if all(a < b for a, b in pairwise(values)) else "NO"
    return f"{kept}: {' < '.join(f'{value:.3g}' for value in values)}"


def _signed(value: float, ends: Sequence[float], digits: int = 3) -> str:
    return f"{value:+.{digits}f} {_ends(ends, digits)}"


def _ends(ends: Sequence[float], digits: int = 3) -> str:
    return f"({ends[0]:+.{digits}f} to {ends[1]:+.{digits}f})"


def _across(values: Sequence[float], digits: int = 3) -> str:
    """Return a mean over seeds, and half of its 95 % interval."""
    found = mean(np.array(values))
    return f"{found.value:.{digits}f} ± {found.value - found.low:.{digits}f}"


if __name__ == "__main__":
    main()
