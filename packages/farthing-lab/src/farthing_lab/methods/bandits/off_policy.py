"""What another policy would have come to, by the record of a bandit that chose by lot.

Wherever the draw fell on the arm that the other policy would have asked, its grade is known. Such a
grade counts with the weight w = least / p, p being the probability of the draw and `least` a bound
that p could not fall below whatever the question was. Where the other policy asks several arms, the
bound has to hold for each of them: then it is the floor. Bets on the mean hold at every moment
(`calibration.anytime`), however the bandit learned meanwhile, since p was written down before the
grade was known.

**Assumed**: every question has the same expected grade under that policy given those before, as
where questions are drawn alike; the propensities that were recorded are true; and
arms were left out for want of money, not by what the question was.

Where an arm could not be paid for any more its p is 0: the record counts up to there.

Source: Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro 2022, "Anytime-valid off-policy
inference for contextual bandits", with the bets of `calibration.anytime`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from farthing.errors import InputError
from farthing.promises.statistics import confidence_sequence
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.base import Trace
from farthing_lab.methods.bandits.base import ArmChoice


@dataclass(frozen=True)
class PropensityLog:
    """What was drawn on n questions, with which probability, and its grade."""

    arm: IntArray
    """[n]"""
    propensity: FloatArray
    """[n] of that arm."""
    least: FloatArray
    """[n] what it could not fall below, whatever the question."""
    floor: FloatArray
    """[n] what no arm could fall below, whatever the question; 0: one could not be drawn."""
    grade: FloatArray
    """[n] 0 to 1."""
    offered: BoolArray
    """[n, K] which arms could be drawn."""

    @classmethod
    def of(cls, choices: Sequence[ArmChoice], grades: Sequence[float]) -> "PropensityLog":
        if not choices:
            raise InputError("nothing was chosen yet; there is no record to judge by")
        return cls(
            np.array([one.arm for one in choices]),
            np.array([one.propensity for one in choices]),
            np.array([one.least for one in choices]),
            np.array([one.floor for one in choices]),
            np.array(grades, dtype=np.float64),
            np.array([one.seen.offered for one in choices]),
        )


@dataclass(frozen=True)
class OffPolicyValue:
    """The mean grade that another policy would have had."""

    estimate: float | None
    """None where it never agreed with the draw."""
    low: float
    high: float
    agreed: int
    """On how many questions the draw fell on its arm."""
    questions: int
    """Questions that count: those before the budget first left out an arm that it asks."""


def value_of(log: PropensityLog, arms: IntArray | int, delta: float = 0.05) -> OffPolicyValue:
    """Return what a policy would have come to, with an interval that may be looked at any time.

    Args:
        log: the record.
        arms: [n] the arm that the policy would have asked, or one arm for all questions. It may
            depend on the question, not on grades.
        delta: the probability with which the interval may ever miss.

    >>> n = 400
    >>> even, right = np.full(n, 0.5), np.tile([1.0, 1.0, 1.0, 0.0], n // 4)
    >>> arm, every = np.repeat([0, 1], n // 2), np.ones((n, 2), dtype=bool)
    >>> log = PropensityLog(arm, even, even, even, right, every)
    >>> found = value_of(log, 0)
    >>> found.estimate, found.agreed, found.low < 0.75 < found.high
    (0.75, 200, True)
    """
    target = np.broadcast_to(np.asarray(arms), log.arm.shape)
    asked = np.unique(target)
    least = log.least if len(asked) == 1 else log.floor
    lacking = ~log.offered[:, asked].all(axis=1) | (least <= 0.0)
    n = int(lacking.argmax()) if lacking.any() else len(target)
    hit = np.flatnonzero((log.arm == target)[:n])
    state = confidence_sequence.observe(
        confidence_sequence.MeanState.begin(delta), log.grade[hit], least[hit] / log.propensity[hit]
    )
    low, high = confidence_sequence.interval(state)
    return OffPolicyValue(confidence_sequence.estimate(state), low, high, len(hit), n)


PROPENSITY, LEAST, FLOOR = "propensity", "least_propensity", "floor_propensity"
"""Names of the recorded numbers; features only for who asks for them by name."""


def recorded(
    traces: Iterable[Trace], ids: Sequence[str], choices: Sequence[ArmChoice]
) -> Iterator[Trace]:
    """Yield the traces of the questions that were asked, with the call of the model that was drawn.

    The traces have the calls of all models; ids and choices are those of the questions asked.
    """
    by_id = {trace.id: trace for trace in traces}
    for at, choice in zip(ids, choices, strict=True):
        trace = by_id[at]
        call = next(call for call in trace.calls if call.role == choice.name)
        drawn = {PROPENSITY: choice.propensity, LEAST: choice.least, FLOOR: choice.floor}
        numbers = {**call.extra, **drawn}
        yield msgspec.structs.replace(trace, calls=[msgspec.structs.replace(call, extra=numbers)])


def log_of(traces: TraceArrays) -> PropensityLog:
    """Return what such traces say of other policies, for `off_policy.value_of`."""
    names = PROPENSITY, LEAST, FLOOR
    if lacking := [name for name in names if name not in traces.signals]:
        raise InputError(f"these traces have no `{lacking[0]}`; a bandit writes it with each call")
    made = traces.made[:, 0]
    if not (made.sum(axis=1) == 1).all():
        raise InputError("a record of a bandit has one call a question; these traces have others")
    at = np.arange(len(traces)), 0, made.argmax(axis=1)
    drawn, least, floor = (traces.signals[name][at].astype(np.float64) for name in names)
    return PropensityLog(
        made.argmax(axis=1),
        drawn,
        least,
        floor,
        traces.correct[at].astype(np.float64),
        np.ones(made.shape, dtype=bool),
    )
