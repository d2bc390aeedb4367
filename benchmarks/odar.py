"""What does it cost to be right as often: one, two or six calls by difficulty, beside other ways?

    .venv/bin/python benchmarks/odar.py recorded [--traces FOLDER] [--splits 20]
    .venv/bin/python benchmarks/odar.py tokens [--questions 1000] [--splits 20]

`recorded`: LLaMA-2-13B and GPT-4 on 1,169 questions, four answers each. A random 60 % of the
questions train, the others are judged, at every threshold there is; cost at a level is on the
straight line between the two neighbouring points, the same for every policy. Errors are standard
errors over splits of the same questions. Draws the figure of docs/research/difficulty.md.

`tokens`: two embedded networks answer chains of arithmetic four times each, with the probability
of every token. Which answer is right more often: the likeliest one, the one of least free energy,
or that of most votes?
"""

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from recordings import FOLDER, needed

from farthing.methods.base import Silent
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.methods.lookahead.learner import LAZY_LEARNER, LookaheadLearner
from farthing.models.base import Message, Prompt
from farthing.models.prices import PriceTable
from farthing.process.action_space import recorded_space
from farthing.process.batch_replay import replay
from farthing.reports.style import STYLE
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.assemble import load as read
from farthing.traces.base import Call, Trace
from farthing.traces.token_moments import SURPRISAL, VARENTROPY, of_tokens
from farthing_lab.methods.routers.odar.learner import EDGE, MOST, ODAR, ODAR_RECHECK, order_of_calls
from farthing_lab.models.embedded import EmbeddedSettings
from farthing_lab.tasks.arithmetic import Recipe, draw_of, normalise

FILE = "reasoning-llama2-13b-gpt4.jsonl.gz"
IMAGE = Path(__file__).parents[1] / "docs/images/difficulty.svg"
ALPHA = Fraction(1, 10)
LEARNERS = {
    "odar": ODAR,
    "odar-recheck": ODAR_RECHECK,
    "lazy": LAZY_LEARNER,
    "lookahead": LookaheadLearner(),
}
LOOKS = {
    "odar": ("#d55e00", "-"),
    "odar-recheck": ("#e69f00", "-"),
    "lazy": ("#009e73", "-"),
    "lookahead": ("#0072b2", "-"),
    "fixed": ("#7d8590", ":"),
}
LEVELS = {"coverage": (0.8, 0.9, 0.95), "accuracy": (0.7, 0.8, 0.85, 0.9)}
GRID = np.linspace(0, 0.08, 81)
"""Dollars a question, at which lines of the figure are drawn."""
Frontier = FloatArray
"""[G, 3] mean dollars a question, coverage and accuracy, from the cheapest on."""


def frontier(policy: object, test: TraceArrays) -> Frontier:
    """Return what some 60 thresholds come to on the questions."""
    replayed = replay(policy, test)  # type: ignore[arg-type]
    thresholds = replayed.thresholds()
    chosen = np.unique(np.quantile(thresholds, np.linspace(0, 1, 120), method="nearest"))
    return points([replayed.act(float(kappa)) for kappa in chosen])


def points(outcomes: Sequence[object]) -> Frontier:
    """Return mean dollars, coverage and accuracy of each, by rising cost."""
    rows = [
        (o.cost_nano.mean() / 1e9, o.covered.mean(), o.best_correct.mean())  # type: ignore[attr-defined]
        for o in outcomes
    ]
    return np.array(sorted(rows))


def cost_at(found: Frontier, column: int, level: float) -> float:
    """Return the least cost that reaches a level, between neighbours by lot; NaN if never."""
    best = np.maximum.accumulate(found[:, column])
    if best[-1] < level:
        return float("nan")
    at = int(np.argmax(best >= level))
    if at == 0:
        return float(found[0, 0])
    share = (level - best[at - 1]) / max(best[at] - best[at - 1], 1e-12)
    return float(found[at - 1, 0] + share * (found[at, 0] - found[at - 1, 0]))


def alone(test: TraceArrays, role: int) -> tuple[float, float, float]:
    """Return what one model's first answer costs and how often it is right."""
    right = test.correct[:, 0, role]
    covered = (right | ~test.solvable).mean()
    return float(test.cost_nano[:, 0, role].mean() / 1e9), float(covered), float(right.mean())


