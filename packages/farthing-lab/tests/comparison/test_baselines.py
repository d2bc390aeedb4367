"""Rows of a comparison beside single models: savings, domination, and where they come from."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from farthing.methods.base import Dataset
from farthing.recommendation.base import METRICS, Comparison, Row
from farthing.recommendation.savings import LEVEL
from farthing.traces.arrays import TraceArrays
from farthing_lab.comparison import rows
from farthing_lab.comparison.baselines import SingleModelBaselines
from farthing_lab.comparison.compare import compare
from farthing_lab.comparison.names import SAVED
from farthing_lab.comparison.plan import Plan
from farthing_lab.reports import summary, tables

ALPHA = Fraction(1, 10)


@pytest.fixture(scope="module")
def pool() -> TraceArrays:
    """`y` is best and dearest on the questions that train; `z` is best on the others, `w` poor."""
    rng = np.random.default_rng(7)
    n = 500
    split = np.where(np.arange(n) < 200, 0, np.where(np.arange(n) < 350, 1, 2)).astype(np.int8)
    skill = np.where(split[:, None] == 0, [0.3, 0.9, 0.6, 0.3], [0.3, 0.7, 0.95, 0.3])
    right = rng.random((n, 4)) < skill
    cost = np.array([1_000, 5_000, 9_000, 12_000]) + rng.integers(0, 500, (n, 4))
    cost[split == 0, 1] += 20_000
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=("x", "y", "z", "w"),
        models=("x", "y", "z", "w"),
        answer=np.where(right, 0, rng.integers(1, 4, right.shape))[:, None].astype(np.int16),
        correct=right[:, None],
        cost_nano=cost[:, None],
        signals={},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=split,
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


def row_of(found: Comparison, policy: str) -> Row:
    return next(row for row in found.rows if row.policy == policy)


def test_every_model_is_a_row_and_savings_are_against_whom_most_is_paid_for_in_training(
    pool: TraceArrays,
) -> None:
    found = compare(Dataset("p", pool), Plan((ALPHA,), ("always", "fixed-2"), splits=5))
    assert found.reference == "y"
    assert [row.label for row in found.rows][:4] == ["Always x", "Always y", "Always z", "Always w"]
    theirs = np.array(row_of(found, "always-y").per_split["cost_usd"])
    for row in found.rows:
        saved = 1 - np.array(row.per_split["cost_usd"]) / theirs
        np.testing.assert_allclose(row.per_split[SAVED], saved, rtol=0, atol=1e-12)
    assert row_of(found, "always-w").instead == "y"  # the cheapest of those that are better
    assert row_of(found, "always-x").instead == row_of(found, "always-z").instead == ""
    shown = tables.markdown(found)
    assert "| Saved, against always y |" in shown
    assert "Always w: always-y is cheaper, and right as often" in shown


def test_a_named_reference_is_taken_and_one_seed_after_another(pool: TraceArrays) -> None:
    plan = Plan((ALPHA,), ("random", "always-z"), splits=3, seeds=2)
    found = compare(Dataset("p", pool, reference="z"), plan)
    theirs = np.array(row_of(found, "always-z").per_split["cost_usd"])  # its seeds are alike
    ours = np.array(row_of(found, "random").per_split["cost_usd"])
    assert len(ours) == 6
    np.testing.assert_allclose(row_of(found, "random").per_split[SAVED], 1 - ours / theirs)


def test_calls_that_saw_others_leave_the_column_out(pool: TraceArrays) -> None:
    seen = replace(pool, independent=np.zeros(len(pool), dtype=bool))
    found = compare(Dataset("p", seen), Plan((ALPHA,), ("always-y", "fixed-1"), splits=2))
    assert found.reference == ""
    assert row_of(found, "always-y").note == "not recorded alone"
    assert SAVED not in row_of(found, "fixed-1").per_split
    assert "Saved" not in tables.markdown(found)


# By hand: a row that costs 10 and whose sets hold a right answer 0.8 of the time.

SPLITS = 40


def drawn(seed: int, cost: float, right: float) -> tuple[Row, SingleModelBaselines]:
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 1, (4, SPLITS))
    per_split = {name: [0.5] * SPLITS for name in METRICS}
    per_split["cost_usd"] = list(10 + 0.2 * noise[0])
    per_split["in_set"] = list(0.8 + 0.002 * noise[1])
    per_split["accuracy"] = list(0.7 + 0.002 * noise[1])
    row = Row("p", "P", ALPHA, "split", per_split, kappa=[0.5] * SPLITS)
    one = SingleModelBaselines(
        ("a", "b"),
        "b",
        np.stack([cost + 0.2 * noise[2], np.full(SPLITS, 30.0)], axis=1),
        np.stack([right + 0.002 * noise[3], np.ones(SPLITS)], axis=1),
        0.5,
    )
    return row, one


@pytest.mark.parametrize(
    ("cost", "right", "instead", "for_one_answer"),
    [
        (6, 0.9, "a", "a"),
        (6, 0.75, "", "a"),
        (6, 0.65, "", ""),
        (10.05, 0.9, "", ""),
        (14, 0.9, "", ""),
    ],
)
def test_a_model_that_is_cheaper_and_as_often_right_is_named(
    cost: float, right: float, instead: str, for_one_answer: str
) -> None:
    row, one = drawn(0, cost, right)
    found = one.row(row)
    assert (found.instead, found.for_one_answer) == (instead, for_one_answer)
    assert found.per_split[SAVED] == pytest.approx(1 - np.array(row.per_split["cost_usd"]) / 30)


def test_the_level_is_shared_among_the_models() -> None:
    """At p = 0.035 one model alone would be named, and of two neither is."""
    row, two = drawn(0, 6, 0.9)
    difference = np.concatenate([np.full(22, 3.0), np.full(18, -2.0)])
    p = float(stats.ttest_1samp(difference, 0, alternative="greater").pvalue)
    assert LEVEL / 2 < p < LEVEL
    cost = np.array(row.per_split["cost_usd"])[:, None] - difference[:, None]
    two = replace(two, cost_usd=np.hstack([cost, two.cost_usd[:, 1:]]), test_share=1e-15)
    one = replace(
        two,
        roles=("a",),
        reference="a",
        cost_usd=two.cost_usd[:, :1],
        accuracy=two.accuracy[:, :1],
    )
    assert one.row(row).instead == "a"
    assert two.row(row).instead == ""


@pytest.mark.slow
def test_splits_of_the_same_cost_seldom_make_a_model_look_cheaper() -> None:
    repeats = 1_500
    named = 0
    for seed in range(repeats):
        row, one = drawn(seed, 10, 0.9)
        named += bool(one.row(row).instead)
    assert stats.binomtest(named, repeats, LEVEL, alternative="greater").pvalue > 0.01


def test_what_a_model_dominates_is_never_recommended() -> None:
    cheap, one = drawn(0, 6, 0.9)
    dear = replace(cheap, policy="d", label="D")
    dear = replace(dear, per_split={**dear.per_split, "cost_usd": [20.0] * SPLITS})
    cheap = one.row(cheap)
    sizes = {"train": 9, "calibrate": 9, "test": 9}
    found = Comparison("s", "", sizes, 1, ("a", "b"), SPLITS, [0], [cheap, dear], reference="b")
    best = rows.best(found, ALPHA)
    assert best is not None
    assert best.policy == "d"
    assert summary.sentence(found, ALPHA).startswith("At alpha = 0.1 D is the cheapest policy")
    both = replace(found, rows=[cheap, one.row(dear)])
    assert rows.best(both, ALPHA) is None
    assert summary.sentence(both, ALPHA).endswith("Use always-a.")
    row, one = drawn(0, 6, 0.75)
    said = summary.sentence(replace(found, rows=[one.row(row)]), ALPHA)
    assert "; for one answer a question always-a is cheaper and at least as often right" in said
