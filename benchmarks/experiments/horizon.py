"""How does CCPO do over 8 and 16 rounds, and what does training take?

python benchmarks/experiments/horizon.py [--redraw]
"""

import time
from dataclasses import dataclass, replace

import numpy as np
from common import (
    ALPHA,
    PER_THOUSAND,
    PRESET,
    SEEDS,
    UPDATES,
    Experiment,
    Row,
    draw,
    fresh_questions,
    series,
    table,
    train,
    training_questions,
)
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingClassifier

from farthing.errors import InputError
from farthing.features.rounds import FeatureSet
from farthing.money import usd_from_nano
from farthing.reports.style import looks
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.comparison.thresholded import at_coverage
from farthing_lab.generator.config import GeneratorConfig
from farthing_lab.generator.optimum import optimal_cost
from farthing_lab.methods.ccpo.learner import CcpoConfig
from farthing_lab.methods.stopping import still_to_gain

HORIZONS = (4, 8, 16)
MANY = 20_000
"""Training questions of the reference, which no one would have."""


@dataclass(frozen=True)
class Boosted:
    """Stopping by estimated gain, with boosted trees fitted on very many questions."""

    features: FeatureSet
    model: HistGradientBoostingClassifier
    stochastic: bool = False

    @classmethod
    def fit(cls, traces: TraceArrays) -> "Boosted":
        """Fit one model for all rounds; which round it is, is among the features."""
        features = FeatureSet.fit(traces)
        seen = features.transform(traces)[:, :-1]
        model = HistGradientBoostingClassifier(learning_rate=0.05, max_iter=150, random_state=0)
        model.fit(seen.reshape(-1, seen.shape[2]), still_to_gain(traces).reshape(-1))
        return cls(features, model)

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for each role and the estimated gain for `next`, [n, T, 3]."""
        seen = self.features.transform(traces)[:, :-1]
        gain = self.model.predict_proba(seen.reshape(-1, seen.shape[2]))[:, 1]
        scores = np.ones((*traces.answer.shape[:2], 3))
        scores[:, :-1, 2] = gain.reshape(seen.shape[:2])
        scores[:, -1, 2] = 0.0
        return scores

    def decision_cost_nano(self, traces: TraceArrays) -> None:
        """Deciding costs nothing."""


def measure(rounds: int, seed: int) -> list[Row]:
    config = replace(PRESET, rounds=rounds)
    started = time.process_time()
    fitted = train(config, CcpoConfig(updates=UPDATES), seed)
    seconds = time.process_time() - started
    reference = Boosted.fit(training_questions(config, seed, MANY))
    fresh = fresh_questions(config)
    coverage = float(1 - ALPHA)
    ours = at_coverage(fitted.policy, fresh, coverage)
    return [
        {
            "rounds": rounds,
            "seed": seed,
            "seconds": seconds,
            "ccpo": ours["cost_usd"] * PER_THOUSAND,
            "boosted": at_coverage(reference, fresh, coverage)["cost_usd"] * PER_THOUSAND,
            "foresight": foresight(fresh) * PER_THOUSAND,
            "optimum": _optimum(config),
            "avg_len": ours["avg_len"],
            "set_size": ours["set_size"],
            "in_set": ours["in_set"],
            "solvable": ours["solvable"],
        }
    ]


def foresight(traces: TraceArrays) -> float:
    """Return the cost of who knows the first right round, and gives up on the dearest tenth."""
    first = np.where(traces.solvable, traces.correct.any(axis=2).argmax(axis=1), 0)
    paid = np.take_along_axis(traces.round_cost_nano.cumsum(axis=1), first[:, None], axis=1)[:, 0]
    given_up = np.argsort(-paid)[: int(ALPHA * len(paid))]
    paid[given_up] = traces.round_cost_nano[given_up, 0]
    return usd_from_nano(float(paid.mean()))


def _optimum(config: GeneratorConfig) -> float | None:
    try:
        return optimal_cost(config, float(1 - ALPHA)) * PER_THOUSAND
    except InputError:
        return None


def paint(rows: list[Row], figure: Figure) -> None:
    colours = looks(["ccpo", "stopping"])
    cost, seconds = figure.subplots(1, 2)
    for name, label, colour, marker in (
        ("ccpo", "CCPO, 1,000 questions", *colours["ccpo"]),
        ("boosted", "boosted stopping, 20,000 questions", *colours["stopping"]),
        ("foresight", "perfect foresight (out of reach)", "#a0a7b4", "v"),
    ):
        x, y, error = series(rows, "rounds", name)
        cost.errorbar(x, y, error, label=label, color=colour, marker=marker, capsize=3)
    known = [row for row in rows if row["optimum"] is not None]
    cost.plot(*series(known, "rounds", "optimum")[:2], "k_", markersize=16, label="known optimum")
    cost.set(title="Cost at coverage 0.9, $ per 1,000", xlabel="rounds T", xticks=HORIZONS)
    cost.set_ylim(bottom=0)
    cost.legend(fontsize=8)
    x, y, error = series(rows, "rounds", "seconds")
    colour, marker = colours["ccpo"]
    seconds.errorbar(x, y, error, color=colour, marker=marker, capsize=3)
    seconds.set(title="CCPO, 1,500 updates: CPU seconds", xlabel="rounds T", xticks=HORIZONS)
    seconds.set_ylim(bottom=0)


def main() -> None:
    cases = [{"rounds": rounds, "seed": seed} for rounds in HORIZONS[::-1] for seed in SEEDS]
    rows = Experiment("horizon", measure).rows(cases)
    columns = (
        "ccpo",
        "boosted",
        "foresight",
        "avg_len",
        "set_size",
        "in_set",
        "solvable",
        "seconds",
    )
    table({y: series(rows, "rounds", y) for y in columns}, "T")
    print({row["rounds"]: row["optimum"] for row in rows})
    draw("horizon", lambda figure: paint(rows, figure), height=3.4)


if __name__ == "__main__":
    main()