def recorded(folder: Path, splits: int) -> None:
    """Compare, print the tables and draw the figure."""
    traces = read(folder / FILE)
    kept: dict[str, list[Frontier]] = {name: [] for name in (*LEARNERS, "fixed")}
    published, singles = [], []
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(traces))
        cut = round(0.6 * len(order))
        train, test = traces.take(order[:cut]), traces.take(order[cut:])
        for name, learner in LEARNERS.items():
            policy = learner.fit(train, ALPHA, split, Silent()).policy
            kept[name].append(frontier(policy, test))
            if name in ("odar", "odar-recheck"):
                done = replay(policy, test).act(EDGE)
                shares = [(done.length == calls).mean() for calls in (1, 2, MOST)]
                published.append((name, *points([done])[0], *shares))
        depths = [replay(FixedDepthPolicy(depth), test).act(0.5) for depth in (1, 2, 3, 4)]
        kept["fixed"].append(points(depths))
        singles.append([alone(test, role) for role in range(2)])
        print(f"split {split + 1} of {splits}", end="\r", flush=True)
    _tables(kept, published, np.array(singles), traces.models)
    _draw(kept, np.array(singles))


def _tables(
    kept: Mapping[str, list[Frontier]], published: list, singles: FloatArray, models: tuple
) -> None:
    for column, (what, levels) in enumerate(LEVELS.items(), start=1):
        _level_table(f"$ per 1,000 at {what}", kept, column, levels, 1e3)
    print("\n| | $ per 1,000 | coverage | accuracy | one call | two | six |")
    print("| --- |" + " ---: |" * 6)
    for name in ("odar", "odar-recheck"):
        rows = np.array([row[1:] for row in published if row[0] == name])
        cells = [mean(1_000 * rows[:, 0]), *(mean(rows[:, k], 3) for k in range(1, 6))]
        print(f"| {name} at the edge {EDGE} | " + " | ".join(cells) + " |")
    for role, model in enumerate(models):
        of = singles[:, role]
        cells = [mean(1_000 * of[:, 0]), mean(of[:, 1], 3), mean(of[:, 2], 3)]
        print(f"| always {model} | " + " | ".join(cells) + " | | | |")


def _level_table(
    title: str,
    kept: Mapping[str, list[Frontier]],
    column: int,
    levels: Sequence[float],
    questions: float,
) -> None:
    print(f"\n| {title} | " + " | ".join(map(str, levels)) + " |")
    print("| --- |" + " ---: |" * len(levels))
    for name, found in kept.items():
        cells = []
        for level in levels:
            cost = questions * np.array([cost_at(one, column, level) for one in found])
            reached = np.isfinite(cost)
            some = f" ({reached.sum()} of {len(cost)})" if not reached.all() else ""
            cells.append(f"{mean(cost[reached])}{some}" if reached.any() else "never")
        print(f"| {name} | " + " | ".join(cells) + " |")


