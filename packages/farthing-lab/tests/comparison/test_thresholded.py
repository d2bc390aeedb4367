"""Frontier, metrics and the level set on fresh questions, against brute force."""

from fractions import Fraction

import numpy as np
import pytest

from farthing.methods.base import Dataset, Fitted, Silent
from farthing.process.base import Policy
from farthing.process.batch_replay import NestedReplay, replay
from farthing.recommendation.base import METRICS
from farthing.recommendation.candidates import candidates
from farthing.recommendation.metrics import metrics, stream
from farthing.traces.arrays import TraceArrays
from farthing_lab.comparison.thresholded import (
    ThresholdedCandidate,
    at_coverage,
    swept,
)
from farthing_lab.generator.optimum import optimal_cost, optimal_scores
from farthing_lab.methods.baselines.rounds import OptimumPolicy, RandomPolicy
from farthing_lab.methods.baselines.uala import UalaPolicy


def nested(policy: Policy, traces: TraceArrays) -> NestedReplay:
    found = replay(policy, traces, "argmax")
    assert isinstance(found, NestedReplay)
    return found


def replayed(dataset: Dataset) -> NestedReplay:
    return nested(UalaPolicy(), dataset.traces)


def test_the_frontier_is_what_acting_at_each_threshold_gives(small: Dataset) -> None:
    followed = replayed(small)
    points = swept(followed, 10**9)
    kappas = np.unique(
        np.minimum(
            np.concatenate([followed.followed.reach.reshape(-1), followed.followed.critical, [1]]),
            1.0,
        )
    )[::-1]
    slow = [metrics(followed.act(float(kappa))) for kappa in kappas]
    assert len(points) == len(slow) > 300
    np.testing.assert_allclose(points, [(m["cost_usd"], m["coverage"]) for m in slow])


def test_a_thinned_frontier_keeps_its_ends_and_points(small: Dataset) -> None:
    whole, thin = swept(replayed(small), 10**9), swept(replayed(small), 20)
    assert len(thin) == 20
    assert set(thin) <= set(whole)
    assert (thin[0], thin[-1]) == (whole[0], whole[-1])
    assert thin[-1][1] == 1.0


def test_the_frontier_counts_what_decisions_cost(small: Dataset) -> None:
    followed = replayed(small)
    price = np.full(followed.followed.reach.shape, 1_000_000)
    dearer = NestedReplay(followed.traces, followed.followed, followed.probabilities, price)
    kappa = float(np.median(followed.followed.critical))
    length = metrics(followed.act(kappa))["avg_len"]
    added = metrics(dearer.act(kappa))["cost_usd"] - metrics(followed.act(kappa))["cost_usd"]
    assert added == pytest.approx(length * 0.001)
    assert swept(dearer, 5)[-1][0] - swept(followed, 5)[-1][0] == pytest.approx(0.004)


def test_a_pointwise_policy_has_one_point(small: Dataset) -> None:
    (candidate,) = candidates(small, ["random"])
    played = nested(RandomPolicy(), small.traces)
    entrant = ThresholdedCandidate(candidate, Fitted(RandomPolicy()), played, Fraction(1, 10))
    (point,) = entrant.frontier()
    drawn = metrics(played.draw(stream("random")))
    assert point == (drawn["cost_usd"], drawn["coverage"])


def test_metrics_by_hand(small: Dataset) -> None:
    found = replayed(small).act(0.6)
    figures = metrics(found)
    assert tuple(figures) == METRICS
    solvable = [bool(small.traces.correct[i].any()) for i in range(300)]
    hits = [bool(found.in_set[i]) for i in range(300)]
    assert figures["coverage"] == pytest.approx(
        sum(hit or not s for hit, s in zip(hits, solvable, strict=True)) / 300
    )
    assert figures["coverage_solvable"] == pytest.approx(sum(hits) / sum(solvable))
    assert figures["total_cost_usd"] == pytest.approx(sum(map(int, found.cost_nano)) / 1e9)
    assert figures["cost_usd"] == pytest.approx(figures["total_cost_usd"] / 300)


def test_without_a_solvable_question_coverage_given_solvable_does_not_exist(small: Dataset) -> None:
    hopeless = np.flatnonzero(~small.traces.solvable)
    figures = metrics(replayed(small).take(hopeless).act(0.5))
    assert np.isnan(figures["coverage_solvable"])
    assert figures["coverage"] == 1.0


@pytest.mark.parametrize("coverage", [0.85, 0.9, 0.975, 1.0])
def test_at_coverage_is_the_largest_threshold_that_covers_enough(
    small: Dataset, coverage: float
) -> None:
    policy = UalaPolicy()
    followed = nested(policy, small.traces)
    enough = [
        m
        for kappa in np.unique(np.minimum(followed.followed.critical, 1.0))[::-1]
        if (m := metrics(followed.act(float(kappa))))["coverage"] >= coverage - 1e-12
    ]
    assert at_coverage(policy, small.traces, coverage) == enough[0]


def test_the_optimum_at_a_coverage_costs_what_the_solver_says(large: Dataset) -> None:
    assert large.generator is not None
    found = at_coverage(OptimumPolicy(large.generator), large.traces, 0.93)
    assert found["cost_usd"] == pytest.approx(optimal_cost(large.generator, 0.93), rel=0.1)
    scores = OptimumPolicy(large.generator).scores(large.traces)
    known = optimal_scores(large.generator, large.traces)
    np.testing.assert_array_equal(scores[:, :, :2], known[:, :, :2])
    assert (scores[:, :, 2] <= known[:, :, 2] * (1 + 1e-8)).all()  # a lot only lowers them


def test_taking_questions_and_acting_commute(small: Dataset) -> None:
    (uala,) = candidates(small, ["uala"])
    assert uala.learner is not None
    policy = uala.learner.fit(small.traces, 0, 0, Silent()).policy  # type: ignore[arg-type]
    followed = replay(policy, small.traces, "argmax")
    some = np.array([5, 3, 200])
    ours, theirs = followed.take(some).act(0.55), followed.act(0.55).take(some)
    for name in ("cost_nano", "covered", "set_size", "length", "best_correct"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
