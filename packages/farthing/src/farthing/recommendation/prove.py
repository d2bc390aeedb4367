"""Prove a promise about a trained policy, by choosing one of its thresholds.

The operating points are the policy at a row of thresholds. The row, its order and where testing
begins come from training questions alone; calibration questions only prove an operating point, and
test questions judge it.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.errors import InputError, UnknownNameError
from farthing.methods.base import load
from farthing.methods.selective.policy import as_trained
from farthing.process.base import Policy
from farthing.process.budget import PerQuestion
from farthing.promises.agreeing import Checks
from farthing.promises.base import Promise
from farthing.promises.certificate import Certificate
from farthing.promises.observed import Facts
from farthing.promises.statistics.clusters import Clusters
from farthing.recommendation.partial_grades import RightAt, SampledGrades
from farthing.recommendation.played import (
    PlayedPolicy,
    ProvingQuestions,
    Q,
    TrainingQuestions,
    operating_points_of,
    tested,
    trained_points,
)
from farthing.recommendation.promised_grade import gradable
from farthing.recommendation.savings import paid_most
from farthing.recommendation.start_point import beginning
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.copies import NO_TEXT, asked_first, check_every_request
from farthing.traces.eligibility import check_alike, draw_weights


@dataclass(frozen=True)
class Tested:
    """What operating points answered to the calibration questions."""

    evidence: Any
    """As the promise takes it."""
    right_at: RightAt
    points: tuple[IntArray, BoolArray] | None = None
    """[n, G] what they cost, in nano-dollars, and which answers are as the grade asks."""


@dataclass(frozen=True)
class LaidOut:
    """Operating points to test, which questions that prove nothing have chosen."""

    row: FloatArray
    """The thresholds: of parity and agreement tested from the last one on to the first, of a
    selective policy the other way round."""
    name: str = ""
    """What a certificate calls a selective policy at these thresholds."""


@dataclass(frozen=True)
class Proof:
    """What came of asking for a promise."""

    certificate: Certificate
    policy: Policy
    """The policy that it is about; for a selective promise one that says how sure it is."""
    empty: str
    """The mode of `replay.paths` that it holds in: a selective policy may return nothing."""
    tested: Tested | None = None
    """What it was proved from, where operating points were tested by their answers."""


def prove(
    asked: Promise,
    bundle: Bundle,
    train: TrainingQuestions,
    calibrate: ProvingQuestions,
    budget: PerQuestion | None,
    laid_out: LaidOut | None = None,
) -> Proof:
    """Choose the threshold of a policy that keeps what is asked, and certify it.

    Of questions that ask the same chance draws one, before any grade is read: they are no
    independent draws. A promise per request counts all of them, and is tested by question.

    Args:
        asked: the promise.
        bundle: the policy, as trained on `train`.
        train: questions to lay the operating points out on; a promise of coverage needs none.
        calibrate: questions that the policy and the points have not seen.
        budget: what a question may cost when it is served; the promise is about that.
        laid_out: the thresholds to test; None: `train` lays them out.

    Returns:
        The certificate, whose kappa is the chosen threshold. Where its `promises` is false nothing
        is proved, and no threshold of this policy carries the promise.
    """
    if not isinstance(calibrate, ProvingQuestions):
        raise TypeError(f"{type(calibrate).__name__} prove nothing")
    if not asked.held_to_reference or calibrate.by is not None or asked.per == "request":
        check_alike(calibrate.recorded)
    calibrate = counted(asked, calibrate)
    if laid_out is not None and asked.layout == "sure":
        from farthing.recommendation.prove_selective import prove_laid_out  # noqa: PLC0415 - scikit-learn

        found = prove_laid_out(asked, bundle, laid_out, calibrate)
    else:
        row = None if laid_out is None else laid_out.row
        found = _proof(asked, bundle, train, calibrate, budget, row)
    return of_requests(found, calibrate)


def of_requests(found: Proof, calibrate: ProvingQuestions) -> Proof:
    """Return what came of distinct questions with the number of requests that they stand for."""
    if calibrate.requests is None:
        return found
    made = structs.replace(found.certificate, requests=calibrate.requests)
    return replace(found, certificate=made)


def counted(asked: Promise, part: Q) -> Q:
    """Return the questions that count for a promise: distinct ones, where it is about questions.

    One about a stream is about each of its questions.
    """
    return part if asked.every_request else part.distinct()


def _proof(
    asked: Promise,
    bundle: Bundle,
    train: TrainingQuestions,
    calibrate: ProvingQuestions,
    budget: PerQuestion | None,
    row: FloatArray | None,
) -> Proof:
    policy, empty = as_trained(bundle.policy, bundle.empty)
    plays = PlayedPolicy(policy, empty, budget)
    if asked.layout == "critical":
        return _by_scores(asked, bundle, plays, train, calibrate)
    if asked.layout == "sure":
        from farthing.recommendation.prove_selective import selective  # noqa: PLC0415 - scikit-learn

        return selective(asked, plays, train, calibrate)
    role = None
    if asked.layout == "grid":
        row = trained_points(plays, train).values
    else:
        role = _reference_of(asked, train, calibrate)
        if row is None:
            row = beginning(asked, plays, train, role, len(calibrate.recorded)).row
    known = _known(asked, plays, train, calibrate, role, row)
    return _by_points(asked, plays, calibrate, row, known)


def _by_scores(
    asked: Promise,
    bundle: Bundle,
    plays: PlayedPolicy,
    train: TrainingQuestions,
    calibrate: ProvingQuestions,
) -> Proof:
    part = calibrate.played
    critical = calibrate.replay(plays).critical
    if asked.weighed_by:
        evidence = load(asked.weighed_by)(asked, bundle, train.played, part, critical)
    else:
        known = Facts(group=part.group.astype(np.int64), group_names=part.group_names)
        evidence = asked.evidence(critical, known)
    return Proof(asked.prove(evidence, **plays.about(part)), plays.policy, plays.empty)


def _by_points(
    asked: Promise, plays: PlayedPolicy, calibrate: ProvingQuestions, row: FloatArray, known: Facts
) -> Proof:
    points, part = operating_points_of(calibrate.replay(plays), row), calibrate.played
    if part.at_worst and (most := getattr(asked, "most_nano", None)):  # of what nobody was paid for
        holes: BoolArray = np.any(~part.made, axis=(1, 2))
        lost = holes[:, None] & (points.cost_nano >= part.dearest_nano[:, None])
        points = replace(points, cost_nano=np.where(lost, most, points.cost_nano))
    evidence = asked.evidence(tested(points), known)
    made = asked.prove(evidence, **plays.about(calibrate.played))
    what = None
    if asked.held_to_reference:
        what = Tested(evidence, plays.right_at(row), (points.cost_nano, points.correct))
    return Proof(made, plays.policy, plays.empty, what)


def _known(
    asked: Promise,
    plays: PlayedPolicy,
    train: TrainingQuestions,
    calibrate: ProvingQuestions,
    role: str | None,
    row: FloatArray,
) -> Facts:
    """Return what is known of the questions that prove, beside what the policy does."""
    if role is None:
        return Facts()
    recorded, by = calibrate.recorded, calibrate.by
    alone = None
    if recorded.independent.all():
        alone = recorded.cost_nano[:, 0, recorded.roles.index(role)]
    return Facts(
        role=role,
        right=reference_right(recorded, role),
        alone_nano=alone,
        clusters=_clusters(asked, train, calibrate),
        weights=draw_weights(recorded),
        sample=by.parity_sample(plays.right_at(row), role)
        if isinstance(by, SampledGrades)
        else None,
        checks=by if isinstance(by, Checks) else None,
    )


def reference_right(recorded: TraceArrays, role: str) -> BoolArray:
    """Return whether a role's first answer is right, [n]."""
    if role not in recorded.roles:
        raise UnknownNameError("role", role, recorded.roles)
    right: BoolArray = recorded.correct[:, 0, recorded.roles.index(role)]
    return right


def _reference_of(asked: Promise, train: TrainingQuestions, calibrate: ProvingQuestions) -> str:
    """Return whom answers are held against; where nobody named it, who most is paid for."""
    graded = gradable(calibrate.played, calibrate.played.grade)
    role = asked.whose(graded) or paid_most(train.recorded)
    if role not in train.recorded.roles:
        raise UnknownNameError("role", role, train.recorded.roles)
    return role


def _clusters(
    asked: Promise, train: TrainingQuestions, calibrate: ProvingQuestions
) -> Clusters | None:
    """Return which requests ask the same; the most frequent one of training bounds them."""
    if asked.per != "request":
        return None
    for part in (train, calibrate):
        check_every_request(part.recorded)
    content = calibrate.recorded.content
    if unknown := int((content == NO_TEXT).sum()):
        raise InputError(
            f"a promise per request needs to know which requests ask the same, and {unknown:,} of "
            f"{len(content):,} have no text; record texts, or leave --per request out"
        )
    most = np.bincount(asked_first(train.recorded.content)).max()
    return Clusters(asked_first(content), int(most))
