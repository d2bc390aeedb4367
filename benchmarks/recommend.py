"""What `recommend` picks, against every single method in hindsight, on recorded pools.

    .venv/bin/python benchmarks/recommend.py ../shared/data/traces [--draws 40] [--pooled]

Parity with a strong model at confidence 0.9. Questions that a file marks to train do so, nine
tenths of them anew each time; of the others 500 test and the rest calibrate. `--pooled` forgets
the marks. A rival is trained on the same training questions, proved on all calibration questions,
and falls back to the strong model where nothing is proved; `recommend` divides the calibration
questions into those that choose and those that prove.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from recordings import needed

from farthing.comparison.pools import (
    PER_THOUSAND,
    Fallback,
    Outcome,
    dearer,
    methods_of,
    parity,
    reference_model,
    summary,
)
from farthing.methods.base import Dataset, Silent
from farthing.methods.cards import cards
from farthing.methods.pool import PoolPolicy
from farthing.promises.kinds.parity import Parity
from farthing.recommendation.recommend import recommend
from farthing.traces.arrays import SPLITS, IntArray, TraceArrays
from farthing.traces.assemble import load

FILES = {
    "mmlu-nine-models": "gpt-4o",
    "medmcqa-nine-models": "gpt-4o",
    "zeroeval-ten-models": "gpt-4o-2024-08-06",
}
EPSILONS = (Fraction(0), Fraction(1, 100), Fraction(1, 50))
DELTA = Fraction(1, 10)
TEST = 500
TRAIN = 300
OURS = "recommend"
RESULTS = Path(__file__).parent / "results/recommend.json"


@dataclass(frozen=True)
class Draw:
    """Which questions train, calibrate and test."""

    train: IntArray
    calibrate: IntArray
    test: IntArray

    def marked(self, traces: TraceArrays) -> TraceArrays:
        """Return the questions with these parts marked; others belong to none."""
        split = np.full(len(traces), -1, dtype=np.int8)
        for place, rows in enumerate((self.train, self.calibrate, self.test)):
            split[rows] = place
        drawn = np.sort(np.concatenate([self.train, self.calibrate, self.test]))
        return replace(traces, split=split).take(drawn)


def draws(traces: TraceArrays, number: int, *, pooled: bool) -> Iterator[Draw]:
    """Draw the parts anew, within the marks unless they are forgotten."""
    marked = np.flatnonzero(traces.split == SPLITS.index("train"))
    for seed in range(number):
        rng = np.random.default_rng(seed)
        if marked.size and not pooled:
            train = rng.permutation(marked)[: int(0.9 * len(marked))]
            rest = rng.permutation(np.setdiff1d(np.arange(len(traces)), marked))
        else:
            train, rest = np.split(rng.permutation(len(traces)), [TRAIN])
        yield Draw(np.sort(train), np.sort(rest[TEST:]), np.sort(rest[:TEST]))


def rivals(
    traces: TraceArrays, strong: str, draw: Draw, seed: int, epsilon: Fraction
) -> dict[str, Outcome]:
    """Prove parity with every method that is tried for one answer, each by itself."""
    tried = {card.label for card in cards() if "one" in card.tried_for}
    reference = reference_model(traces, strong)
    found = {}
    for label, learner in methods_of(strong).items():
        if label in tried and label != "Always one model":
            policy = learner.fit(traces.take(draw.train), DELTA, seed, Silent()).policy
            assert isinstance(policy, PoolPolicy)
            rows = (draw.calibrate, draw.test)
            points = policy.points(traces)
            found[label] = parity(points, reference, rows, epsilon=epsilon, delta=DELTA)
    return found


def ours(traces: TraceArrays, strong: str, draw: Draw, seed: int, epsilon: Fraction) -> Outcome:
    """Do what `farthing recommend` does; its measuring questions are the test questions."""
    asked = Parity(strong, epsilon, DELTA)
    found = recommend(Dataset("", draw.marked(traces)), asked, seed=seed)
    reference: Fallback = reference_model(traces.take(draw.test), strong)
    margin = found.found.metrics["accuracy"] - float(reference.right.mean() - epsilon)
    cost = found.found.metrics["cost_usd"] * 1e9 * PER_THOUSAND
    return Outcome(cost, margin, found.name == f"always-{strong}")


def show(title: str, outcomes: dict[str, list[Outcome]], kept: dict[str, object]) -> None:
    """Print a table, the cheapest first, and keep it."""
    found = {name: summary(each) for name, each in outcomes.items()}
    best = min((name for name in found if name != OURS), key=lambda name: found[name].cost)
    print(f"\n{title}\n\n| | $ per 1,000 | of the cheapest rival | more | kept | fell back |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, row in sorted(found.items(), key=lambda item: item[1].cost):
        more, error = dearer(outcomes[name], outcomes[best])
        print(
            f"| {name} | {row.cost:.3f} ± {row.cost_error:.3f} | {row.cost / found[best].cost:.2f} "
            f"| {more:+.3f} ± {error:.3f} | {row.kept:.2f} | {row.fell_back:.2f} |",
            flush=True,
        )
    kept[title] = {name: vars(row) for name, row in found.items()}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--draws", type=int, default=40)
    arguments.add_argument("--pooled", action="store_true")
    arguments.add_argument("--only", default="")
    given = arguments.parse_args()
    needed(*(given.folder / f"{name}.jsonl.gz" for name in FILES if given.only in name))
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, strong in FILES.items():
        if given.only not in name:
            continue
        traces = load(given.folder / f"{name}.jsonl.gz")
        for epsilon in EPSILONS:
            outcomes: dict[str, list[Outcome]] = defaultdict(list)
            for seed, draw in enumerate(draws(traces, given.draws, pooled=given.pooled)):
                for label, one in rivals(traces, strong, draw, seed, epsilon).items():
                    outcomes[label].append(one)
                outcomes[OURS].append(ours(traces, strong, draw, seed, epsilon))
            pooled = ", pooled" if given.pooled else ""
            title = f"{name}{pooled}: parity with {strong} minus {float(epsilon):g}"
            show(f"{title}, {given.draws} draws", outcomes, kept)
            RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
