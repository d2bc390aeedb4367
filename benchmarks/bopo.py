"""How near the optimum is a small or a large model at each step, and what does it save?

    .venv/bin/python benchmarks/bopo.py generated [--seeds 5]
    .venv/bin/python benchmarks/bopo.py embedded [--seeds 3]

`generated`: the preset of two models, whose optimum is known; 400 tasks teach, and what was learned
is evaluated exactly. `embedded`: rows of three chains of arithmetic before two networks on this
machine; 100 tasks teach, 200 others judge. Both keep what they found; either draws the figure of
docs/research/steps.md, with what is there. `speed`: microseconds of a decision.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from farthing.models.prices import PriceTable
from farthing.reports.style import STYLE
from farthing_lab.generator.steps import Reward, evaluate, optimum, two_models
from farthing_lab.methods.routers.bopo.policy import (
    SHORT,
    UNLIMITED,
    BopoConfig,
    Chances,
    GeneratedTasks,
    StepPolicy,
    affordable,
    always,
    at_random,
    learn,
    spare,
    table,
)
from farthing_lab.models.embedded import EmbeddedSettings
from farthing_lab.studies.step_routing import Arithmetic, classes, configs, draw, played

RESULTS = Path(__file__).parent / "results"
IMAGE = Path(__file__).parents[1] / "docs/images/steps.svg"
PRICES = (0.1, 0.3, 0.6, 1.0)
BUDGETS = (None, 3_400_000, 2_500_000, 1_600_000)
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
COLOURS = {"best": "#24292f", "BoPO": "#009e73", "mixture": "#7d8590", "warm": "#e69f00"}


def worth(price: float, steps: int) -> Reward:
    """Return the reward of the generator's tasks, whose costs are known."""
    return lambda large: 1.0 - price * large / steps


def mixture(share: float, states: int) -> Chances:
    """Return one that asks the large model with a probability."""
    return at_random(np.full(states, share))


