"""The interval that holds at every moment: against a slow reference, and by simulation."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.certificate import FloatArray
from farthing.promises.statistics.confidence_sequence import MeanState, estimate, interval, observe

STEPS = 400
shares = st.floats(0, 1)
observed = st.lists(st.tuples(shares, st.floats(0.05, 1)), max_size=40)


def by_hand(values: FloatArray, weights: FloatArray, delta: float) -> tuple[float, float]:
    """The same gamblers, one candidate and one observation at a time, from the whole history."""
    grid = [(1 - math.cos(math.pi * j / STEPS)) / 2 for j in range(STEPS + 1)]

    def wins(m: float, side: int) -> bool:
        fortune = 1.0
        for i, (x, w) in enumerate(zip(values, weights, strict=True)):
            made_up = [(1.0, y) for y in (0.0, 0.0, 1.0, 1.0)]
            past = [*made_up, *zip(weights[:i], values[:i], strict=True)]
            mean = sum(v * y for v, y in past) / sum(v for v, _ in past)
            kelly = sum(v * (y - m) for v, y in past) / sum((v * (y - m)) ** 2 for v, y in past)
            spread = sum((v * (y - mean)) ** 2 for v, y in past)
            least = 0.3 * math.sqrt(2 * math.log(2 / delta) / (spread * math.log(i + 2)))
            most = 0.75 / (m if side == 1 else 1 - m)
            fortune *= 1 + side * w * min(max(side * kelly, least), most) * (x - m)
            if fortune >= 2 / delta:
                return True
        return False

    low = next(j for j in range(STEPS + 1) if not wins(grid[j + 1], 1))
    high = next(j for j in range(STEPS, -1, -1) if not wins(grid[j - 1], -1))
    return grid[low], grid[high]


@pytest.mark.parametrize("seed", range(6))
def test_it_is_a_gambler_for_every_candidate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.beta(9, 1, 12) if seed % 2 else (rng.random(12) < 0.9).astype(float)
    w = rng.uniform(0.3, 1, 12) if seed > 2 else np.ones(12)
    state = observe(MeanState.begin(0.2), x, w)
    assert interval(state) == pytest.approx(by_hand(x, w, 0.2), abs=1e-12)
    assert interval(state) != (0.0, 1.0)


@given(observed, st.integers(1, 7))
@settings(deadline=None, max_examples=25)
def test_batches_one_by_one_and_a_stop_in_between_come_to_the_same(
    rows: list[tuple[float, float]], size: int
) -> None:
    x, w = np.array(rows).reshape(-1, 2).T
    whole = observe(MeanState.begin(0.1), x, w)
    parts = MeanState.begin(0.1)
    for start in range(0, len(x), size):
        stored = msgspec.json.encode(parts)
        parts = msgspec.json.decode(stored, type=MeanState)
        parts = observe(parts, x[start : start + size], w[start : start + size])
    assert interval(parts) == interval(whole)
    assert np.allclose(parts.above, whole.above, atol=1e-9)
    assert np.allclose(parts.below, whole.below, atol=1e-9)
    assert (parts.n, parts.refuted) == (whole.n, whole.refuted)
    assert parts.sums == pytest.approx(whole.sums)


@pytest.mark.parametrize("size", [1, 50, 64, 100])
def test_batches_come_to_the_same_after_ends_have_moved(size: int) -> None:
    kept = (np.random.default_rng(0).random(400) < 0.8).astype(float)
    whole = parts = MeanState.begin(0.1)
    whole = observe(whole, kept)
    for start in range(0, len(kept), size):
        parts = observe(parts, kept[start : start + size])
    assert interval(parts) == interval(whole)
    assert interval(whole)[1] - interval(whole)[0] < 0.15
    assert np.allclose(parts.above, whole.above, atol=1e-9)


@given(observed)
@settings(deadline=None, max_examples=25)
def test_it_never_grows_and_is_a_few_kilobytes(rows: list[tuple[float, float]]) -> None:
    state, (low, high) = MeanState.begin(0.1), (0.0, 1.0)
    for x, w in rows:
        state = observe(state, np.array([x]), np.array([w]))
        assert len(msgspec.json.encode(state)) < 20_000
        if state.refuted:
            assert interval(state) == (0, 1)
            break
        now = interval(state)
        assert low <= now[0] < now[1] <= high
        low, high = now


CHANCES = {"coin": (0.5, 0.5), "often": (0.9, 0.1), "nearly always": (0.985, 0.015)}


@pytest.mark.slow
@pytest.mark.parametrize("draw", ["coin", "often", "nearly always", "beta"])
def test_it_ever_misses_as_rarely_as_promised(draw: str) -> None:
    """Since it never grows, whether it ever missed is seen at the end."""
    rng, runs, delta = np.random.default_rng(1), 400, 0.2
    missed, mean = 0, 0.9 if draw == "beta" else CHANCES[draw][0]
    for _ in range(runs):
        x = rng.beta(4.5, 0.5, 600) if draw == "beta" else (rng.random(600) < mean).astype(float)
        state = observe(MeanState.begin(delta), x)
        low, high = interval(state)
        missed += state.refuted or not low <= mean <= high
    assert stats.binomtest(missed, runs, delta, alternative="greater").pvalue > 1e-4
    assert missed > 0.02 * runs  # and not because it is as wide as that


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [True, False])
def test_unequal_draws_need_weights(weighted: bool) -> None:
    """Hard requests are audited five times as often; they are a quarter of all and fail more."""
    rng, runs, delta, floor = np.random.default_rng(2), 200, 0.2, 0.1
    mean, missed = 0.75 * 0.97 + 0.25 * 0.7, 0
    for _ in range(runs):
        hard = rng.random(4_000) < 0.25
        kept = (rng.random(4_000) < np.where(hard, 0.7, 0.97)).astype(float)
        probability = np.where(hard, 5 * floor, floor)
        drawn = rng.random(4_000) < probability
        weights = (floor / probability)[drawn] if weighted else None
        state = observe(MeanState.begin(delta), kept[drawn], weights)
        low, high = interval(state)
        missed += state.refuted or not low <= mean <= high
    if weighted:
        assert stats.binomtest(missed, runs, delta, alternative="greater").pvalue > 1e-4
    else:
        assert missed > 0.5 * runs


def test_the_estimate_weighs_as_the_draws_ask() -> None:
    state = observe(MeanState.begin(0.1), np.array([1.0, 0.0]), np.array([1.0, 0.25]))
    assert estimate(MeanState.begin(0.1)) is None
    assert estimate(state) == pytest.approx(0.8)


def width(share: float, n: int) -> float:
    rng, widths = np.random.default_rng(3), []
    for _ in range(20):
        kept = (rng.random(n) < share).astype(float)
        low, high = interval(observe(MeanState.begin(0.05), kept))
        widths.append(high - low)
    return float(np.mean(widths))


@pytest.mark.slow
def test_it_shrinks_as_the_square_root_and_with_the_spread() -> None:
    """Looking always costs less than twice the width of a normal interval looked at once."""
    for n in (300, 1_000, 3_000):
        hoeffding = 2 * math.sqrt(math.log(2 / 0.05) / (2 * n))
        once = 2 * 1.96 * math.sqrt(0.09 / n)
        assert once < width(0.9, n) < min(2 * once, hoeffding)
    assert width(0.5, 4_000) < 0.6 * width(0.5, 1_000)
    assert width(0.97, 1_000) < 0.5 * width(0.5, 1_000)


def test_ends_are_never_further_than_what_was_seen() -> None:
    ones = observe(MeanState.begin(0.05), np.ones(5_000))
    assert interval(ones)[1] == 1
    assert interval(ones)[0] > 0.995
    assert interval(observe(MeanState.begin(0.05), np.zeros(5_000)))[0] == 0


def test_two_means_are_no_mean() -> None:
    state = observe(MeanState.begin(0.05), np.repeat([1.0, 0.0], 300))
    assert state.refuted
    assert interval(state) == (0, 1)
    more = observe(state, np.array([1.0]))
    assert (more.n, more.refuted, interval(more)) == (601, True, (0, 1))
    assert msgspec.json.decode(msgspec.json.encode(more), type=MeanState) == more


def test_nothing_more_is_nothing_new() -> None:
    state = observe(MeanState.begin(0.05), np.array([1.0, 0.0, 1.0]))
    assert observe(state, np.array([])) == state


def test_what_is_no_observation_is_refused() -> None:
    state = MeanState.begin(0.05)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(CalibrationError, match="delta must be between 0 and 1"):
            MeanState.begin(delta)
    for value in (-0.1, 1.1, math.nan):
        with pytest.raises(CalibrationError, match="a number between 0 and 1"):
            observe(state, np.array([value]))
    for weight in (0.0, 1.1, math.nan):
        with pytest.raises(CalibrationError, match="above 0 and at most 1"):
            observe(state, np.array([1.0]), np.array([weight]))
    with pytest.raises(CalibrationError, match="one weight each"):
        observe(state, np.array([1.0, 0.0]), np.array([1.0]))
