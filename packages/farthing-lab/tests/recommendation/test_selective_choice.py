"""Selective accuracy where several candidates are tested: whatever is chosen, the promise holds."""

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from examples import random_traces
from question_parts import proving, training
from scipy import stats
from told_pool import records, traces

import farthing as ft
from farthing.errors import InputError
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.methods.selective.learner import SelectiveFit
from farthing.methods.selective.policy import SelectivePolicy
from farthing.methods.selective.single_models import considered
from farthing.process.batch_replay import replay
from farthing.process.budget import PerQuestion
from farthing.process.operating_points import OperatingPoints
from farthing.promises import kinds
from farthing.promises.answers import Answers
from farthing.promises.base import Promise
from farthing.promises.kinds.escalated import EscalatedPromise, PassedOn
from farthing.promises.kinds.selective import Selective, SelectivePromise
from farthing.promises.observed import Facts
from farthing.recommendation import prove_selective
from farthing.recommendation.escalation import EscalationModel
from farthing.recommendation.played import (
    PlayedPolicy,
    Questions,
    TrainingQuestions,
    operating_points_of,
)
from farthing.recommendation.prove import Proof
from farthing.recommendation.prove_selective import (
    best_first,
    laid_out,
    prove_candidates,
    side_by_side,
)
from farthing.reports import bundle as records_of
from farthing.traces.pool import cascade

MODELS = ("a", "b", "c", "d", "e", "f", "g", "h")
ALPHA, DELTA = Fraction(1, 5), Fraction(1, 10)
ASKED = Selective(1 - ALPHA, DELTA)


def pool(n: int, seed: int, *, wrong: float, telling: float) -> Questions:
    """Return models that err alike, apart from each other.

    Args:
        n: questions.
        seed: of all that is drawn.
        wrong: how often each model errs.
        telling: how much its confidence says of that, from 0.
    """
    rng = np.random.default_rng(seed)
    drawn = random_traces(seed, 1, MODELS, n)
    shape = drawn.answer.shape
    sure = rng.random(shape)
    correct = rng.random(shape) >= wrong * (1 + telling * (1 - 2 * sure))
    cost = np.broadcast_to(1_000 * 2 ** np.arange(len(MODELS)), shape).copy()
    traces = replace(
        drawn,
        models=MODELS,
        answer=np.where(correct, 0, 1 + np.arange(len(MODELS))).astype(np.int16),
        correct=correct,
        cost_nano=cost,
        signals={"confidence": sure.astype(np.float32)},
        replies={},
    )
    return Questions(traces, cascade(traces))


def trained(part: Questions) -> list[SelectiveFit]:
    return list(considered(FixedDepthPolicy(2), part.played, "argmax", ALPHA))


def plays() -> PlayedPolicy:
    return PlayedPolicy(FixedDepthPolicy(2), "argmax", None)


def selective(asked: Promise, plays: PlayedPolicy, train: Questions, held: Questions) -> Proof:
    return prove_selective.selective(asked, plays, training(train), proving(held))


def rows_of(part: Questions, rows: np.ndarray) -> Questions:
    return Questions(part.recorded.take(rows), part.played.take(rows))


# ---- The promise, over draws of the calibration questions

RUNS, HELD = 600, 150


def risky() -> tuple[Questions, list[SelectiveFit]]:
    """Return many questions, and candidates of which each just misses what is asked."""
    alone = [one for one in trained(TRAIN) if one.name.endswith("its confidence")]
    return pool(20_000, 1, wrong=0.215, telling=0.0), alone


def wrong_among_given(of: OperatingPoints) -> np.ndarray:
    given = of.answered.sum(axis=0)
    found: np.ndarray = 1 - (of.correct & of.answered).sum(axis=0) / given
    return found


TRAIN = pool(150, 0, wrong=0.15, telling=0.5)


@pytest.mark.slow
def test_the_promise_fails_no_oftener_than_it_may_whoever_is_chosen() -> None:
    """Eight candidates, hardly a point of which has what is asked."""
    fresh, tested = risky()
    assert len(tested) == len(MODELS)
    rows = [laid_out(one, ALPHA)[:6] for one in tested]
    points = [
        operating_points_of(replay(one.policy, fresh.played, "allow"), kappas)
        for one, kappas in zip(tested, rows, strict=True)
    ]
    true = np.concatenate([wrong_among_given(of) for of in points]) <= ALPHA
    assert true.mean() < 0.2
    rng, failed = np.random.default_rng(2), 0
    for _ in range(RUNS):
        drawn = rng.integers(0, len(fresh.played), HELD)
        laid = side_by_side(tested, rows, [of.take(drawn) for of in points])
        some = Selective(1 - ALPHA, DELTA).evidence(laid, Facts())
        point = Selective(1 - ALPHA, DELTA).point(some)
        failed += point is not None and not true[point]
    assert failed > 0.01 * RUNS  # or it was no challenge
    assert stats.binomtest(failed, RUNS, float(DELTA), alternative="greater").pvalue > 1e-3


