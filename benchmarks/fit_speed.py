"""How long does fitting take on 1,000 questions of nine models, beside scikit-learn alone?

    python benchmarks/fit_speed.py

The questions are made up: model after model is twice as dear and right more often. A policy's fit
makes features and targets, crosses folds and looks ahead; scikit-learn's row is one forest on the
features of every state that a question passes through when models are asked in a row.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from farthing.methods.base import Silent
from farthing.methods.lookahead.learner import LAZY, LookaheadConfig, LookaheadLearner
from farthing.methods.routers.pool_gain import PoolGainLearner
from farthing.traces.arrays import TraceArrays
from farthing.traces.pool import cascade
from farthing_lab.methods.routers.pool_cover import PoolCoverLearner
from farthing_lab.methods.stopping import StoppingLearner

QUESTIONS, MODELS, CHOICES = 1_000, 9, 4
ALPHA = Fraction(1, 10)
TARGET_S = 10.0


def pool(n: int, rng: np.random.Generator) -> TraceArrays:
    """Draw questions of four choices, [n, 1, 9]; the first choice is right."""
    names = tuple(f"model-{m}" for m in range(MODELS))
    hard, able = rng.normal(size=(n, 1, 1)), np.linspace(-0.5, 2.0, MODELS)
    right = rng.random((n, 1, MODELS)) < 1 / (1 + np.exp(hard - able))
    answer = np.where(right, 0, rng.integers(1, CHOICES, right.shape)).astype(np.int16)
    sure = np.where(right, 0.7, 0.5) + 0.2 * rng.normal(size=right.shape)
    return TraceArrays(
        ids=np.array([f"question-{i}" for i in range(n)]),
        roles=names,
        models=names,
        answer=answer,
        correct=right,
        cost_nano=rng.poisson(1_000.0 * 2.0 ** np.arange(MODELS), right.shape),
        signals={"confidence": np.clip(sure, 0, 1).astype(np.float32)},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


def main() -> None:
    """Fit each once and print a table."""
    rng = np.random.default_rng(0)
    traces = pool(QUESTIONS, rng)
    rounds, config = cascade(traces), LookaheadConfig()
    states = rng.normal(size=(QUESTIONS * (MODELS - 1), 40))
    gain = rng.random((len(states), 2))
    forest = ExtraTreesRegressor(config.trees, min_samples_leaf=config.leaf, random_state=0)
    ways: dict[str, Callable[[], object]] = {
        "stopping": lambda: StoppingLearner().fit(rounds, ALPHA, 0, Silent()),
        "lookahead": lambda: LookaheadLearner(config).fit(rounds, ALPHA, 0, Silent()),
        "lazy": lambda: LookaheadLearner(LAZY).fit(rounds, ALPHA, 0, Silent()),
        "pool-gain": lambda: PoolGainLearner().fit(traces, ALPHA, 0, Silent()),
        "pool-cover": lambda: PoolCoverLearner().fit(traces, ALPHA, 0, Silent()),
        f"scikit-learn, one forest on {len(states):,} states": lambda: forest.fit(states, gain),
    }
    print("| fit | s by the clock | s of processor |")
    print("| --- | --- | --- |")
    for name, way in ways.items():
        start = time.perf_counter(), time.process_time()
        way()
        clock, busy = time.perf_counter() - start[0], time.process_time() - start[1]
        over = "" if busy <= TARGET_S else f" (more than {TARGET_S:.0f})"
        print(f"| {name} | {clock:.1f} | {busy:.1f}{over} |", flush=True)


if __name__ == "__main__":
    main()
