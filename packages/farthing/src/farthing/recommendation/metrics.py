"""What a policy came to on some questions, and the draws that are its own."""

import zlib

import numpy as np

from farthing.money import usd_from_nano
from farthing.process.replay import ReplayOutcome

NO_THRESHOLD = 1.0
"""The threshold of a policy that is neither sampled nor calibrated: what it scores 1 is done."""


def metrics(found: ReplayOutcome) -> dict[str, float]:
    """Return every metric of `METRICS` of one test part; NaN where it does not exist."""
    n, solvable = len(found.cost_nano), int(found.solvable.sum())
    cost = usd_from_nano(int(found.cost_nano.sum()))
    return {
        "cost_usd": cost / n,
        "total_cost_usd": cost,
        "coverage": int(found.covered.sum()) / n,
        "coverage_solvable": int(found.in_set.sum()) / solvable if solvable else np.nan,
        "in_set": int(found.in_set.sum()) / n,
        "solvable": solvable / n,
        "accuracy": int(found.best_correct.sum()) / n,
        "avg_len": int(found.length.sum()) / n,
        "set_size": int(found.set_size.sum()) / n,
        "set_size_leaves": int(found.set_size_leaves.sum()) / n,
        "empty": np.count_nonzero(found.set_size == 0) / n,
    }


def stream(name: str, *key: int) -> np.random.Generator:
    """Return a candidate's own generator: its draws do not depend on who else takes part."""
    return np.random.default_rng([zlib.crc32(name.encode()), *key])
