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

from farthing.errors import UnknownNameError
from farthing.money import significant
from farthing.process import latency
from farthing.process.replay import ReplayOutcome
from farthing.process.value import AnswerFigures, Interval, PolicyValue
from farthing.promises.base import Promise
from farthing.promises.certificate import Certificate
from farthing.promises.figures import accuracy_difference, difference_by_request
from farthing.promises.statistics.binomial import binomial_interval
from farthing.promises.statistics.clusters import Clusters, PerRequest, clustered_p_values
from farthing.promises.statistics.max_t import max_t
from farthing.promises.statistics.paired_test import loss_p_value
from farthing.recommendation.significance import proved_positive, ratio_interval
from farthing.traces.arrays import RIGHT, BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.copies import Content, asked_first
from farthing.traces.grades.overlay import check_graded

NOT_ALONE = "No model was recorded alone, so nothing can be said of what is saved"
UNNAMED = "The bundle does not say which single model was best in training"
LEVEL = 0.05
"""How often a policy may be said to be dominated by chance, over all single models."""
MARGIN = 0.02
"""Accuracy that a model is proved not to lose where it is called at least as often right."""
MANY = 20_000
"""Questions beyond which the exact test takes too much memory, and intervals are as good."""

Promised = Literal["answer", "sets", "given"]
"""What is promised to be right: one answer a question, one of a set, or each that is given."""


@dataclass(frozen=True)
class SingleModels:
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
        seconds, cost_nano = latency.of_calls(recorded), recorded.cost_nano[:, 0]
        if recorded.at_worst:  # a call that was not made costs as much as the most expensive one
            cost_nano = np.where(recorded.made[:, 0], cost_nano, cost_nano.max(axis=0, initial=0))
        return cls(
            recorded.roles,
            cost_nano,
            recorded.correct[:, 0],
            None if seconds is None else seconds[:, : recorded.n_roles],
            bool(recorded.independent.all()),
            recorded.grade,
        )

    def figures(self) -> dict[str, AnswerFigures | None]:
        """Return what each role by itself came to; None where it was not recorded alone."""
        if not self.alone:
            return dict.fromkeys(self.roles)
        return {role: self.of_role(place) for place, role in enumerate(self.roles)}

    def of_role(self, place: int) -> AnswerFigures:
        """Return what one role came to."""
        seconds = None if self.latency_s is None else self.latency_s[:, place]
        return figures(self.cost_nano[:, place], self.right[:, place], seconds)


def paid_most(log: TraceArrays) -> str:
    """Return the model that a log shows as paid for most: a guess at who is paid for today.

    It is the one of most dollars; of equals the one asked most often, then the first. Of a thought
    it is the last cut. No grade is read, so the guess favours nobody's answers.

    Args:
        log: questions, as recorded; what a model's first answers cost is added up.
    """
    if log.cuts:
        return log.roles[-1]
    paid, calls = log.cost_nano[:, 0].sum(axis=0), log.made[:, 0].sum(axis=0)
    return log.roles[max(range(log.n_roles), key=lambda place: (paid[place], calls[place]))]


def held_against(
    asked: Promise, known: str | None, graded: TraceArrays, log: TraceArrays, *, alone: bool
) -> str | None:
    """Return the role that a promise names, or somebody else; else who is paid for most, a guess.

    Args:
        asked: the promise.
        known: the model that is paid for today; None: nobody named it.
        graded: questions whose grades a guess takes, where the promise is about right answers.
        log: questions that may say who is paid for.
        alone: whether roles were recorded alone, so that one is guessed for any promise.
    """
    named = asked.reference or known
    if named is not None:
        if named not in log.roles:
            raise UnknownNameError("role", named, log.roles)
        return named
    if asked.held_to_reference and asked.needs_gold:
        check_graded(graded)
    return paid_most(log) if asked.held_to_reference or alone else None


def guessed(reference: str) -> str:
    """Say that a reference was not named, but guessed by `paid_most`, and how to name it."""
    return f"name the model you pay for with --reference; {reference} is a guess"


def no_worse(train: TraceArrays, reference: str) -> str:
    """Name the cheapest model that costs less than a reference and is right as often in training.

    Args:
        train: questions that prove and measure nothing.
        reference: a role of theirs.

    Returns:
        A sentence; empty where there is none, or models were not recorded alone.
    """
    models = {name: each for name, each in SingleModels.of(train).figures().items() if each}
    theirs = models.get(reference)
    cheaper = [
        (each.cost_nano, name)
        for name, each in models.items()
        if theirs and each.cost_nano < theirs.cost_nano and each.right >= theirs.right
    ]
    if theirs is None or not cheaper:
        return ""
    _, name = min(cheaper)
    other = models[name]
    return (
        f"of the {theirs.questions:,} questions that trained, {name} is right on {other.right:,} "
        f"for ${significant(other.cost_usd)} each, {reference} on {theirs.right:,} for "
        f"${significant(theirs.cost_usd)}: chance may explain that; if it does as well for you, "
        f"prove against it with --reference {name}"
    )


