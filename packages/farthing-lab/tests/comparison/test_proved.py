"""Comparisons under a promise: what is proved, on which questions, and what came of it."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from question_parts import proof_of

from farthing.bundle.base import Bundle
from farthing.errors import InputError, UnknownNameError
from farthing.methods.base import Dataset, Silent
from farthing.promises.base import Promise
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.budget import Budget
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.promises.kinds.selective import Selective
from farthing.recommendation import pipeline
from farthing.recommendation.base import Comparison, Row
from farthing.recommendation.candidates import single_candidate
from farthing.recommendation.fitting import fit
from farthing.recommendation.played import PlayedPolicy, Questions
from farthing.recommendation.promised_grade import read_for
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.splits import divide
from farthing_lab.comparison.compare import compare
from farthing_lab.comparison.plan import Plan
from farthing_lab.comparison.proved import Ground, ProvedCandidate, Reference
from farthing_lab.comparison.rows import ranked

ALPHA = Fraction(1, 10)
HALF = Fraction(1, 2)
COSTS = {"small": "0.001", "large": "0.01"}


def pool(right: Mapping[str, list[bool]], *, graded: bool = True) -> Dataset:
    """Questions that each role answers right (`yes`) or wrong (`no`), alone."""
    roles = list(right)
    traces = []
    for i in range(len(right[roles[0]])):
        calls = [
            Call(
                round=1,
                role=role,
                model=role,
                answer="yes" if right[role][i] else "no",
                correct=right[role][i] if graded else None,
                cost_usd=float(COSTS[role]),
            )
            for role in roles
        ]
        traces.append(Trace(id=f"q{i}", calls=calls, independent=True))
    return Dataset("pool", assemble(traces))


def alike(n: int = 600, wrong: int = 20) -> Dataset:
    """Small and large are wrong on the same questions, one of `wrong`."""
    right = [i % wrong != 0 for i in range(n)]
    return pool({"small": right, "large": right})


def unlike(n: int = 600) -> Dataset:
    """Small is right on half of the questions, large on all."""
    rng = np.random.default_rng(0)
    return pool({"small": (rng.random(n) < 0.5).tolist(), "large": [True] * n})


def compared(dataset: Dataset, asked: Promise, **settings: Any) -> Comparison:
    plan = Plan((ALPHA,), ("always",), splits=20, workers=1, promise=asked)
    return compare(dataset, replace(plan, **settings))


def row_of(found: Comparison, policy: str) -> Row:
    return next(row for row in found.rows if row.policy == policy)


def every(row: Row, metric: str) -> set[float]:
    return set(np.round(row.per_split[metric], 9).tolist())


def test_parity_with_one_that_is_as_good_costs_a_tenth() -> None:
    found = compared(alike(), Parity("large", Fraction(1, 20)))
    small = row_of(found, "always-small")
    assert (every(small, "cost_usd"), every(small, "realised")) == ({0.001}, {0.0})
    assert (every(small, "fell_back"), every(small, "kept")) == ({0.0}, {1.0})
    assert every(small, "saved") == {0.9}
    assert small.intervals["saved"] == pytest.approx((0.9, 0.9))
    assert np.mean(small.per_split["accuracy"]) == pytest.approx(0.95, abs=0.01)
    assert ranked(found.rows, Parity("large"))[0].policy == "always-small"
    assert found.today is not None
    assert found.today.cost_usd == pytest.approx(0.01)
    assert found.today.accuracy == pytest.approx(np.mean(small.per_split["accuracy"]))
    assert found.promise == Parity("large", Fraction(1, 20))


def test_where_parity_is_not_proved_the_reference_answers_and_is_paid() -> None:
    found = compared(unlike(), Parity("large", Fraction(1, 20)))
    small = row_of(found, "always-small")
    assert (every(small, "cost_usd"), every(small, "accuracy")) == ({0.01}, {1.0})
    assert (every(small, "fell_back"), every(small, "kept")) == ({1.0}, {1.0})
    assert ranked(found.rows, Parity("large")) == []  # nobody cheaper is proved


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Parity, Agreement])
def test_an_unnamed_reference_is_whom_most_is_paid_for_in_training_and_a_note_says_so(
    kind: type[Parity | Agreement],
) -> None:
    """Not who is right most often: nobody pays for small here."""
    right = [i % 20 != 0 for i in range(600)]
    better = pool({"small": [True] * 600, "large": right})
    found = compared(better, kind(None, Fraction(1, 20)))
    assert found.promise == kind("large", Fraction(1, 20))
    assert found.notes[0].startswith("name the model you pay for with --reference; large is a ")
    for dataset, asked in (
        (better, kind("large", Fraction(1, 20))),
        (replace(better, reference="large"), kind(None, Fraction(1, 20))),
    ):
        assert not any("is a guess" in note for note in compared(dataset, asked).notes)


def test_a_reference_that_is_no_role_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="gpt"):
        compared(unlike(), Parity("gpt", Fraction(1, 20)))


def test_agreement_needs_no_grades_and_shows_accuracy_where_there_are() -> None:
    right = [i % 20 != 0 for i in range(600)]
    questions = {"small": right, "large": [not one for one in right]}
    found = compared(pool(questions, graded=False), Agreement("small", Fraction(1, 20)))
    small = row_of(found, "always-small")
    assert every(small, "realised") == {1.0}
    assert np.isnan(small.per_split["accuracy"]).all()
    assert every(row_of(found, "always-large"), "fell_back") == {1.0}
    known = compared(pool(questions), Agreement("small", Fraction(1, 20)))
    assert np.mean(row_of(known, "always-small").per_split["accuracy"]) == pytest.approx(
        0.95, abs=0.01
    )
    dearest = compared(pool(questions, graded=False), Agreement(None, Fraction(1, 20)))
    assert dearest.promise == Agreement("large", Fraction(1, 20))


def test_a_budget_is_kept_by_what_fits_it_and_nobody_is_asked_otherwise() -> None:
    found = compared(unlike(), Budget(Fraction(5, 1000), Fraction(2, 100)))
    small, large = row_of(found, "always-small"), row_of(found, "always-large")
    assert (every(small, "realised"), every(small, "fell_back")) == ({0.001}, {0.0})
    assert (every(large, "cost_usd"), every(large, "answered")) == ({0.0}, {0.0})
    assert every(large, "fell_back") == {1.0}
    assert "saved" not in large.per_split  # who answers nothing saves nothing
    too_dear = compared(unlike(), Budget(Fraction(1, 1000), Fraction(5, 1000)))
    assert "must be between $0 and the largest possible" in row_of(too_dear, "always-large").note
    best = ranked(compared(unlike(), Budget(Fraction(15, 1000), Fraction(2, 100))).rows, BUDGET)
    assert best[0].policy == "always-large"  # of what fits, the more often right


BUDGET = Budget(Fraction(15, 1000), Fraction(2, 100))


def selective_questions(sure: float, n: int = 900) -> Dataset:
    """Base and guide agree on a share of questions and are right; elsewhere a lot says who is."""
    rng = np.random.default_rng(1)
    traces = []
    for i in range(n):
        agree = rng.random() < sure
        base = bool(agree or rng.random() < 0.5)
        right = {"base": base, "guide": agree or not base}
        calls = [
            Call(
                round=number,
                role=role,
                answer=f"{i} right" if good else f"{i} wrong",
                correct=good,
                cost_usd=0.001,
            )
            for number in (1, 2)
            for role, good in right.items()
        ]
        traces.append(Trace(id=f"q{i}", calls=calls, independent=True))
    return Dataset("rounds", assemble(traces))


def test_a_selective_promise_withholds_what_is_not_sure() -> None:
    asked = Selective(Fraction(9, 10))
    found = compared(selective_questions(0.6), asked, policies=("fixed-1",))
    (row,) = found.rows
    assert np.mean(row.per_split["answered"]) == pytest.approx(0.6, abs=0.05)
    assert np.mean(row.per_split["realised"]) > 0.97
    assert every(row, "kept") == {1.0}
    assert np.mean(row.per_split["cost_usd"]) == pytest.approx(0.002)
    assert ranked(found.rows, asked) == found.rows
    assert found.differences == []


@pytest.mark.slow
def test_where_nobody_is_sure_nothing_is_asked() -> None:
    asked = Selective(Fraction(9, 10))
    found = compared(selective_questions(0.0), asked, policies=("fixed-1",))
    (row,) = found.rows
    assert (every(row, "answered"), every(row, "cost_usd")) == ({0.0}, {0.0})
    assert every(row, "fell_back") == {1.0}
    assert ranked(found.rows, asked) == []


def test_levels_of_a_selective_promise_are_those_of_the_alphas() -> None:
    asked = Selective(Fraction(9, 10))
    found = compared(
        selective_questions(0.6), asked, policies=("fixed-1",), alphas=(ALPHA, Fraction(2, 5))
    )
    strict, loose = (np.mean(row.per_split["answered"]) for row in found.rows)
    assert strict < 0.7
    assert loose == 1.0


@pytest.mark.slow
def test_coverage_is_what_a_comparison_promises_anyway(small: Dataset) -> None:
    plan = Plan((ALPHA,), ("fixed-1", "stopping"), splits=3, workers=1)
    assert compare(small, replace(plan, promise=Coverage(0.9))) == compare(small, plan)
    with pytest.raises(InputError, match="on average over calibration draws"):
        compare(small, replace(plan, promise=Coverage(0.9, delta=0.1)))


def test_one_alpha_is_enough_for_a_promise_without() -> None:
    with pytest.raises(InputError, match="a promise of parity has no alpha"):
        compared(alike(), Parity("large"), alphas=(ALPHA, HALF))


ASKED: tuple[Promise, ...] = (
    Parity("guide", Fraction(2, 5)),
    Agreement("guide", Fraction(3, 5)),
    Budget(Fraction(1, 2000), Fraction(1, 100)),
)
"""Not selective: there `calibrate` tests other candidates beside the policy."""


@pytest.fixture(scope="module")
def apart(large: Dataset) -> Dataset:
    """Return questions in rounds whose calls did not see one another."""
    traces = large.traces.take(np.arange(900))
    alone = replace(traces, independent=np.ones(900, dtype=bool))
    return Dataset("apart", alone)


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: type(asked).__name__)
def test_a_point_is_chosen_as_calibrate_chooses_it(apart: Dataset, asked: Promise) -> None:
    """On the same parts the comparison proves what `calibrate` does, or nothing where it does."""
    graded = replace(apart, traces=read_for(asked, apart.traces, "right"))
    candidate, learner = single_candidate(graded, "lazy")
    rng = np.random.default_rng(7)
    division = divide(graded.traces, rng)
    calibrate, test = division.redraw(rng)
    train = graded.traces.take(division.train)
    fitted = fit(learner, train, ALPHA, 0, Silent())
    bundle = pipeline.bundle_of(candidate, fitted, train)
    parts = [
        Questions(graded.traces.take(rows), graded.traces.take(rows))
        for rows in (division.train, calibrate)
    ]
    theirs = proof_of(asked, bundle, parts[0], parts[1], None).certificate

    ground = Ground(graded, graded, division.train, division.rest, division.sizes["calibrate"])
    entrant = ProvedCandidate.of(asked, candidate, fitted, ground)
    rows = np.searchsorted(division.rest, calibrate)
    point = entrant.prove(rows)
    assert point == getattr(theirs.promise, "point", None)
    assert point is not None
    assert entrant.points.values[point] == theirs.kappa
    kept = entrant.judge(point, np.searchsorted(division.rest, test))
    spent = _spent(bundle, theirs, graded, test, asked, parts)
    assert kept["cost_usd"] == pytest.approx(spent)


def _spent(
    bundle: Bundle, certificate: Any, graded: Dataset, test: np.ndarray, asked: Promise, parts: Any
) -> float:
    """Return what the calibrated bundle costs on the test questions, played by itself."""
    found = proof_of(asked, bundle, parts[0], parts[1], None)
    plays = PlayedPolicy(found.policy, found.empty, None)
    acted = plays.replay(graded.traces.take(test)).act(certificate.kappa)
    return float(acted.cost_nano.mean()) / 1e9


@pytest.mark.parametrize("which", ["train", "calibrate", "test"])
def test_each_part_does_its_own_work(which: str) -> None:
    """Small is right on all questions of one part, and wrong on all the others."""
    n = 600
    dataset = alike(n, wrong=n)
    plan = Plan((ALPHA,), ("always",), splits=1, workers=1, promise=Parity("large", Fraction(1, 5)))
    rng = np.random.default_rng(plan.seed)
    division = divide(dataset.traces, rng)
    calibrate, test = division.redraw(rng)
    rows = {"train": division.train, "calibrate": calibrate, "test": test}[which]
    right = np.zeros(n, dtype=bool)
    right[rows] = True
    found = compare(pool({"small": right.tolist(), "large": [True] * n}), plan)
    small = row_of(found, "always-small")
    proved = which == "calibrate"
    assert small.per_split["fell_back"] == [0.0 if proved else 1.0]
    assert small.per_split["accuracy"] == [0.0 if proved else 1.0]
    assert small.per_split["kept"] == [0.0 if proved else 1.0]
    assert small.per_split["cost_usd"] == [pytest.approx(0.001 if proved else 0.01)]


def test_a_reference_that_saw_others_costs_these_as_well(small: Dataset) -> None:
    ground = Ground(small, small, np.arange(10), np.arange(10, 40), 15)
    guide = Reference.of("guide", ground)
    first = small.traces.take(np.arange(10, 40)).cost_nano[:, 0]
    assert (guide.cost_nano == first.sum(axis=1)).all()
    assert (Reference.of("base", ground).cost_nano == first[:, 0]).all()