@pytest.mark.slow
def test_the_whole_procedure_from_training_on_keeps_the_promise() -> None:
    """Trained anew 25 times, and each time calibrated on 20 draws."""
    fresh = pool(20_000, 3, wrong=0.23, telling=0.3)
    failed = proved = 0
    rng = np.random.default_rng(4)
    for seed in range(25):
        train = pool(150, 10 + seed, wrong=0.23, telling=0.3)
        found = trained(train)
        tested = best_first(found, ASKED, training(train), HELD)
        for _ in range(20):
            held = rows_of(fresh, rng.integers(0, len(fresh.played), HELD))
            made = prove_candidates(ASKED, tested, plays(), proving(held))
            if made.certificate.promises:
                acted = replay(made.policy, fresh.played, "allow").act(made.certificate.kappa)
                given = acted.set_size > 0
                proved += 1
                failed += bool(acted.best_correct[given].mean() < 1 - ALPHA)
    assert proved > 50
    assert stats.binomtest(failed, 500, float(DELTA), alternative="greater").pvalue > 1e-3


# ---- What is fixed by training questions


@pytest.mark.slow
def test_no_calibration_question_moves_a_threshold_or_a_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other grades, costs and confidences of the calibration questions change nothing of it."""
    seen: list[tuple[tuple[str, ...], tuple[Fraction, ...], bytes]] = []

    def spy(*of: object) -> object:
        answers = side_by_side(*of)  # type: ignore[arg-type]
        whose, kappas = answers.candidates, answers.kappas
        assert whose is not None
        assert kappas is not None
        seen.append((whose.names, whose.shares, kappas.tobytes()))
        return answers

    monkeypatch.setattr(prove_selective, "side_by_side", spy)
    for held in (pool(200, 5, wrong=0.1, telling=0.5), pool(200, 6, wrong=0.4, telling=-0.5)):
        selective(ASKED, plays(), TRAIN, held)
    assert seen[0] == seen[1]
    selective(ASKED, plays(), pool(150, 7, wrong=0.15, telling=0.9), held)
    assert seen[2] != seen[0]
    assert sum(seen[0][1]) == 1


@pytest.mark.slow
def test_the_hopeless_are_not_tested() -> None:
    """A model whose confidence says nothing and that errs too often is left out."""
    part = pool(300, 8, wrong=0.1, telling=0.8)
    bad = part.recorded.correct.copy()
    bad[:, 0, :3] = np.random.default_rng(0).random((300, 3)) < 0.5
    recorded = replace(part.recorded, correct=bad)
    found = trained(Questions(recorded, cascade(recorded)))
    names = [
        one.name
        for one in best_first(found, ASKED, TrainingQuestions(recorded, cascade(recorded)), 200)
    ]
    assert "a, by its confidence" not in names
    assert "h, by its confidence" in names


# ---- What is chosen is what is served


@cache
def proved() -> tuple[SelectivePolicy, float]:
    made = selective(ASKED, plays(), TRAIN, pool(400, 9, wrong=0.15, telling=0.5))
    assert isinstance(made.certificate.promise, SelectivePromise)
    assert isinstance(made.policy, SelectivePolicy)
    return made.policy, made.certificate.kappa


@pytest.mark.slow
def test_the_certificate_names_who_is_asked_and_the_policy_asks_them() -> None:
    held = pool(400, 9, wrong=0.15, telling=0.5)
    made = selective(ASKED, plays(), TRAIN, held)
    promise = made.certificate.promise
    assert isinstance(promise, SelectivePromise)
    assert promise.candidates > 3
    assert promise.candidate_delta is not None
    assert promise.candidate_delta < DELTA
    policy, kappa = proved()
    acted = replay(policy, held.played, "allow").act(kappa)
    assert int((acted.set_size > 0).sum()) == promise.answered
    said = f"Of {promise.candidates} candidates that were tested this is {promise.candidate}."
    assert said in made.certificate.sentence()


@pytest.mark.slow
def test_few_calibration_questions_test_few_candidates() -> None:
    found = trained(TRAIN)
    assert [len(best_first(found, ASKED, training(TRAIN), n)) for n in (10, 40, 60)] == [1, 2, 3]


@pytest.mark.slow
def test_calls_that_saw_one_another_leave_the_policy_alone() -> None:
    talk = random_traces(0, 4, ("base", "guide"), 120)
    talk = replace(talk, independent=np.zeros(len(talk), bool))
    found = considered(FixedDepthPolicy(2), talk, "argmax", ALPHA)
    assert [one.policy.row for one in found] == [None, None]


# ---- Passed on to the reference

PASSED = Selective(1 - ALPHA, DELTA, escalate="h", epsilon=Fraction(1, 20))


def strong(n: int, seed: int) -> Questions:
    """Return a pool whose last model is dear and nearly always right."""
    part = pool(n, seed, wrong=0.2, telling=0.9)
    correct = part.recorded.correct.copy()
    correct[:, 0, -1] = np.random.default_rng(seed).random(n) < 0.97
    answer = np.where(correct, 0, part.recorded.answer.clip(1)).astype(np.int16)
    recorded = replace(part.recorded, correct=correct, answer=answer)
    return Questions(recorded, cascade(recorded))


@pytest.mark.slow
def test_what_is_passed_on_is_counted_as_the_reference_answers_it() -> None:
    """Cost and grade of every question, against a loop."""
    held = strong(60, 1)
    (policy,) = (one.policy for one in trained(strong(150, 0)) if one.name.startswith("c, by"))
    acted = replay(policy, held.played, "allow").act(0.7)
    made = policy.calls_made(held.played)
    whole = EscalationModel.of(held, "h").whole(acted, made)
    recorded = held.recorded
    for i in range(60):
        if acted.set_size[i]:
            expected = (acted.cost_nano[i], acted.best_correct[i])
        else:
            extra = 0 if made[i, 7] else recorded.cost_nano[i, 0, 7]
            expected = (acted.cost_nano[i] + extra, recorded.correct[i, 0, 7])
        assert (whole.cost_nano[i], whole.best_correct[i]) == expected
        assert acted.cost_nano[i] == (recorded.cost_nano[i, 0] * made[i]).sum()


@pytest.mark.slow
def test_both_promises_are_kept_by_the_cheapest_that_is_proved_in_both() -> None:
    train, held, fresh = strong(300, 0), strong(500, 1), strong(5_000, 2)
    made = selective(PASSED, plays(), train, held)
    promise = made.certificate.promise
    assert isinstance(promise, EscalatedPromise)
    assert isinstance(made.policy, SelectivePolicy)
    assert promise.promises
    acted = replay(made.policy, fresh.played, "allow").act(made.certificate.kappa)
    given, reference = acted.set_size > 0, EscalationModel.of(fresh, "h")
    whole = reference.whole(acted, made.policy.calls_made(fresh.played))
    assert acted.best_correct[given].mean() > 1 - ALPHA
    assert whole.best_correct.mean() > reference.right.mean() - PASSED.epsilon
    assert whole.cost_nano.mean() < reference.cost_nano.mean()
    for said in ("by itself", "h answers the rest", "minus 0.05"):
        assert said in made.certificate.sentence()


@pytest.mark.slow
def test_either_half_of_it_fails_no_oftener_than_half_of_delta() -> None:
    """A policy whose answers just miss the level, and a whole that just loses too much."""
    rng, n, runs = np.random.default_rng(3), 200, 600
    for wrong, lost in ((0.21, 0.0), (0.05, 0.051)):
        failed = 0
        for _ in range(runs):
            answered = rng.random((n, 1)) < 0.9
            correct = rng.random((n, 1)) >= (lost / 0.9 if lost else wrong)
            reference = np.ones(n, bool) if lost else correct[:, 0]
            points = Answers(answered, correct, cost_nano=np.ones((n, 1), np.int64))
            passed = PassedOn(points, reference, "h")
            failed += kinds.escalated.certify(passed, ALPHA, "0.05", DELTA, fingerprint="").promises
        assert failed > 0
        assert stats.binomtest(failed, runs, 0.05, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
def test_what_the_reference_alone_has_right_can_be_solved() -> None:
    """Small is asked alone and knows when it is wrong; large, which has the rest, is passed on."""
    rng = np.random.default_rng(0)

    def asked(name: str, n: int) -> ft.Traces:
        able = rng.random(n) < 0.7
        right = {"small": able.tolist(), "large": [True] * n}
        return traces(records(name, right, sure=np.where(able, 0.9, 0.5).tolist()))

    policy = ft.fit("always-small", asked("train", 150))
    passing = policy.calibrate(asked("held", 200), ft.Selective("0.9", "0.2", "large", "0.1"))
    done = passing.evaluate(asked("test", 100))
    assert 0.5 < done.metrics["answered"] < 0.9
    assert done.metrics["accuracy"] == 1
    assert done.metrics["coverage_solvable"] == 1
    assert done.intervals["coverage_solvable"][1] == 1
    said = json.loads(json.dumps(records_of.evaluated(done.found)))["judged"]
    assert said["what"].endswith("answers given")
    assert said["besides"]["what"] == "accuracy less that of large"


def test_passing_on_goes_with_no_budget_a_question_and_tells_models_of_one_name_apart() -> None:
    with pytest.raises(InputError, match="does not bound what passing it on costs"):
        selective(
            PASSED, PlayedPolicy(FixedDepthPolicy(2), "argmax", PerQuestion(10**6)), TRAIN, TRAIN
        )
    alike = replace(TRAIN.recorded, models=("a",) * len(MODELS))
    told_apart = EscalationModel.of(Questions(alike, cascade(alike)), "h")
    assert told_apart.place == EscalationModel.of(TRAIN, "h").place