def mean(values: FloatArray, digits: int = 1) -> str:
    """Return a mean and its standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def _draw(kept: Mapping[str, list[Frontier]], singles: FloatArray) -> None:
    with rc_context(STYLE):
        figure = Figure(figsize=(8.4, 3.6), layout="constrained")
        panes = figure.subplots(1, 2)
        for pane, column, what in zip(panes, (1, 2), ("coverage", "accuracy"), strict=True):
            for name, found in kept.items():
                colour, dashes = LOOKS[name]
                lines = np.array([_line(one, column) for one in found])
                with np.errstate(all="ignore"):
                    shown = (~np.isnan(lines)).sum(axis=0) > len(found) / 2
                    height = np.nanmean(lines[:, shown], axis=0)
                pane.plot(1_000 * GRID[shown], height, dashes, color=colour, label=name)
            price, *levels = singles[:, 1].mean(axis=0)
            pane.plot(1_000 * price, levels[column - 1], "o", color="#24292f", markersize=5)
            pane.annotate(
                "GPT-4 alone",
                (1_000 * price, levels[column - 1]),
                (6, -14),
                textcoords="offset points",
                fontsize=8,
            )
            pane.set(xlabel="dollars per 1,000 questions", ylabel=what, ylim=(0.3, 1.0))
        panes[1].legend(loc="lower right")
        figure.savefig(IMAGE)
    print(f"\n{IMAGE}")


def _line(found: Frontier, column: int) -> FloatArray:
    best = np.maximum.accumulate(found[:, column])
    return np.interp(GRID, found[:, 0], best, left=np.nan, right=best[-1])


async def _asked(questions: int) -> list[Trace]:
    models = [EmbeddedSettings(model=name, batch=256).open(PriceTable()) for name in SPEAKERS]
    rng = np.random.default_rng(11)
    problems = draw_of("test", [Recipe("affine", hops) for hops in range(1, 7)], rng)
    asked = [next(problems) for _ in range(questions)]
    wanted = [
        (i, number, role) for i in range(questions) for number in range(1, 5) for role in range(2)
    ]

    async def call(i: int, number: int, role: int) -> Call:
        prompt = Prompt(
            (Message("user", asked[i].text),),
            max_tokens=100,
            temperature=0.0 if number == 1 else 1.0,
            seed=None if number == 1 else 4 * i + number,
            top_logprobs=1,
        )
        done = await models[role].complete(prompt)
        answer = normalise(done.text)
        return Call(
            round=number,
            role=("base", "guide")[role],
            model=SPEAKERS[role],
            answer=answer,
            correct=answer == asked[i].answer,
            output_tokens=done.usage.output_tokens,
            input_tokens=done.usage.input_tokens,
            cost_usd=(done.cost_nano or 0) / 1e9,
            extra=of_tokens([token.logprob for token in done.logprobs]),
        )

    calls = await asyncio.gather(*(call(*one) for one in wanted))
    for model in models:
        await model.aclose()
    return [
        Trace(
            id=str(i),
            question=problem.text,
            gold=[problem.answer],
            independent=True,
            calls=list(calls[8 * i : 8 * i + 8]),
        )
        for i, problem in enumerate(asked)
    ]


SPEAKERS = ("small", "large")


def tokens(questions: int, splits: int) -> None:
    """Ask the networks, and print how often each way of choosing an answer is right."""
    traces = assemble(asyncio.run(_asked(questions)))
    right = traces.correct.reshape(len(traces), -1)
    print(f"right: {dict(zip(traces.models, right[:, :2].mean(axis=0).round(3), strict=True))}")
    cells = _in_order(traces)
    print("\n| answer given, of | two calls | six calls |\n| --- | ---: | ---: |")
    told, spread = (traces.signals[name].reshape(right.shape) for name in (SURPRISAL, VARENTROPY))
    rows = np.arange(len(traces))
    for weight in (0.0, 0.1, 1.0, 10.0, 100.0):
        energy = told + weight * spread
        given = [right[rows, s[energy[:, s].argmin(axis=1)]] for s in (cells[:2], cells[:MOST])]
        cells_of = " | ".join(map(share, given))
        print(f"| least free energy, lambda = {weight:g} | {cells_of} |")
    bare = replace(traces, signals={})
    votes = " | ".join(share(_by_votes(bare, cells[:calls])) for calls in (2, MOST))
    print(f"| votes, weighed by training | {votes} |")
    _levels({"tokens": traces, "votes": bare}, splits)


def _in_order(traces: TraceArrays) -> np.ndarray:
    """Return the calls in the order of odar, [S]."""
    space = recorded_space("calls", traces)
    count = np.zeros(space.lines, dtype=int)
    cells = []
    for line in order_of_calls(traces, space):
        cells.append(int(space.cells[line, count[line], 0]))
        count[line] += 1
    return np.array(cells)


def _by_votes(bare: TraceArrays, cells: np.ndarray) -> np.ndarray:
    """Return whether the answer of most weighed votes is right, [n]; halves learn in turn."""
    right = bare.correct.reshape(len(bare), -1)
    given = np.zeros(len(bare), dtype=bool)
    known = np.zeros(right.shape, dtype=bool)
    known[:, cells] = True
    for half in range(2):
        train, test = np.arange(len(bare))[half::2], np.arange(len(bare))[1 - half :: 2]
        policy = ODAR.fit(bare.take(train), ALPHA, 0, Silent()).policy
        energy = policy.fusion.energy(bare.take(test), known[test])  # type: ignore[attr-defined]
        given[test] = right[test, energy.argmin(axis=1)]
    return given


def _levels(kinds: Mapping[str, TraceArrays], splits: int) -> None:
    kept: dict[str, list[Frontier]] = {}
    for split in range(splits):
        for name, data in kinds.items():
            at = np.random.default_rng(split).permutation(len(data))
            cut = round(0.6 * len(data))
            for kind in ("odar", "odar-recheck", "lazy"):
                policy = LEARNERS[kind].fit(data.take(at[:cut]), ALPHA, split, Silent()).policy
                found = frontier(policy, data.take(at[cut:]))
                kept.setdefault(f"{kind}, {name}", []).append(found)
    for column, (what, levels) in enumerate(LEVELS.items(), start=1):
        _level_table(f"$ per million at {what}", kept, column, levels, 1e6)


def share(right: np.ndarray) -> str:
    """Return a share and its standard error."""
    p = right.mean()
    return f"{p:.3f} ± {np.sqrt(p * (1 - p) / len(right)):.3f}"


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("recorded", "tokens"))
    parser.add_argument("--traces", type=Path, default=FOLDER)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--questions", type=int, default=1_000)
    chosen = parser.parse_args()
    if chosen.part == "recorded":
        needed(chosen.traces / FILE)
        recorded(chosen.traces, chosen.splits)
    else:
        tokens(chosen.questions, chosen.splits)


if __name__ == "__main__":
    main()
