"""Policies under another promise than coverage: proved on calibration questions, judged on others.

On each split calibration proves one of a policy's operating points, as `proofs` does for a bundle,
and test questions say what came of it. Where nothing is proved the reference answers and is paid;
where there is none, nobody is asked and nothing is answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from farthing.comparison.played import Ground, Line, Prepared, promise_at
from farthing.comparison.pools import Fallback
from farthing.errors import InputError, UnknownNameError
from farthing.money import usd_from_nano
from farthing.process.operating_points import OperatingPoints
from farthing.promises.kinds.budget import Spending, budget_point
from farthing.promises.kinds.selective import Answers, selective_point
from farthing.promises.levels import exact_margin
from farthing.promises.statistics.expected_cost import Allowed
from farthing.promises.statistics.fixed_sequence import cheapest
from farthing.recommendation.base import (
    ANSWERED,
    FELL_BACK,
    KEPT,
    PROMISE_METRICS,
    REALISED,
    Event,
    Row,
    Watch,
)
from farthing.recommendation.promises import Agreement, Budget, Parity, Promise, Selective
from farthing.recommendation.ranking import falls_short
from farthing.recommendation.savings import paid_most
from farthing.recommendation.start_point import allows
from farthing.traces.arrays import BoolArray, IntArray, TraceArrays
from farthing.traces.grades.named import check_graded


def with_reference(asked: Promise, traces: TraceArrays, reference: str | None) -> Promise:
    """Return a promise that names the model which it is held against.

    Args:
        asked: the promise; where it names none, it is with the model that most is paid for.
        traces: training questions, as they were recorded.
        reference: who it is where the promise does not say.

    Raises:
        InputError: the promise cannot be compared, or nobody graded some answers.
        UnknownNameError: the reference is no role of the traces.
    """
    if not isinstance(asked, Parity | Agreement | Selective | Budget):
        kind = type(asked).__name__.lower()
        raise InputError(
            f"methods cannot be compared under a promise of {kind}; ask for coverage, parity, "
            "agreement, selective or budget"
        )
    if isinstance(asked, Selective | Budget):
        return asked
    named = asked.reference or reference
    if named is None and isinstance(asked, Parity):
        check_graded(traces)
    named = named or paid_most(traces)
    if named not in traces.roles:
        raise UnknownNameError("role", named, traces.roles)
    return replace(asked, reference=named)


@dataclass(frozen=True)
class Reference:
    """What asking the reference for every question comes to."""

    alone: Fallback
    """What it costs, and whether its answer is right by the grade that is promised."""
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
        return cls(Fallback(cost, recorded.correct[:, 0, place]), accepted, by_itself)


@dataclass(frozen=True)
class Court:
    """What proves a promise and says what came of it."""

    asked: Promise
    reference: Reference | None
    """None: nobody answers where nothing is proved."""
    allowed: Allowed | None
    """Of parity and agreement: how many losses calibration allows."""

    @classmethod
    def of(cls, asked: Promise, n: int, ground: Ground) -> Self:
        """Set up for n calibration questions."""
        if not isinstance(asked, Parity | Agreement):
            return cls(asked, None, None)
        return cls(asked, Reference.of(asked.reference or "", ground), allows(asked, n))

    def point(self, points: OperatingPoints, calibrate: IntArray) -> int | None:
        """Return the operating point that calibration questions prove; None: none is proved."""
        proof = points.take(calibrate)
        match self.asked:
            case Selective() as asked:
                answers = Answers(proof.answered, proof.correct)
                return selective_point(answers, asked.alpha, asked.delta)
            case Budget() as asked:
                spending = Spending(proof.cost_nano, proof.covered, asked.most_nano)
                return budget_point(spending, asked.nano, asked.delta)
        return self._cheapest(proof, calibrate)

    def _cheapest(self, proof: OperatingPoints, calibrate: IntArray) -> int | None:
        """Return the cheapest of those that lose few enough, tested from the dearest down."""
        if self.reference is None or self.allowed is None:
            raise RuntimeError("parity and agreement are with a reference")
        theirs = np.ones(len(calibrate), dtype=bool)
        if isinstance(self.asked, Parity):
            theirs = self.reference.alone.right[calibrate]
        lost = (theirs[:, None] & ~proof.correct).sum(axis=0)
        won = (~theirs[:, None] & proof.correct).sum(axis=0)
        few = lost <= np.array([self.allowed(int(number)) for number in won])
        proved = np.flatnonzero(np.logical_and.accumulate(few[::-1])[::-1])
        may_cost_more = isinstance(self.asked, Parity) and exact_margin(self.asked.epsilon) < 0
        price = None
        if self.reference.recorded_alone and not may_cost_more:
            price = self.reference.alone.cost_nano[calibrate]
        return cheapest(proved, proof.cost_nano, price)

    def judge(self, prepared: Prepared, point: int | None, test: IntArray) -> dict[str, float]:
        """Return `PROMISE_METRICS` of a test part; NaN for what does not exist."""
        cost, right, answered, accepted = self._realised(prepared, point, test)
        spent = usd_from_nano(int(cost.sum()))
        figure = self._figure(spent / len(test), right, answered, test)
        return {
            "cost_usd": spent / len(test),
            "total_cost_usd": spent,
            "accuracy": np.nan if accepted is None else float(accepted.mean()),
            REALISED: figure,
            ANSWERED: float(answered.mean()),
            KEPT: float(not falls_short(self.asked, figure)),
            FELL_BACK: float(point is None),
        }

    def _realised(
        self, prepared: Prepared, point: int | None, test: IntArray
    ) -> tuple[IntArray, BoolArray, BoolArray, BoolArray | None]:
        """Return what questions cost, whether answers are as promised, given at all, and right."""
        of, theirs = prepared.points, self.reference
        if point is not None:
            accepted = None if prepared.accepted is None else prepared.accepted[test, point]
            return (
                of.cost_nano[test, point],
                of.correct[test, point],
                of.answered[test, point],
                accepted,
            )
        if theirs is None:
            none = np.zeros(len(test), dtype=bool)
            return none.astype(np.int64), none, none, none
        accepted = None if theirs.accepted is None else theirs.accepted[test]
        everyone = np.ones(len(test), dtype=bool)
        return theirs.alone.cost_nano[test], theirs.alone.right[test], everyone, accepted

    def _figure(
        self, cost_usd: float, right: BoolArray, answered: BoolArray, test: IntArray
    ) -> float:
        """Return the figure that the promise is about."""
        match self.asked:
            case Budget():
                return cost_usd
            case Selective():
                return float(right[answered].mean()) if answered.any() else np.nan
            case Parity() if self.reference is not None:
                return float(right.mean() - self.reference.alone.right[test].mean())
        return float(right.mean())

    def swept(self, prepared: Prepared) -> list[tuple[float, float]]:
        """Return (cost in USD a question, figure) of each operating point on all the questions.

        Of a budget the figure is the share of right answers; none for a selective promise, whose
        operating points differ in what they withhold and not in what they cost.
        """
        points = prepared.points
        if isinstance(self.asked, Selective):
            return []
        right = points.correct.mean(axis=0)
        if isinstance(self.asked, Parity) and self.reference is not None:
            right = right - self.reference.alone.right.mean()
        cost = [usd_from_nano(int(total)) / len(points) for total in points.cost_nano.sum(axis=0)]
        return list(zip(cost, right.tolist(), strict=True))


def rows_of(
    lines: Sequence[Line],
    asked: Promise,
    splits: Sequence[tuple[IntArray, IntArray]],
    ground: Ground,
    watch: Watch,
) -> tuple[list[Row], int]:
    """Prove and judge every line on every split; return the rows, and how many splits were played.

    What Ctrl-C finds unfinished is left out for all alike.
    """
    n = len(splits[0][0])
    courts = {line.alpha: Court.of(promise_at(asked, line.alpha), n, ground) for line in lines}
    played: list[list[list[dict[str, float]]]] = []
    try:
        for number, split in enumerate(splits):
            played.append([_play(line, courts[line.alpha], split) for line in lines])
            watch(Event("evaluate", "", number + 1, len(splits)))
    except KeyboardInterrupt:
        pass
    rows = [
        _row(line, courts[line.alpha], [split[i] for split in played])
        for i, line in enumerate(lines)
    ]
    return rows, len(played)


def _play(line: Line, court: Court, split: tuple[IntArray, IntArray]) -> list[dict[str, float]]:
    """Return what one line did on one split, a record a seed."""
    calibrate, test = split
    return [court.judge(one, court.point(one.points, calibrate), test) for one in line.prepared]


def _row(line: Line, court: Court, played: Sequence[Sequence[dict[str, float]]]) -> Row:
    """Put one line's splits together, seed after seed."""
    candidate = line.candidate
    row = Row(candidate.name, candidate.label, line.alpha, "proved", note=line.note)
    if not line.prepared or not played:
        return row
    figures = [split[seed] for seed in range(len(line.prepared)) for split in played]
    first = line.prepared[0]
    return replace(
        row,
        per_split={name: [one[name] for one in figures] for name in PROMISE_METRICS},
        frontier=court.swept(first),
        curves={name: list(c) for name, c in first.fitted.curves.items()},
    )
