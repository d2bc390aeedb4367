"""Calls that were not made, at worst: no better than any way in which they may have come out."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from made_up_pool import pool, questions
from scipy.stats import binomtest

import farthing as ft
from farthing.errors import InputError
from farthing.methods.selective.policy import SelectivePolicy
from farthing.process.batch_replay import replay
from farthing.promises.base import Promise
from farthing.promises.observed import Facts
from farthing.recommendation.escalation import EscalationModel
from farthing.recommendation.played import (
    PlayedPolicy,
    Questions,
    TrainingQuestions,
    operating_points_of,
)
from farthing.recommendation.played import tested as as_promised
from farthing.recommendation.prove_selective import laid_out_by
from farthing.recommendation.splits import as_played
from farthing.traces.arrays import NO_ANSWER, BoolArray, TraceArrays
from farthing.traces.eligibility import only

KAPPAS = np.array([1.0, 0.9, 0.7, 0.5, 0.3, 0.0])
METHODS = ("agreement-cascade", "conformal-arbitrage", "selective", "always-small", "lazy")
PROMISES = (
    ft.Selective(0.8, 0.3),
    ft.Selective(0.8, 0.3, escalate="large", epsilon=0.1),
    ft.Parity("large", 0.2, 0.3),
    ft.Agreement("large", 0.3, 0.3),
)


def with_holes(traces: TraceArrays, made: BoolArray) -> TraceArrays:
    """Return questions at worst, of which some calls, [n, L], were not made."""
    there = made[:, None]
    signals = {
        name: np.where(there, values, np.nan).astype(np.float32)
        for name, values in traces.signals.items()
    }
    return replace(
        traces,
        made=there,
        answer=np.where(there, traces.answer, NO_ANSWER).astype(np.int16),
        correct=traces.correct & there,
        cost_nano=np.where(there, traces.cost_nano, 0),
        signals=signals,
        at_worst=True,
    )


def completions(holes: TraceArrays) -> Iterator[TraceArrays]:
    """Yield ways in which the missing calls came out: right, wrong, silent; sure or not."""
    ways = [(0, 0.05), (0, 0.95), (1, 0.95), (9, 0.05), (9, 0.95), (NO_ANSWER, np.nan)]
    dearest = holes.cost_nano.max(axis=(0, 1))
    places = [place for place in range(3) if not holes.made[:, 0, place].all()]
    for each in product(ways, repeat=len(places)):
        answer, sure = holes.answer.copy(), holes.signals["confidence"].copy()
        for place, (code, confidence) in zip(places, each, strict=True):
            gone = ~holes.made[:, 0, place]
            answer[gone, 0, place], sure[gone, 0, place] = code, confidence
        yield replace(
            holes,
            at_worst=False,
            made=np.ones_like(holes.made),
            answer=answer,
            correct=answer == 0,
            cost_nano=np.where(holes.made, holes.cost_nano, dearest),
            signals={"confidence": sure},
        )


@pytest.mark.parametrize("name", METHODS)
def test_no_completion_is_worse_than_the_worst(name: str) -> None:
    """Question by question: what is right, what is given and wrong, what it costs."""
    trained = ft.fit(name, questions(pool(300, 1))).bundle
    plays = PlayedPolicy(trained.policy, trained.empty)
    full = pool(80, 7)
    made = np.random.default_rng(3).random((80, 3)) < (0.7, 0.7, 1.0)
    holes = with_holes(full, made)
    kappas = KAPPAS if trained.policy.parameters is None else trained.policy.parameters[[0, -1]]

    replayed = plays.replay(as_played("holes", trained, holes))
    worst, lost_somewhere = operating_points_of(replayed, kappas), 0
    for way in completions(holes):
        known = plays.replay(as_played("a completion", trained, way))
        found = operating_points_of(known, kappas)
        assert (worst.correct <= found.correct).all()
        assert (worst.answered & ~worst.correct >= found.answered & ~found.correct).all()
        assert (worst.cost_nano >= found.cost_nano).all()
        assert (worst.covered <= found.covered).all()
        assert (replayed.critical <= known.critical).all()
        lost_somewhere += int((worst.correct < found.correct).sum())
    assert lost_somewhere


@pytest.mark.slow
@pytest.mark.parametrize("asked", PROMISES, ids=lambda one: type(one).__name__)
def test_what_is_proved_at_worst_is_proved_however_calls_came_out(asked: Promise) -> None:
    rng = np.random.default_rng(5)
    name = "selective" if asked.withholds else "always-small"
    trained = ft.fit(name, questions(pool(300, 1))).bundle
    policy, kappas = trained.policy, np.array([0.5])
    if isinstance(policy, SelectivePolicy):
        train = TrainingQuestions(pool(300, 1), as_played("train", trained, pool(300, 1)))
        kappas = laid_out_by(policy, train, Fraction(1, 5))[::16]
    proved_at_worst = 0
    for draw in range(2):
        made = rng.random((150, 3)) < (0.95, 0.95, 1.0)
        holes = with_holes(pool(150, 30 + draw, hard=0.1), made)

        def proved(traces: TraceArrays) -> BoolArray:
            graded = traces if asked.needs_gold else same_as_large(traces)
            part = Questions(graded, as_played("questions", trained, graded))
            points = operating_points_of(replay(policy, part.played, "allow"), kappas)
            theirs = EscalationModel.of(part, "large")
            if asked.passes_to is not None and isinstance(policy, SelectivePolicy):
                points = theirs.added(points, policy.calls_made(part.played))
            facts = Facts("large", theirs.right, alone_nano=theirs.cost_nano)
            found = asked.proved(asked.evidence(as_promised(points), facts))
            assert found is not None
            return found

        worst = proved(holes)
        proved_at_worst += int(worst.sum())
        for way in completions(holes):
            assert (worst <= proved(way)).all()
    assert proved_at_worst


def same_as_large(traces: TraceArrays) -> TraceArrays:
    same = (traces.answer == traces.answer[:, :, 2:]) & (traces.answer != NO_ANSWER)
    return replace(traces, correct=same, grade="same as large")


@pytest.mark.slow
@pytest.mark.parametrize("escalate", [None, "large"])
def test_selective_at_worst_is_false_no_more_often_than_promised(escalate: str | None) -> None:
    """The small model is missing in 60 % of where it is wrong: withheld, 48 of 49 were false."""
    policy = ft.fit("selective", questions(only(pool(400, 1, hard=0.9), ("small", "large"))))
    asked = ft.Selective(0.85, 0.1, escalate=escalate, epsilon=0.1)
    false = 0
    for seed in range(40):
        full = only(pool(400, 500 + seed, hard=0.9), ("small", "large"))
        gone = ~full.correct[:, 0, 0] & (np.random.default_rng(seed).random(400) < 0.6)
        made = np.stack([~gone, np.ones(400, bool)], axis=1)
        holes = questions(replace(with_holes(full, made), at_worst=False))
        holes = ft.Traces(replace(holes.dataset, missing="worst"))
        done = policy.calibrate(holes, asked)
        certificate = done.certificate
        assert certificate is not None
        if not certificate.promises:
            continue
        truth = only(pool(20_000, 9_000, hard=0.9), ("small", "large"))
        plays = PlayedPolicy(done.bundle.policy, "allow")
        acted = plays.replay(truth).act(float(certificate.kappa or 0.0))
        given = acted.set_size > 0
        false += bool(given.any()) and float(acted.best_correct[given].mean()) < 0.85
    assert binomtest(false, 40, 0.1, "greater").pvalue > 0.01


def test_at_worst_what_nobody_was_paid_for_costs_the_most_that_is_possible() -> None:
    """The small model was not asked what costs it much more, $0.0016 a question in truth."""
    cost = np.tile([100_000, 2_000_000], (600, 1))[:, None]
    two = ("small", "large")
    some = replace(only(pool(600, 5), two), cost_nano=cost)
    dear = np.random.default_rng(5).random(600) < 0.3
    log = with_holes(some, np.stack([~dear, np.ones(600, bool)], axis=1))
    policy = ft.fit("always-small", questions(only(pool(60, 6), two)))
    asked = replace(questions(log).dataset, missing="worst")
    for usd in (0.0008, 0.0016):
        with pytest.raises(InputError, match="do not prove"):
            policy.calibrate(ft.Traces(asked), ft.Budget(usd, "0.005"))
    made = policy.calibrate(ft.Traces(asked), ft.Budget(0.0025, "0.005")).certificate
    assert made is not None
    assert made.promises