def figures(cost_nano: IntArray, right: BoolArray, latency_s: FloatArray | None) -> AnswerFigures:
    """Add up what one answer a question came to, each [n]; at least one question."""
    slow = latency.percentile_95(latency_s)
    typical = None
    if latency_s is not None and slow is not None:
        typical = float(np.quantile(latency_s[~np.isnan(latency_s)], 0.5)), slow
    return AnswerFigures(
        questions=len(right),
        cost_nano=int(cost_nano.sum()),
        right=int(right.sum()),
        latency_s=typical,
    )


def savings_of(
    found: ReplayOutcome,
    singles: SingleModels,
    reference: str | None,
    part: Literal["calibrate", "test"],
    *,
    promised: Promised = "answer",
    clusters: Clusters | None = None,
) -> PolicyValue:
    """Hold what a policy did against single models on the same questions.

    Args:
        found: what it did.
        singles: what each role said by itself.
        reference: the role that it is to save money on; None where nobody chose one.
        part: whether these questions set its threshold.
        promised: of what it is promised that it is right. Beside sets a model dominates the policy
            for good only if it is right as often as they are; beside answers that are given a model
            that answers everything promises something else, and dominates nothing.
        clusters: of a promise per request: which of these requests ask the same, so that only
            their questions are independent draws; None: all of them are.
    """
    of_sets = (
        dominating_model(found, singles, found.in_set, clusters) if promised == "sets" else None
    )
    of_one = (
        None
        if promised == "given"
        else dominating_model(found, singles, found.best_correct, clusters)
    )
    instead = of_sets or of_one
    one_answer = promised == "sets" and of_sets is None and instead is not None
    yours = structs.replace(
        figures(found.cost_nano, found.best_correct, found.latency_s),
        unanswered=int((found.set_size == 0).sum()),
    )
    if not singles.alone or reference not in singles.roles:
        missing = UNNAMED if singles.alone else NOT_ALONE
        return PolicyValue(
            part=part,
            yours=yours,
            missing=missing,
            instead=instead,
            one_answer=one_answer,
            grade=singles.grade,
        )
    place = singles.roles.index(reference)
    cost = singles.cost_nano[:, place]
    right = found.best_correct, singles.right[:, place]
    gained, gained_interval = (
        difference_by_request(*right, clusters) if clusters else accuracy_difference(*right)
    )
    return PolicyValue(
        part=part,
        yours=yours,
        reference=reference,
        theirs=singles.of_role(place),
        saved=1 - int(found.cost_nano.sum()) / int(cost.sum()) if cost.any() else None,
        saved_interval=saved_within(found.cost_nano, cost, 1 - LEVEL, clusters),
        gained=gained,
        gained_interval=gained_interval,
        instead=instead,
        one_answer=one_answer,
        grade=singles.grade,
    )


def chosen_by_these(
    value: PolicyValue, found: ReplayOutcome, singles: SingleModels, errors: float
) -> PolicyValue:
    """Return the same figures with intervals that allow for these questions' having chosen.

    Args:
        value: as `savings_of` has it.
        found: what the policy did.
        singles: what each role said by itself.
        errors: half the width of an interval, in standard errors (`off_by`).
    """
    if value.theirs is None or value.reference is None:
        return value
    place = singles.roles.index(value.reference)
    theirs, right = singles.cost_nano[:, place], singles.right[:, place]
    intervals = {}
    if value.gained is not None:
        wide = _within(_gains(found.best_correct, right), value.gained, errors)
        intervals["gained_interval"] = _both(wide, value.gained_interval)
    if (within := saved_within(found.cost_nano, theirs, 1 - LEVEL, errors=errors)) is not None:
        intervals["saved_interval"] = within
    return structs.replace(value, part="calibrate", **intervals)


def saved_within(
    ours: IntArray,
    theirs: IntArray,
    confidence: float,
    clusters: Clusters | None = None,
    errors: float | None = None,
) -> Interval | None:
    """Return the interval of what is saved; None where none is known.

    Args:
        ours: [n] what each question costs, in nano-dollars.
        theirs: [n] the same of the reference.
        confidence: of the interval.
        clusters: which of these requests ask the same, as in `savings_of`.
        errors: of a policy that these questions chose: half the width, in standard errors.
    """
    if not theirs.any():
        return None
    ratio = ratio_interval(_of_draws(ours, clusters), _of_draws(theirs, clusters), confidence)
    one = None if ratio is None else (1 - ratio[1], 1 - ratio[0])
    if errors is None:
        return one
    saved = 1 - int(ours.sum()) / int(theirs.sum())
    return _both(_within(_ratios(ours, theirs), saved, errors), one)


