"""Policies at the thresholds of each split's calibration part: the rows about coverage.

They are also laid beside the known optimum, at whatever coverage they reach. On the few questions
of a comparison a policy pays for its calibration's luck as well, and one that happens to cover more
pays more. So each is played with its thresholds on many fresh questions of the same generator, and
its cost is divided by what the known optimum pays there for that coverage. Both are played on the
same questions, so that most of these questions' own luck cancels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import Dataset, Fitted
from farthing.process.batch_replay import NestedReplay, PointReplay, replay
from farthing.promises.certificate import Population
from farthing.recommendation.base import METRICS, TIMES_OPTIMUM, Candidate, Event, Row, Watch
from farthing.recommendation.metrics import NO_THRESHOLD, metrics, stream
from farthing.recommendation.played import grid, operating_points_of
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing_lab.comparison.plan import Plan
from farthing_lab.comparison.replayed_candidate import (
    ReplayedCandidate,
    at_thresholds,
    frontier,
    play,
    swept,
)
from farthing_lab.comparison.trainings import INTERRUPTED, TrainedCandidates
from farthing_lab.generator import optimum
from farthing_lab.generator.config import GeneratorConfig
from farthing_lab.generator.generate import generate
from farthing_lab.methods.baselines.rounds import OptimumPolicy

FRESH = 20_000
"""Questions that are drawn; a cost over the optimum's is then known to about 0.01."""


@dataclass(frozen=True)
class FreshSample:
    """New questions of a generator, and the curve of its optimum over them."""

    traces: TraceArrays
    cost: FloatArray
    """[V] least cost of a question, in USD."""
    coverage: FloatArray
    """[V] that it buys, rising."""

    @classmethod
    def draw(cls, config: GeneratorConfig, seed: int) -> Self:
        """Draw questions that nobody was trained, calibrated or tested on."""
        traces = generate(config, FRESH, stream("fresh questions", seed))
        known = swept(replay(OptimumPolicy(config), traces, "argmax"), FRESH)
        # the dearest of equal coverages comes first: to cover all, it leaves none of them to luck
        coverage, dearest = np.unique([share for _, share in known[::-1]], return_index=True)
        return cls(traces, np.array([cost for cost, _ in known[::-1]])[dearest], coverage)

    def times_optimum(
        self, entrant: ReplayedCandidate, kappas: Sequence[float], seed: int
    ) -> list[float]:
        """Return cost over the optimum's at the same coverage, for each threshold.

        Below the coverage of a single round nothing is cheaper than that round.

        Args:
            entrant: the policy.
            kappas: its thresholds; who draws its actions has none, and plays once for all of them.
            seed: of what it draws.

        Returns:
            Nothing where the policy cannot play these questions.
        """
        try:
            played = replay(entrant.fitted.policy, self.traces, entrant.candidate.empty)
        except InputError:
            return []
        cost, coverage = np.array(_points(entrant, played, kappas, seed)).T
        times: list[float] = (cost / np.interp(coverage, self.coverage, self.cost)).tolist()
        return times


def _points(
    entrant: ReplayedCandidate,
    played: NestedReplay | PointReplay,
    kappas: Sequence[float],
    seed: int,
) -> list[tuple[float, float]]:
    if not entrant.sampled or not isinstance(played, NestedReplay):
        return at_thresholds(played, np.asarray(kappas, dtype=np.float64))
    drawn = metrics(played.draw(stream(entrant.candidate.name, seed)))
    return [(drawn["cost_usd"], drawn["coverage"])] * len(kappas)


def known_optimum(dataset: Dataset) -> tuple[list[tuple[float, float]], list[str]]:
    """Return the frontier of the known optimum, or why there is none."""
    if dataset.generator is None:
        return [], []
    try:
        return optimum.frontier(dataset.generator), []
    except InputError as problem:
        return [], [f"the optimum is not known: {problem}"]


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
