"""Comparisons: against a slow loop over questions, the promise, workers, Ctrl-C."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from farthing.errors import TooFewTracesError, UnknownNameError
from farthing.methods.base import Dataset, Silent
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.process.base import Policy
from farthing.process.batch_replay import followed
from farthing.recommendation.base import METRICS, TIMES_OPTIMUM, Comparison, Event, Row
from farthing.recommendation.fitting import fit
from farthing.traces.arrays import FloatArray, PolicyReplies, TraceArrays
from farthing.traces.assemble import load
from farthing.traces.splits import divide, fixed_parts
from farthing_lab.comparison.compare import compare
from farthing_lab.comparison.plan import Plan
from farthing_lab.comparison.trainings import INTERRUPTED
from farthing_lab.methods.baselines.uala import UalaPolicy
from farthing_lab.methods.stopping import StoppingLearner

ALPHA = Fraction(1, 10)
QUICK = ("random", "fixed", "uala", "stopping", "optimum")
POOL = Path(__file__).parents[4] / "../shared/data/traces/mmlu-nine-models.jsonl.gz"


def row_of(comparison: Comparison, policy: str, alpha: Fraction = ALPHA) -> Row:
    return next(r for r in comparison.rows if (r.policy, r.alpha) == (policy, alpha))


class Slow:
    """One question under one policy, walked round by round with plain numbers."""

    def __init__(self, traces: TraceArrays, scores: FloatArray, i: int) -> None:
        self.traces, self.i = traces, i
        self.scores = [[float(x) for x in one] for one in scores[i]]
        self.scores[-1][-1] = -1.0
        for one in self.scores:
            one[one.index(max(one))] = 1.0
        self.solvable = bool(traces.correct[i].any())

    def act(self, kappa: float) -> dict[str, float]:
        nano, depth, answers, right = 0, 0, [], False
        for t, one in enumerate(self.scores):
            depth += 1
            nano += int(self.traces.cost_nano[self.i, t].sum())
            for role in range(2):
                if one[role] >= kappa:
                    answers.append(int(self.traces.answer[self.i, t, role]))
                    right |= bool(self.traces.correct[self.i, t, role])
            if one[2] < kappa or t == len(self.scores) - 1:
                break
        return {
            "cost_usd": nano / 1e9,
            "coverage": float(right or not self.solvable),
            "in_set": float(right),
            "solvable": float(self.solvable),
            "avg_len": float(depth),
            "set_size": float(len(set(answers))),
            "set_size_leaves": float(len(answers)),
            "empty": float(not answers),
        }

    def critical(self) -> float:
        if not self.solvable:
            return float("inf")
        candidates = sorted({x for one in self.scores for x in one if x >= 0}, reverse=True)
        return next(kappa for kappa in candidates if self.act(kappa)["coverage"])


def slow_split(
    traces: TraceArrays, policy: Policy, parts: tuple[list[int], list[int]], calibrated: bool
) -> tuple[float, dict[str, float]]:
    scores = followed(policy, traces).scores
    calibrate, test = parts
    kappa = 1.0
    if calibrated:
        ranked = sorted(Slow(traces, scores, i).critical() for i in calibrate)
        k = int(ALPHA * (len(calibrate) + 1))
        kappa = ranked[k - 1] if k else 0.0
    acted = [Slow(traces, scores, i).act(min(kappa, 1.0)) for i in test]
    return kappa, {name: sum(one[name] for one in acted) / len(acted) for name in acted[0]}


@pytest.mark.slow
def test_every_split_agrees_with_a_loop_over_its_questions(small: Dataset) -> None:
    found = compare(small, Plan((ALPHA,), QUICK, splits=4, seed=3, workers=1))
    rng = np.random.default_rng(3)
    division = divide(small.traces, rng)
    parts = [tuple(part.tolist() for part in division.redraw(rng)) for _ in range(4)]
    train = small.traces.take(division.train)
    stopping = fit(StoppingLearner(), train, ALPHA, 3, Silent()).policy
    policies: list[tuple[str, Policy, bool]] = [
        ("stopping", stopping, True),
        ("uala", UalaPolicy(), True),
        ("fixed-2", FixedDepthPolicy(2), False),
    ]
    for name, policy, calibrated in policies:
        row = row_of(found, name)
        for split, (calibrate, test) in enumerate(parts):
            kappa, slow = slow_split(small.traces, policy, (calibrate, test), calibrated)
            assert row.kappa[split] == kappa
            fast = {metric: row.per_split[metric][split] for metric in slow}
            assert fast == pytest.approx(slow), (name, split)
            assert row.per_split["total_cost_usd"][split] == pytest.approx(
                slow["cost_usd"] * len(test)
            )
            assert row.per_split["coverage_solvable"][split] == pytest.approx(
                slow["in_set"] / slow["solvable"]
            )


@pytest.mark.slow
def test_the_first_split_is_the_fixed_one(small: Dataset) -> None:
    parts = fixed_parts(small.traces, np.random.default_rng(5))
    found = compare(small, Plan((ALPHA,), ("fixed-4",), splits=1, seed=5))
    paid = small.traces.take(parts.test).cost_nano.sum()
    assert row_of(found, "fixed-4").per_split["total_cost_usd"] == [pytest.approx(int(paid) / 1e9)]


@pytest.mark.slow
def test_promises_are_kept_over_the_splits(large: Dataset) -> None:
    """Scores without ties miss floor(alpha (n + 1)) / (n + 1) on average, exactly."""
    alphas = (Fraction(1, 20), ALPHA)
    sizes = {"train": 400, "calibrate": 109, "test": 200}
    who = ("uala", "stopping", "optimum")
    found = compare(large, Plan(alphas, who, splits=400, sizes=sizes, workers=1))
    for alpha in alphas:
        aim = 1 - int(alpha * 110) / 110
        for name in who:
            coverage = np.array(row_of(found, name, alpha).per_split["coverage"])
            error = coverage.std(ddof=1) / 20
            assert abs(coverage.mean() - aim) < 4 * error, (name, alpha)


@pytest.mark.slow
def test_a_promise_about_the_solvable_is_kept_among_them(large: Dataset) -> None:
    sizes = {"train": 400, "calibrate": 300, "test": 300}
    plan = Plan((ALPHA,), ("stopping",), splits=200, sizes=sizes, workers=1, population="solvable")
    found = compare(large, plan)
    share = np.array(row_of(found, "stopping").per_split["coverage_solvable"])
    assert share.mean() == pytest.approx(0.9, abs=4 * share.std(ddof=1) / 200**0.5 + 1 / 280)
    assert any("solvable" in note for note in found.notes)


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(small: Dataset) -> None:
    plan = Plan((ALPHA, Fraction(1, 5)), QUICK, splits=3, seeds=2, workers=1)
    assert compare(small, plan) == compare(small, replace(plan, workers=2))


@pytest.mark.slow
def test_seeds_follow_one_another_and_splits_are_shared(small: Dataset) -> None:
    plan = Plan((ALPHA,), ("stopping", "fixed-1", "random"), splits=3, workers=1)
    both = compare(small, replace(plan, seeds=2))
    first = compare(small, plan)
    assert both.seeds == [0, 1]
    for name in ("stopping", "fixed-1", "random"):
        per_split = row_of(both, name).per_split
        assert set(per_split) == {*METRICS, TIMES_OPTIMUM}
        assert per_split["cost_usd"][:3] == row_of(first, name).per_split["cost_usd"]
        assert len(per_split["cost_usd"]) == 6
    fixed = row_of(both, "fixed-1").per_split["cost_usd"]
    assert fixed[:3] == fixed[3:]
    drawn = row_of(both, "random").per_split["cost_usd"]
    assert drawn[:3] != drawn[3:]


@pytest.mark.slow
def test_who_takes_part_changes_nothing_for_the_others(small: Dataset) -> None:
    alone = compare(small, Plan((ALPHA,), ("random",), splits=3))
    together = compare(small, Plan((ALPHA,), QUICK, splits=3, workers=1))
    assert row_of(alone, "random") == row_of(together, "random")


@pytest.mark.slow
def test_what_is_filled_in(small: Dataset) -> None:
    found = compare(small, Plan((ALPHA,), QUICK, splits=2, workers=1))
    assert found.sizes == {"train": 180, "calibrate": 60, "test": 60}
    assert (found.horizon, found.roles) == (4, ("base", "guide"))
    assert found.optimum[-1][1] == pytest.approx(1.0)
    assert {row["policy"] for row in found.published} >= {"ccpo-published", "cpo-batch", "random"}
    assert len(row_of(found, "fixed-3").frontier) == 1
    assert 1 < len(row_of(found, "uala").frontier) <= 200
    assert found.notes[0] == "questions: 180 to train, 60 to calibrate, 60 to test"
    assert any("confidence[base]" in note for note in found.notes)
    assert {d.policy for d in found.differences} >= {"optimum"}


def test_recorded_replies_are_replayed_and_missing_ones_said(small: Dataset) -> None:
    n, horizon = small.traces.answer.shape[:2]
    stop_at_two = np.full((n, horizon), 2, dtype=np.int8)
    stop_at_two[:, 1] = 1
    price = np.full((n, horizon), 1_000, dtype=np.int64)
    traces = replace(small.traces, replies={"policy-guide": PolicyReplies(stop_at_two, price)})
    names = ("llm-policy-guide", "llm-policy-base", "exit-guide")
    found = compare(Dataset("recorded", traces), Plan((ALPHA,), names, splits=2))
    row = row_of(found, "llm-policy-guide")
    assert row.per_split["avg_len"] == [2.0, 2.0]
    assert (found.optimum, found.published) == ([], [])
    for name in names[1:]:
        assert row_of(found, name).per_split == {}
        assert row_of(found, name).note == "no replies recorded"


@pytest.mark.slow
def test_ctrl_c_in_training_keeps_the_policies_that_were_done(small: Dataset) -> None:
    def watch(event: Event) -> None:
        if event.name.startswith("stopping"):
            raise KeyboardInterrupt

    found = compare(small, Plan((ALPHA,), ("fixed-1", "uala", "stopping"), 2, workers=1), watch)
    assert row_of(found, "uala").per_split["cost_usd"]
    assert row_of(found, "stopping").per_split == {}
    assert row_of(found, "stopping").note == INTERRUPTED
    assert any(note.startswith("interrupted: 1 row") for note in found.notes)


@pytest.mark.slow
def test_ctrl_c_between_splits_keeps_the_splits_that_were_done(small: Dataset) -> None:
    def watch(event: Event) -> None:
        if event.stage == "evaluate" and event.done == 3:
            raise KeyboardInterrupt

    plan = Plan((ALPHA,), ("random", "uala"), splits=50)
    found = compare(small, plan, watch)
    assert found.splits == 3
    assert {len(row.per_split["cost_usd"]) for row in found.rows} == {3}
    whole = compare(small, replace(plan, splits=3))
    assert (found.rows, found.differences) == (whole.rows, whole.differences)
    assert "interrupted: 3 of 50 splits were played" in found.notes


def test_what_is_asked_wrongly_is_refused(small: Dataset) -> None:
    with pytest.raises(UnknownNameError, match="unknown policy 'stoping'; did you mean 'stopping'"):
        compare(small, Plan((ALPHA,), ("stoping",)))
    with pytest.raises(UnknownNameError, match=r"Nearest of \d+: fixed-4, "):
        compare(small, Plan((ALPHA,), ("fixed-9",)))
    with pytest.raises(TooFewTracesError, match="500 to train"):
        compare(small, Plan((ALPHA,), ("random",), sizes={"train": 500}))


@pytest.mark.slow
def test_traces_that_are_not_the_generators_have_no_optimum(small: Dataset) -> None:
    stranger = replace(small.traces, signals={})
    found = compare(replace(small, traces=stranger), Plan((ALPHA,), ("optimum", "uala"), 2))
    assert "not the generator's" in row_of(found, "optimum").note
    assert "no uncertainty recorded" in row_of(found, "uala").note


@pytest.mark.slow
@pytest.mark.skipif(not POOL.exists(), reason="needs ../shared/data, which is not there")
def test_a_pool_is_played_as_a_cascade() -> None:
    found = compare(
        Dataset("mmlu", load(POOL)), Plan((ALPHA,), ("random", "fixed", "uala", "stopping"), 40)
    )
    assert (found.horizon, found.roles) == (9, ("model",))
    assert found.sizes["train"] == 284, "of 285 that are marked two ask the same"
    assert row_of(found, "stopping").per_split["coverage"]
    coverage = np.array(row_of(found, "stopping").per_split["coverage"])
    assert coverage.mean() == pytest.approx(0.9, abs=4 * coverage.std(ddof=1) / 40**0.5 + 0.01)
    cost = [
        np.mean(row_of(found, f"fixed-{depth}").per_split["cost_usd"]) for depth in range(1, 10)
    ]
    assert cost == sorted(cost)
    assert any("a pool of models" in note for note in found.notes)
