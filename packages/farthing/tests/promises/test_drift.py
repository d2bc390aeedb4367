"""Alarms: fortunes against brute force, p-values against crepes, false alarms by simulation."""

import math

import msgspec
import numpy as np
import pytest
from crepes.martingales import semi_online_p_values
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.certificate import FloatArray
from farthing.promises.statistics.drift import (
    ExchangeabilityTest,
    Fortune,
    PromiseTest,
    densities,
    rounded,
)

DELTA = 0.1
shares = st.floats(0, 1)


def rare_enough(alarms: int, runs: int) -> bool:
    return bool(stats.binomtest(alarms, runs, DELTA, alternative="greater").pvalue > 1e-4)


def share(start: int, waiting: float) -> float:
    """What begins to bet with observation `start`, counted from 1."""
    return (1 - waiting) * (start == 1) + waiting * (500 / (499 + start) - 500 / (500 + start))


def test_the_fortune_is_that_of_a_gambler_for_every_start_and_size() -> None:
    rng, waiting = np.random.default_rng(0), 0.7
    factors = rng.uniform(0.3, 2.2, (60, 3))
    _, path = Fortune.begin(3, waiting).after(factors)
    for n in range(1, 61):
        whole = waiting * 500 / (500 + n)
        for start in range(1, n + 1):
            whole += share(start, waiting) * factors[start - 1 : n].prod(axis=0).mean()
        assert math.exp(path[n - 1]) == pytest.approx(whole, rel=1e-9)


def test_no_more_is_staked_than_there_is() -> None:
    for waiting in (0.5, 0.9):
        staked = math.fsum(share(start, waiting) for start in range(1, 20_001))
        assert staked + waiting * 500 / 20_500 == pytest.approx(1, rel=1e-9)
    fortune, path = Fortune.begin(4, 0.9).after(np.ones((1_000, 4)))
    assert np.allclose(path, 0, atol=1e-9)
    assert fortune.evidence() == pytest.approx(1)


@pytest.mark.parametrize("signal", ["normal", "binary", "few"])
def test_p_values_are_those_of_crepes(signal: str) -> None:
    """Its uniform numbers come of numpy's old generator, which can be asked for the same ones."""
    rng = np.random.default_rng(1)
    x = {
        "normal": rng.normal(size=700),
        "binary": (rng.random(700) < 0.8).astype(float),
        "few": rng.integers(1, 4, 700) / 100,
    }[signal]
    x = rounded(x).astype(float)
    expected = semi_online_p_values(x, seed=7)
    uniforms = np.random.RandomState(7).rand(700)
    _, path = ExchangeabilityTest.begin().followed(unrounded(x), uniforms)
    _, of_crepes = Fortune.begin(30, 0.9).after(densities(expected))
    assert np.allclose(path, of_crepes, atol=1e-9)


