"""A real pretrained controller: taught, evaluated, trained by reinforcement, evaluated again.

    .venv/bin/python benchmarks/smollm_controller.py [--warm 160] [--updates 100] [--n 200]

Both controllers play the same fresh questions in each mode, with the likeliest tokens. Every stage
is kept in `smollm-controller/`: killed, the same command goes on. At the end the figures are in
`benchmarks/results/smollm_controller.json`, and the curves of the training in
`docs/images/smollm_controller.svg`.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from farthing.promises.figures import accuracy_difference
from farthing_lab.corl.evaluation import (
    IntervalEstimate,
    cells_of,
    choosing,
    every_plan,
    graded,
    greedy,
    hops_of,
    mean,
    recorded,
    share,
)
from farthing_lab.corl.learner import TrainingSchedule, Update
from farthing_lab.corl.plan import baselines, best, outcome
from farthing_lab.corl.pool import (
    CARD,
    GeneratedQuestions,
    pool_of,
    pool_to_train,
    read_card,
    read_pool,
)
from farthing_lab.corl.rollouts import PoolSession
from farthing_lab.corl.training import COURSE, TrainingPlan, WarmStartPlan, train, warm_start
from farthing_lab.lm.masked_ppo import Settings
from farthing_lab.lm.supervised import TrainingProgress
from farthing_lab.reports.training import controller_curves
from farthing_lab.tasks.arithmetic import Recipe

HERE = Path(__file__).parent
POOL = HERE / "smollm_controller.toml"
OUT = Path("smollm-controller")
RESULT = HERE / "results/smollm_controller.json"
PICTURE = HERE.parent / "docs/images/smollm_controller.svg"
QUESTIONS = GeneratedQuestions(
    (Recipe("sums", 1, 0), Recipe("sums", 2, 0), Recipe("products", 1, 0), Recipe("affine", 2, 0))
)
"""Nothing distracts. SmolLM2 can learn the first and the third kind; the specialist knows the first
two; only the calculator knows the last."""
PARTS = (("train", 900), ("calibrate", 160), ("test", 200))
PPO = Settings(
    "gae", kl=0.1, epochs=2, actor_rate=3e-4, critic_rate=3e-3, entropy=0.003, minibatch=16
)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--warm", type=int, default=160, help="steps of 16 examples")
    arguments.add_argument("--updates", type=int, default=100, help="of 16 episodes")
    arguments.add_argument("--n", type=int, default=200, help="fresh questions")
    arguments.add_argument("--threads", type=int, default=1, help="cores")
    given = arguments.parse_args()
    torch.set_num_threads(given.threads)
    OUT.mkdir(exist_ok=True)
    stage("questions.jsonl", write_questions)
    if not (OUT / "warm" / CARD).exists():
        teach(given.warm)
    stage("fixed.json", lambda: fixed_plans(given.n))
    stage("before.json", lambda: played(OUT / "warm", given.n))
    if not (OUT / "trained" / CARD).exists():
        reinforce(given.updates)
    stage("after.json", lambda: played(OUT / "trained", given.n))
    summarise()


def stage(name: str, make: Callable[[], str]) -> None:
    """Write a file of a stage, unless it is there."""
    if not (OUT / name).exists():
        text = make()
        (OUT / f".{name}").write_text(text)
        (OUT / f".{name}").replace(OUT / name)


def write_questions() -> str:
    lines = [
        {"id": q.id, "question": q.text, "gold": q.gold, "group": q.group, "split": q.split}
        for part, n in PARTS
        for q in QUESTIONS.sample(part, n, seed=11)  # type: ignore[arg-type]
    ]
    return "\n".join(map(json.dumps, lines)) + "\n"


def teach(steps: int) -> None:
    plan = WarmStartPlan(questions=600, course=replace(COURSE, steps=steps))

    def say(done: TrainingProgress) -> None:
        print(f"warm: {done.step} steps, {done.seconds:.0f} s, loss {done.loss:.3f}", flush=True)

    with PoolSession.of(read_pool(POOL)) as opened:
        done = warm_start(opened, plan, OUT / "warm", say)
    measure("warm", {"seconds": done.seconds, "tokens": done.symbols, "loss": done.loss})


def reinforce(updates: int) -> None:
    plan = TrainingPlan(course=TrainingSchedule(updates, prompts=16, rollouts=1), settings=PPO)

    def say(one: Update) -> None:
        modes = {mode: [round(x, 2) for x in pair] for mode, pair in one.by_mode.items()}
        figures = f"reward {one.reward:.2f}, calls {one.call_ratio:.2f}, kl {one.kl:.3f}"
        print(f"update {one.update}, {one.seconds:.0f} s: {figures}, {modes}", flush=True)

    with PoolSession.of(pool_to_train(str(POOL), OUT / "warm", None)) as opened:
        log = train(opened, plan, OUT / "trained", say)
    measure("trained", {"seconds": log.updates[-1].seconds, "tokens": log.updates[-1].tokens})


def measure(name: str, figures: dict[str, float]) -> None:
    """Keep what a training took."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    (OUT / f"{name}.json").write_text(json.dumps({**figures, "peak_bytes": peak}))


