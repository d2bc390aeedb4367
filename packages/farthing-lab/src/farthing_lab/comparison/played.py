"""Operating points of trained policies on all other questions, for promises that need a proof.

Training questions lay them out, as `prove` does for one bundle. They do not depend on who
calibrates, so that each policy is played once, whatever the number of splits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from farthing.errors import CalibrationError, InputError
from farthing.methods.base import Dataset, Fitted
from farthing.methods.selective.policy import as_trained
from farthing.process.operating_points import OperatingPoints
from farthing.promises.answers import candidate_thresholds
from farthing.promises.base import Promise
from farthing.promises.observed import Facts
from farthing.recommendation.base import Candidate
from farthing.recommendation.played import (
    SETTINGS,
    PlayedPolicy,
    Q,
    Questions,
    TrainingQuestions,
    operating_points_of,
    tested,
    trained_points,
)
from farthing.recommendation.start_point import beginning
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.comparison.trainings import INTERRUPTED, TrainedCandidates


@dataclass(frozen=True)
class Ground:
    """Who is compared on what."""

    dataset: Dataset
    """Graded by what is promised."""
    accepted: Dataset | None
    """The same questions graded by what is right; None where some answers are not graded."""
    train: IntArray
    rest: IntArray
    """Questions that are drawn to calibrate and to test."""
    prove: int
    """How many of them are drawn to calibrate."""

    def part(self, candidate: Candidate, rows: IntArray, kind: type[Q]) -> Q:
        arrays = self.dataset.arranged(candidate.method.space)
        return kind(self.dataset.traces.take(rows), arrays.take(rows))


@dataclass(frozen=True)
class CandidateRun:
    """One row to be: a candidate at one alpha, with its operating points under each seed."""

    candidate: Candidate
    alpha: Fraction
    prepared: tuple["Prepared", ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Prepared:
    """A policy's operating points on all questions outside training."""

    points: OperatingPoints
    accepted: BoolArray | None
    """[n, G] whether the single answer is right; None where that is not known."""
    fitted: Fitted


def play_candidates(
    chosen: Sequence[Candidate],
    trained: TrainedCandidates,
    asked: Promise,
    alphas: Sequence[Fraction],
    ground: Ground,
) -> list[CandidateRun]:
    """Lay every candidate's operating points out, at each alpha."""
    return [
        _line(candidate, alpha, trained.of(candidate, alpha), asked.at(alpha), ground)
        for alpha in alphas
        for candidate in chosen
    ]


def _line(
    candidate: Candidate,
    alpha: Fraction,
    fitted: Sequence[Fitted | None],
    asked: Promise,
    ground: Ground,
) -> CandidateRun:
    if candidate.learner is None:
        return CandidateRun(candidate, alpha, note=candidate.note)
    whole = [one for one in fitted if one is not None]
    if len(whole) < len(fitted):
        return CandidateRun(candidate, alpha, note=INTERRUPTED)
    try:
        prepared = tuple(prepare(asked, candidate, one, ground) for one in whole)
    except (InputError, CalibrationError) as problem:
        return CandidateRun(candidate, alpha, note=str(problem))
    remarks = (candidate.note, getattr(whole[0].policy, "note", ""))
    return CandidateRun(candidate, alpha, prepared, "; ".join(filter(None, remarks)))


def prepare(asked: Promise, candidate: Candidate, fitted: Fitted, ground: Ground) -> Prepared:
    """Lay a policy's operating points out on training questions, and play all others at them."""
    train = ground.part(candidate, ground.train, TrainingQuestions)
    rest = ground.part(candidate, ground.rest, Questions)
    plays, kappas = _laid_out(asked, fitted, candidate.empty, train, ground.prove)
    points = operating_points_of(rest.replay(plays), kappas)
    if asked.layout == "grid":
        asked.evidence(tested(points), Facts())  # says which cost is too large
    accepted = None
    if ground.accepted is ground.dataset:
        accepted = points.correct
    elif ground.accepted is not None:
        arrays = ground.accepted.arranged(candidate.method.space).take(ground.rest)
        accepted = operating_points_of(plays.replay(arrays), kappas).correct
    return Prepared(points, accepted, fitted)


def _laid_out(
    asked: Promise, fitted: Fitted, empty: str, train: TrainingQuestions, prove: int
) -> tuple[PlayedPolicy, FloatArray]:
    policy, empty = as_trained(fitted.policy, empty)
    plays = PlayedPolicy(policy, empty, None)
    if asked.layout == "sure":
        from farthing.methods.selective.learner import confident  # noqa: PLC0415 - scikit-learn

        learned = confident(policy, train.played, empty, asked.alpha)
        row = candidate_thresholds(learned.sure, learned.right, asked.alpha, SETTINGS)
        return PlayedPolicy(learned.policy, "allow", None), row
    if asked.layout == "grid":
        return plays, trained_points(plays, train).values
    return plays, beginning(asked, plays, train, asked.reference or "", prove).row
