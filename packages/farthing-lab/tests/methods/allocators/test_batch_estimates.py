"""Estimates of who is right on a question, from its words and its group."""

from dataclasses import replace

import numpy as np
import pytest
from made_up_pool import COST_NANO, ROLES, pool, ungraded

from farthing.errors import InputError
from farthing.traces.arrays import SPLITS, TraceArrays
from farthing_lab.features.question import QuestionFeatures
from farthing_lab.methods.allocators.base import fit_estimates

SUMS, CAPITALS = "what is the sum of 17 and {}", "which city is the capital of land {}"


def planted(n: int, seed: int = 0) -> TraceArrays:
    """Return questions of two kinds: the small model knows capitals, and only the large sums."""
    rng = np.random.default_rng(seed)
    sums = rng.random(n) < 0.5
    texts = [(SUMS if one else CAPITALS).format(i) for i, one in enumerate(sums.tolist())]
    right = np.stack([~sums, rng.random(n) < 0.5, np.ones(n, dtype=bool)], axis=1)
    return replace(
        pool(n, seed),
        question=np.array(texts, dtype=object),
        correct=right[:, None],
        group=sums.astype(np.int32),
        group_names=("capitals", "sums"),
    )


def test_the_words_tell_who_knows_what() -> None:
    estimates = fit_estimates(planted(400))
    asked = QuestionFeatures((SUMS.format(5), CAPITALS.format(5)), ("", ""))
    sums, capitals = estimates.chance(asked)
    assert sums[0] < 0.25
    assert sums[2] > 0.8
    assert capitals[0] > 0.8
    assert sums[1] == pytest.approx(0.5, abs=0.15)
    np.testing.assert_array_equal(estimates.cost_nano(asked)[0], COST_NANO)


def test_a_group_tells_it_where_words_do_not() -> None:
    traces = replace(planted(400), question=np.full(400, "?", dtype=object))
    chance = fit_estimates(traces).chance(
        QuestionFeatures(("?", "?", "?"), ("capitals", "sums", "unheard"))
    )
    assert chance[0, 0] > 0.8
    assert chance[1, 0] < 0.2
    assert 0.2 < chance[2, 0] < 0.8


def test_chances_add_up_to_what_is_right_in_training() -> None:
    train = planted(300, seed=1)
    chance = fit_estimates(train).chance(QuestionFeatures.of(train))
    np.testing.assert_allclose(chance.mean(axis=0), train.correct[:, 0].mean(axis=0), atol=0.01)


def test_costs_follow_the_length_within_what_was_seen() -> None:
    train = planted(50)
    letters = np.array([10 + i for i in range(50)])
    texts = np.array(["x" * n for n in letters], dtype=object)
    cost = np.stack([1_000 + 10 * letters] * 3, axis=1)[:, None]
    estimates = fit_estimates(replace(train, question=texts, cost_nano=cost))
    got = estimates.cost_nano(QuestionFeatures(("x" * 30, "x" * 1_000), ("", "")))
    np.testing.assert_allclose(got[0], 1_300, atol=1)
    np.testing.assert_array_equal(got[1], cost.max())


def test_questions_without_text_or_group_have_the_models_shares() -> None:
    train = pool(200)
    estimates = fit_estimates(train)
    chance = estimates.chance(QuestionFeatures(("", ""), ("", "")))
    np.testing.assert_allclose(chance[0], train.correct[:, 0].mean(axis=0), atol=0.01)


def test_what_teaches_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="is graded"):
        fit_estimates(ungraded(planted(30)))
    rounds = replace(planted(30), roles=("base", "guide", "x"))
    assert fit_estimates(rounds).models == ("base", "guide", "x")
    assert len(SPLITS) == len(ROLES) == 3
    protocol = pool(30).take(np.arange(30))
    with pytest.raises(InputError, match="no pool of models"):
        fit_estimates(replace(protocol, roles=("base", "controller", "large")))
