"""How many grades does a proof of parity take: in the order of `farthing grade`, or in another?

Recordings whose gold is hidden. A cascade is trained on what the reference answered, and as much
parity as all grades would prove is to be proved on the calibration part with as few as may be.
*In order*: the question whose grade moves the proof most comes first. *Disagreements*: those on
which some operating point and the reference differ, in an order by chance. *By chance*: all
questions, in such an order. An answer that nobody graded counts at worst each time.

    python benchmarks/experiments/labels_needed.py [--redraw] [--traces FOLDER]

The recordings are read from ../shared/data/traces unless another folder is named.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from common import ALPHA, Experiment, Row, draw, series, table
from matplotlib.figure import Figure
from recordings import FOLDER, needed

from farthing.grading.queue import AnswerTable, chosen_at
from farthing.methods.base import Silent
from farthing.methods.cascades.conformal_arbitrage import ArbitrageLearner
from farthing.promises.kinds.parity import Parity
from farthing.promises.statistics.label_selection import Partly, first_failure, next_to_grade
from farthing.promises.statistics.paired_test import loss_p_value
from farthing.recommendation.played import PlayedPolicy, Questions
from farthing.recommendation.start_point import beginning
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing.traces.assemble import load
from farthing.traces.grades.overlay import UNKNOWN, at_worst, first_answer, graded, recorded_marks

SOURCES = {"mmlu": "mmlu-nine-models", "medmcqa": "medmcqa-nine-models"}
REFERENCE = "gpt-4o"
EPSILONS = (0.02, 0.05)
WAYS = ("in order", "disagreements", "by chance")
SPLITS, DELTA = 20, 0.1
CALIBRATE = 500
PLACE = Path(sys.argv[sys.argv.index("--traces") + 1]) if "--traces" in sys.argv else FOLDER


def without_grades(traces: TraceArrays) -> TraceArrays:
    given = traces.answer >= 0
    return replace(traces, correct=np.zeros_like(given), ungraded=given)


def p_values(partly: Partly, epsilon: float) -> FloatArray:
    worst = partly.worst
    lost, won = (worst == 1).sum(axis=0), (worst == -1).sum(axis=0)
    return np.array(
        [loss_p_value(int(a), int(b), len(worst), epsilon) for a, b in zip(lost, won, strict=True)]
    )


def labels(
    given: AnswerTable, epsilon: float, target: int, following: Callable[[AnswerTable, int], int]
) -> int:
    """Return how many questions are graded until the point is proved that all grades prove."""
    known = np.zeros(len(given.rows), dtype=bool)
    while True:
        now = replace(given, marks=np.where(known[:, None], given.marks, UNKNOWN).astype(np.int8))
        failing = first_failure(p_values(now.partly, epsilon), DELTA)
        if failing is None or failing < target:
            return int(known.sum())
        known[following(now, failing)] = True


def in_order(given: AnswerTable, failing: int) -> int:
    return int(next_to_grade(given.partly, failing)[0])


def by_row(order: IntArray) -> Callable[[AnswerTable, int], int]:
    """Take questions one after another, whatever they would prove."""
    left = iter(order.tolist())
    return lambda _given, _failing: next(left)


def measure(source: str, seed: int) -> list[Row]:
    traces = load(PLACE / f"{SOURCES[source]}.jsonl.gz")
    rng = np.random.default_rng([seed, 5])
    rows = rng.permutation(len(traces))
    learn, prove = traces.take(rows[CALIBRATE:]), traces.take(rows[:CALIBRATE])
    same = graded(without_grades(learn), f"same as {REFERENCE}")
    policy = ArbitrageLearner().fit(same, ALPHA, seed, Silent()).policy
    plays = PlayedPolicy(policy, "allow", None)
    worst = at_worst(without_grades(learn), REFERENCE)
    asked = Parity(REFERENCE, EPSILONS[0], DELTA)
    kappas = beginning(asked, plays, Questions(worst, worst), REFERENCE, CALIBRATE).row
    chosen = chosen_at(plays.right_at(kappas), prove)
    theirs = first_answer(prove, REFERENCE).astype(np.int64)
    marks = recorded_marks(prove, int(prove.answer.max()) + 1)
    given = AnswerTable(np.arange(CALIBRATE), chosen, theirs, marks)
    differ = rng.permutation(np.flatnonzero((~given.same).any(axis=1)))
    everything = rng.permutation(CALIBRATE)
    found: list[Row] = []
    for epsilon in EPSILONS:
        failing = first_failure(p_values(given.partly, epsilon), DELTA)
        target = 0 if failing is None else failing + 1
        cost = plays.replay(prove)
        orders = {
            "in order": in_order,
            "disagreements": by_row(differ),
            "by chance": by_row(everything),
        }
        for way in WAYS:
            proves = target < chosen.shape[1]
            number = labels(given, epsilon, target, orders[way]) if proves else 0
            spent = cost.act(float(kappas[target])).cost_nano.mean() if proves else 0.0
            place = prove.roles.index(REFERENCE)
            found.append(
                {
                    "source": source,
                    "seed": seed,
                    "epsilon": epsilon,
                    "way": way,
                    "labels": number,
                    "differ": len(differ),
                    "proved": float(proves),
                    "cost": float(spent / prove.cost_nano[:, 0, place].mean()),
                }
            )
    return found


def paint(rows: list[Row], figure: Figure) -> None:
    looks = {"in order": "#1b5e3f", "disagreements": "#0072b2", "by chance": "#d55e00"}
    for axes, source in zip(figure.subplots(1, len(SOURCES)), SOURCES, strict=True):
        for i, way in enumerate(WAYS):
            _, mean, error = series(rows, "epsilon", "labels", source=source, way=way)
            at = np.arange(len(EPSILONS)) + 0.26 * (i - 1)
            axes.bar(at, mean, 0.24, yerr=error, color=looks[way], label=way, capsize=2)
            for x, y, above in zip(at, mean, error, strict=True):
                axes.text(x, y + above + 8, f"{y:.0f}", ha="center", fontsize=8)
        axes.axhline(CALIBRATE, color="#555555", linestyle="--", linewidth=1, label="all of them")
        axes.set_xticks(range(len(EPSILONS)), [f"epsilon {epsilon:g}" for epsilon in EPSILONS])
        axes.set_ylim(0, CALIBRATE * 1.3)
        axes.set_ylabel("questions graded")
        axes.set_title(f"{source}: parity with {REFERENCE}")
        axes.grid(visible=False, axis="x")
        axes.legend(ncols=4, loc="upper center", fontsize=8)


def main() -> None:
    if "--redraw" not in sys.argv:
        needed(*(PLACE / f"{name}.jsonl.gz" for name in SOURCES.values()))
    cases = [{"source": source, "seed": seed} for source in SOURCES for seed in range(SPLITS)]
    rows = Experiment("labels_needed", measure).rows(cases)
    for source in SOURCES:
        print(f"\n{source}")
        table(
            {
                f"{way}, {what}": series(rows, "epsilon", what, source=source, way=way)
                for way in WAYS
                for what in (
                    ("labels", "differ", "proved", "cost") if way == WAYS[0] else ("labels",)
                )
            },
            "epsilon",
        )
    draw("labels_needed", lambda figure: paint(rows, figure))


if __name__ == "__main__":
    main()
