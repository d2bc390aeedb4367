"""Policies at the thresholds of each split's calibration part: the rows about coverage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import Dataset, Fitted
from farthing.process.batch_replay import replay
from farthing.promises.certificate import Population
from farthing.recommendation.base import METRICS, TIMES_OPTIMUM, Candidate, Event, Row, Watch
from farthing.recommendation.metrics import NO_THRESHOLD, metrics, stream
from farthing.recommendation.played import grid, operating_points_of
from farthing.traces.arrays import IntArray, TraceArrays
from farthing_lab.comparison.optimality_gap import FreshSample
from farthing_lab.comparison.plan import Plan
from farthing_lab.comparison.replayed_candidate import ReplayedCandidate, frontier, play
from farthing_lab.comparison.trainings import INTERRUPTED, TrainedCandidates


@dataclass(frozen=True)
class ThresholdedRun:
    """One row to be: a candidate at one alpha, with its entrant of each seed."""

    candidate: Candidate
    alpha: Fraction
    entrants: tuple[ReplayedCandidate, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class _Played:
    kappa: tuple[float, ...]
    figures: tuple[Mapping[str, float], ...]


def replay_candidates(
    chosen: Sequence[Candidate],
    trained: TrainedCandidates,
    plan: Plan,
    dataset: Dataset,
    rows: IntArray,
) -> list[ThresholdedRun]:
    """Replay every candidate on the questions outside training, at each alpha."""
    spaces = {candidate.method.space for candidate in chosen}
    rest = {space: dataset.arranged(space).take(rows) for space in spaces}
    return [
        _line(candidate, alpha, trained.of(candidate, alpha), rest[candidate.method.space])
        for alpha in plan.alphas
        for candidate in chosen
    ]


def _line(
    candidate: Candidate, alpha: Fraction, fitted: Sequence[Fitted | None], rest: TraceArrays
) -> ThresholdedRun:
    if candidate.learner is None:
        return ThresholdedRun(candidate, alpha, note=candidate.note)
    whole = [one for one in fitted if one is not None]
    if len(whole) < len(fitted):
        return ThresholdedRun(candidate, alpha, note=INTERRUPTED)
    try:
        entrants = tuple(
            ReplayedCandidate(candidate, one, replay(one.policy, rest, candidate.empty))
            for one in whole
        )
    except InputError as problem:
        return ThresholdedRun(candidate, alpha, note=str(problem))
    remarks = (candidate.note, getattr(whole[0].policy, "note", ""))
    return ThresholdedRun(candidate, alpha, entrants, "; ".join(filter(None, remarks)))


def judge_on_splits(
    lines: Sequence[ThresholdedRun],
    splits: Sequence[tuple[IntArray, IntArray]],
    population: Population,
    watch: Watch,
) -> tuple[list[Row], int]:
    """Play every line on every split; return the rows, and how many splits were played.

    What Ctrl-C finds unfinished is left out for all alike.
    """
    played: list[list[_Played]] = []
    try:
        for number, (calibrate, test) in enumerate(splits):
            played.append([_play(line, number, calibrate, test, population) for line in lines])
            watch(Event("evaluate", "", number + 1, len(splits)))
    except KeyboardInterrupt:
        pass
    rows = [_row(line, [split[i] for split in played]) for i, line in enumerate(lines)]
    return rows, len(played)


def _play(
    line: ThresholdedRun, number: int, calibrate: IntArray, test: IntArray, population: Population
) -> _Played:
    kappas = tuple(
        entrant.threshold(calibrate, line.alpha, population) for entrant in line.entrants
    )
    figures = tuple(
        metrics(play(entrant, kappa, test, stream(line.candidate.name, seed, number)))
        for seed, (entrant, kappa) in enumerate(zip(line.entrants, kappas, strict=True))
    )
    return _Played(kappas, figures)


def _row(line: ThresholdedRun, played: Sequence[_Played]) -> Row:
    candidate, seeds = line.candidate, range(len(line.entrants))
    row = Row(candidate.name, candidate.label, line.alpha, candidate.calibration, note=line.note)
    if not line.entrants or not played:
        return row
    figures = [split.figures[seed] for seed in seeds for split in played]
    return replace(
        row,
        per_split={name: [values[name] for values in figures] for name in METRICS},
        kappa=[split.kappa[seed] for seed in seeds for split in played],
        frontier=frontier(line.entrants[0]),
        curve=_curve(line.entrants[0]),
        curves={name: list(c) for name, c in line.entrants[0].fitted.curves.items()},
    )


def _curve(entrant: ReplayedCandidate) -> list[tuple[float, float]]:
    """Return (cost in USD a question, accuracy) at its thresholds; its one point without any."""
    if entrant.candidate.calibration == "none":
        everything = np.arange(len(entrant.replayed))
        found = metrics(play(entrant, NO_THRESHOLD, everything, stream(entrant.candidate.name)))
        return [(found["cost_usd"], found["accuracy"])]
    points = operating_points_of(entrant.replayed, grid(entrant.replayed))
    return points.cost_and(points.correct)


def beside_optimum(
    fresh: FreshSample, lines: Sequence[ThresholdedRun], rows: Sequence[Row], watch: Watch
) -> list[Row]:
    """Say of each row what it costs over the known optimum; what Ctrl-C cuts off stays unsaid."""
    found = list(rows)
    try:
        for place, (line, row) in enumerate(zip(lines, rows, strict=True)):
            if row.per_split:
                times = {TIMES_OPTIMUM: _times_optimum(fresh, line, row)}
                found[place] = replace(row, per_split={**row.per_split, **times})
            watch(Event("optimum", "", place + 1, len(rows)))
    except KeyboardInterrupt:
        pass
    return found


def _times_optimum(fresh: FreshSample, line: ThresholdedRun, row: Row) -> list[float]:
    each = len(row.kappa) // len(line.entrants)
    return [
        value
        for seed, entrant in enumerate(line.entrants)
        for value in fresh.times_optimum(entrant, row.kappa[seed * each : (seed + 1) * each], seed)
    ]