def off_by(
    points: Sequence[tuple[IntArray, BoolArray]],
    theirs: tuple[IntArray, BoolArray],
    rng: np.random.Generator,
    level: float = LEVEL,
) -> float:
    """Return how many standard errors the savings and gains of points are off at most.

    Args:
        points: what each costs, in nano-dollars, and whether it is right, [n, G] both.
        theirs: the same of the reference, [n].
        rng: of the bootstrap.
        level: the chance that any is farther off.
    """
    cost, right = theirs[0][:, None], theirs[1][:, None]
    pieces = [_ratios(spent, cost) for spent, _ in points] if cost.any() else []
    return max_t([*pieces, *(_gains(ours, right) for _, ours in points)], level, rng)


def _ratios(ours: IntArray, theirs: IntArray) -> FloatArray:
    """Return what each question adds to the ratio of costs, less that ratio."""
    ratio = ours.sum(axis=0) / theirs.sum(axis=0)
    added: FloatArray = (ours - ratio * theirs) / theirs.mean(axis=0)
    return added


def _gains(ours: BoolArray, theirs: BoolArray) -> FloatArray:
    """Return what each question adds to the difference in accuracy, less that difference."""
    gain = ours.astype(np.float64) - theirs
    added: FloatArray = gain - gain.mean(axis=0)
    return added


def _within(added: FloatArray, mean: float, errors: float) -> tuple[float, float]:
    reach = float(errors * added.std(ddof=1) / np.sqrt(len(added)))
    return mean - reach, mean + reach


def _both(wide: Interval, one: Interval | None) -> Interval:
    """Return an interval that holds both: that of one point is exact, and may be the wider one."""
    return wide if one is None else (min(wide[0], one[0]), max(wide[1], one[1]))


def _of_draws(values: IntArray, clusters: Clusters | None) -> IntArray | FloatArray:
    """Return what each independent draw came to: a request, or all that ask the same question."""
    return clusters.sums(values) if clusters else values


def about_sets(certificate: Certificate | None) -> bool:
    """Return whether a right answer in the set is promised, rather than one right answer."""
    return certificate is not None and certificate.promise.right == "sets"


def requests_of(certificate: Certificate | None, content: Content) -> Clusters | None:
    """Return which requests ask the same, of a promise per request; None of any other.

    Args:
        certificate: the promise.
        content: [n] what is asked.
    """
    kept = getattr(certificate and certificate.promise, "per_request", None)
    return Clusters(asked_first(content), kept.most) if isinstance(kept, PerRequest) else None


def promised_by(certificate: Certificate | None) -> Promised:
    """Return of what it is promised that it is right."""
    return "answer" if certificate is None else certificate.promise.right


def dominating_model(
    found: ReplayOutcome, singles: SingleModels, right: BoolArray, clusters: Clusters | None = None
) -> str | None:
    """Return a single model that is cheaper and at least as often right; None where none is proved.

    A model dominates where a paired t-test proves that it costs less, it is right at least as often
    on these questions, and the exact paired test of parity proves that it loses less than two
    points of accuracy. Each test is at the level 0.05 divided by the number of models, so that a
    policy that no model dominates is said to be dominated with probability 0.05 at most.

    Args:
        found: what the policy did.
        singles: what each role said by itself, on the same questions.
        right: [n] whether the policy is right: its best answer, or one of its set.
        clusters: which of these requests ask the same, as in `savings_of`; the tests are then by
            question.

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
        and proved_positive(
            _of_draws(found.cost_nano - singles.cost_nano[:, place], clusters), level
        )
        and _loses_little(singles.right[:, place], right, level, clusters)
    ]
    if not proved:
        return None
    return singles.roles[min(proved, key=lambda place: int(singles.cost_nano[:, place].sum()))]


def _loses_little(
    ours: BoolArray, theirs: BoolArray, level: float, clusters: Clusters | None
) -> bool:
    """Return whether it is proved that ours are less often right by less than the margin."""
    if clusters:
        loss = theirs.astype(np.float64) - ours.astype(np.float64)
        return bool(clustered_p_values(loss[:, None], clusters, MARGIN)[0] <= level)
    lost, won, n = int((theirs & ~ours).sum()), int((~theirs & ours).sum()), len(ours)
    if n <= MANY:
        return loss_p_value(lost, won, n, MARGIN) <= level
    low = binomial_interval(won, n, level)[0] - binomial_interval(lost, n, level)[1]
    return low > -MARGIN
