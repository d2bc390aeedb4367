"""Where a policy is not sure enough the reference answers: what that costs, and what is right."""

from dataclasses import dataclass, replace

import numpy as np

from farthing.errors import UnknownNameError
from farthing.process.budget import CASCADE
from farthing.process.operating_points import OperatingPoints
from farthing.process.replay import ReplayOutcome
from farthing.recommendation.played import Questions
from farthing.traces.arrays import NO_ANSWER, BoolArray, IntArray, TraceArrays
from farthing.traces.pool import names_in_turn


@dataclass(frozen=True)
class EscalationModel:
    """The first call of a role on some questions."""

    role: str
    right: BoolArray
    """[n]"""
    answers: BoolArray
    """[n] whether it gave an answer at all."""
    cost_nano: IntArray
    """[n]"""
    place: int
    """Which call of the questions as they are played it is, t * L + l."""
    so_far_nano: IntArray | None = None
    """[n, L] of the cuts of thoughts: what thinking up to each costs; None of other calls."""

    @classmethod
    def of(cls, part: Questions, role: str) -> "EscalationModel":
        """Find it."""
        recorded = part.recorded
        if role not in recorded.roles:
            raise UnknownNameError("role", role, recorded.roles)
        at = recorded.roles.index(role)
        cuts = recorded.cost_nano[:, 0] if recorded.cuts else None
        return cls(
            role,
            recorded.correct[:, 0, at],
            recorded.answer[:, 0, at] != NO_ANSWER,
            recorded.cost_nano[:, 0, at],
            _place(part.played, role, names_in_turn(recorded)[at]) if cuts is None else at,
            cuts,
        )

    def extra_nano(self, made: BoolArray) -> IntArray:
        """Return what asking it costs, [n]: nothing where its call was made already.

        A thought goes on from the cut that it has reached.

        Args:
            made: [n, T * L] which calls the policy makes before it ends.
        """
        if self.so_far_nano is not None:
            spent = np.where(made, self.so_far_nano, 0).max(axis=1)
            rest: IntArray = np.maximum(self.cost_nano - spent, 0)
            return rest
        return np.where(made[:, self.place], 0, self.cost_nano)

    def added(self, points: OperatingPoints, made: BoolArray) -> OperatingPoints:
        """Return operating points with the cost of the reference where nothing is answered."""
        extra = np.where(points.answered, 0, self.extra_nano(made)[:, None])
        return replace(points, cost_nano=points.cost_nano + extra)

    def whole(self, found: ReplayOutcome, made: BoolArray) -> ReplayOutcome:
        """Return what comes of each question once those without an answer are passed on."""
        passed = found.set_size == 0
        given, right = passed & self.answers, passed & self.right
        in_set = found.in_set | right
        return replace(
            found,
            cost_nano=found.cost_nano + np.where(passed, self.extra_nano(made), 0),
            in_set=in_set,
            covered=in_set | ~found.solvable,
            solvable=found.solvable | right,  # of who is asked by itself, and of the reference
            best_correct=found.best_correct | right,
            length=found.length + (passed & ~made[:, self.place]).astype(np.int16),
            set_size=found.set_size + given.astype(np.int16),
            set_size_leaves=found.set_size_leaves + given.astype(np.int16),
        )


def _place(played: TraceArrays, role: str, name: str) -> int:
    if played.roles != CASCADE:
        return played.roles.index(role)
    return played.models[0].split(" -> ").index(name)
