from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import CalibrationError
from farthing.promises.certificate import FloatArray
from farthing_lab.promises.online import (
    OnlineThreshold,
    long_run_bound,
    run_online,
    step_size,
    update,
)

streams = st.lists(st.floats(0, 1) | st.just(np.inf), min_size=1, max_size=400).map(np.array)
alphas = st.integers(1, 19).map(lambda i: i / 20)
starts = st.builds(
    OnlineThreshold,
    kappa=st.floats(0, 1),
    step=st.floats(0.01, 1),
    decay=st.floats(0, 0.4),
)


def batch_errors(scores: FloatArray, kappas: FloatArray, batch: int) -> FloatArray:
    """Mean miss of each batch under the threshold that met it."""
    pieces = [scores[i : i + batch] for i in range(0, len(scores), batch)]
    misses = [
        np.mean([min(s, 1.0) < kappa for s in piece])
        for piece, kappa in zip(pieces, kappas[:-1], strict=True)
    ]
    return np.array(misses)


@pytest.mark.slow
@given(streams, alphas, st.integers(1, 12), starts)
@settings(deadline=None, max_examples=300)
def test_the_long_run_bound_on_any_stream(
    scores: FloatArray, alpha: float, batch: int, start: OnlineThreshold
) -> None:
    kappas = run_online(scores, alpha, batch, start)
    errors = batch_errors(scores, kappas, batch)
    for t in range(1, len(errors) + 1):
        bound = (1 + start.step) * t ** (start.decay - 0.5) / start.step
        assert abs(errors[:t].mean() - alpha) <= bound + 1e-9
    assert kappas.min() >= -start.step - 1e-9
    assert kappas.max() <= 1 + start.step + 1e-9


ADVERSARIES: dict[str, Callable[[float, int], float]] = {
    "always missed": lambda _kappa, _t: 0.0,
    "never missed": lambda _kappa, _t: np.inf,
    "just missed": lambda kappa, _t: min(1.0, max(0.0, kappa - 1e-9)),
    "long phases": lambda _kappa, t: 0.0 if (t // 5_000) % 2 else 1.0,
    "against the tide": lambda kappa, _t: 0.0 if kappa > 0.5 else 1.0,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_long_run_bound_against_an_adversary_who_sees_kappa(name: str, alpha: float) -> None:
    """At 20,000 updates the bound is 0.06 and bites; so it does on the way."""
    state = OnlineThreshold(step=0.5, decay=0.1)
    errors = 0
    for t in range(1, 20_001):
        score = ADVERSARIES[name](state.kappa, t)
        errors += min(score, 1.0) < state.kappa
        state = update(state, np.array([score]), alpha)
        assert abs(errors / t - alpha) <= long_run_bound(state) + 1e-9
    assert long_run_bound(state) < 0.06


def test_a_miss_lowers_kappa_and_a_hit_raises_it() -> None:
    state = OnlineThreshold()
    missed, hit = np.array([0.1, 0.1]), np.array([0.9, 0.2])
    assert update(state, missed, 0.1).kappa == pytest.approx(0.2 - 0.05 * 0.9)
    assert update(state, hit, 0.1).kappa == pytest.approx(0.2 + 0.05 * 0.1)


def test_an_unsolvable_question_is_missed_above_the_cap() -> None:
    high = OnlineThreshold(kappa=1.01, updates=5)
    unsolvable = np.array([np.inf])
    assert update(high, unsolvable, 0.1).kappa < high.kappa
    kappas = run_online(np.full(50_000, np.inf), 0.1, batch=10)
    assert kappas.max() < 1.05


def test_error_settles_at_alpha_and_kappa_at_the_quantile() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(40_000)
    kappas = run_online(scores, "0.1", batch=10, start=OnlineThreshold(step=0.5))
    assert batch_errors(scores, kappas, 10)[1_000:].mean() == pytest.approx(0.1, abs=0.005)
    assert kappas[-1] == pytest.approx(0.1, abs=0.02)


def test_steps_decay_as_written_and_state_is_never_changed() -> None:
    state = OnlineThreshold()
    assert [step_size(state, t) for t in (1, 2, 100)] == pytest.approx(
        [0.05, 0.05 * 2**-0.6, 0.05 * 100**-0.6]
    )
    update(state, np.array([0.1]), 0.1)
    assert state == OnlineThreshold()
    assert long_run_bound(state) == np.inf


def test_points_that_break_the_bound_are_refused() -> None:
    for step, decay, bound in [(0.0, 0.1, 1.0), (0.1, 0.5, 1.0), (0.1, -0.6, 1.0), (0.1, 0.1, 0.0)]:
        with pytest.raises(CalibrationError, match="step and bound must be > 0 and decay"):
            OnlineThreshold(0.0, step, decay, bound)
    for kappa in (-0.1, 1.1):
        with pytest.raises(CalibrationError, match="kappa must start between 0 and 1"):
            OnlineThreshold(kappa=kappa)
    with pytest.raises(CalibrationError, match="batch is 0"):
        run_online(np.array([0.5]), 0.1, batch=0)
    with pytest.raises(CalibrationError, match="NaN"):
        run_online(np.array([np.nan]), 0.1)
