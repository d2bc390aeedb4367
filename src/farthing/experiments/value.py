"""What a policy is worth: what it costs and gets right, beside each single model alone.

A role was recorded *alone* where no call of any question saw another one; its first call is then
what it says by itself. The reference is chosen on training questions or by name, never on the
questions that judge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from msgspec import structs

from farthing.calibration.base import Certificate
from farthing.calibration.binomial import binomial_interval
from farthing.calibration.guarantees.agreement import AgreementPromise
from farthing.calibration.guarantees.none import NoPromise
from farthing.calibration.guarantees.parity import ParityPromise
from farthing.calibration.guarantees.selective import SelectivePromise
from farthing.calibration.trinomial import loss_p_value
from farthing.experiments.significance import accuracy_difference, proved_positive, ratio_interval
from farthing.process import latency
from farthing.process.replay import Outcome
from farthing.process.value import Figures, Value
from farthing.traces.arrays import RIGHT, BoolArray, FloatArray, IntArray, TraceArrays

NOT_ALONE = "No model was recorded alone, so nothing can be said of what is saved"
UNNAMED = "The bundle does not say which single model was best in training"
LEVEL = 0.05
"""How often a policy may be said to be dominated by chance, over all single models."""
MARGIN = 0.02
"""Accuracy that a model is proved not to lose where it is called at least as often right."""
MANY = 20_000
"""Questions beyond which the exact test takes too much memory, and intervals are as good."""

_OF_ONE_ANSWER = (AgreementPromise, ParityPromise, SelectivePromise, NoPromise, type(None))


@dataclass(frozen=True)
class Singles:
    """What each role's first call cost and said on n questions."""

    roles: tuple[str, ...]
    cost_nano: IntArray
    """[n, L]"""
    right: BoolArray
    """[n, L]"""
    latency_s: FloatArray | None
    """[n, L] seconds, NaN where unknown; None where nothing was recorded."""
    alone: bool
    """Whether none of these calls saw another one."""
    grade: str = RIGHT
    """What is called right."""

    @classmethod
    def of(cls, recorded: TraceArrays) -> Self:
        """Look the first calls of recorded questions up."""
        seconds = latency.of_calls(recorded)
        return cls(
            recorded.roles,
            recorded.cost_nano[:, 0],
            recorded.correct[:, 0],
            None if seconds is None else seconds[:, : recorded.n_roles],
            bool(recorded.independent.all()),
            recorded.grade,
        )

    @classmethod
    def joined(cls, pieces: Sequence[Self]) -> Self:
        """Return those of the questions of several pieces, one piece after another."""
        seconds = [piece.latency_s for piece in pieces if piece.latency_s is not None]
        return cls(
            pieces[0].roles,
            np.concatenate([piece.cost_nano for piece in pieces]),
            np.concatenate([piece.right for piece in pieces]),
            np.concatenate(seconds) if len(seconds) == len(pieces) else None,
            all(piece.alone for piece in pieces),
            pieces[0].grade,
        )

    def figures(self) -> dict[str, Figures | None]:
        """Return what each role by itself came to; None where it was not recorded alone."""
        if not self.alone:
            return dict.fromkeys(self.roles)
        return {role: self.of_role(place) for place, role in enumerate(self.roles)}

    def of_role(self, place: int) -> Figures:
        """Return what one role came to."""
        seconds = None if self.latency_s is None else self.latency_s[:, place]
        return figures(self.cost_nano[:, place], self.right[:, place], seconds)


def most_accurate(train: TraceArrays) -> str | None:
    """Return the role that is right most often alone; None where none was recorded alone.

    Args:
        train: training questions, as recorded.
    """
    if not train.independent.all():
        return None
    return train.roles[int(train.correct[:, 0].mean(axis=0).argmax())]


def figures(cost_nano: IntArray, right: BoolArray, latency_s: FloatArray | None) -> Figures:
    """Add up what one answer a question came to, each [n]; at least one question."""
    known = np.zeros(0) if latency_s is None else latency_s[~np.isnan(latency_s)]
    return Figures(
        questions=len(right),
        cost_nano=int(cost_nano.sum()),
        right=int(right.sum()),
        latency_s=_typical(known) if known.size else None,
    )


