"""Promises from logs that nobody graded, and from some grades, on questions that were made up."""

from dataclasses import replace

import numpy as np
import pytest

import farthing as ft
from farthing.errors import InputError
from farthing.promises.kinds.agreement import Agreement, AgreementPromise
from farthing.promises.paired import Paired, parity_p_values
from farthing.promises.statistics.paired_test import loss_p_value
from farthing.recommendation.recommend import _ungraded
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.grades.overlay import at_worst, graded

PRICES = {"mini": 0.0001, "mid": 0.0004, "large": 0.004}
SKILL = {"mini": (0.97, 0.4), "mid": (0.98, 0.6), "large": (0.99, 0.9)}
"""Share of easy and of hard questions that a model has right; what is wrong differs by model."""


def questions(n: int, seed: int = 0) -> TraceArrays:
    """Return questions with gold, put to three models that know how sure they are."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        hard = bool(rng.random() < 0.3)
        for k, (model, skill) in enumerate(SKILL.items()):
            right = rng.random() < skill[hard]
            rows.append(
                {
                    "id": f"q{seed}-{i}",
                    "gold": ["0"],
                    "independent": True,
                    "model": model,
                    "answer": "0" if right else str(rng.integers(1, 3) + 2 * k),
                    "confidence": float(np.clip(rng.normal(0.5 if hard else 0.9, 0.1), 0, 1)),
                    "cost_usd": PRICES[model],
                }
            )
    return ft.from_records(rows).arrays


def hidden(traces: TraceArrays, which: np.ndarray) -> TraceArrays:
    """Return the same questions with the grades of some, [n], unknown."""
    unknown = np.broadcast_to(which[:, None, None], traces.correct.shape) & (traces.answer >= 0)
    return replace(traces, correct=traces.correct & ~unknown, ungraded=unknown)


def of(traces: TraceArrays) -> ft.Traces:
    whole = ft.from_records(
        [{"id": "q", "model": "m", "answer": "4", "gold": ["4"], "cost_usd": 1}]
    )
    return ft.Traces(replace(whole.dataset, traces=traces))


@pytest.fixture(scope="module")
def logs() -> ft.Traces:
    traces = questions(1_500)
    return of(hidden(traces, np.ones(len(traces), dtype=bool)))


@pytest.mark.slow
def test_logs_without_gold_give_a_policy_that_answers_as_the_reference_would(
    logs: ft.Traces,
) -> None:
    train, held_out, test = logs.split(0.3, 0.4, 0.3)
    policy = ft.fit("conformal-arbitrage", train, grade="same as large")
    policy = policy.calibrate(held_out, ft.Agreement(epsilon=0.1, delta=0.1))
    assert policy.certificate is not None
    promise = policy.certificate.promise
    assert isinstance(promise, AgreementPromise)
    assert promise.reference == "large"
    found = policy.evaluate(test)
    assert found.metrics["cost_usd"] < 0.5 * PRICES["large"]
    assert found.metrics["accuracy"] > 0.85  # which is agreement, since nothing else is known
    assert found.found.judged is not None
    assert found.found.judged.what == "answers that are large's"


def test_nothing_else_is_promised_or_trained_without_gold(logs: ft.Traces) -> None:
    train, held_out = logs.split(0.5, 0.5)
    with pytest.raises(InputError, match="750 of 750 questions have answers that nobody graded"):
        ft.fit("lazy", train)
    policy = ft.fit("lazy", train, grade="same as large")
    for promise in (ft.Coverage(0.9), ft.Selective(0.9), ft.Parity(epsilon=0.1)):
        with pytest.raises(InputError, match="nobody graded"):
            policy.calibrate(held_out, promise)
    with pytest.raises(InputError, match="nobody graded"):
        ft.compare(logs, ["lazy"], splits=2)


@pytest.mark.slow
def test_parity_takes_whatever_grades_there_are(logs: ft.Traces) -> None:
    """None at all proves agreement; every further grade helps or changes nothing."""
    truth = questions(1_500)
    order = np.random.default_rng(3).permutation(len(truth))
    points = []
    for known in (0, 300, 900, 1_500):
        unknown = np.ones(len(truth), dtype=bool)
        unknown[order[:known]] = False
        train, held_out, _ = of(hidden(truth, unknown)).split(0.3, 0.4, 0.3)
        policy = ft.fit("conformal-arbitrage", train, grade="same as large")
        policy = policy.calibrate(held_out, ft.Parity("large", epsilon=0.1, delta=0.1))
        assert policy.certificate is not None
        points.append(policy.certificate.kappa)
    assert points == sorted(points)  # a larger kappa is a cheaper point
    assert points[-1] > points[0]
    assert points[2] > points[0]  # some are grades, and not a reason to look for agreement


@pytest.mark.slow
def test_no_grade_that_comes_in_later_makes_the_proof_worse() -> None:
    """A loss that turns out as none, or as a win, at every p-value that proves anything."""
    for n, epsilon in ((60, 0.05), (150, 0.02), (150, 0.1)):
        for lost in range(1, 20):
            for won in range(12):
                before = loss_p_value(lost, won, n, epsilon)
                if before <= 0.5:
                    assert loss_p_value(lost - 1, won, n, epsilon) <= before
                    assert loss_p_value(lost - 1, won + 1, n, epsilon) <= before


@pytest.mark.slow
@pytest.mark.parametrize("chosen", ["at random", "the surest", "none"])
def test_whoever_chooses_what_is_graded_cannot_make_a_false_proof_likelier(chosen: str) -> None:
    """At worst is never better than with all grades, draw by draw."""
    for seed in range(40):
        truth = questions(120, seed)
        unknown = np.zeros(len(truth), dtype=bool)
        if chosen == "at random":
            unknown = np.random.default_rng(seed).random(len(truth)) < 0.5
        elif chosen == "the surest":  # an adversary hides every loss of the cheap model
            unknown = truth.correct[:, 0, 2] & ~truth.correct[:, 0, 0]
        else:
            unknown[:] = True
        worst = at_worst(hidden(truth, unknown), "large")
        for place in (0, 1):
            partly, fully = (
                parity_p_values(
                    Paired(
                        each.cost_nano[:, 0, [place]],
                        each.correct[:, 0, [place]],
                        each.correct[:, 0, 2],
                    ),
                    0.1,
                )[0]
                for each in (worst, truth)
            )
            assert partly >= fully or fully > 0.5


def test_an_escalated_answer_agrees_by_construction() -> None:
    traces = graded(questions(200), "same as large")
    large = traces.roles.index("large")
    assert traces.correct[:, 0, large].all()


def test_empty_answers_are_no_grades_that_somebody_gave() -> None:
    traces = questions(40)
    empty = np.arange(40) < 4
    answer = np.where(empty[:, None, None], NO_ANSWER, traces.answer).astype(np.int16)
    traces = replace(traces, answer=answer, correct=traces.correct & ~empty[:, None, None])
    asked = Agreement("large", 0.1, 0.1)
    assert _ungraded(hidden(traces, np.ones(40, dtype=bool)), asked) == ""
    said = _ungraded(hidden(traces, np.arange(40) < 20), asked)
    assert said.startswith("16 of 40 questions are not graded, and agreement reads no grade")
