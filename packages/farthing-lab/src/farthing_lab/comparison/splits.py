"""Policies under another promise than coverage: proved on calibration questions, judged on others.

On each split calibration proves one of a policy's operating points, as `prove` does for a bundle,
and test questions say what came of it. Where nothing is proved the reference answers and is paid;
where there is none, nobody is asked and nothing is answered.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from farthing.money import usd_from_nano
from farthing.promises.base import Promise
from farthing.promises.observed import Facts
from farthing.promises.texts import ANSWERED, REALISED
from farthing.recommendation.base import FELL_BACK, Event, Row, Watch
from farthing.recommendation.played import tested
from farthing.traces.arrays import BoolArray, IntArray
from farthing_lab.comparison.names import KEPT, PROMISE_METRICS
from farthing_lab.comparison.played import CandidateRun, Ground, Prepared
from farthing_lab.comparison.pools import Fallback


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
    n: int
    """How many questions prove."""

    @classmethod
    def of(cls, asked: Promise, n: int, ground: Ground) -> Self:
        if not asked.held_to_reference:
            return cls(asked, None, n)
        return cls(asked, Reference.of(asked.reference or "", ground), n)

    @property
    def questions(self) -> Facts:
        theirs = self.reference
        if theirs is None:
            return Facts()
        alone = theirs.alone.cost_nano if theirs.recorded_alone else None
        return Facts(self.asked.reference, theirs.alone.right, alone)

    def prover(self, prepared: Prepared) -> Callable[[IntArray], int | None]:
        """Return what proves one of a policy's operating points by n of the questions."""
        return self.asked.prover(tested(prepared.points), self.questions, self.n)

    def judge(self, prepared: Prepared, point: int | None, test: IntArray) -> dict[str, float]:
        """Return `PROMISE_METRICS` of a test part; NaN for what does not exist."""
        cost, right, answered, accepted = self._realised(prepared, point, test)
        spent = usd_from_nano(int(cost.sum()))
        theirs = None if self.reference is None else self.reference.alone.right[test]
        figure = self.asked.figure(spent / len(test), right, answered, theirs)
        return {
            "cost_usd": spent / len(test),
            "total_cost_usd": spent,
            "accuracy": np.nan if accepted is None else float(accepted.mean()),
            REALISED: figure,
            ANSWERED: float(answered.mean()),
            KEPT: float(not self.asked.falls_short(figure)),
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

    def swept(self, prepared: Prepared) -> list[tuple[float, float]]:
        """Return (cost in USD a question, figure) of each operating point on all the questions."""
        points = prepared.points
        theirs = None if self.reference is None else self.reference.alone.right
        figures = self.asked.swept(points.correct, theirs)
        if figures is None:
            return []
        return list(zip(points.mean_usd(), figures.tolist(), strict=True))


def evaluate_on_splits(
    lines: Sequence[CandidateRun],
    asked: Promise,
    splits: Sequence[tuple[IntArray, IntArray]],
    ground: Ground,
    watch: Watch,
) -> tuple[list[Row], int]:
    """Prove and judge every line on every split; return the rows, and how many splits were played.

    What Ctrl-C finds unfinished is left out for all alike.
    """
    n = len(splits[0][0])
    courts = {line.alpha: Court.of(asked.at(line.alpha), n, ground) for line in lines}
    provers = [[courts[line.alpha].prover(each) for each in line.prepared] for line in lines]
    played: list[list[list[dict[str, float]]]] = []
    try:
        for number, split in enumerate(splits):
            played.append(
                [
                    _play(line, courts[line.alpha], proving, split)
                    for line, proving in zip(lines, provers, strict=True)
                ]
            )
            watch(Event("evaluate", "", number + 1, len(splits)))
    except KeyboardInterrupt:
        pass
    rows = [
        _row(line, courts[line.alpha], [split[i] for split in played])
        for i, line in enumerate(lines)
    ]
    return rows, len(played)


def _play(
    line: CandidateRun,
    court: Court,
    provers: Sequence[Callable[[IntArray], int | None]],
    split: tuple[IntArray, IntArray],
) -> list[dict[str, float]]:
    calibrate, test = split
    return [
        court.judge(prepared, proved(calibrate), test)
        for prepared, proved in zip(line.prepared, provers, strict=True)
    ]


def _row(line: CandidateRun, court: Court, played: Sequence[Sequence[dict[str, float]]]) -> Row:
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
        curve=[] if first.accepted is None else first.points.cost_and(first.accepted),
        curves={name: list(c) for name, c in first.fitted.curves.items()},
    )