def unrounded(numbers: FloatArray) -> FloatArray:
    """Return values that are numbered so."""
    step = np.abs(numbers) - 1
    size = 2.0**-30 * 2 ** (step // 128) * (1 + step % 128 / 128)
    values = np.where(numbers == 0, 0, np.sign(numbers) * size)
    assert (rounded(values) == numbers).all()
    return values


@given(st.lists(st.floats(-1e15, 1e15), min_size=2, max_size=30))
@settings(deadline=None)
def test_rounding_keeps_the_order_and_almost_the_value(values: list[float]) -> None:
    x = np.sort(np.array(values))
    numbers = rounded(x)
    assert (np.diff(numbers) >= 0).all()
    assert np.abs(numbers).max() <= 9_000
    inside = (np.abs(x) > 1e-9) & (np.abs(x) < 1e12)
    assert np.allclose(unrounded(numbers.astype(float))[inside], x[inside], rtol=0.004)
    assert (rounded(-x) == -numbers).all()


observed = st.lists(st.tuples(shares, st.floats(0.05, 1)), max_size=40)


@given(observed, st.integers(1, 7))
@settings(deadline=None, max_examples=40)
def test_batches_one_by_one_and_a_stop_in_between_come_to_the_same(
    rows: list[tuple[float, float]], size: int
) -> None:
    x, w = np.array(rows).reshape(-1, 2).T
    promise, signal = PromiseTest.begin(0.2), ExchangeabilityTest.begin()
    for start in range(0, len(x), size):
        promise = msgspec.json.decode(msgspec.json.encode(promise), type=PromiseTest)
        signal = msgspec.json.decode(msgspec.json.encode(signal), type=ExchangeabilityTest)
        now = slice(start, start + size)
        promise, signal = promise.observe(x[now], w[now]), signal.observe(x[now], w[now])
    whole, of_signal = PromiseTest.begin(0.2).observe(x, w), ExchangeabilityTest.begin()
    of_signal = of_signal.observe(x, w)
    assert promise.evidence() == pytest.approx(whole.evidence(), rel=1e-9)
    assert np.allclose(promise.fortune.logs, whole.fortune.logs, atol=1e-9)
    assert signal.evidence() == pytest.approx(of_signal.evidence(), rel=1e-9)
    assert (signal.seen, signal.counts) == (of_signal.seen, of_signal.counts)
    assert np.allclose(signal.fortune.logs, of_signal.fortune.logs, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "alpha",
    [pytest.param(0.02, marks=pytest.mark.slow), 0.1, pytest.param(0.4, marks=pytest.mark.slow)],
)
def test_a_kept_promise_rarely_alarms(alpha: float) -> None:
    """Just kept: as many failures as the promise allows."""
    rng, runs = np.random.default_rng(2), 500
    alarms = sum(
        PromiseTest.begin(alpha).observe((rng.random(3_000) < alpha).astype(float)).alarms(DELTA)
        for _ in range(runs)
    )
    assert rare_enough(alarms, runs)
    assert alarms > 0.01 * runs  # and not because it never does


@pytest.mark.parametrize("weighted", [True, False])
def test_a_kept_promise_that_is_audited_where_it_is_hard_needs_weights(weighted: bool) -> None:
    rng, runs, floor = np.random.default_rng(3), 150, 0.1
    alpha, alarms = 0.75 * 0.03 + 0.25 * 0.3, 0
    for _ in range(runs):
        hard = rng.random(6_000) < 0.25
        failed = (rng.random(6_000) < np.where(hard, 0.3, 0.03)).astype(float)
        probability = np.where(hard, 5 * floor, floor)
        drawn = rng.random(6_000) < probability
        weights = (floor / probability)[drawn] if weighted else None
        alarms += PromiseTest.begin(alpha).observe(failed[drawn], weights).alarms(DELTA)
    assert rare_enough(alarms, runs) if weighted else alarms > 0.9 * runs


@pytest.mark.slow
@pytest.mark.parametrize(
    "quiet",
    [
        "normal",
        pytest.param("heavy", marks=pytest.mark.slow),
        pytest.param("binary", marks=pytest.mark.slow),
        "few",
        pytest.param("shuffled drift", marks=pytest.mark.slow),
    ],
)
def test_a_signal_without_order_rarely_alarms(quiet: str) -> None:
    rng, runs = np.random.default_rng(4), 200
    alarms = 0
    for _ in range(runs):
        x = {
            "normal": rng.normal(size=1_500),
            "heavy": rng.standard_cauchy(1_500),
            "binary": (rng.random(1_500) < 0.8).astype(float),
            "few": rng.choice([0.001, 0.002, 0.01], 1_500, p=[0.7, 0.2, 0.1]),
            "shuffled drift": rng.permutation(np.arange(1_500.0)),
        }[quiet]
        alarms += ExchangeabilityTest.begin().observe(x, rng.random(1_500)).alarms(DELTA)
    assert rare_enough(alarms, runs)
    assert alarms > 0.01 * runs


def delay(path: FloatArray, change: int) -> float:
    reached = path >= math.log(1 / DELTA)
    first = int(np.argmax(reached))
    return first - change + 1 if reached.any() and first >= change else math.inf


@pytest.mark.parametrize(("change", "within"), [(0, 150), (500, 200), (3_000, 250)])
def test_a_broken_promise_is_found_early_and_late(change: int, within: int) -> None:
    rng, delays = np.random.default_rng(5), []
    for _ in range(50):
        chance = np.repeat([0.1, 0.3], [change, 500])
        failed = (rng.random(len(chance)) < chance).astype(float)
        delays.append(delay(PromiseTest.begin(0.1).followed(failed)[1], change))
    assert np.quantile(delays, 0.8) < within


@pytest.mark.slow
@pytest.mark.parametrize("change", [500, 3_000])
@pytest.mark.parametrize(
    ("kind", "within"), [("up", 60), ("down", 60), ("wider", 250), ("agreement", 350)]
)
def test_a_signal_that_changes_is_found_early_and_late(kind: str, within: int, change: int) -> None:
    rng, delays, moved = np.random.default_rng(6), [], np.repeat([0.0, 1.0], [change, 1_000])
    for _ in range(30):
        x = rng.normal(size=len(moved))
        signal = {
            "up": x + moved,
            "down": x - moved,
            "wider": x * (1 + moved),
            "agreement": (rng.random(len(x)) < 0.8 - 0.2 * moved).astype(float),
        }[kind]
        path = ExchangeabilityTest.begin().followed(signal, rng.random(len(x)))[1]
        delays.append(delay(path, change))
    assert np.quantile(delays, 0.8) < within


def test_densities_are_densities() -> None:
    at = (np.arange(20_000) + 0.5) / 20_000
    found = densities(at)
    assert (found > 0).all()
    assert np.allclose(found.mean(axis=0), 1, atol=1e-6)


def test_evidence_stays_where_it_was_highest() -> None:
    failed = PromiseTest.begin(0.1).observe(np.ones(5))
    after = failed.observe(np.zeros(500))
    assert after.evidence() == failed.evidence() > 1 / DELTA
    assert after.fortune.last < failed.fortune.last
    assert after.alarms(DELTA)
    assert after.alarms(1.01 / after.evidence())
    assert not after.alarms(1 / after.evidence() / 1.01)


def test_evidence_without_end_is_a_number() -> None:
    test = PromiseTest.begin(0.01).observe(np.ones(3_000))
    again = msgspec.json.decode(msgspec.json.encode(test), type=PromiseTest)
    assert again == test
    assert math.isfinite(again.evidence())


def test_memory_does_not_grow_with_the_stream() -> None:
    rng = np.random.default_rng(7)
    test = ExchangeabilityTest.begin().observe(rng.lognormal(size=30_000), rng.random(30_000))
    stored = msgspec.json.encode(test)
    assert len(stored) < 20_000
    assert sum(test.counts) == test.fortune.n == 30_000
    assert msgspec.json.decode(stored, type=ExchangeabilityTest) == test


def test_nothing_more_is_nothing_new() -> None:
    promise = PromiseTest.begin(0.1).observe(np.array([1.0, 0.0]))
    signal = ExchangeabilityTest.begin().observe(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    assert promise.observe(np.array([])) == promise
    assert signal.observe(np.array([]), np.array([])) == signal


def test_what_is_no_observation_is_refused() -> None:
    promise, signal = PromiseTest.begin(0.1), ExchangeabilityTest.begin()
    for alpha in (0.0, 1.0, math.nan):
        with pytest.raises(CalibrationError, match="alpha must be between 0 and 1"):
            PromiseTest.begin(alpha)
    with pytest.raises(CalibrationError, match="a number between 0 and 1"):
        promise.observe(np.array([2.0]))
    with pytest.raises(CalibrationError, match="above 0 and at most 1"):
        promise.observe(np.array([1.0]), np.array([0.0]))
    for value in (math.inf, math.nan):
        with pytest.raises(CalibrationError, match="finite"):
            signal.observe(np.array([value]), np.array([0.5]))
    for uniform in (-0.1, 1.1, math.nan):
        with pytest.raises(CalibrationError, match="uniform number must be between"):
            signal.observe(np.array([1.0]), np.array([uniform]))
    with pytest.raises(CalibrationError, match="one uniform number each"):
        signal.observe(np.array([1.0]), np.array([0.5, 0.5]))
