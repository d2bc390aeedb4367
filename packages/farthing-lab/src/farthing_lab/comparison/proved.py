"""Candidates under another promise than coverage: calibration proves, test questions judge.

Training questions lay a policy's operating points out, as `prove` does for one bundle. They do not
depend on who calibrates, so that each policy is played once, whatever the number of splits. On each
split calibration proves one of the points, and test questions say what came of it. Where nothing is
proved the reference answers and is paid; where there is none, nobody is asked and nothing is
answered.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from farthing.methods.base import Dataset, Fitted
from farthing.methods.selective.policy import as_trained
from farthing.money import usd_from_nano
from farthing.process.operating_points import OperatingPoints
from farthing.promises.answers import candidate_thresholds
from farthing.promises.base import Promise
from farthing.promises.observed import Facts
from farthing.promises.texts import ANSWERED, REALISED
from farthing.recommendation.base import FELL_BACK, Candidate
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
from farthing_lab.comparison.lines import Points, Split
from farthing_lab.comparison.names import KEPT


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
class Reference:
    """What asking the reference for every question comes to."""

    cost_nano: IntArray
    """[n]"""
    right: BoolArray
    """[n] by the grade that is promised."""
    accepted: BoolArray | None
    """[n] whether its answer is right; None where that is not known."""
    recorded_alone: bool
    """Whether its calls saw no others; then no point that costs as much is chosen."""

    @classmethod
    def of(cls, role: str, ground: Ground) -> Self:
        """Look its first answers up; one that saw others of its round costs these as well."""
        recorded = ground.dataset.traces.take(ground.rest)
        place = recorded.roles.index(role)
        by_itself = bool(recorded.independent.all())
        first = place if by_itself else 0
        cost = recorded.cost_nano[:, 0, first : place + 1].sum(axis=1)
        accepted = None
        if ground.accepted is not None:
            accepted = ground.accepted.traces.take(ground.rest).correct[:, 0, place]
        return cls(cost, recorded.correct[:, 0, place], accepted, by_itself)


@dataclass(frozen=True)
class ProvedCandidate:
    """A policy's operating points on all questions outside training, and who answers without."""

    asked: Promise
    fitted: Fitted
    points: OperatingPoints
    accepted: BoolArray | None
    """[n, G] whether the single answer is right; None where that is not known."""
    reference: Reference | None
    """None: nobody answers where nothing is proved."""
    n: int
    """How many questions prove."""

    @classmethod
    def of(cls, asked: Promise, candidate: Candidate, fitted: Fitted, ground: Ground) -> Self:
        """Lay the points out on training questions, and play all others at them."""
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
        named = asked.reference if asked.held_to_reference else None
        reference = None if named is None else Reference.of(named, ground)
        return cls(asked, fitted, points, accepted, reference, ground.prove)

    @cached_property
    def prove(self) -> Callable[[IntArray], int | None]:
        """Prove one of the points by n of the questions; None where none is."""
        theirs = self.reference
        facts = Facts()
        if theirs is not None:
            alone = theirs.cost_nano if theirs.recorded_alone else None
            facts = Facts(self.asked.reference, theirs.right, alone)
        return self.asked.prover(tested(self.points), facts, self.n)

    def play(self, split: Split, *key: int) -> dict[str, float]:
        del key  # nothing is drawn
        calibrate, test = split
        return self.judge(self.prove(calibrate), test)

    def judge(self, point: int | None, test: IntArray) -> dict[str, float]:
        """Return `PROMISE_METRICS` of a test part; NaN for what does not exist."""
        theirs, accepted = self.reference, None
        if point is not None:
            points = self.points
            cost, right = points.cost_nano[test, point], points.correct[test, point]
            answered = points.answered[test, point]
            accepted = None if self.accepted is None else self.accepted[test, point]
        elif theirs is None:
            right = answered = accepted = np.zeros(len(test), dtype=bool)
            cost = right.astype(np.int64)
        else:
            cost, right = theirs.cost_nano[test], theirs.right[test]
            answered = np.ones(len(test), dtype=bool)
            accepted = None if theirs.accepted is None else theirs.accepted[test]
        spent = usd_from_nano(int(cost.sum()))
        beside = None if self.reference is None else self.reference.right[test]
        figure = self.asked.figure(spent / len(test), right, answered, beside)
        return {
            "cost_usd": spent / len(test),
            "total_cost_usd": spent,
            "accuracy": np.nan if accepted is None else float(accepted.mean()),
            REALISED: figure,
            ANSWERED: float(answered.mean()),
            KEPT: float(not self.asked.falls_short(figure)),
            FELL_BACK: float(point is None),
        }

    def frontier(self) -> Points:
        theirs = None if self.reference is None else self.reference.right
        figures = self.asked.swept(self.points.correct, theirs)
        if figures is None:
            return []
        return list(zip(self.points.mean_usd(), figures.tolist(), strict=True))

    def curve(self) -> Points:
        return [] if self.accepted is None else self.points.cost_and(self.accepted)


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
