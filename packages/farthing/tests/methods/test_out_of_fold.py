"""What is chosen by how well it does is judged on questions that it was not fitted to.

Where features are noise, whoever judges in-sample believes in them: it takes the forest, or the
row of models with the most to overfit. Both must lose here, and win where there is something to
see.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from farthing.methods.base import Silent
from farthing.methods.lookahead.learner import FOLDS, LookaheadConfig, _LookaheadTraining
from farthing.methods.routers import pool_gain
from farthing.methods.routers.pool_gain import (
    COMPARED,
    PRICES,
    PoolGainLearner,
    PoolGainPolicy,
    Row,
    Steps,
    stops,
    weights,
)
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays

TENTH = Fraction(1, 10)
DEEP = LookaheadConfig("rounds", iterations=1, trees=60, leaf=1)
"""Trees that can learn every training question by heart."""


def asked(right: BoolArray, signal: FloatArray) -> TraceArrays:
    """Return two calls of each question: one that is wrong, one that is right or not [n]."""
    n = len(right)
    answer = np.ones((n, 2, 1), np.int16)
    answer[right, 1] = 0
    numbers = {
        name: np.broadcast_to(column[:, None, None], answer.shape).astype(np.float32)
        for name, column in zip(("confidence", "question_words"), signal.T, strict=True)
    }
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=("a",),
        models=("",),
        answer=answer,
        correct=answer == 0,
        cost_nano=np.full(answer.shape, 1_000),
        signals=numbers,
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=np.full(n, 2, np.int16),
        independent=np.zeros(n, bool),
    )


def share(traces: TraceArrays, seed: int) -> float:
    training = _LookaheadTraining(DEEP, traces, TENTH, seed)
    training.improve()
    return training.policy.estimate.share


@pytest.mark.parametrize("seed", range(3))
def test_a_forest_that_learned_noise_by_heart_has_little_share(seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert share(asked(rng.random(150) < 0.5, rng.random((150, 2))), seed) < 0.5


@pytest.mark.parametrize("seed", range(3))
def test_a_forest_that_sees_what_no_line_can_has_nearly_all(seed: int) -> None:
    """Right where a number is neither large nor small."""
    signal = np.random.default_rng(seed).random((150, 2))
    assert share(asked(np.abs(signal[:, 0] - 0.5) < 0.25, signal), seed) > 0.9


# ---- Which row of models


def steps(seen: FloatArray, lost: FloatArray) -> Steps:
    """Return a row of a cheap model that loses or not [n], and the strong one."""
    n = len(lost)
    none = np.zeros((n, 2))
    cost = np.tile([0.1, 1.0], (n, 1))
    return Steps((seen,), np.stack([lost, none[:, 0]], axis=1), none, cost)


def plain_and_noisy(seed: int, n: int = 120) -> tuple[Steps, Steps]:
    """Return two rows alike in what they lose and cost; the second has 40 columns of noise."""
    rng = np.random.default_rng(seed)
    lost = (rng.random(n) < 0.3).astype(float)
    one = np.ones((n, 1))
    return steps(one, lost), steps(np.c_[one, rng.normal(size=(n, 40))], lost)


def value(judged: Steps, fitted_on: Steps) -> FloatArray:
    """Sum what is lost and paid at each price, question by question, [G]."""
    stop = stops(judged, weights(fitted_on))
    total = np.zeros(len(PRICES))
    for q, g in np.ndindex(stop.shape):
        last = stop[q, g]
        total[g] += judged.lost[q, last] - pool_gain.WIN * judged.won[q, last]
        total[g] += PRICES[g] * judged.cost[q, : last + 1].sum()
    return total


def test_a_row_is_judged_on_questions_that_its_weights_have_not_seen() -> None:
    fold = np.arange(120) % FOLDS
    for row in plain_and_noisy(0):
        parts = [value(row.take(fold == k), row.take(fold != k)) for k in range(FOLDS)]
        np.testing.assert_allclose(pool_gain._left_out(row, fold), sum(parts) / 120)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_row_with_the_most_to_overfit_is_not_taken(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In-sample it is the better one; on fresh questions it is the worse."""
    plain, noisy = plain_and_noisy(seed)
    by_heart = [value(row, row)[COMPARED].mean() for row in (plain, noisy)]
    assert by_heart[1] < by_heart[0]
    fresh = plain_and_noisy(seed + 100, 1_000)
    honest = [
        value(new, old)[COMPARED].mean() for new, old in zip(fresh, (plain, noisy), strict=True)
    ]
    assert honest[0] < honest[1]

    rows: dict[Row, Steps] = {(0, 2): noisy, (1, 2): plain}
    monkeypatch.setattr(pool_gain, "_rows", lambda *_: iter(rows))
    monkeypatch.setattr(pool_gain, "_steps", lambda _leading, _replies, row, *_: rows[row])
    policy = PoolGainLearner("c").fit(pool(120), TENTH, seed, Silent()).policy
    assert isinstance(policy, PoolGainPolicy)
    assert policy.models.tolist() == [1, 2]


def pool(n: int) -> TraceArrays:
    """Return one call of each of three models to each question."""
    traces = asked(np.ones(n, bool), np.random.default_rng(0).random((n, 2)))
    answer = np.random.default_rng(1).integers(0, 2, (n, 1, 3)).astype(np.int16)
    return replace(
        traces,
        roles=("a", "b", "c"),
        models=("", "", ""),
        answer=answer,
        correct=answer == 0,
        cost_nano=np.tile([100, 200, 1_000], (n, 1, 1)),
        signals={"confidence": np.random.default_rng(2).random(answer.shape).astype(np.float32)},
        recorded=np.ones(n, np.int16),
        independent=np.ones(n, bool),
    )
