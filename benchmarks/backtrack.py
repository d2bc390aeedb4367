"""To backtrack or not: revise one solution again and again, or draw several side by side?

    .venv/bin/python benchmarks/backtrack.py [--questions 25] [--seeds 4]

The network `large` on chains of seven steps at temperature 1.3. Everybody has the same budget of
written tokens. In parallel: whole solutions, of which a critic takes the best, or a vote decides.
In sequence: one solution; then what was written from its least likely line on is drawn again, and
the better of both is kept, until the budget is spent. The critic is the network's own probability,
or that of the network `small`. Tokens that were kept are not paid twice.

The paper trains models to backtrack in their own text; these networks never saw a wrong line, so
that it is the search that goes back.
"""

import argparse
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure
from planners import BUDGETS, SOLUTION, TEMPERATURE, cell, questions, samples

from farthing.reports.style import STYLE
from farthing_lab.methods.simulators.reasoning import (
    BatchedWriter,
    DraftText,
    Reasoning,
    network_of,
)

IMAGE = Path(__file__).parents[1] / "docs/images/backtrack.svg"
LOOKS = {
    "parallel, majority": ("#e69f00", "--"),
    "parallel, best": ("#d55e00", "-"),
    "sequential revision": ("#0072b2", "-"),
}
Answers = dict[str, str]


def continued(
    process: Reasoning, states: list[DraftText], left: int, rng: np.random.Generator
) -> tuple[list[DraftText], int]:
    """Draw lines after the last of some states to an end; return all states and what it cost."""
    states, spent = list(states), 0
    while not states[-1].ended:
        actions = process.actions(states[-1])
        can = [at for at, one in enumerate(actions) if one.largest_nano <= left - spent]
        if not can:
            break
        step = process.step(states[-1], can[0], rng)
        states.append(step.state)
        spent += step.cost_nano
    return states, spent


def revised(process: Reasoning, budget: int, rng: np.random.Generator) -> tuple[DraftText, int]:
    best, spent = continued(process, [process.begin], budget, rng)
    while budget - spent >= SOLUTION // 4:
        weakest = int(np.argmin([one.latest for one in best[1:]]))
        again, cost = continued(process, best[: weakest + 1], budget - spent, rng)
        if not cost:
            break
        spent += cost
        if again[-1].ended and process.score(again[-1]) > process.score(best[-1]):
            best = again
    return best[-1], spent


def solve(process: Reasoning, way: str, budget: int, rng: np.random.Generator) -> Answers:
    if way == "sequential":
        state, spent = revised(process, budget, rng)
        assert spent <= budget
        return {"sequential revision": state.answer}
    drawn, spent = samples(process, budget, rng)
    assert spent <= budget
    answers = [one.answer for one in drawn]
    return {
        "parallel, majority": max(answers, key=answers.count),
        "parallel, best": max(drawn, key=process.score).answer,
    }


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--questions", type=int, default=25)
    arguments.add_argument("--seeds", type=int, default=4)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    networks = {name: network_of(name) for name in ("large", "small")}
    right: dict[tuple[str, int, str], list[bool]] = defaultdict(list)
    for seed in range(given.seeds):
        asked = questions(given.questions, seed)
        jobs = list(product(range(len(asked)), BUDGETS, ("sequential", "parallel")))
        for critic, network in networks.items():
            writer = BatchedWriter(networks["large"], None if critic == "large" else network)

            def one(number: int, writer: BatchedWriter = writer, seed: int = seed) -> Answers:
                question, budget, way = jobs[number]  # noqa: B023 - used before the next seed
                process = Reasoning(asked[question][0], writer, temperature=TEMPERATURE)  # noqa: B023
                rng = np.random.default_rng([seed, question, budget, way == "parallel"])
                return solve(process, way, budget * SOLUTION, rng)

            for (question, budget, _), ways in zip(jobs, writer.map(one, len(jobs)), strict=True):
                for name, answer in ways.items():
                    right[critic, budget, name].append(answer == asked[question][1])
        print(f"# {len(right['large', BUDGETS[0], 'parallel, best'])} questions")
        print("| critic, way | " + " | ".join(f"{b} solutions, %" for b in BUDGETS) + " |")
        for critic, name in product(networks, LOOKS):
            cells = " | ".join(cell(right[critic, b, name]) for b in BUDGETS)
            print(f"| {critic}: {name} | {cells} |", flush=True)
    paint(right)


def paint(right: dict[tuple[str, int, str], list[bool]]) -> None:
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(9.0, 3.4), layout="constrained")
        both = figure.subplots(1, 2, sharey=True)
        for axes, critic in zip(both, ("large", "small"), strict=True):
            for name, (color, line) in LOOKS.items():
                shares = [100 * float(np.mean(right[critic, b, name])) for b in BUDGETS]
                look = {"color": color, "linestyle": line, "label": name}
                axes.plot(BUDGETS, shares, marker="o", markersize=3, **look)
            said = "its own probability" if critic == "large" else "another network, small"
            axes.set_title(f"Right answers, %; critic: {said}")
            axes.set_xlabel("budget, in solutions' worth of tokens")
            axes.set_xticks(BUDGETS)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.savefig(IMAGE, metadata={"Date": None})


if __name__ == "__main__":
    main()
