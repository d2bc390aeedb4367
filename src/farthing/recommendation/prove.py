"""Prove a promise about a trained policy, by choosing one of its thresholds.

The operating points are the policy at a row of thresholds. The row, its order and where testing
begins come from training questions alone; calibration questions only prove an operating point, and
test questions judge it.
"""

from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.errors import InputError, UnknownNameError
from farthing.features.rounds import FeatureSet
from farthing.methods.selective.policy import as_trained
from farthing.process.base import Policy
from farthing.process.budget import PerQuestion
from farthing.promises import kinds
from farthing.promises.base import Certificate
from farthing.promises.kinds.agreement import Agreeing, Checks
from farthing.promises.kinds.budget import Spending
from farthing.promises.kinds.groups import Grouped
from farthing.promises.kinds.online import OnlineThreshold, run_online
from farthing.promises.kinds.parity import Paired
from farthing.promises.kinds.selective import Answers
from farthing.promises.kinds.weighted import Weighted
from farthing.promises.levels import exact_margin
from farthing.promises.statistics.clusters import Clusters
from farthing.recommendation.partial_grades import RightAt, SampledGrades
from farthing.recommendation.played import (
    PlayedPolicy,
    QuestionPart,
    operating_points_of,
    trained_points,
)
from farthing.recommendation.promises import (
    Agreement,
    Budget,
    Coverage,
    Parity,
    Promise,
    Selective,
    Shift,
    per_request,
)
from farthing.recommendation.savings import paid_most
from farthing.recommendation.start_point import beginning
from farthing.recommendation.target_mix import (
    Shown,
    Weighed,
    check_comparable,
    check_covariate_shift,
)
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.copies import NO_TEXT, asked_first, check_every_request, one_of_each
from farthing.traces.eligibility import check_alike, draw_weights
from farthing.traces.grades.named import reference_of, same_as


@dataclass(frozen=True)
class Tested:
    """What operating points answered to the calibration questions."""

    evidence: Paired | Agreeing | Answers
    right_at: RightAt


@dataclass(frozen=True)
class Promised:
    """What came of asking for a promise."""

    certificate: Certificate
    policy: Policy
    """The policy that it is about; for a selective promise one that says how sure it is."""
    empty: str
    """The mode of `replay.paths` that it holds in: a selective policy may return nothing."""
    tested: Tested | None = None
    """What it was proved from, where operating points were tested by their answers."""


def promise(
    asked: Promise,
    bundle: Bundle,
    train: QuestionPart,
    calibrate: QuestionPart,
    budget: PerQuestion | None,
    row: FloatArray | None = None,
) -> Promised:
    """Choose the threshold of a policy that keeps what is asked, and certify it.

    Of questions that ask the same chance draws one, before any grade is read: they are no
    independent draws. A promise per request counts all of them, and is tested by question.

    Args:
        asked: the promise.
        bundle: the policy, as trained on `train`.
        train: questions to lay the operating points out on; a promise of coverage needs none.
        calibrate: questions that the policy and the points have not seen.
        budget: what a question may cost when it is served; the promise is about that.
        row: of parity and agreement: the thresholds to test, from the last one on to the first,
            where other questions than these chose them; None: `train` lays them out.

    Returns:
        The certificate, whose kappa is the chosen threshold. Where its `promises` is false nothing
        is proved, and no threshold of this policy carries the promise.

    Raises:
        UnknownNameError: the reference is no role of the traces.
        InputError: the target's traces are of another kind, or the calibration questions have no
            groups.
        TooFewTracesError: too few questions to estimate a shift from.
        CalibrationError: a level or budget outside its range, costs above the largest possible, or
            a target that differs in more than round 1 shows.
    """
    if not isinstance(asked, Parity | Agreement) or calibrate.by is not None or per_request(asked):
        check_alike(calibrate.recorded)
    calibrate = counted(asked, calibrate)
    return of_requests(_promised(asked, bundle, train, calibrate, budget, row), calibrate)