def _typical(seconds: FloatArray) -> tuple[float, float]:
    median, slow = np.quantile(seconds, (0.5, 0.95)).tolist()
    return median, slow


def value_of(
    found: Outcome,
    singles: Singles,
    reference: str | None,
    part: Literal["calibrate", "test"],
    *,
    sets: bool = False,
    given: bool = False,
) -> Value:
    """Hold what a policy did against single models on the same questions.

    Args:
        found: what it did.
        singles: what each role said by itself.
        reference: the role that it is to save money on; None where nobody chose one.
        part: whether these questions set its threshold.
        sets: whether a right answer in the set is promised; a model then dominates the policy for
            good only if it is right as often as that.
        given: whether only answers that are given are promised to be right; a model that answers
            everything promises something else, and dominates nothing.
    """
    of_sets = dominated_by(found, singles, found.in_set) if sets else None
    of_one = None if given else dominated_by(found, singles, found.best_correct)
    instead = of_sets or of_one
    one_answer = sets and of_sets is None and instead is not None
    yours = structs.replace(
        figures(found.cost_nano, found.best_correct, found.latency_s),
        unanswered=int((found.set_size == 0).sum()),
    )
    if not singles.alone or reference not in singles.roles:
        missing = UNNAMED if singles.alone else NOT_ALONE
        return Value(
            part=part,
            yours=yours,
            missing=missing,
            instead=instead,
            one_answer=one_answer,
            grade=singles.grade,
        )
    place = singles.roles.index(reference)
    cost = singles.cost_nano[:, place]
    gained, gained_interval = accuracy_difference(found.best_correct, singles.right[:, place])
    ratio = ratio_interval(found.cost_nano, cost) if cost.any() else None
    return Value(
        part=part,
        yours=yours,
        reference=reference,
        theirs=singles.of_role(place),
        saved=1 - int(found.cost_nano.sum()) / int(cost.sum()) if cost.any() else None,
        saved_interval=None if ratio is None else (1 - ratio[1], 1 - ratio[0]),
        gained=gained,
        gained_interval=gained_interval,
        instead=instead,
        one_answer=one_answer,
        grade=singles.grade,
    )


def about_sets(certificate: Certificate | None) -> bool:
    """Return whether a right answer in the set is promised, rather than one right answer."""
    promise = certificate and certificate.promise
    return not isinstance(promise, _OF_ONE_ANSWER)


def about_given(certificate: Certificate | None) -> bool:
    """Return whether answers are promised to be right where they are given."""
    promise = certificate and certificate.promise
    return isinstance(promise, SelectivePromise) and promise.promises


def dominated_by(found: Outcome, singles: Singles, right: BoolArray) -> str | None:
    """Return a single model that is cheaper and at least as often right; None where none is proved.

    A model dominates where a paired t-test proves that it costs less, it is right at least as often
    on these questions, and the exact paired test of parity proves that it loses less than two
    points of accuracy. Each test is at the level 0.05 divided by the number of models, so that a
    policy that no model dominates is said to be dominated with probability 0.05 at most.

    Args:
        found: what the policy did.
        singles: what each role said by itself, on the same questions.
        right: [n] whether the policy is right: its best answer, or one of its set.

    Returns:
        Of several the cheapest.
    """
    if not singles.alone:
        return None
    level = LEVEL / len(singles.roles)
    proved = [
        place
        for place in range(len(singles.roles))
        if singles.right[:, place].sum() >= right.sum()
        and proved_positive(found.cost_nano - singles.cost_nano[:, place], level)
        and _loses_little(singles.right[:, place], right, level)
    ]
    if not proved:
        return None
    return singles.roles[min(proved, key=lambda place: int(singles.cost_nano[:, place].sum()))]


def _loses_little(ours: BoolArray, theirs: BoolArray, level: float) -> bool:
    """Return whether it is proved that ours are less often right by less than the margin."""
    lost, won, n = int((theirs & ~ours).sum()), int((~theirs & ours).sum()), len(ours)
    if n <= MANY:
        return loss_p_value(lost, won, n, MARGIN) <= level
    low = binomial_interval(won, n, level)[0] - binomial_interval(lost, n, level)[1]
    return low > -MARGIN
