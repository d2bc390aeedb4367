"""What a bundle's promise comes to with the grades so far, and which ones to get next."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import InputError
from farthing.grading.queue import (
    Given,
    Next,
    Wanted,
    at_worst,
    by_lot,
    chosen_at,
    to_compare,
    to_judge,
)
from farthing.methods.selective.policy import as_trained
from farthing.money import usd_from_nano
from farthing.promises.base import Promise
from farthing.promises.beside_reference import named
from farthing.promises.certificate import Certificate
from farthing.recommendation.bundle_splits import Split
from farthing.recommendation.partial_grades import LabelledTraces
from farthing.recommendation.pipeline import Ready, ready_for
from farthing.recommendation.played import PlayedPolicy
from farthing.recommendation.prove import Promised, Tested, of_requests, promise
from farthing.traces.arrays import NO_ANSWER
from farthing.traces.grades.named import check_graded, first_answer, reference_of
from farthing.traces.grades.overlay import recorded_marks

if TYPE_CHECKING:
    from farthing.methods.selective.learner import Learned


@dataclass(frozen=True)
class GradingStatus:
    """What is proved so far, and what is to be graded next."""

    certificate: Certificate
    then: Next
    """What persons are asked next."""
    judged: tuple[Wanted, ...]
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
        point, points = getattr(promise, "point", 0), getattr(promise, "points", 0)
        said = f"proved: operating point {point + 1} of {points}"
        if self.cost_nano is None:
            answered = getattr(promise, "answered", 0)
            return f"{said}, which answers {answered:,} of {self.certificate.n:,} questions"
        said += f" at ${usd_from_nano(self.cost_nano):.3g} a question"
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
    learned: "Learned | None" = None
    """Of a selective promise: the policy that says how sure it is; calibration grades do not change
    it."""

    def begun(self, graded: LabelledTraces) -> "GradingSession":
        """Return the session with what has to be learnt once.

        Raises:
            InputError: a promise of right answers, and nobody graded some training questions.
        """
        if self.asked.layout != "sure":
            return self
        from farthing.methods.selective.learner import confident  # noqa: PLC0415 - scikit-learn

        ready = ready_for(self.bundle, self.asked, graded.traces, self.split, graded)
        check_graded(ready.train.recorded)
        policy, empty = as_trained(ready.bundle.policy, ready.bundle.empty)
        return replace(self, learned=confident(policy, ready.train.played, empty, self.asked.alpha))

    def standing(self, graded: LabelledTraces) -> GradingStatus:
        """Calibrate with the grades so far; the bundle stays as it is.

        Raises:
            InputError: as `pipeline.calibrate`; no reference is named; or the promise is selective
                and nothing was drawn.
        """
        if self.asked.layout == "sure" and graded.draw is None:
            raise InputError("a selective promise takes questions that chance drew; draw first")
        if self.asked.held_to_reference and self.asked.graded_by == "lot":
            named(self.asked.reference, graded.traces.roles)
        ready = ready_for(self.bundle, self.asked, graded.traces, self.split, graded)
        if self.learned is not None:
            found = self._selective(self.asked, self.learned, ready)
        else:
            found = promise(self.asked, ready.bundle, ready.train, ready.prove, None)
        return _standing(self.asked, ready, found, graded)

    @staticmethod
    def _selective(asked: Promise, learned: "Learned", ready: Ready) -> Promised:
        from farthing.recommendation.prove_selective import prove  # noqa: PLC0415 - scikit-learn

        plays = PlayedPolicy(learned.policy, "allow", None)
        return of_requests(prove(asked, [learned], plays, ready.prove), ready.prove)


def _standing(
    asked: Promise, ready: Ready, found: Promised, graded: LabelledTraces
) -> GradingStatus:
    if found.tested is None:
        raise InputError("no grade helps this promise")
    given = _given(asked, ready, found.tested, graded)
    point = getattr(found.certificate.promise, "point", None)
    cost = reference = role = None
    if asked.held_to_reference:
        recorded = ready.prove.recorded
        role = _role(asked, recorded.grade, recorded.roles)
        reference = round(recorded.cost_nano[:, 0, recorded.roles.index(role)].mean())
        spent = found.tested.evidence.cost_nano
        cost = None if point is None else round(spent[:, point].mean())
    judged = to_judge(given, same=asked.graded_by == "judge")
    then = _next(asked, given, found.tested.evidence, graded)
    return GradingStatus(found.certificate, then, judged, cost, reference, role)


def _next(asked: Promise, given: Given, evidence: Any, graded: LabelledTraces) -> Next:
    if asked.graded_by == "judge":
        return to_compare(given, graded.uncompared(evidence.role, given.rows))
    test = asked.testing(evidence)
    sample = evidence.sample
    return at_worst(given, test) if sample is None else by_lot(given, test, sample)


def _given(asked: Promise, ready: Ready, tested: Tested, graded: LabelledTraces) -> Given:
    recorded, rows = ready.prove.recorded, ready.parts.calibrate
    theirs = np.full(len(rows), NO_ANSWER, dtype=np.int64)
    if asked.held_to_reference:
        role = _role(asked, recorded.grade, recorded.roles)
        theirs = first_answer(recorded, role).astype(np.int64)
    marks = recorded_marks(graded.traces.take(rows), max(graded.wordings.most, 1))
    return Given(rows, chosen_at(tested.right_at, ready.prove.played), theirs, marks)


def _role(asked: Promise, grade: str, roles: tuple[str, ...]) -> str:
    return reference_of(grade) or named(asked.reference, roles)
