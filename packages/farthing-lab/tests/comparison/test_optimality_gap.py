"""The known optimum, the paper's own figures, and what made questions up, beside each row."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from farthing.methods.base import Dataset
from farthing.recommendation.base import TIMES_OPTIMUM, Comparison, Row
from farthing.recommendation.candidates import candidates
from farthing_lab.comparison.compare import compare
from farthing_lab.comparison.plan import Plan
from farthing_lab.comparison.published import published
from farthing_lab.generator.generate import generate
from farthing_lab.generator.optimum import optimal_cost, optimal_scores
from farthing_lab.methods.baselines.rounds import OptimumPolicy
from farthing_lab.methods.ccpo.learner import PUBLISHED, CcpoLearner

ALPHA = Fraction(1, 10)
QUICK = ("random", "fixed", "uala", "stopping", "optimum")


def row_of(comparison: Comparison, policy: str) -> Row:
    return next(row for row in comparison.rows if row.policy == policy)


def test_the_papers_ccpo_stands_beside_the_published_method_at_the_same_lambda(
    small: Dataset,
) -> None:
    """What tables 2 and 6 print for HotpotQA and LLaMA-2-7B, and what is trained for it."""
    rows = published("hotpotqa-llama2-7b")
    found = {
        (row["policy"], row["alpha"]): round(float(row["cost_usd"]) * 200 * 100, 6)
        for row in rows
        if str(row["policy"]).startswith("ccpo")
    }
    assert found == {
        ("ccpo-published", "0.1"): 6.552,
        ("ccpo-published-lambda-2e-4", "0.1"): 7.026,
        ("ccpo-published", "0.2"): 4.64,
        ("ccpo-published-lambda-1e-4", "0.2"): 4.647,
    }
    round_usd = small.traces.cost_nano.sum(axis=2).mean() / 1e9
    for policy, _ in found:
        (candidate,) = candidates(small, [str(policy)])
        assert isinstance(candidate.learner, CcpoLearner)
        price = candidate.learner.config.set_size_price
        assert replace(candidate.learner.config, set_size_price=0.0) == PUBLISHED
        tried = str(policy).partition("lambda-")[2] or "0"
        assert price * round_usd == pytest.approx(float(tried))


def test_without_a_preset_there_is_no_lambda_of_the_paper(small: Dataset) -> None:
    assert candidates(replace(small, preset=None), ["ccpo-published-lambda"]) == []


def test_the_known_optimum_breaks_ties_by_a_lot_of_each_question(small: Dataset) -> None:
    assert small.generator is not None
    policy = OptimumPolicy(small.generator)
    drawn = policy.scores(small.traces)[:, :-1, 2]
    plain = optimal_scores(small.generator, small.traces)[:, :-1, 2]
    assert len(np.unique(drawn[:, 0])) == len(drawn) > 5 * len(np.unique(plain[:, 0]))
    order = np.argsort(drawn[:, 0])
    steps = np.diff(plain[order, 0])  # histories keep their order, but for those that are equal
    assert (steps >= -1e-9 * plain.max()).all()
    some = np.array([7, 3, 250])
    np.testing.assert_array_equal(policy.scores(small.traces.take(some))[:, :-1, 2], drawn[some])
    other = replace(policy, seed=1).scores(small.traces)[:, :-1, 2]
    assert (other != drawn)[plain > 0].all()


@pytest.mark.slow
def test_every_row_is_held_against_the_optimum_at_its_own_coverage(small: Dataset) -> None:
    """Against the frontier of the enumerated optimum, on other questions, by plain means."""
    found = compare(small, Plan((ALPHA,), QUICK, splits=2, workers=1))
    assert small.generator is not None
    many = generate(small.generator, 60_000, np.random.default_rng(77))
    rights = many.correct.any(axis=2).cumsum(axis=1) > 0
    for depth in range(1, 5):
        covered = (rights[:, depth - 1] | ~many.solvable).mean()
        cost = small.generator.round_cost_nano[:depth].sum() / 1e9
        times = row_of(found, f"fixed-{depth}").per_split[TIMES_OPTIMUM]
        assert times == pytest.approx([cost / optimal_cost(small.generator, covered)] * 2, rel=0.04)
    assert row_of(found, "optimum").per_split[TIMES_OPTIMUM] == pytest.approx([1.0] * 2, abs=0.005)
    for name, least in (("random", 1.4), ("uala", 1.05), ("stopping", 0.99)):
        assert all(value > least for value in row_of(found, name).per_split[TIMES_OPTIMUM])


@pytest.mark.slow
def test_questions_that_were_made_up_are_called_so(small: Dataset) -> None:
    plan = Plan((ALPHA,), ("fixed-1",), splits=1)
    figures = "the paper's figures for hotpotqa with llama-2-7b"
    origin = compare(small, plan).origin
    assert origin.startswith(
        f"hotpotqa-llama2-7b: made-up questions of a generator fitted to {figures}"
    )
    assert "Random and UALA agree with the paper because the generator was fitted" in origin
    read = compare(Dataset("made.jsonl", small.traces), plan)
    assert read.origin == "made.jsonl: made-up questions of a generator"
    assert TIMES_OPTIMUM not in read.rows[0].per_split
    recorded = replace(small.traces, models=("small", "large"))
    assert compare(Dataset("runs.jsonl", recorded), plan).origin == "runs.jsonl"
