"""The generator against its own description: every probability, by exact binomial tests.

Seeds are fixed; a test fails by chance with probability 1e-4, and then would always fail.
"""

from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import binomtest, chisquare, pearsonr

from farthing.errors import InputError
from farthing.traces.arrays import BoolArray, IntArray, TraceArrays
from farthing_lab.generator.config import (
    CallPrice,
    GeneratorConfig,
    Level,
    Uncertainty,
    degrade_guide,
    shift_mix,
)
from farthing_lab.generator.generate import first_appearance, generate
from farthing_lab.generator.presets import PRESETS

N = 40_000
BASE = CallPrice(60, 30, input_nano=100, output_nano=300, growth=7, spread=20)
GUIDE = CallPrice(80, 1, input_nano=2_500, output_nano=10_000, growth=20, spread=11)
LEVEL = Level(1.0, base_first=0.35, base_later=0.25, guide=0.7, yes_if_right=0.85, yes_if_wrong=0.2)
ONE = GeneratorConfig(
    (LEVEL,), BASE, GUIDE, rounds=3, wrong_answers=4, base_persistence=0.4,
    guide_persistence=0.6, uncertainty=Uncertainty(bins=3, noise=0.5),
)  # fmt: skip


def draw(config: GeneratorConfig, seed: int = 0, n: int = N) -> TraceArrays:
    return generate(config, n, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def traces() -> TraceArrays:
    return draw(ONE)


def assert_probability(happened: BoolArray, p: float) -> None:
    """These events have probability p."""
    assert happened.size > 500
    if p in {0.0, 1.0}:
        assert happened.mean() == p
    else:
        assert binomtest(int(happened.sum()), happened.size, p).pvalue > 1e-4


def test_the_base_is_right_as_often_as_said_and_repeats_itself(traces: TraceArrays) -> None:
    right, answer = traces.correct[:, :, 0], traces.answer[:, :, 0]
    stays, later = ONE.base_persistence, LEVEL.base_later
    assert_probability(right[:, 0], LEVEL.base_first)
    for t in (1, 2):
        before = right[:, t - 1]
        assert_probability(right[before, t], stays + (1 - stays) * later)
        assert_probability(right[~before, t], (1 - stays) * later)
        same = answer[:, t] == answer[:, t - 1]
        assert_probability(same[~before], stays + (1 - stays) * (1 - later) / ONE.wrong_answers)


def test_the_verdict_is_as_good_as_said_and_means_the_same_answer(traces: TraceArrays) -> None:
    yes = traces.signals["verdict"][:, :, 1]
    np.testing.assert_array_equal(yes == 1, traces.answer[:, :, 0] == traces.answer[:, :, 1])
    for t in range(3):
        base_right = traces.correct[:, t, 0]
        assert_probability(yes[base_right, t] == 1, LEVEL.yes_if_right)
        assert_probability(yes[~base_right, t] == 1, LEVEL.yes_if_wrong)


def test_a_guide_that_says_no_is_right_as_often_as_said(traces: TraceArrays) -> None:
    no = traces.signals["verdict"][:, :, 1] == 0
    base_right, right = traces.correct[:, :, 0], traces.correct[:, :, 1]
    assert_probability(right[:, 0][no[:, 0] & ~base_right[:, 0]], LEVEL.guide)
    assert_probability(right[no & base_right], 0.0)
    base, guide = traces.answer[:, :, 0], traces.answer[:, :, 1]
    keeps = ONE.guide_persistence
    for t in (1, 2):
        free = no[:, t] & ~base_right[:, t] & (guide[:, t - 1] == base[:, t])
        bound = no[:, t] & ~base_right[:, t] & (guide[:, t - 1] != base[:, t])
        was_right = right[:, t - 1]
        assert_probability(right[free, t], LEVEL.guide)
        assert_probability(right[bound & was_right, t], keeps + (1 - keeps) * LEVEL.guide)
        assert_probability(right[bound & ~was_right, t], (1 - keeps) * LEVEL.guide)
        fresh_again = (1 - LEVEL.guide) / (ONE.wrong_answers - 1)
        assert_probability(
            guide[bound & ~was_right, t] == guide[bound & ~was_right, t - 1],
            keeps + (1 - keeps) * fresh_again,
        )


def test_wrong_answers_are_equally_likely() -> None:
    """Two wrong answers that were given afresh are the same one time in W."""
    free = replace(ONE, base_persistence=0.0, wrong_answers=5)
    found = draw(free, 3)
    wrong = ~found.correct[:, 0, 0] & ~found.correct[:, 1, 0]
    assert_probability((found.answer[:, 0, 0] == found.answer[:, 1, 0])[wrong], 1 / 5)


def test_uncertainty_falls_into_the_bins_as_often_as_said(traces: TraceArrays) -> None:
    recorded = traces.signals["uncertainty"]
    assert np.isnan(recorded[:, :, 0]).all()
    values = recorded[:, :, 1]
    assert 0 < values.min() < values.max() < log(2)
    for right, shares in ((True, [4 / 7, 2 / 7, 1 / 7]), (False, [1 / 7, 2 / 7, 4 / 7])):
        chosen = values[traces.correct[:, :, 1] == right]
        counts, _ = np.histogram(chosen, bins=[0, log(2) / 3, 2 * log(2) / 3, log(2)])
        assert chisquare(counts, len(chosen) * np.array(shares)).pvalue > 1e-4


def test_noise_of_one_says_nothing() -> None:
    blind = draw(replace(ONE, uncertainty=Uncertainty(bins=2, noise=1.0)), 4)
    values = blind.signals["uncertainty"][:, :, 1]
    for right in (True, False):
        assert_probability(values[blind.correct[:, :, 1] == right] < log(2) / 2, 0.5)


def test_a_call_costs_its_tokens_and_tells_nothing(traces: TraceArrays) -> None:
    read, written = traces.signals["input_tokens"], traces.signals["output_tokens"]
    for role, call in enumerate((BASE, GUIDE)):
        tokens = read[:, :, role].astype(np.int64)
        paid = tokens * call.input_nano + call.output_tokens * call.output_nano
        np.testing.assert_array_equal(traces.cost_nano[:, :, role], paid)
        assert (written[:, :, role] == call.output_tokens).all()
        for t in range(3):
            mean = call.input_tokens + t * call.growth
            counts = np.bincount(tokens[:, t] - mean + call.spread)
            assert len(counts) == 2 * call.spread + 1
            assert chisquare(counts).pvalue > 1e-4
            told = pearsonr(tokens[:, t], traces.correct[:, t, role].astype(float))
            assert told.pvalue > 1e-4
    means = traces.round_cost_nano.mean(axis=0)
    np.testing.assert_allclose(means, ONE.round_cost_nano, rtol=2e-3)


def always(share: float, *, right: bool) -> Level:
    skill = float(right)
    return Level(share, skill, skill, skill, yes_if_right=1.0, yes_if_wrong=0.0)


def test_levels_have_their_shares_and_last_for_the_whole_question() -> None:
    mixed = replace(ONE, levels=(always(3.0, right=True), always(1.0, right=False)))
    for config, share in ((mixed, 0.75), (shift_mix(mixed, (1.0, 4.0)), 0.2)):
        right = draw(config, 5).correct.reshape(N, -1)
        assert_probability(right[:, 0], share)
        np.testing.assert_array_equal(right.all(axis=1), right.any(axis=1))


def test_shifting_the_mix_changes_nothing_else() -> None:
    config = PRESETS["mmlu-llama2-7b"].config
    shifted = shift_mix(config, (1.0, 2.0, 5.0))
    np.testing.assert_allclose(shifted.mix, [1 / 8, 2 / 8, 5 / 8])
    back = tuple(level.weight for level in config.levels)
    assert shift_mix(shifted, back) == config
    with pytest.raises(InputError, match="2 weights for 3 levels"):
        shift_mix(config, (0.5, 0.5))


@pytest.mark.parametrize("factor", [1.0, 0.75, 0.5, 0.0])
def test_a_degraded_guide_is_as_bad_as_said(factor: float) -> None:
    found = draw(degrade_guide(ONE, factor), 6)
    base_right, right = found.correct[:, 0, 0], found.correct[:, 0, 1]
    yes = found.signals["verdict"][:, 0, 1] == 1
    middle, half = (0.85 + 0.2) / 2, factor * (0.85 - 0.2) / 2
    assert_probability(base_right, LEVEL.base_first)
    assert_probability(yes[base_right], middle + half)
    assert_probability(yes[~base_right], middle - half)
    assert_probability(right[~base_right & ~yes], factor * LEVEL.guide)


def test_the_same_seed_gives_the_same_questions() -> None:
    first, second, other = draw(ONE, 1, 50), draw(ONE, 1, 50), draw(ONE, 2, 50)
    np.testing.assert_array_equal(first.answer, second.answer)
    np.testing.assert_array_equal(first.cost_nano, second.cost_nano)
    for name, values in first.signals.items():
        np.testing.assert_array_equal(values, second.signals[name])
    assert (first.answer != other.answer).any()


def test_its_models_and_ids_say_that_it_is_a_generator(traces: TraceArrays) -> None:
    assert all(model.startswith("generator-") for model in traces.models)
    assert all(name.startswith("generated-") for name in traces.ids[:100])
    assert len(set(traces.ids.tolist())) == N


@settings(deadline=None, max_examples=60)
@given(arrays.arrays(np.int64, (3, 4, 2), elements=st.integers(-3, 3)))
def test_answers_are_named_in_the_order_of_their_appearance(codes: IntArray) -> None:
    def by_hand(question: IntArray) -> IntArray:
        names: dict[int, int] = {}
        named = [names.setdefault(code, len(names)) for code in question.ravel().tolist()]
        return np.array(named).reshape(question.shape)

    np.testing.assert_array_equal(first_appearance(codes), [by_hand(q) for q in codes])


def test_what_it_refuses() -> None:
    with pytest.raises(InputError, match=r"a level's guide is 1\.2; it must be in"):
        replace(LEVEL, guide=1.2)
    with pytest.raises(InputError, match="weight is -1; it must be >= 0"):
        replace(LEVEL, weight=-1)
    with pytest.raises(InputError, match="0 uncertainty bins"):
        Uncertainty(bins=0)
    with pytest.raises(InputError, match="noise is 0; it must be in"):
        Uncertainty(noise=0)
    with pytest.raises(InputError, match="spread exceeds its input_tokens"):
        replace(GUIDE, spread=81)
    with pytest.raises(InputError, match="output_tokens is -1"):
        replace(GUIDE, output_tokens=-1)
    with pytest.raises(InputError, match="17 rounds; there may be 1 to 16"):
        replace(ONE, rounds=17)
    with pytest.raises(InputError, match="1 wrong answers; there must be at least 2"):
        replace(ONE, wrong_answers=1)
    with pytest.raises(InputError, match="no level has any weight"):
        replace(ONE, levels=(replace(LEVEL, weight=0.0),))
    with pytest.raises(InputError, match="base_persistence is 2; it must be in"):
        replace(ONE, base_persistence=2)
    with pytest.raises(InputError, match="a round costs nothing"):
        replace(ONE, base_call=CallPrice(0, 0, 0, 0), guide_call=CallPrice(0, 0, 0, 0))
    with pytest.raises(InputError, match=r"degraded by 1\.5; it must be in \[0, 1\]"):
        degrade_guide(ONE, 1.5)
