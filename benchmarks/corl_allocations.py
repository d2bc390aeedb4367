"""Who gets the roll-outs of an update: does a controller learn sooner for the same episodes?

    .venv/bin/python benchmarks/corl_allocations.py [--seeds 12] [--updates 80]
    .venv/bin/python benchmarks/corl_allocations.py --draw

A small controller (18,000 weights) and two experts: `small` is right on chains of sums and wrong on
products, `large` is right on both, and only the mode high can pay for it. Examples teach it to
guess, to call now and then, and to repeat a reply; nothing tells it whom to call when. Updates are
of 16 questions and 4 episodes each, which is few: then it should matter most who gets them. Every
fourth update it answers 150 fresh questions in each mode by its likeliest tokens: the reward of the
figures. They go to `benchmarks/results/corl_allocations.json` after each training, the picture to
`docs/images/corl_allocations.svg`; killed, it goes on with what is missing.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure

from farthing import plugins
from farthing.models.base import Usage
from farthing.models.prices import Rates, TokenPrice
from farthing.reports.style import STYLE
from farthing.tasks.base import Question
from farthing_lab.corl.base import Expert, Mode
from farthing_lab.corl.episode import Rules
from farthing_lab.corl.learner import TrainingSchedule, TrainingTask, Update, learn
from farthing_lab.corl.rollouts import ExpertReply, RolloutSampling, Voice, rollouts
from farthing_lab.lm.make import Size, network
from farthing_lab.lm.masked_ppo import Settings
from farthing_lab.lm.supervised import Example
from farthing_lab.lm.supervised import TrainingCourse as Lessons
from farthing_lab.lm.supervised import train as teach
from farthing_lab.lm.symbols import END, NUMBERS, decode, encode
from farthing_lab.tasks.arithmetic import ARITHMETIC, Part, Recipe, draw_of, solve

RESULTS = Path(__file__).parent / "results" / "corl_allocations.json"
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "corl_allocations.svg"
WAYS = {
    "even": ("even", "group"),
    "uncertain": ("uncertain", "group"),
    "knapsack": ("knapsack", "group"),
    "duet": ("duet", "group"),
    "even, shrunk baseline": ("even", "shrunk"),
}
"""Name to allocation and advantage."""
LOOKS = dict(zip(WAYS, ("#7d8590", "#56b4e9", "#d55e00", "#009e73", "#cc79a7"), strict=True))
RULES = Rules((Expert("small"), Expert("large")), "compact", most_turns=2)
MODES = (Mode("low", 12_000), Mode("high", 90_000))
PRICES = {"small": 700, "large": 30_000}
PRICE = TokenPrice((Rates(Decimal("0.05"), Decimal("0.2")),))
RECIPES = (Recipe("sums", 1, 0), Recipe("products", 1, 0))
CALLS = 0.3
EVERY = 4
ASKED = 150


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seeds", type=int, default=12)
    arguments.add_argument("--updates", type=int, default=80)
    arguments.add_argument("--draw", action="store_true", help="no training: table and picture")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    found: list[dict[str, Any]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for seed in range(0 if given.draw else given.seeds):
        for name in WAYS:
            if any((one["way"], one["seed"]) == (name, seed) for one in found):
                continue
            found.append(run(name, seed, given.updates))
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    table(found)
    draw(found)


@dataclass
class Experts:
    """One that knows sums, and one that knows all; each at a price a call."""

    price: dict[str, int]

    def ask(self, calls: Sequence[tuple[str, str]]) -> list[ExpertReply]:
        """Return the reply to each (expert, question)."""
        return [ExpertReply(self.says(*one), self.price[one[0]], Usage(3, 1)) for one in calls]

    def says(self, expert: str, text: str) -> str:
        """Return the right answer, or one above it."""
        right = solve(text)
        return right if expert == "large" or "*" not in text else str((int(right) + 1) % 10)

    def largest_nano(self, expert: str, question: str) -> int:  # noqa: ARG002 - the protocol's
        """Return the most that a call can cost, in nano-dollars."""
        return self.price[expert]


def question(part: Part, generator: np.random.Generator) -> Question:
    return next(draw_of(part, RECIPES, generator)).question()


def beginner(seed: int) -> Voice:
    """Teach a network to guess, to call now and then, and to repeat a reply; it never solves."""

    def shown(generator: np.random.Generator) -> Example:
        mode = MODES[int(generator.integers(len(MODES)))].name
        asked = f"{mode}:{question('train', generator).text}"
        guess = f"<answer>{generator.integers(10)}</answer><end>"
        call = f"<call>{('small', 'large')[int(generator.integers(2))]}</call>"
        if generator.random() < 0.5:
            reply = f"<reply>{guess[8]}</reply>"
            return Example(encode(f"{asked}{call}{reply}"), encode(guess))
        return Example(encode(asked), encode(call if generator.random() < CALLS else guess))

    net = network(Size(1, 32), seed)
    teach(net, shown, Lessons(steps=400, batch=24, warm=10), seed=seed)
    ends = frozenset({NUMBERS[END]})
    return Voice(net, encode, decode, ends, price=PRICE, max_tokens=12)


def run(name: str, seed: int, updates: int) -> dict[str, Any]:
    """Train one controller, and return how it went."""
    allocation, advantage = WAYS[name]
    began, points = time.monotonic(), []
    voice, rng = beginner(seed), np.random.default_rng(1_000 + seed)
    fresh = [question("calibrate", rng) for _ in range(ASKED)]
    lesson = TrainingTask(
        voice,
        RULES,
        MODES,
        Experts(PRICES),
        ARITHMETIC,
        draw=lambda generator: question("train", generator),
        allocation=plugins.load("allocations", allocation),
    )

    def look(update: int, tokens: int) -> None:
        asked = [(one.text, mode) for mode in MODES for one in fresh]
        gold = [one.gold for _ in MODES for one in fresh]
        greedy = RolloutSampling(0.0)
        played = rollouts(voice, RULES, asked, lesson.experts, np.random.default_rng(0), greedy)
        earned = [
            ARITHMETIC.grade(one.answer, right) and one.cost_nano <= one.mode.budget_nano
            for one, right in zip(played, gold, strict=True)
        ]
        points.append((update, tokens, float(np.mean(earned))))

    def watch(one: Update) -> None:
        if one.update % EVERY == 0:
            look(one.update, one.tokens)

    look(0, 0)
    settings = Settings(advantage, actor_rate=3e-3, kl=0.05, epochs=2, minibatch=32)  # type: ignore[arg-type]
    learn(lesson, TrainingSchedule(updates, 16, 4), settings, seed=seed, watch=watch)
    took = round(time.monotonic() - began)
    print(f"{name} {seed}: {points[-1][2]:.3f} in {took} s", flush=True)
    return {"way": name, "seed": seed, "points": points, "seconds": took}


def curves(found: list[dict[str, Any]], name: str) -> Any:
    """Return [seeds, looks, 3]: update, tokens, reward."""
    of = sorted((one for one in found if one["way"] == name), key=lambda one: one["seed"])
    return np.array([one["points"] for one in of])


def table(found: list[dict[str, Any]]) -> None:
    base = curves(found, "even")
    seeds = min(len(curves(found, name)) for name in WAYS)
    aim = base[:seeds, -1, 2].mean()
    print(f"{seeds} seeds; the reward aimed at is {aim:.3f}, what `even` ends with\n")
    print(
        "| roll-outs | reward, mean over the course | beside even | at the end | beside even ",
        end="",
    )
    print("| updates, 1,000 tokens to it (how many get there) | 1,000 tokens in all |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in WAYS:
        of = curves(found, name)[:seeds]
        whole, last = of[:, 1:, 2].mean(axis=1), of[:, -1, 2]
        other = base[:seeds, 1:, 2].mean(axis=1), base[:seeds, -1, 2]
        reached = [first(one, aim) for one in of]
        got = [one for one in reached if one is not None]
        steps = f"{np.mean([one[0] for one in got]):.0f}" if got else "-"
        tokens = f"{np.mean([one[1] for one in got]) / 1e3:.0f}" if got else "-"
        print(
            f"| {name} | {said(whole)} | {said(whole - other[0])} | {said(last)} "
            f"| {said(last - other[1])} | {steps}, {tokens} ({len(got)} of {seeds}) "
            f"| {of[:, -1, 1].mean() / 1e3:.0f} |"
        )


def first(points: Any, aim: float) -> tuple[float, float] | None:
    """Return the update and the tokens by which the reward was reached, for good."""
    for at in range(len(points)):
        if points[at:, 2].mean() >= aim and points[at, 2] >= aim:
            return float(points[at, 0]), float(points[at, 1])
    return None


def said(values: Any) -> str:
    return f"{values.mean():.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def draw(found: list[dict[str, Any]]) -> None:
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(9.0, 3.4), layout="constrained")
        every = figure.subplots(1, 2, sharey=True)
        for name, color in LOOKS.items():
            of = curves(found, name)
            mean = of.mean(axis=0)
            error = of[:, :, 2].std(axis=0, ddof=1) / np.sqrt(len(of))
            for axes, x in zip(every, (mean[:, 0], mean[:, 1] / 1e3), strict=True):
                axes.plot(x, mean[:, 2], color=color, marker="o", markersize=3, label=name)
                axes.fill_between(
                    x, mean[:, 2] - error, mean[:, 2] + error, color=color, alpha=0.12, linewidth=0
                )
        every[0].set_title("Reward on fresh questions, by updates")
        every[1].set_title("The same, by tokens written")
        every[0].set_xlabel("updates of 64 episodes")
        every[1].set_xlabel("tokens that the controller wrote, thousands")
        figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
        figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