def played(folder: Path, n: int) -> str:
    """Return what a controller comes to on each question, in each mode."""
    began, found = time.perf_counter(), {}
    with PoolSession.of(pool_of(folder, None).pool) as opened:
        questions = opened.pool.questions.sample("test", n, 0)
        for mode in opened.modes:
            episodes = greedy(opened, questions, mode)
            found[mode.name] = {
                "right": graded(opened, questions, episodes).tolist(),
                "cost_nano": [one.cost_nano for one in episodes],
                "called": [[call.expert for call in one.calls] for one in episodes],
                "malformed": sum(one.malformed for one in episodes),
                "group": [one.group for one in questions],
            }
            print(f"{folder}: {mode.name}, {time.perf_counter() - began:.0f} s", flush=True)
    return json.dumps(found)


def fixed_plans(n: int) -> str:
    """Return what fixed plans come to on the same questions; the best are chosen on others."""
    with PoolSession.of(pool_of(OUT / "warm", None).pool) as opened:
        questions = opened.pool.questions.sample("test", n, 0)
        cells = cells_of(questions)
        before = every_plan(opened, recorded(opened, choosing(opened, len(cells)), cells))
        here = every_plan(opened, recorded(opened, questions, cells))
        found = {}
        for mode in opened.modes:
            budget = mode.budget_nano
            chosen = outcome(here, best(before, budget), budget)
            simple = baselines(here, budget, hops_of(cells))
            found[mode.name] = {
                "budget_nano": budget,
                "best_plan": asdict(chosen),
                "baselines": {name: asdict(one) for name, one in simple.items()},
            }
    return json.dumps(found)


def summarise() -> None:
    read = {name: json.loads((OUT / f"{name}.json").read_text()) for name in STAGES}
    modes = {
        mode: {
            **of_mode,
            "before": figures(read["before"][mode], of_mode["budget_nano"]),
            "after": figures(read["after"][mode], of_mode["budget_nano"]),
            "difference": difference(
                read["before"][mode], read["after"][mode], of_mode["budget_nano"]
            ),
        }
        for mode, of_mode in read["fixed"].items()
    }
    card = read_card(OUT / "trained")
    if card is None:
        raise SystemExit("the trained controller has no card")
    found = {
        "questions": len(read["before"]["low"]["right"]),
        "modes": modes,
        "warm": read["warm"],
        "trained": read["trained"],
        "updates": card.updates,
    }
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    controller_curves(card.updates, list(modes)).savefig(PICTURE, metadata={"Date": None})
    for mode, one in modes.items():
        for name in ("before", "after", "difference"):
            print(f"{mode:6} {name:10}", {key: told(value) for key, value in one[name].items()})
        print(f"{mode:6} best plan  reward {one['best_plan']['reward']:.3f}")


STAGES = ("fixed", "before", "after", "warm", "trained")


def figures(one: dict[str, Any], budget_nano: int) -> dict[str, Any]:
    """Return means with their 95 % intervals, and what came of each kind of question."""
    right, cost, called = columns(one)
    groups = np.array(one["group"])
    return {
        "accuracy": asdict(share(right)),
        "reward": asdict(share(right & (cost <= budget_nano))),
        "call_ratio": asdict(share(called)),
        "over_budget": asdict(share(cost > budget_nano)),
        "cost_usd": asdict(mean(cost / 1e9)),
        "malformed": one["malformed"],
        "groups": {
            group: {
                "accuracy": float(right[groups == group].mean()),
                "call_ratio": float(called[groups == group].mean()),
            }
            for group in sorted(set(one["group"]))
        },
    }


def difference(before: dict[str, Any], after: dict[str, Any], budget_nano: int) -> dict[str, Any]:
    """Return how much the trained controller is ahead, question by question."""
    (right, cost, _), (was_right, was_cost, _) = columns(after), columns(before)
    earned, was_earned = right & (cost <= budget_nano), was_right & (was_cost <= budget_nano)
    found = {"accuracy": accuracy_difference(right, was_right)}
    found["reward"] = accuracy_difference(earned, was_earned)
    return {
        **{name: asdict(IntervalEstimate(value, *ends)) for name, (value, ends) in found.items()},
        "cost_usd": asdict(mean((cost - was_cost) / 1e9)),
    }


def columns(one: dict[str, Any]) -> tuple[Any, Any, Any]:
    called = np.array([bool(names) for names in one["called"]])
    return np.array(one["right"]), np.array(one["cost_nano"]), called


def told(value: Any) -> Any:
    """Shorten an estimate, for a line on the screen."""
    if isinstance(value, dict) and "low" in value:
        return " ".join(f"{value[name]:.3g}" for name in ("value", "low", "high"))
    return value


if __name__ == "__main__":
    main()