def of_requests(found: Promised, calibrate: QuestionPart) -> Promised:
    """Return what came of distinct questions with the number of requests that they stand for."""
    if calibrate.requests is None:
        return found
    made = structs.replace(found.certificate, requests=calibrate.requests)
    return replace(found, certificate=made)


def counted(asked: Promise, part: QuestionPart) -> QuestionPart:
    """Return the questions that count for a promise: distinct ones, where it is about questions.

    One about a stream is about each of its questions.
    """
    if per_request(asked) or (isinstance(asked, Coverage) and asked.online):
        return part
    return part.distinct()


def _promised(
    asked: Promise,
    bundle: Bundle,
    train: QuestionPart,
    calibrate: QuestionPart,
    budget: PerQuestion | None,
    row: FloatArray | None,
) -> Promised:
    policy, empty = as_trained(bundle.policy, bundle.empty)
    plays = PlayedPolicy(policy, empty, budget)
    match asked:
        case Coverage():
            return Promised(_coverage(asked, plays, calibrate), policy, empty)
        case Selective():
            from farthing.recommendation.prove_selective import selective  # noqa: PLC0415 - scikit-learn

            return selective(asked, plays, train, calibrate)
        case Parity() | Agreement():
            role = _reference_of(asked, train, calibrate)
            if row is None:
                row = beginning(asked, plays, train, role, len(calibrate.recorded)).row
            if isinstance(asked, Parity):
                return _parity(asked, plays, train, calibrate, role, row)
            return _agreement(asked, plays, train, calibrate, role, row)
        case Budget():
            return Promised(_budget(asked, plays, train, calibrate), policy, empty)
        case Shift():
            return Promised(_shift(asked, plays, train, calibrate), policy, empty)


def _coverage(asked: Coverage, plays: PlayedPolicy, calibrate: QuestionPart) -> Certificate:
    part = calibrate.played
    critical, about = plays.replay(part).critical, plays.about(part)
    if asked.within_groups:
        sample = Grouped(critical, part.group.astype(np.int64), part.group_names)
        return kinds.groups.certify(
            sample,
            asked.alpha,
            population=asked.population,
            **about,
        )
    if asked.online:
        kappas = run_online(critical, asked.alpha)
        state = OnlineThreshold(kappa=float(kappas[-1]), updates=len(kappas) - 1)
        return kinds.online.certify(state, asked.alpha, **about)
    if asked.delta is not None:
        return kinds.pac.certify(
            critical,
            asked.alpha,
            asked.delta,
            population=asked.population,
            **about,
        )
    return kinds.split.certify(
        critical,
        asked.alpha,
        population=asked.population,
        **about,
    )


def reference_right(recorded: TraceArrays, role: str) -> BoolArray:
    """Return whether a role's first answer is right, [n].

    Raises:
        UnknownNameError: there is no such role.
    """
    if role not in recorded.roles:
        raise UnknownNameError("role", role, recorded.roles)
    right: BoolArray = recorded.correct[:, 0, recorded.roles.index(role)]
    return right


def _reference_of(asked: Parity | Agreement, train: QuestionPart, calibrate: QuestionPart) -> str:
    """Return whom answers are held against: of agreement, whose answers the grade is about."""
    if isinstance(asked, Parity):
        role = asked.reference or paid_most(train.recorded)
    else:
        found = reference_of(calibrate.played.grade)
        if found is None:
            raise InputError(
                f"a promise of agreement reads the grade '{same_as('ROLE')}', and these questions "
                f"are graded by '{calibrate.played.grade}'; name the reference"
            )
        role = found
    if role not in train.recorded.roles:
        raise UnknownNameError("role", role, train.recorded.roles)
    return role


