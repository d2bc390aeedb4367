"""Each promise with confidence, in 2,000 calibrations, judged on 100,000 generated questions.

A calibration draws questions from these 100,000 with replacement, so what is true of a new question
is known exactly. Levels are set where the promise is hardest to keep: just short
of an operating point.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy import stats

from farthing.promises.answers import answers_above, candidate_thresholds, selective_point
from farthing.promises.certificate import BoolArray, FloatArray, IntArray
from farthing.promises.kinds.budget import Spending, budget_point
from farthing.promises.paired import Paired, parity_point
from farthing.traces.arrays import TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

pytestmark = pytest.mark.slow
QUESTIONS, RUNS, N, DELTA = 100_000, 2_000, 300, 0.1
BASE, GUIDE = 0, 1


@dataclass(frozen=True)
class Population:
    """A menu of cascades: the base's first answer if it is repeated k times, else the guide's."""

    cost_nano: IntArray
    correct: BoolArray
    confidence: FloatArray
    """Of the guide's first answer."""


def cascades(traces: TraceArrays) -> tuple[IntArray, BoolArray]:
    """The base once; the base 2, 3 or 4 times, and the guide where it differs; the guide."""
    base, price = traces.answer[:, :, BASE], traces.cost_nano
    right, guide = traces.correct[:, 0, BASE], traces.correct[:, 0, GUIDE]
    cost, correct = [price[:, 0, BASE]], [right]
    for k in (2, 3, 4):
        differs = (base[:, :k] != base[:, :1]).any(axis=1)
        cost.append(price[:, :k, BASE].sum(axis=1) + differs * price[:, 0, GUIDE])
        correct.append(np.where(differs, guide, right))
    return np.stack([*cost, price[:, 0, GUIDE]], 1), np.stack([*correct, guide], 1)


@cache
def population() -> Population:
    traces = generate(preset("hotpotqa-llama2-7b").config, QUESTIONS, np.random.default_rng(0))
    confidence = -traces.signals["uncertainty"][:, 0, GUIDE].astype(np.float64)
    return Population(*cascades(traces), confidence)


def rare_enough(failures: int) -> bool:
    return bool(stats.binomtest(failures, RUNS, DELTA, alternative="greater").pvalue > 1e-4)


@pytest.mark.parametrize("edge", [1, 2])
def test_parity(edge: int) -> None:
    everyone, rng = population(), np.random.default_rng(edge)
    guide = everyone.correct[:, -1]
    loss = guide.mean() - everyone.correct.mean(axis=0)
    epsilon = float(loss[edge]) - 1e-9
    failures = kept = 0
    for _ in range(RUNS):
        rows = rng.integers(0, QUESTIONS, N)
        paired = Paired(everyone.cost_nano[rows], everyone.correct[rows], guide[rows])
        found = parity_point(paired, epsilon, DELTA)
        failures += found is not None and loss[found] >= epsilon
        kept += found is not None
    assert rare_enough(failures)
    assert failures > 0.02 * RUNS
    assert kept > 0.5 * RUNS


@pytest.mark.parametrize("edge", [1, 2, 3])
def test_budget(edge: int) -> None:
    everyone, rng = population(), np.random.default_rng(edge)
    means = everyone.cost_nano.mean(axis=0)
    order = np.argsort(means)
    most, budget = int(everyone.cost_nano.max()), int(means[order[edge]])
    failures = kept = 0
    for _ in range(RUNS):
        rows = rng.integers(0, QUESTIONS, N)[:, None]
        spending = Spending(everyone.cost_nano[rows, order], everyone.correct[rows, order], most)
        found = budget_point(spending, budget, DELTA)
        failures += found is not None and means[order[found]] >= budget
        kept += found is not None
    assert rare_enough(failures)
    assert kept > 0.5 * RUNS


@pytest.mark.parametrize("alpha", ["0.15", "0.2"])
def test_selective_accuracy(alpha: str) -> None:
    everyone, rng = population(), np.random.default_rng(7)
    guide = everyone.correct[:, -1]
    training = rng.integers(0, QUESTIONS, 500)
    grid = candidate_thresholds(everyone.confidence[training], guide[training], alpha)
    answered = everyone.confidence[:, None] >= grid
    risk = 1 - (answered & guide[:, None]).sum(axis=0) / answered.sum(axis=0)
    failures = kept = 0
    for _ in range(RUNS):
        rows = rng.integers(0, QUESTIONS, N)
        answers = answers_above(everyone.confidence[rows], guide[rows], grid)
        found = selective_point(answers, alpha, DELTA)
        failures += found is not None and risk[found] > float(alpha)
        kept += found is not None
    assert rare_enough(failures)
    assert kept > 0.3 * RUNS
