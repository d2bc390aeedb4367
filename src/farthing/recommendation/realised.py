"""What came of a promise, on questions that neither trained nor calibrated the policy."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from farthing.money import usd_from_nano
from farthing.process.replay import Outcome
from farthing.promises.base import Certificate, Promise
from farthing.promises.kinds.agreement import AgreementPromise
from farthing.promises.kinds.budget import BudgetPromise
from farthing.promises.kinds.escalated import EscalatedPromise
from farthing.promises.kinds.groups import GroupsPromise
from farthing.promises.kinds.pac import PacPromise
from farthing.promises.kinds.parity import ParityPromise
from farthing.promises.kinds.selective import SelectivePromise
from farthing.promises.kinds.split import SplitPromise
from farthing.promises.kinds.weighted import WeightedPromise
from farthing.promises.statistics.betting import mean_upper
from farthing.promises.statistics.clusters import Clusters, clustered_share
from farthing.recommendation.significance import (
    accuracy_difference,
    clopper_pearson,
    difference_by_request,
)
from farthing.traces.arrays import BoolArray


@dataclass(frozen=True)
class Judged:
    """The figure that a promise is about, as measured."""

    what: str
    """In words."""
    value: float
    interval: tuple[float, float]
    """95 % interval of what is true of a new question, valid at every sample size."""
    promised: float
    at_most: bool = False
    """Whether the figure was promised to stay below, rather than above."""
    besides: "Judged | None" = None
    """The other figure, where two are promised."""

    @property
    def verdict(self) -> str:
        """`kept`, `missed within chance` or `broken` (the whole interval is on the wrong side)."""
        sign = -1.0 if self.at_most else 1.0
        best = self.interval[0] if self.at_most else self.interval[1]
        if sign * self.value >= sign * self.promised:
            return "kept"
        return "missed within chance" if sign * best >= sign * self.promised else "broken"

    def sentence(self) -> str:
        """Say in one sentence what came of it.

        >>> print(Judged("coverage", 0.92, (0.88, 0.95), 0.9).sentence())
        On these test questions: coverage 0.92 (95 % interval 0.88 to 0.95), at least 0.9 was \
promised: kept.
        """
        low, high = self.interval
        limit = "at most" if self.at_most else "at least"
        return (
            f"On these test questions: {self.what} {self.value:.3g} (95 % interval {low:.3g} to "
            f"{high:.3g}), {limit} {self.promised:.3g} was promised: {self.verdict}."
            + ("" if self.besides is None else f" {self.besides.sentence()}")
        )


def judge(
    certificate: Certificate | None,
    found: Outcome,
    reference: BoolArray | None = None,
    clusters: Clusters | None = None,
) -> Judged | None:
    """Measure what a certificate promises; None where it promises nothing of a new question.

    None also where a judge said what is the same: it has said so of calibration questions alone.

    Args:
        certificate: the promise.
        found: what the policy did by itself on the test questions.
        reference: [n] whether the reference of a parity is right (`reference_right`), or that
            which questions are passed on to.
        clusters: of a promise per request: which of them ask the same.
    """
    promise = certificate.promise if certificate and certificate.promises else None
    if isinstance(promise, ParityPromise | AgreementPromise) and clusters is not None:
        return _by_request(promise, found.best_correct, reference, clusters)
    return _by_question(promise, found, reference)


def _by_question(
    promise: Promise | None, found: Outcome, reference: BoolArray | None
) -> Judged | None:
    """Judge a promise about distinct questions, of which these are independent draws."""
    match promise:
        case SelectivePromise() as promise:
            return _selective(promise, found)
        case EscalatedPromise() | ParityPromise() as promise:
            return _compared(promise, found, reference)
        case BudgetPromise() as promise:
            return _budget(promise, found)
        case AgreementPromise(judge=None) | WeightedPromise() as promise:
            return _share(*_named(promise, found))
        case SplitPromise() | PacPromise() | GroupsPromise() as promise:
            return _coverage(promise, found)
    return None


def _named(
    promise: AgreementPromise | WeightedPromise, found: Outcome
) -> tuple[str, BoolArray, Fraction]:
    if isinstance(promise, AgreementPromise):
        return f"answers that are {promise.reference}'s", found.best_correct, promise.epsilon
    return "coverage in the mix of this file", found.covered, promise.alpha


def _coverage(promise: SplitPromise | PacPromise | GroupsPromise, found: Outcome) -> Judged | None:
    if promise.population == "solvable":
        return _share("coverage given solvable", found.in_set[found.solvable], promise.alpha)
    return _share("coverage", found.covered, promise.alpha)


def _compared(
    promise: EscalatedPromise | ParityPromise, found: Outcome, reference: BoolArray | None
) -> Judged | None:
    """Judge parity; where questions are passed on also, and first, what was answered before."""
    if isinstance(promise, ParityPromise) or reference is None:
        return _parity(promise, found.best_correct, reference)
    whole = np.where(found.set_size > 0, found.best_correct, reference)
    of_whole = _parity(promise, whole, reference)
    of_given = _selective(promise, found)
    return of_whole if of_given is None else replace(of_given, besides=of_whole)


def _selective(promise: SelectivePromise | EscalatedPromise, found: Outcome) -> Judged | None:
    answered = found.set_size > 0
    what = f"accuracy of the {int(answered.sum()):,} answers given"
    return _share(what, found.best_correct[answered], promise.alpha)


def _share(what: str, right: BoolArray, alpha: Fraction) -> Judged | None:
    if not len(right):
        return None
    interval = clopper_pearson(int(right.sum()), len(right))
    return Judged(what, float(right.mean()), interval, float(1 - alpha))


def _parity(
    promise: ParityPromise | EscalatedPromise, right: BoolArray, reference: BoolArray | None
) -> Judged | None:
    """The interval joins those of the shares lost and won, at half the error each."""
    if reference is None:
        return None
    value, interval = accuracy_difference(right, reference)
    what = f"accuracy less that of {promise.reference}"
    return Judged(what, value, interval, -float(promise.epsilon))


def _by_request(
    promise: ParityPromise | AgreementPromise,
    right: BoolArray,
    reference: BoolArray | None,
    clusters: Clusters,
) -> Judged | None:
    """Judge a promise about requests, of which some ask the same; questions are independent."""
    if isinstance(promise, AgreementPromise):
        what = f"answers to requests that are {promise.reference}'s"
        return Judged(what, *clustered_share(right, clusters, 0.05), float(1 - promise.epsilon))
    if reference is None:
        return None
    what = f"accuracy by request less that of {promise.reference}"
    found = difference_by_request(right, reference, clusters)
    return Judged(what, *found, -float(promise.epsilon))


def _budget(promise: BudgetPromise, found: Outcome) -> Judged:
    most = promise.most_nano
    shares = np.clip(found.cost_nano / most, 0, 1)
    ends = 1 - mean_upper(1 - shares, 0.025), mean_upper(shares, 0.025)
    low, high = (float(end) * usd_from_nano(most) for end in ends)
    mean = usd_from_nano(int(found.cost_nano.sum())) / len(shares)
    limit = usd_from_nano(promise.budget_nano)
    return Judged("USD a question", mean, (low, high), limit, at_most=True)
