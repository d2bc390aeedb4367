"""What a bundle's promise comes to with the grades so far, and which ones to get next."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import InputError
from farthing.grading.queue import (
    AnswerTable,
    GradeRequest,
    GradingPlan,
    chosen_at,
    sampled,
    to_compare,
    to_judge,
    worst_case,
)
from farthing.methods.selective.policy import as_trained
from farthing.money import usd_from_nano
from farthing.promises.base import Promise
from farthing.promises.beside_reference import named
from farthing.promises.certificate import Certificate
from farthing.recommendation.partial_grades import LabelledTraces
from farthing.recommendation.pipeline import Ready, ready_for
from farthing.recommendation.played import PlayedPolicy
from farthing.recommendation.prove import Proof, Tested, of_requests, prove
from farthing.recommendation.splits import Split
from farthing.traces.arrays import NO_ANSWER
from farthing.traces.grades.overlay import check_graded, first_answer, recorded_marks, reference_of

if TYPE_CHECKING:
    from farthing.methods.selective.learner import SelectiveFit


@dataclass(frozen=True)
class GradingStatus:
    """What is proved so far, and what is to be graded next."""

    certificate: Certificate
    then: GradingPlan
    """What persons are asked next."""
    judged: tuple[GradeRequest, ...]
    """What a judge is asked, whatever persons know."""
    cost_nano: int | None = None
    """Mean cost a question of what is proved, in nano-dollars; None: nothing is."""
    reference_nano: int | None = None
    """That of the reference alone; None: there is none."""
    reference: str | None = None
    """The role that is compared with; None: none is."""

    def sentence(self) -> str:
        """Say in one line what is proved now, at which cost, and what more it takes."""
        return f"{self._proved()}; {self._to_come()}"

    def _proved(self) -> str:
        if not self.certificate.promises:
            return "nothing is proved yet"
        promise = self.certificate.promise
        if self.cost_nano is None:
            answered = getattr(promise, "answered", 0)
            return f"proved: a policy that answers {answered:,} of {self.certificate.n:,} questions"
        said = f"proved: a policy at ${usd_from_nano(self.cost_nano):.3g} a question"
        if not self.reference_nano:
            return said
        return f"{said}, {self.cost_nano / self.reference_nano:.0%} of what the reference costs"

    def _to_come(self) -> str:
        waiting, needed = len(self.then.wanted), self.then.needed
        if not waiting:
            return "no further grade could prove more"
        next_one = "a cheaper one" if self.certificate.promises else "the first one"
        if needed is None:
            return f"{waiting:,} questions are left to grade, and they may not be enough for more"
        return f"about {needed:,} of {waiting:,} questions more would probably prove {next_one}"


@dataclass(frozen=True)
class GradingSession:
    """A bundle whose promise is to be proved with as few grades as may be."""

    bundle: Path
    asked: Promise
    split: Split
    learned: "SelectiveFit | None" = None
    """Of a selective promise: the policy that says how sure it is; calibration grades do not change
    it."""

    def begun(self, graded: LabelledTraces) -> "GradingSession":
        """Return the session with what has to be learnt once."""
        if self.asked.layout != "sure":
            return self
        from farthing.methods.selective.learner import confident  # noqa: PLC0415 - scikit-learn

        ready = ready_for(self.bundle, self.asked, graded.traces, self.split, graded)
        check_graded(ready.train.recorded)
        policy, empty = as_trained(ready.bundle.policy, ready.bundle.empty)
        return replace(self, learned=confident(policy, ready.train.played, empty, self.asked.alpha))

    def standing(self, graded: LabelledTraces) -> GradingStatus:
        """Calibrate with the grades so far; the bundle stays as it is."""
        if self.asked.layout == "sure" and graded.draw is None:
            raise InputError("a selective promise takes questions that chance drew; draw first")
        if self.asked.held_to_reference and self.asked.graded_by == "lot":
            named(self.asked.reference, graded.traces.roles)
        ready = ready_for(self.bundle, self.asked, graded.traces, self.split, graded)
        if self.learned is not None:
            found = self._selective(self.asked, self.learned, ready)
        else:
            found = prove(self.asked, ready.bundle, ready.train, ready.prove, None)
        return _standing(self.asked, ready, found, graded)

    @staticmethod
    def _selective(asked: Promise, learned: "SelectiveFit", ready: Ready) -> Proof:
        from farthing.recommendation.prove_selective import prove_candidates  # noqa: PLC0415 - scikit-learn

        plays = PlayedPolicy(learned.policy, "allow", None)
        return of_requests(prove_candidates(asked, [learned], plays, ready.prove), ready.prove)


def _standing(asked: Promise, ready: Ready, found: Proof, graded: LabelledTraces) -> GradingStatus:
    if found.tested is None:
        raise InputError("no grade helps this promise")
    table = _table(asked, ready, found.tested, graded)
    point = getattr(found.certificate.promise, "point", None)
    cost = reference = role = None
    if asked.held_to_reference:
        recorded = ready.prove.recorded
        role = _role(asked, recorded.grade, recorded.roles)
        reference = round(recorded.cost_nano[:, 0, recorded.roles.index(role)].mean())
        spent = found.tested.evidence.cost_nano
        cost = None if point is None else round(spent[:, point].mean())
    judged = to_judge(table, same=asked.graded_by == "judge")
    then = _next(asked, table, found.tested.evidence, graded)
    return GradingStatus(found.certificate, then, judged, cost, reference, role)


def _next(asked: Promise, table: AnswerTable, evidence: Any, graded: LabelledTraces) -> GradingPlan:
    if asked.graded_by == "judge":
        return to_compare(table, graded.uncompared(evidence.role, table.rows))
    test = asked.testing(evidence)
    sample = evidence.sample
    return worst_case(table, test) if sample is None else sampled(table, test, sample)


def _table(asked: Promise, ready: Ready, tested: Tested, graded: LabelledTraces) -> AnswerTable:
    recorded, rows = ready.prove.recorded, ready.parts.calibrate
    theirs = np.full(len(rows), NO_ANSWER, dtype=np.int64)
    if asked.held_to_reference:
        role = _role(asked, recorded.grade, recorded.roles)
        theirs = first_answer(recorded, role).astype(np.int64)
    marks = recorded_marks(graded.traces.take(rows), max(graded.wordings.most, 1))
    return AnswerTable(rows, chosen_at(tested.right_at, ready.prove.played), theirs, marks)


def _role(asked: Promise, grade: str, roles: tuple[str, ...]) -> str:
    return reference_of(grade) or named(asked.reference, roles)