def _parity(
    asked: Parity,
    plays: PlayedPolicy,
    train: QuestionPart,
    calibrate: QuestionPart,
    role: str,
    kappas: FloatArray,
) -> Promised:
    """Begin at the last threshold, and go cheaper from there."""
    reference = reference_right(calibrate.recorded, role)
    proof = operating_points_of(plays.replay(calibrate.played), kappas)
    sample = None
    if isinstance(calibrate.by, SampledGrades):
        sample = calibrate.by.parity_sample(plays.right_at(kappas), role)
    alone = None if exact_margin(asked.epsilon) < 0 else _alone_nano(calibrate.recorded, role)
    paired = Paired(
        proof.cost_nano,
        proof.correct,
        reference,
        role,
        kappas,
        sample,
        alone,
        clusters=_clusters(asked, train, calibrate),
        weights=draw_weights(calibrate.recorded),
        candidates=asked.candidates,
    )
    about = plays.about(calibrate.played)
    made = kinds.parity.certify(paired, asked.epsilon, asked.delta, **about)
    return Promised(made, plays.policy, plays.empty, Tested(paired, plays.right_at(kappas)))


def _clusters(
    asked: Parity | Agreement, train: QuestionPart, calibrate: QuestionPart
) -> Clusters | None:
    """Return which requests ask the same; none counts more than the most frequent one in training.

    Raises:
        InputError: nobody knows what some of them ask, or an import left repeated requests out.
    """
    if not per_request(asked):
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


def _alone_nano(recorded: TraceArrays, role: str) -> IntArray | None:
    """Return what a role costs alone, [n] in nano-dollars; None where it was not recorded alone."""
    if not recorded.independent.all():
        return None
    cost_nano: IntArray = recorded.cost_nano[:, 0, recorded.roles.index(role)]
    return cost_nano


def _agreement(
    asked: Agreement,
    plays: PlayedPolicy,
    train: QuestionPart,
    calibrate: QuestionPart,
    role: str,
    kappas: FloatArray,
) -> Promised:
    """Begin at the last threshold, and go cheaper from there."""
    proof = operating_points_of(plays.replay(calibrate.played), kappas)
    checks = calibrate.by if isinstance(calibrate.by, Checks) else None
    alone = _alone_nano(calibrate.recorded, role)
    agreeing = Agreeing(
        proof.cost_nano,
        proof.correct,
        role,
        kappas,
        checks,
        alone,
        clusters=_clusters(asked, train, calibrate),
        weights=draw_weights(calibrate.recorded),
        candidates=asked.candidates,
    )
    about = plays.about(calibrate.played)
    made = kinds.agreement.certify(agreeing, asked.epsilon, asked.delta, share=asked.judge, **about)
    return Promised(made, plays.policy, plays.empty, Tested(agreeing, plays.right_at(kappas)))


def _budget(
    asked: Budget, plays: PlayedPolicy, train: QuestionPart, calibrate: QuestionPart
) -> Certificate:
    points = trained_points(plays, train)
    proof = operating_points_of(plays.replay(calibrate.played), points.values)
    spending = Spending(proof.cost_nano, proof.covered, asked.most_nano, kappas=points.values)
    about = plays.about(calibrate.played)
    return kinds.budget.certify(
        spending,
        asked.nano,
        asked.delta,
        **about,
    )


def _shift(
    asked: Shift, plays: PlayedPolicy, train: QuestionPart, calibrate: QuestionPart
) -> Certificate:
    """Weigh by what is seen in round 1; the largest weight is that of any question at hand."""
    target = asked.target.take(one_of_each(asked.target.content))
    check_comparable(target)
    features = FeatureSet.fit(train.played)
    complete = train.played.take(train.played.complete)
    old, new, mine = (Shown.by(features, part) for part in (complete, target, calibrate.played))
    from farthing.recommendation.density_ratio import fit_density_ratio  # noqa: PLC0415 - loads scikit-learn

    ratio = fit_density_ratio(old.first, new.first)
    weights, theirs = ratio.weights(mine.first), ratio.weights(new.first)
    critical = plays.replay(calibrate.played).critical
    sample = Weighted(critical, weights, max(float(weights.max()), float(theirs.max())))
    check_covariate_shift(features, old, Weighed(mine, weights), Weighed(new, theirs))
    about = plays.about(calibrate.played)
    return kinds.weighted.certify(
        sample,
        asked.alpha,
        **about,
    )
