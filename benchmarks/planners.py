"""Trees of reasoning steps, written by embedded networks: against greedy and best-of-n.

    .venv/bin/python benchmarks/planners.py reasoning [--questions 40] [--seeds 3]
    .venv/bin/python benchmarks/planners.py workflow
    .venv/bin/python benchmarks/planners.py exact [--workflows 48] [--runs 200] [--seed 0]
    .venv/bin/python benchmarks/planners.py speed

`reasoning`: the network `large` writes lines on chains of seven steps at temperature 1.3. The
critic is the network's own log-probability, or the network `small`, which never saw chains so long.
Everybody gets the same budget of written tokens: so many solutions' worth. Best-of-n and voting
draw whole solutions while the next one surely fits. Greedy takes the likeliest token, once. Each
seed has questions of its own, of the part `test`; the interval is over questions.

`workflow`: chance of being done within budget and deadline, over budgets and over deadlines, by
simulated executions. `exact`: how many points each plan stays below the exact optimum (dynamic
programming, by enumeration) on random workflows of one to three parts, 95 % over workflows; the
last column is MCPP's lead over each plan, workflow by workflow. `speed`: simulations a second of
each planner.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure

from farthing.reports.style import STYLE
from farthing.traces.arrays import FloatArray
from farthing_lab.lm.symbols import encode
from farthing_lab.methods.planners.base import STEP_BY_STEP, UNPLANNED, Planner, Remaining, play
from farthing_lab.methods.planners.bavt import BAVT, ValueTree
from farthing_lab.methods.planners.flare import FLARE, LookAhead
from farthing_lab.methods.planners.mcpp import MCPP
from farthing_lab.methods.planners.update_equivalence import UPDATE_EQUIVALENCE
from farthing_lab.methods.simulators.reasoning import (
    BatchedWriter,
    DraftText,
    Reasoning,
    network_of,
    progress,
)
from farthing_lab.methods.simulators.workflow import read_workflow
from farthing_lab.tasks.arithmetic import Recipe, draw_of

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "packages/farthing-lab/tests/helpers"))

from workflow_optimum import instances  # noqa: E402

IMAGES = ROOT / "docs/images"
WORKFLOW = Path(__file__).with_name("workflow.toml")
HOPS, TEMPERATURE = 7, 1.3
SOLUTION = 86
"""Tokens of a solution."""
BUDGETS = (2, 4, 8)
"""In solutions."""
TREE = ValueTree(critic=progress, drafts=4, least_gain=0.0)
AHEAD = LookAhead(drafts=4, explore=0.3)
LOOKS = {
    "greedy": ("#7d8590", ":"),
    "one sample": ("#8c6d46", ":"),
    "majority of n": ("#e69f00", "--"),
    "best of n": ("#d55e00", "-"),
    "FLARE": ("#56b4e9", "-"),
    "BAVT": ("#0072b2", "-"),
}


def questions(count: int, seed: int) -> list[tuple[tuple[int, ...], str]]:
    drawn = draw_of("test", [Recipe("affine", HOPS)], np.random.default_rng([21, seed]))
    problems = [next(drawn) for _ in range(count)]
    return [(tuple(encode(one.text)), one.answer) for one in problems]


def whole(process: Reasoning, left: int, rng: np.random.Generator) -> tuple[DraftText, int] | None:
    """Draw one solution; None where what is left does not pay for it."""
    state, spent = process.begin, 0
    while not state.ended:
        actions = process.actions(state)
        action = 0 if len(actions) > 1 and actions[0].largest_nano <= left - spent else -1
        if action < 0:
            action = len(actions) - 1
            if actions[action].largest_nano > left - spent:
                return None
        step = process.step(state, action, rng)
        state, spent = step.state, spent + step.cost_nano
    return state, spent


def samples(
    process: Reasoning, budget: int, rng: np.random.Generator
) -> tuple[list[DraftText], int]:
    """Draw solutions while there is money for a mean one."""
    found: list[DraftText] = []
    spent = 0
    while not found or budget - spent >= SOLUTION:
        one = whole(process, budget - spent, rng)
        if one is None:
            break
        found.append(one[0])
        spent += one[1]
    return found, spent


SEARCHES = ("samples", "BAVT", "FLARE")
Answers = dict[str, tuple[str, int]]
"""Of each way: its answer, and what it spent."""


def solve(process: Reasoning, way: str, budget: int, rng: np.random.Generator) -> Answers:
    if way == "samples":
        drawn, spent = samples(process, budget, rng)
        answers = [one.answer for one in drawn]
        return {
            "one sample": (answers[0], len(drawn[0].ids)),
            "majority of n": (max(answers, key=answers.count), spent),
            "best of n": (max(drawn, key=process.score).answer, spent),
        }
    planner = TREE if way == "BAVT" else AHEAD
    found = planner.search(process, process.begin, Remaining(budget), rng)
    assert found.spent_nano <= budget
    best = max((state for state, _ in found.ends), key=process.score, default=found.state)
    return {way: (best.answer, found.spent_nano)}


def greedy(writer: BatchedWriter, asked: list[tuple[tuple[int, ...], str]]) -> list[bool]:
    def one(number: int) -> bool:
        prompt, gold = asked[number]
        process = Reasoning(prompt, writer, temperature=0.0)
        done = whole(process, 10**6, np.random.default_rng(0))
        return done is not None and done[0].answer == gold

    return writer.map(one, len(asked))


def reasoning(count: int, seeds: int) -> None:
    torch.set_num_threads(1)
    networks = {name: network_of(name) for name in ("large", "small")}
    right: Right = defaultdict(list)
    spent: Spent = defaultdict(list)
    for seed in range(seeds):
        asked = questions(count, seed)
        base = greedy(BatchedWriter(networks["large"]), asked)
        for critic, network in networks.items():
            writer = BatchedWriter(networks["large"], None if critic == "large" else network)
            began = time.perf_counter()
            for budget, name, gold, (answer, cost) in searched(writer, asked, seed):
                right[critic, budget, name].append(answer == gold)
                spent[critic, budget, name].append(cost)
            for budget in BUDGETS:
                right[critic, budget, "greedy"] += base
                spent[critic, budget, "greedy"] += [SOLUTION] * count
            print(f"# seed {seed}, {critic}: {time.perf_counter() - began:.0f} s", flush=True)
        report(right, spent)
        paint(right)


def searched(
    writer: BatchedWriter,
    asked: list[tuple[tuple[int, ...], str]],
    seed: int,
    ways: Sequence[str] = SEARCHES,
) -> list[tuple[int, str, str, tuple[str, int]]]:
    """Return (budget, way, what is right, (answer, spent)) of every question in every way."""
    jobs = list(product(range(len(asked)), BUDGETS, ways))

    def one(number: int) -> Answers:
        question, budget, way = jobs[number]
        process = Reasoning(asked[question][0], writer, temperature=TEMPERATURE)
        rng = np.random.default_rng([seed, question, budget, SEARCHES.index(way)])
        return solve(process, way, budget * SOLUTION, rng)

    return [
        (budget, name, asked[question][1], answered)
        for (question, budget, _), done in zip(jobs, writer.map(one, len(jobs)), strict=True)
        for name, answered in done.items()
    ]


Right = dict[tuple[str, int, str], list[bool]]
"""By critic, budget and way."""
Spent = dict[tuple[str, int, str], list[int]]


def report(right: Right, spent: Spent) -> None:
    print("| critic, way | " + " | ".join(f"{b} solutions, %" for b in BUDGETS) + " | tokens |")
    print("| --- " + "| ---: " * (len(BUDGETS) + 1) + "|")
    for critic in ("large", "small"):
        for name in LOOKS:
            cells = [cell(right[critic, b, name]) for b in BUDGETS if right[critic, b, name]]
            tokens = " / ".join(
                f"{np.mean(spent[critic, b, name]):.0f}" for b in BUDGETS if right[critic, b, name]
            )
            print(f"| {critic}: {name} | {' | '.join(cells)} | {tokens} |", flush=True)


def cell(values: list[bool]) -> str:
    share = float(np.mean(values))
    return f"{100 * share:.1f} ± {196 * np.sqrt(share * (1 - share) / len(values)):.1f}"


def paint(right: Right) -> None:
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(9.0, 3.6), layout="constrained")
        for axes, critic in zip(
            figure.subplots(1, 2, sharey=True), ("large", "small"), strict=True
        ):
            for name, (color, line) in LOOKS.items():
                shares = [100 * float(np.mean(right[critic, b, name])) for b in BUDGETS]
                axes.plot(
                    BUDGETS,
                    shares,
                    color=color,
                    linestyle=line,
                    marker="o",
                    markersize=3,
                    label=name,
                )
            said = "its own probability" if critic == "large" else "another network, small"
            axes.set_title(f"Right answers, %; critic: {said}")
            axes.set_xlabel("budget, in solutions' worth of tokens")
            axes.set_xticks(BUDGETS)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=6)
        figure.savefig(IMAGES / "planners.svg", metadata={"Date": None})


PLANS: dict[str, tuple[Planner, str, str]] = {
    "MCPP": (MCPP, "#0072b2", "-"),
    "even share": (UNPLANNED, "#009e73", "--"),
    "greedy": (STEP_BY_STEP, "#7d8590", ":"),
}


def workflow(runs: int) -> None:
    flow = read_workflow(WORKFLOW)
    grids = {
        "budget, USD (30 s)": [Remaining(1_000_000 * b, 30.0) for b in (2, 3, 4, 6, 10, 20)],
        "deadline, s ($0.006)": [
            Remaining(6_000_000, s) for s in (12.0, 15.0, 20.0, 25.0, 30.0, 45.0)
        ],
    }
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(9.0, 3.4), layout="constrained")
        for axes, (title, grid) in zip(
            figure.subplots(1, 2, sharey=True), grids.items(), strict=True
        ):
            print(
                f"| {title} | "
                + " | ".join(f"{one.nano / 1e9:g}, {one.seconds:g} s" for one in grid)
                + " |"
            )
            for name, (planner, color, line) in PLANS.items():
                done, cost = [], []
                for left in grid:
                    played = [
                        play(planner, flow, flow.begin, left, np.random.default_rng([4, i]))
                        for i in range(runs)
                    ]
                    assert all(one.spent_nano <= left.nano for one in played)
                    done.append([bool(one.value) for one in played])
                    cost.append(np.mean([one.spent_nano for one in played]))
                xs = [one.nano / 1e9 if "USD" in title else one.seconds for one in grid]
                axes.plot(
                    xs,
                    [100 * float(np.mean(one)) for one in done],
                    color=color,
                    linestyle=line,
                    marker="o",
                    markersize=3,
                    label=name,
                )
                cells = [f"{cell(d)} ({c / 1e9:.4f})" for d, c in zip(done, cost, strict=True)]
                print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            axes.set_title("Done in time and within budget, %")
            axes.set_xlabel(title)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.savefig(IMAGES / "workflow.svg", metadata={"Date": None})


def exact(count: int, runs: int, seed: int) -> None:
    worlds = instances(count, 22, seed)
    sizes = np.array([len(flow.parts) for flow, _, _ in worlds])
    of = " | ".join(f"{n} part{'s' * (n > 1)} ({(sizes == n).sum()})" for n in (1, 2, 3))
    print(f"| points below the optimum | all ({count}) | {of} | farthest | MCPP leads by |")
    print("| --- |" + " ---: |" * 6)
    gaps: dict[str, FloatArray] = {}
    plans = {name: planner for name, (planner, _, _) in PLANS.items()}
    for name, planner in (plans | {"update equivalence": UPDATE_EQUIVALENCE}).items():
        done = [
            [
                play(planner, flow, flow.begin, left, np.random.default_rng([23, at, i])).value
                for i in range(runs)
            ]
            for at, (flow, left, _) in enumerate(worlds)
        ]
        best = np.array([one for _, _, one in worlds])
        gap = gaps[name] = 100 * (best - np.array(done).mean(axis=1))
        cells = [with_error(gap), *(with_error(gap[sizes == n]) for n in (1, 2, 3))]
        lead = with_error(gap - gaps["MCPP"])
        print(f"| {name} | {' | '.join(cells)} | {gap.max():.1f} | {lead} |", flush=True)


def with_error(values: FloatArray) -> str:
    return f"{values.mean():.1f} ± {1.96 * values.std(ddof=1) / np.sqrt(len(values)):.1f}"


def speed() -> None:
    flow = read_workflow(WORKFLOW)
    left, rng = Remaining(10_000_000, 30.0), np.random.default_rng(0)
    choices = len(flow.actions(flow.begin))
    for name, planner, simulations in (
        ("MCPP", MCPP, choices * MCPP.simulations),
        ("FLARE", FLARE, FLARE.simulations),
        ("BAVT", BAVT, BAVT.most_steps),
        (
            "update equivalence",
            UPDATE_EQUIVALENCE,
            UPDATE_EQUIVALENCE.rounds * UPDATE_EQUIVALENCE.trajectories,
        ),
    ):
        began = time.process_time()
        for _ in range(5):
            planner.act(flow, flow.begin, left, rng)
        seconds = (time.process_time() - began) / 5
        rate = f"{simulations / seconds:,.0f} a second"
        print(f"{name}: {simulations} in {1e3 * seconds:.1f} ms, {rate}")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", choices=["reasoning", "workflow", "exact", "speed"])
    arguments.add_argument("--questions", type=int, default=40)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--runs", type=int, default=200)
    arguments.add_argument("--workflows", type=int, default=48)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    if given.what == "reasoning":
        reasoning(given.questions, given.seeds)
    elif given.what == "workflow":
        workflow(given.runs)
    elif given.what == "exact":
        exact(given.workflows, given.runs, given.seed)
    else:
        speed()


if __name__ == "__main__":
    main()