def generated(seeds: int) -> dict[str, list[tuple[float, float]]]:
    """Print tables, and return points of the figure: dollars and success."""
    config = two_models()
    states = config.success.size
    found: dict[str, list[tuple[float, float]]] = {"mixture": [], "best": [], "BoPO": []}
    for share in SHARES:
        chances = table(config, mixture(share, states), UNLIMITED)
        came = evaluate(config, chances, worth(0.0, config.steps))
        found["mixture"].append((came.cost_nano / 1e9, came.success))
    found["best"] = frontier()
    print(
        "| budget | lambda | BoPO: success | $ per 1,000 | reward, of the optimum's | warm start | "
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for price in PRICES:
        reward = worth(price, config.steps)
        learned = [
            learn(
                GeneratedTasks.draw(config, 400, np.random.default_rng(100 + seed)),
                BopoConfig(price=price),
                np.random.default_rng(seed),
            )
            for seed in range(seeds)
        ]
        for budget in BUDGETS:
            limit = UNLIMITED if budget is None else budget
            best = optimum(config, reward, budget).value

            def exactly(policy: StepPolicy, limit: int = limit, reward: Reward = reward) -> list:
                came = evaluate(config, table(config, policy.surely, limit), reward)
                assert came.most_nano <= limit
                return [came.success, came.cost_nano / 1e6, came.value]

            rows = np.array([exactly(one.policy) for one in learned])
            warm = np.array([exactly(one.warm) for one in learned])
            cells = [
                "none" if budget is None else f"${budget / 1e9:.4f}",
                f"{price:g}",
                mean(rows[:, 0]),
                mean(rows[:, 1]),
                mean(rows[:, 2] / best),
                mean(warm[:, 2] / best),
            ]
            print("| " + " | ".join(cells) + " |", flush=True)
            if budget is None:
                found["BoPO"] += [(cost / 1e3, success) for success, cost, _ in rows]
    print("\n| budget | always large: success | $ per 1,000 | always small | best at lambda 0.3 |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for budget in BUDGETS:
        limit = UNLIMITED if budget is None else budget
        reward = worth(0.3, config.steps)
        large, small = (evaluate(config, table(config, always(m), limit), reward) for m in (1, 0))
        best = evaluate(config, optimum(config, reward, budget).chances, reward)
        print(
            f"| {budget} | {large.success:.3f} | {large.cost_nano / 1e6:.2f} | {small.success:.3f} "
            f"for {small.cost_nano / 1e6:.2f} | {best.success:.3f} for {best.cost_nano / 1e6:.2f} |"
        )
    return found


def frontier() -> list[tuple[float, float]]:
    """Return dollars and success of the policies that none beats in both."""
    config, found = two_models(), []
    for price in np.geomspace(1e-3, 3.0, 60):
        best = optimum(
            config, lambda _: 1.0, toll=lambda large, price=price: price * large / config.steps
        )
        came = evaluate(config, best.chances, worth(0.0, config.steps))
        found.append((came.cost_nano / 1e9, came.success))
    return found


def mean(values: np.ndarray) -> str:
    """Return a mean and its standard error over seeds."""
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def embedded(seeds: int) -> dict[str, list[tuple[float, float]]]:
    """Print tables, and return points of the figure."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    small, large = (
        EmbeddedSettings(model=name, batch=256).open(PriceTable()) for name in ("small", "large")
    )
    taught = Arithmetic(draw(100, np.random.default_rng(1)), (small, large))
    judged = Arithmetic(draw(200, np.random.default_rng(2)), (small, large))
    found: dict[str, list[tuple[float, float]]] = {"mixture": [], "BoPO": []}
    learned = {}
    for name, config in configs(PRICES[:3], SHORT).items():
        learned[name] = [
            learn(taught, config, np.random.default_rng(seed)) for seed in range(seeds)
        ]
        print(f"{name}: {classes(learned[name][0].boundaries)}", flush=True)
    print("\n| budget | | success | $ per million | large steps | over |")
    print("| ---: | --- | ---: | ---: | ---: | ---: |")
    for budget in (None, 2_600_000, 1_700_000):
        limit = np.full(judged.tasks, UNLIMITED if budget is None else budget)
        rng = np.random.default_rng(9)
        every: dict[str, list[Chances]] = {
            "always small": [always(0)],
            "always large": [always(1)],
            "large beyond four operations": [by_length],
            "drawn, 25 % large": [mixture(0.25, judged.tasks)] * seeds,
            "drawn, 50 % large": [mixture(0.5, judged.tasks)] * seeds,
        }
        every |= {name: [one.policy.surely for one in some] for name, some in learned.items()}
        for name, some in every.items():
            rows = [played(name, judged, chances, limit, rng) for chances in some]
            rate = np.array([row["success"] for row in rows])
            cost = np.array([row["cost_usd"] for row in rows])
            error = np.sqrt(rate.mean() * (1 - rate.mean()) / judged.tasks)
            share = np.mean([row["large"] for row in rows])
            over = sum(row["over_budget"] for row in rows)
            print(
                f"| {budget} | {name} | {rate.mean():.3f} ± {error:.3f} | {1e6 * cost.mean():.0f} "
                f"| {share:.2f} | {over} |",
                flush=True,
            )
            if budget is None:
                kind = "BoPO" if name.startswith("BoPO") else "mixture"
                if name != "large beyond four operations":
                    found[kind] += [(float(cost.mean()), float(rate.mean()))]
                else:
                    found["best"] = [(float(cost.mean()), float(rate.mean()))]
    return found


def by_length(features: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Ask the large network for chains of five and six operations; who knows both would do so."""
    wanted = (features[:, 3] + features[:, 4]) > 0
    large = mask[:, 1] & (wanted | ~mask[:, 0])
    return np.stack([mask[:, 0] & ~large, large], axis=1).astype(float)


def speed() -> None:
    """Print the median microseconds of one decision: mask, features and choice."""
    config = two_models()
    chain = GeneratedTasks.draw(config, 100, np.random.default_rng(0))
    policy = StepPolicy(np.random.default_rng(1).normal(size=2 * config.steps * 9))
    taken = []
    for i in range(2_000):
        state = chain.begin(np.array([i % 100]))
        start = time.perf_counter_ns()
        largest, rest = chain.largest_nano(state, 2), chain.rest_nano(state, 2)
        left = np.array([3_000_000])
        mask = affordable(left, largest, rest)
        policy.choose(chain.features(state, 2, spare(left, largest, rest, 4)), mask)
        taken.append((time.perf_counter_ns() - start) / 1e3)
    median, late = np.percentile(taken, [50, 99])
    print(f"a decision: median {median:.0f} us, 99th percentile {late:.0f} us")


def _draw() -> None:
    panes = [("generated", "made-up tasks", 1e3), ("embedded", "embedded networks", 1e6)]
    with rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.6), layout="constrained")
        for pane, (part, title, unit) in zip(figure.subplots(1, 2), panes, strict=True):
            file = RESULTS / f"bopo-{part}.json"
            if not file.exists():
                continue
            found = json.loads(file.read_text())
            if part == "generated":
                found["best"] = frontier()
            for kind, line in (("mixture", ":"), ("best", "-"), ("BoPO", "")):
                points = np.array(sorted(found.get(kind, [])))
                if not len(points):
                    continue
                alone = kind == "best" and len(points) == 1
                marker = "o" if kind == "BoPO" or alone else ""
                label = {
                    "mixture": "always small to always large, by lot",
                    "best": "large beyond four operations"
                    if part == "embedded"
                    else "the best there is",
                    "BoPO": "BoPO",
                }[kind]
                pane.plot(
                    unit * points[:, 0],
                    points[:, 1],
                    linestyle=line or "none",
                    marker=marker,
                    markersize=9 if alone else 4,
                    markerfacecolor="none" if alone else COLOURS[kind],
                    color=COLOURS[kind],
                    label=label,
                )
            many = "million" if unit > 1e5 else "1,000"
            pane.set(title=title, xlabel=f"dollars per {many} tasks", ylabel="tasks that succeed")
            pane.set_ylim(0, 1)
            pane.legend(loc="lower right")
        figure.savefig(IMAGE)
    print(f"\n{IMAGE}")


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("generated", "embedded", "speed", "draw"))
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    if chosen.part == "speed":
        speed()
        return
    if chosen.part != "draw":
        found = (generated if chosen.part == "generated" else embedded)(chosen.seeds)
        (RESULTS / f"bopo-{chosen.part}.json").write_text(json.dumps(found) + "\n")
    _draw()


if __name__ == "__main__":
    main()
