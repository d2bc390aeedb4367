"""Every rival on recorded pools: who keeps a promise for the least money?

    .venv/bin/python benchmarks/rivals.py ../shared/data/traces [--embeddings FOLDER]

Embeddings of the questions are computed here, once where a folder is given to keep them in.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import numpy as np

from farthing.experiments.pools import (
    Outcome,
    coverage,
    dearer,
    everything,
    parity,
    reference_model,
    rivals,
    summary,
)
from farthing.methods.routers.embedding import Embedding, embed
from farthing.process.operating_points import OperatingPoints
from farthing.traces.arrays import SPLITS, IntArray, TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.jsonl import read_traces

SPLITS_DRAWN = 20
STRONG = "gpt-4o"
EPSILON, DELTA, ALPHA = Fraction(1, 50), Fraction(1, 10), Fraction(1, 10)
MMLU = ((0, 500), (0, 1_000), (500, 500))
"""Questions of the test part that train as well, and that calibrate."""
RESULTS = Path(__file__).parent / "results/rivals.json"

Split = tuple[IntArray, IntArray, IntArray]
Outcomes = Mapping[str, list[Outcome]]


def mmlu_splits(traces: TraceArrays, train_more: int, n_calibrate: int) -> Iterator[Split]:
    """Train on the file's own training part, and on some of the rest where asked to."""
    own = np.flatnonzero(traces.split == SPLITS.index("train"))
    rest = np.setdiff1d(np.arange(len(traces)), own)
    for draw in range(SPLITS_DRAWN):
        rows = np.random.default_rng(draw).permutation(rest)
        train = np.sort(np.concatenate([own, rows[:train_more]]))
        yield train, *np.split(rows[train_more:], [n_calibrate])


def random_splits(traces: TraceArrays, n_train: int, n_calibrate: int) -> Iterator[Split]:
    for draw in range(SPLITS_DRAWN):
        rows = np.random.default_rng(draw).permutation(len(traces))
        train, calibrate, test = np.split(rows, [n_train, n_train + n_calibrate])
        yield train, calibrate, test


def mmlu(traces: TraceArrays, embedding: Embedding, splits: Iterator[Split]) -> Outcomes:
    found, menus, trained = defaultdict(list), {}, None
    reference = reference_model(traces, STRONG)
    for draw, (train, *rows) in enumerate(splits):
        if not np.array_equal(train, trained):
            menus, trained = menus_of(traces, embedding, train, draw, STRONG), train
        for name, menu in menus.items():
            outcome = parity(menu, reference, tuple(rows), epsilon=EPSILON, delta=DELTA)
            found[name].append(outcome)
    return found


def hotpotqa(traces: TraceArrays, embedding: Embedding, splits: Iterator[Split]) -> Outcomes:
    found, fallback = defaultdict(list), everything(traces)
    for draw, (train, *rows) in enumerate(splits):
        for name, menu in menus_of(traces, embedding, train, draw, None).items():
            found[name].append(coverage(menu, fallback, tuple(rows), alpha=ALPHA))
    return found


def menus_of(
    traces: TraceArrays, embedding: Embedding, train: IntArray, draw: int, strong: str | None
) -> Mapping[str, OperatingPoints]:
    """Fit every rival on the training questions and return its menu over all questions."""
    candidates = rivals(embedding, strong).items()
    return {name: rival.fit(traces.take(train), draw).points(traces) for name, rival in candidates}


def read(path: Path, kept: Path | None) -> tuple[TraceArrays, Embedding]:
    records = list(read_traces(path))
    name = path.name.removesuffix(".jsonl.gz")
    file = kept / f"{name}.npz" if kept else None
    if file is not None and file.exists():
        known = np.load(file)
        pairs = zip(known["ids"].tolist(), known["vectors"], strict=True)
        return assemble(records), Embedding(str(known["name"]), dict(pairs))
    embedding = embed(records)
    if file is not None:
        ids, vectors = list(embedding.vectors), np.array(list(embedding.vectors.values()))
        np.savez(file, ids=np.array(ids), vectors=vectors, name=embedding.name)
    return assemble(records), embedding


def show(title: str, ours: str, outcomes: Outcomes) -> None:
    """Print a table, the cheapest first, and keep it."""
    print(f"\n{title}\n\n| | $ per 1,000 | more than {ours} | margin | kept | fell back |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    found = {name: summary(each) for name, each in outcomes.items()}
    more = {name: dearer(each, outcomes[ours]) for name, each in outcomes.items()}
    for name, row in sorted(found.items(), key=lambda item: item[1].cost):
        mean, error = more[name]
        print(
            f"| {name} | {row.cost:.3f} +- {row.cost_error:.3f} | {mean:+.3f} +- {error:.3f} "
            f"| {row.margin:+.3f} +- {row.margin_error:.3f} | {row.kept:.2f} "
            f"| {row.fell_back:.2f} |"
        )
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept[title] = {name: asdict(row) | {"dearer": more[name]} for name, row in found.items()}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--embeddings", type=Path)
    given = arguments.parse_args()
    traces, embedding = read(given.folder / "mmlu-nine-models.jsonl.gz", given.embeddings)
    for train_more, n in MMLU:
        own = int((traces.split == SPLITS.index("train")).sum())
        train = own + train_more
        title = f"MMLU: {train} train, {n} calibrate, {len(traces) - train - n} test"
        found = mmlu(traces, embedding, mmlu_splits(traces, train_more, n))
        show(f"{title}; {embedding.name}", "pool gain (ours)", found)
    traces, embedding = read(given.folder / "hotpotqa-seven-agents.jsonl.gz", given.embeddings)
    found = hotpotqa(traces, embedding, random_splits(traces, 250, 150))
    show(
        f"HotpotQA: 250 train, 150 calibrate, 100 test; {embedding.name}",
        "pool cover (ours)",
        found,
    )


if __name__ == "__main__":
    main()
