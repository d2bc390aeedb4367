"""A policy over a Parquet file of any length, a chunk at a time, exactly as all at once.

Of each question nothing is kept but its critical threshold while a threshold is sought (8 bytes,
and a few copies while the quantile is taken), and nothing at all while a policy is measured.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from farthing.calibration.base import Given, Level, Threshold
from farthing.calibration.split import split_threshold
from farthing.errors import TooFewTracesError
from farthing.experiments.evaluate import replay
from farthing.experiments.totals import Totals
from farthing.policies.base import Policy
from farthing.traces.arrays import SPLITS, TraceArrays
from farthing.traces.parquet import CHUNK_ROWS, iter_parquet


def threshold(
    policy: Policy,
    path: str | Path,
    alpha: Level,
    *,
    part: str | None = None,
    given: Given = "all",
    empty: str = "argmax",
    rows: int = CHUNK_ROWS,
) -> Threshold:
    """Return the split conformal threshold that a file's questions give: the exact quantile.

    Args:
        policy: any policy.
        path: a file that `write_parquet` wrote.
        alpha: the promised share of misses.
        part: a name of `SPLITS`, to use the questions that the file names so; None: all.
        given: as in `split_threshold`.
        empty: as in `replay.paths`.
        rows: questions that are held at a time.

    Raises:
        TooFewTracesError: the file has no such question.
        TraceFormatError: the file is not Parquet or not of traces.
    """
    critical = [
        replay(policy, chunk, empty).followed.critical for chunk in _chunks(path, part, rows)
    ]
    return split_threshold(np.concatenate(critical), alpha, given)


def measure(
    policy: Policy,
    path: str | Path,
    kappa: float,
    *,
    part: str | None = None,
    empty: str = "argmax",
    rows: int = CHUNK_ROWS,
) -> dict[str, float]:
    """Return every metric of `METRICS` of acting on a file's questions with one threshold.

    Arguments and refusals are those of `threshold`; sums are integers, so chunks change nothing.
    """
    total = Totals()
    for chunk in _chunks(path, part, rows):
        total += Totals.of(replay(policy, chunk, empty).act(kappa))
    return total.metrics()


def _chunks(path: str | Path, part: str | None, rows: int) -> Iterator[TraceArrays]:
    """Read the questions of a part; at least one."""
    found = False
    for chunk in iter_parquet(path, rows):
        chosen = chunk if part is None else chunk.take(chunk.split == SPLITS.index(part))
        if len(chosen):
            found = True
            yield chosen
    if not found:
        which = "question" if part is None else f"question of the part '{part}'"
        raise TooFewTracesError(f"{path}: there is no {which}; use another file or part")
