"""What the experiments share: their questions, a row per measurement kept as JSON, a figure's look.

Every script measures and draws; with `--redraw` it draws what `results/` already holds.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from farthing.methods.base import Fitted, Silent
from farthing.promises.kinds.split import split_rank
from farthing.reports.style import STYLE
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.generator.config import GeneratorConfig
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.ccpo.learner import CcpoConfig, CcpoLearner

PRESET = preset("hotpotqa-llama2-7b").config
ALPHA = Fraction("0.1")
TRAIN, CALIBRATE, FRESH = 1_000, 200, 50_000
UPDATES = 1_500
SEEDS = (0, 1)
"""Each seed draws its own training questions and its own network."""
DRAWS = 1_000
"""Calibration sets that an average over calibrations is taken over."""
PER_THOUSAND = 1_000

RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parents[2] / "docs/images"

Row = Mapping[str, Any]

sys.path.append(str(Path(__file__).parents[1]))  # for `recordings`


def training_questions(config: GeneratorConfig, seed: int, n: int = TRAIN) -> TraceArrays:
    return generate(config, n, np.random.default_rng([seed, 1]))


def fresh_questions(config: GeneratorConfig) -> TraceArrays:
    """Return the same large sample to every policy, so that differences are the policies' own."""
    return generate(config, FRESH, np.random.default_rng(2))


def train(config: GeneratorConfig, settings: CcpoConfig, seed: int) -> Fitted:
    learner = CcpoLearner(settings)
    return learner.fit(training_questions(config, seed), ALPHA, seed, Silent())


def calibrated(critical: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the split-conformal thresholds of `DRAWS` calibration sets, [DRAWS]."""
    drawn = critical[rng.integers(len(critical), size=(DRAWS, CALIBRATE))]
    k = split_rank(CALIBRATE, ALPHA)
    thresholds: FloatArray = np.minimum(np.partition(drawn, k - 1, axis=1)[:, k - 1], 1.0)
    return thresholds


def coverage_at(critical: FloatArray, kappa: FloatArray | float) -> FloatArray:
    """Return the share of questions that each threshold covers."""
    missed = np.searchsorted(np.sort(critical), np.minimum(kappa, 1.0), side="left")
    return np.asarray(1 - missed / len(critical))


@dataclass(frozen=True)
class Experiment:
    """Rows measured case by case in two processes, and kept under a name."""

    name: str
    measure: Callable[..., list[Row]]
    """Takes a case's entries as arguments and returns its rows."""

    def rows(self, cases: Iterable[Row]) -> list[Row]:
        """Measure every case and keep the rows, or read the rows kept."""
        path = RESULTS / f"{self.name}.json"
        if "--redraw" in sys.argv:
            return json.loads(path.read_text())  # type: ignore[no-any-return]
        rows: list[Row] = []
        with ProcessPoolExecutor(2) as pool:
            pending = [(case, pool.submit(self.measure, **case)) for case in cases]
            for case, found in pending:
                rows += found.result()
                print(f"{self.name}: {case}", flush=True)
                lines = ",\n".join(json.dumps(_short(row)) for row in rows)
                path.write_text(f"[\n{lines}\n]\n")
        return json.loads(path.read_text())  # type: ignore[no-any-return]


def _short(value: Any) -> Any:
    """Keep six digits of every number."""
    if isinstance(value, Mapping):
        return {key: _short(part) for key, part in value.items()}
    if isinstance(value, list | np.ndarray):
        return [_short(part) for part in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Return a mean over seeds and its standard error."""
    found = np.array(list(values), dtype=float)
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found)))


def series(
    rows: Iterable[Row], x: str, y: str | Callable[[Row], float], **where: Any
) -> tuple[list[float], list[float], list[float]]:
    """Return each x, the mean of y over seeds, and its standard error, of the rows that match."""
    chosen = [row for row in rows if all(row[key] == value for key, value in where.items())]
    value = (lambda row: row[y]) if isinstance(y, str) else y
    points = sorted({row[x] for row in chosen})
    found = [mean_and_error(value(row) for row in chosen if row[x] == point) for point in points]
    return points, [mean for mean, _ in found], [error for _, error in found]


def table(columns: Mapping[str, tuple[list[float], list[float], list[float]]], x: str) -> None:
    """Print series that share their x as a Markdown table."""
    print(f"\n| {x} | " + " | ".join(columns) + " |\n" + "| --- " * (len(columns) + 1) + "|")
    for i, point in enumerate(next(iter(columns.values()))[0]):
        cells = [f"{mean[i]:.4g} ± {error[i]:.2g}" for _, mean, error in columns.values()]
        print(f"| {point:g} | " + " | ".join(cells) + " |")


def draw(name: str, paint: Callable[[Figure], None], height: float = 3.0) -> None:
    """Paint a figure, a row of panels, into docs/images."""
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(10.5, height), layout="constrained")
        paint(figure)
        IMAGES.mkdir(exist_ok=True)
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
