"""What a policy answers and costs on some questions, at a row of its thresholds.

Each question does one thing, and what it may be used for is its type: a proof takes
`ProvingQuestions`, and nothing else fits.
"""

from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

import numpy as np

from farthing.process.base import Policy
from farthing.process.batch_replay import NestedReplay, PointReplay, Replayed, replay
from farthing.process.budget import PerQuestion
from farthing.process.operating_points import OperatingPoints
from farthing.promises.agreeing import Checks
from farthing.promises.certificate import About, AskedOf
from farthing.promises.observed import PlayedPoints
from farthing.recommendation.partial_grades import RightAt, SampledGrades
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing.traces.copies import one_of_each
from farthing.traces.fingerprint import fingerprint
from farthing.traces.trace_kind import replies_of

SETTINGS = 50
"""Largest number of thresholds in a row."""


@dataclass(frozen=True)
class PlayedPolicy:
    """How questions are played when a promise about them is made."""

    policy: Policy
    empty: str
    budget: PerQuestion | None = None

    def replay(self, questions: TraceArrays) -> NestedReplay | PointReplay:
        """Play questions at every threshold."""
        limit, replies = self.budget, replies_of(self.policy)
        budget = None if limit is None else limit.of(questions, replies)
        return replay(self.policy, questions, self.empty, budget)

    def right_at(self, kappas: FloatArray) -> RightAt:
        """Return what says of questions whether the answers at these thresholds are correct."""
        return lambda questions: operating_points_of(self.replay(questions), kappas).correct

    def about(self, part: TraceArrays) -> About:
        """Say which questions a certificate comes from, and under which budget."""
        nano = self.budget.nano if self.budget else None
        return About(fingerprint=fingerprint(part), question_budget_nano=nano)

    def same(self, other: "PlayedPolicy") -> bool:
        """Return whether another plays the same policy object in the same way."""
        return self.policy is other.policy and (self.empty, self.budget) == (
            other.empty,
            other.budget,
        )


@dataclass(frozen=True)
class Questions:
    """Some questions, as they were recorded and as a policy plays them."""

    recorded: TraceArrays
    played: TraceArrays
    """The same questions; a pool of models as a cascade."""
    by: SampledGrades | Checks | None = None
    """Of calibration questions: how chance drew what is graded, or how a judge who says what is the
    same was checked; None: grades are the truth, and unknown ones count at worst."""
    asked_of: AskedOf | None = None
    """Which of the recorded questions these are of, where others lack calls; None: all of them."""
    requests: int | None = None
    """How many requests these distinct questions stand for; None: each for itself."""
    done: list[tuple[PlayedPolicy, Replayed]] = field(default_factory=list, repr=False)
    """What policies did on them, so that each plays them once."""
    once: list[Self] = field(default_factory=list, repr=False)
    """One of each that ask the same, once somebody has asked for them."""

    def replay(self, plays: PlayedPolicy) -> Replayed:
        """Play these questions at every threshold, or return what was played before."""
        for before, replayed in self.done:
            if before.same(plays):
                return replayed
        self.done.append((plays, plays.replay(self.played)))
        return self.done[-1][1]

    def take(self, rows: IntArray) -> Self:
        """Return some of them."""
        by = self.by
        if isinstance(by, SampledGrades):
            by = replace(by, recorded=by.recorded.take(rows), played=by.played.take(rows))
        recorded, played = self.recorded.take(rows), self.played.take(rows)
        return replace(self, recorded=recorded, played=played, by=by, done=[], once=[])

    def distinct(self) -> Self:
        """Return one of those that ask the same, which chance draws, whatever its answers."""
        if not self.once:
            rows = one_of_each(self.recorded.content)
            if len(rows) == len(self.recorded):
                return self
            self.once.append(replace(self.take(rows), requests=len(self.recorded)))
        return self.once[0]


Q = TypeVar("Q", bound=Questions)


class TrainingQuestions(Questions):
    """They train, lay operating points out and may name a reference: they prove nothing."""


class ProvingQuestions(Questions):
    """No policy, method or operating point was chosen by them: they prove, and do nothing else."""


class ChoosingQuestions(Questions):
    """They choose among trained methods, and prove nothing of what they chose."""

    def rehearsing(self) -> ProvingQuestions:
        """Return them for a proof that is never shown: it only says what a real one may come to."""
        return ProvingQuestions(**vars(self))


class ReportingQuestions(Questions):
    """They only measure what others trained, chose and proved."""


def grid(trained: Replayed, most: int = SETTINGS) -> FloatArray:
    """Return falling thresholds, [G]: from where the policy does least to 0, where it does all.

    They are quantiles of the scores at which something changes on training questions.
    """
    steps = trained.thresholds()
    picked = np.unique(np.quantile(steps, np.linspace(0, 1, most - 1), method="nearest"))
    return np.concatenate([picked[::-1], [0.0]])


def operating_points_of(replayed: Replayed, kappas: FloatArray) -> OperatingPoints:
    """Return what the policy costs and answers at each threshold; `covered` is that of its set."""
    acted = [replayed.act(float(kappa)) for kappa in kappas]
    return OperatingPoints(
        values=kappas,
        cost_nano=np.stack([found.cost_nano for found in acted], axis=1),
        correct=np.stack([found.best_correct for found in acted], axis=1),
        answered=np.stack([found.set_size > 0 for found in acted], axis=1),
        covered=np.stack([found.covered for found in acted], axis=1),
        calls=np.stack([found.length for found in acted], axis=1),
        set_size=np.stack([found.set_size for found in acted], axis=1),
        answers=np.stack([found.set_size_leaves for found in acted], axis=1),
    )


def tested(points: OperatingPoints) -> PlayedPoints:
    """Return operating points as the records of promises have them."""
    return PlayedPoints(
        points.correct, points.answered, points.covered, points.cost_nano, points.values
    )


def trained_points(plays: PlayedPolicy, train: TrainingQuestions) -> OperatingPoints:
    """Return what a policy costs and answers at a row of thresholds on its training questions."""
    trained = train.replay(plays)
    return operating_points_of(trained, grid(trained))
