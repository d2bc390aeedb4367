"""What holes in a log do to a recommendation, where the truth is known.

    .venv/bin/python benchmarks/missing_calls.py [--logs 20]

Questions for three models are made up; a quarter is hard. In each log some models were not asked
everything. The recommended bundle is then measured on 20,000 fresh questions of the same kind, all
asked: its promise is parity with the large model minus three points, at confidence 0.9.
"""

import argparse
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import farthing as ft
from farthing.methods.base import Dataset
from farthing.traces.arrays import NO_ANSWER, WHY_MISSING, TraceArrays
from farthing.traces.eligibility import Missing, only

ROLES = ("small", "medium", "large")
SKILL = np.array([[0.97, 0.5], [0.98, 0.6], [0.99, 0.96]])
COST_NANO = np.array([100_000, 200_000, 2_000_000])
EPSILON = 0.03
HOLES: dict[str, tuple[tuple[float, float, float], Missing | None]] = {
    "none": ((1.0, 1.0, 1.0), None),
    "large asked 60 %, nobody says why": ((1.0, 1.0, 0.6), None),
    "medium asked 60 %, nobody says why": ((1.0, 0.6, 1.0), None),
    "medium asked 60 %, by chance": ((1.0, 0.6, 1.0), "chance"),
    "medium asked 90 %, at worst": ((1.0, 0.9, 1.0), "worst"),
}


def pool(n: int, seed: int) -> TraceArrays:
    """Return questions that every model was asked."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.25
    right = rng.random((n, 3)) < np.where(hard[:, None], SKILL[:, 1], SKILL[:, 0])
    sure = np.clip(np.where(right, 0.85, 0.5) + rng.normal(0, 0.15, (n, 3)), 0.02, 0.98)
    return TraceArrays(
        ids=np.array([f"q{seed}-{i}" for i in range(n)]),
        roles=ROLES,
        models=ROLES,
        answer=np.where(right, 0, rng.integers(1, 6, (n, 3)))[:, None].astype(np.int16),
        correct=right[:, None],
        cost_nano=np.tile(COST_NANO, (n, 1))[:, None],
        signals={"confidence": sure[:, None].astype(np.float32)},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


def lacking(traces: TraceArrays, made: NDArray[np.bool_]) -> TraceArrays:
    """Return the questions without the calls that were not made, [n, L]."""
    there = made[:, None]
    return replace(
        traces,
        made=there,
        answer=np.where(there, traces.answer, NO_ANSWER).astype(np.int16),
        correct=traces.correct & there,
        cost_nano=np.where(there, traces.cost_nano, 0),
        signals={"confidence": np.where(there, traces.signals["confidence"], np.nan)},
        missing_because=np.full(len(traces), WHY_MISSING.index("unknown"), dtype=np.int8),
    )


def main() -> None:
    """Print one row for each kind of log."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--logs", type=int, default=20)
    given = arguments.parse_args()
    fresh = pool(20_000, 10**6)
    print("| holes | proved | of these false | saved, in truth | questions that prove |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, (shares, missing) in HOLES.items():
        saved, false, prove = [], 0, []
        for seed in range(given.logs):
            made = np.random.default_rng(10**7 + seed).random((1_500, 3)) < shares
            log = ft.Traces(Dataset("log", lacking(pool(1_500, seed), made), missing=missing))
            found = ft.recommend(log, ft.Parity("large", EPSILON)).found
            prove.append(found.sizes["prove"])
            if found.nothing_cheaper:
                continue
            roles = found.bundle.origin.roles if found.bundle.origin.is_pool else ROLES
            some = only(fresh, {*roles, "large"} & set(ROLES))
            value = ft.Policy(found.bundle).evaluate(ft.Traces(Dataset("fresh", some))).value
            saved.append(value.saved or 0.0)
            false += (value.gained or 0.0) < -EPSILON
        mean = f"{np.mean(saved):.3f} ± {np.std(saved) / np.sqrt(len(saved)):.3f}" if saved else "-"
        print(
            f"| {name} | {len(saved)} of {given.logs} | {false} | {mean} | {np.mean(prove):.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
