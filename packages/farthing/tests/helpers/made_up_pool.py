"""Questions for three models side by side, made up for tests of what is chosen among methods."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import farthing as ft
from farthing.methods.base import Dataset
from farthing.traces.arrays import SPLITS, TraceArrays

ROLES = ("small", "medium", "large")
SKILL = np.array([[0.97, 0.5], [0.98, 0.6], [0.99, 0.96]])
"""Share of easy and of hard questions that a model has right; a quarter is hard."""
COST_NANO = np.array([100_000, 200_000, 2_000_000])
SECONDS = np.array([0.5, 1.0, 4.0])


def pool(n: int, seed: int = 0, *, hard: float = 0.25) -> TraceArrays:
    """Return questions that models know they may have wrong; wrong answers differ mostly."""
    rng = np.random.default_rng(seed)
    is_hard = rng.random(n) < hard
    right = rng.random((n, 3)) < np.where(is_hard[:, None], SKILL[:, 1], SKILL[:, 0])
    sure = np.clip(np.where(right, 0.85, 0.5) + rng.normal(0, 0.15, (n, 3)), 0.02, 0.98)
    seconds = SECONDS * rng.uniform(0.8, 1.2, (n, 3))
    return TraceArrays(
        ids=np.array([f"q{seed}-{i}" for i in range(n)]),
        roles=ROLES,
        models=ROLES,
        answer=np.where(right, 0, rng.integers(1, 6, (n, 3)))[:, None].astype(np.int16),
        correct=right[:, None],
        cost_nano=np.tile(COST_NANO, (n, 1))[:, None],
        signals={
            "confidence": sure[:, None].astype(np.float32),
            "latency_s": seconds[:, None].astype(np.float32),
        },
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


def asked_again(traces: TraceArrays, times: int = 5) -> TraceArrays:
    """Return each question several times, under ids of its own, all shuffled."""
    n = len(traces)
    rows = np.random.default_rng(9).permutation(np.tile(np.arange(n), times))
    found = traces.take(rows)
    ids = np.array([f"r{i}" for i in range(len(rows))])
    return replace(found, ids=ids, content=rows.astype(np.uint64) + 1)


def unknown(traces: TraceArrays) -> TraceArrays:
    """Return the same questions, of which nobody knows that they ask the same."""
    return replace(traces, content=np.zeros(len(traces), dtype=np.uint64))


def ungraded(traces: TraceArrays) -> TraceArrays:
    """Return the same questions with no grade known."""
    unknown = np.ones_like(traces.correct)
    return replace(traces, correct=np.zeros_like(unknown), ungraded=unknown)


def marked(traces: TraceArrays, *marks: int) -> TraceArrays:
    """Return the same questions with these marks, one after another, again and again."""
    return replace(traces, split=np.resize(np.array(marks, dtype=np.int8), len(traces)))


def questions(traces: TraceArrays) -> ft.Traces:
    """Return what the Python door takes."""
    return ft.Traces(Dataset("made up", traces))


def write(path: Path, traces: TraceArrays) -> Path:
    """Write a trace file; what is ungraded has no gold."""
    with path.open("w", encoding="utf-8") as file:
        for i in range(len(traces)):
            calls = [
                {
                    "round": 1,
                    "role": role,
                    "answer": str(traces.answer[i, 0, k]),
                    "cost_usd": int(traces.cost_nano[i, 0, k]) / 1e9,
                    **{name: float(values[i, 0, k]) for name, values in traces.signals.items()},
                }
                for k, role in enumerate(traces.roles)
            ]
            line = {"id": traces.ids[i], "independent": True, "calls": calls}
            line |= {} if traces.ungraded[i].any() else {"gold": ["0"]}
            line |= {} if traces.split[i] < 0 else {"split": SPLITS[traces.split[i]]}
            file.write(json.dumps(line) + "\n")
    return path
