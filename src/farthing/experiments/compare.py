"""Train every policy, then draw calibration and test anew many times: one fair comparison."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Literal

import numpy as np

from farthing.calibration.base import Population
from farthing.errors import InputError
from farthing.experiments.base import (
    METRICS,
    SOLVABLE_ONLY,
    TIMES_OPTIMUM,
    Candidate,
    Comparison,
    Event,
    Row,
    Watch,
    ignore,
)
from farthing.experiments.beside_singles import BesideSingles
from farthing.experiments.candidates import candidates, left_out
from farthing.experiments.evaluate import Entrant, frontier, metrics, play, stream
from farthing.experiments.own_coverage import Fresh, known_optimum
from farthing.experiments.published import fitted_to, published
from farthing.experiments.run import Job, get_ready, train_all
from farthing.experiments.run_on_ray import get_ready_on_ray, on_ray
from farthing.experiments.significance import differences
from farthing.features.rounds import FeatureSet
from farthing.methods.base import Dataset, Fitted, Method, Space
from farthing.methods.cards import cards
from farthing.process.action_space import recorded_space
from farthing.process.generator.generate import MODELS
from farthing.process.replayed import replay
from farthing.traces.arrays import IntArray, TraceArrays
from farthing.traces.assemble import fingerprint
from farthing.traces.grades import check_graded
from farthing.traces.splits import Division, divide

INTERRUPTED = "its training was interrupted"
READY = {"processes": get_ready, "ray": get_ready_on_ray}
"""What lets each engine's workers begin to load."""
ENGINES = {"processes": train_all, "ray": on_ray}
"""Where trainings run: on this machine, or on a Ray cluster."""


@dataclass(frozen=True)
class Plan:
    """Who is compared, and how thoroughly."""

    alphas: tuple[Fraction, ...]
    """The promised shares of misses."""
    policies: tuple[str, ...] | None = None
    """Names of candidates; None: all."""
    splits: int = 100
    """How many times calibration and test are drawn anew."""
    seeds: int = 1
    """Each policy is trained under the seeds seed, seed + 1, ..."""
    seed: int = 0
    sizes: Mapping[str, int | None] = field(default_factory=dict)
    """Questions to `train`, `calibrate` and `test`; what is not given is its share."""
    workers: int = 0
    """Processes to train in; 0: as many as there are cores. The results are the same."""
    population: Population = "all"
    """Which questions thresholds are set on; `solvable`: the promise is about those."""
    space: Literal["rounds", "calls", "pool"] | None = None
    """`rounds`: whole rounds only; `calls`: single calls as well; `pool`: models, not rounds.
    None: everything that applies."""
    engine: Literal["processes", "ray"] = "processes"
    """A name of `ENGINES`. The results are the same."""


@dataclass(frozen=True)
class _Line:
    """One row to be: a candidate at one alpha, with its entrant of each seed."""

    candidate: Candidate
    alpha: Fraction
    entrants: tuple[Entrant, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class _Played:
    """What one line did on one split, a value a seed."""

    kappa: tuple[float, ...]
    figures: tuple[Mapping[str, float], ...]


def compare(dataset: Dataset, plan: Plan, watch: Watch = ignore) -> Comparison:
    """Compare policies on the same splits of the same questions.

    Each policy is trained once for each alpha and seed, on one training part, and replayed once on
    everything else; each split then costs no more than a quantile. The first split is that of
    `fixed_parts` under the same seed. A pool of models is played as a cascade. Ctrl-C ends the
    work early: the comparison holds what was complete, and a note says so. Trainings run in
    processes of their own, so a script calls this under `if __name__ == "__main__":`.

    Args:
        dataset: the questions.
        plan: who is compared, and how thoroughly.
        watch: is told how far the work is.

    Raises:
        UnknownNameError: a policy has no such name.
        TooFewTracesError: there are fewer questions than the sizes ask for.
        MissingExtraError: training needs a package that is not installed.
        InputError: the traces or the policies do not fit the action space.
    """
    check_graded(dataset.traces)
    warm_up(plan)
    return compare_these(_taking_part(dataset, plan), dataset, plan, watch)


def compare_these(
    chosen: Sequence[Candidate], dataset: Dataset, plan: Plan, watch: Watch = ignore
) -> Comparison:
    """Compare candidates that the caller made; the plan's policies and action space say nothing."""
    arrays = dataset.arranged("rounds")
    rng = np.random.default_rng(plan.seed)
    division = divide(arrays, rng, **plan.sizes)
    splits = [_places(division, rng) for _ in range(plan.splits)]
    fitted = _train(chosen, plan, dataset, division.train, watch)
    lines = _lines(chosen, fitted, plan, dataset, division.rest)
    played = _play_all(lines, splits, plan.population, watch)
    rows = [_row(line, [split[i] for split in played]) for i, line in enumerate(lines)]
    singles = BesideSingles.of(dataset, division, [test for _, test in splits[: len(played)]])
    rows = rows if singles is None else [singles.row(row) for row in rows]
    best, why_not = known_optimum(dataset)
    if best and dataset.generator is not None:
        rows = _beside_optimum(Fresh.draw(dataset.generator, plan.seed), lines, rows, watch)
    return Comparison(
        source=dataset.name,
        fingerprint=fingerprint(dataset.traces),
        sizes=division.sizes,
        horizon=arrays.horizon,
        roles=arrays.roles,
        splits=len(played),
        seeds=_seeds(plan),
        rows=rows,
        differences=differences(rows, division.n_test / len(division.rest)),
        optimum=best,
        published=published(dataset.preset) if dataset.preset else [],
        reference="" if singles is None else singles.reference,
        made_up=_made_up(dataset),
        notes=[
            *_notes(dataset, plan, division, arrays.take(division.train)),
            *why_not,
            *_unfinished(plan, lines, played),
        ],
    )


def _taking_part(dataset: Dataset, plan: Plan) -> list[Candidate]:
    """Return the candidates of a plan that its action space allows, if the traces do."""
    if plan.space == "pool" and not dataset.is_pool:
        raise InputError(
            f"{dataset.name} holds {dataset.traces.horizon} rounds of "
            f"{', '.join(dataset.traces.roles)}, not a pool; use --action-space rounds or calls"
        )
    if plan.space == "calls":
        recorded_space("calls", dataset.traces)  # refuses calls that saw others
    chosen = candidates(dataset, plan.policies)
    if plan.space == "rounds":
        chosen = [one for one in chosen if "rounds" in one.method.action_spaces]
        if not chosen:
            raise InputError(
                f"{', '.join(plan.policies or ())}: buys call by call; use --action-space calls"
            )
    return chosen


def warm_up(plan: Plan) -> None:
    """Start to load what workers will need, where there will be any."""
    several = plan.policies is None or len(plan.policies) * len(plan.alphas) * plan.seeds > 1
    workers = plan.workers or cores()
    modules = {
        one.learner.partition(":")[0] for one in _asked_for(plan) if one.learner and one.extras
    }
    if several and workers > 1 and modules:
        READY[plan.engine](sorted(modules), workers)


def _asked_for(plan: Plan) -> list[Method]:
    """Return the methods that a plan names, or all."""
    wanted = plan.policies
    return [one for one in cards() if wanted is None or any(w.startswith(one.name) for w in wanted)]


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _seeds(plan: Plan) -> list[int]:
    return list(range(plan.seed, plan.seed + plan.seeds))


def _places(division: Division, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw a calibration and a test part, as places within the rest."""
    calibrate, test = division.redraw(rng)
    return np.searchsorted(division.rest, calibrate), np.searchsorted(division.rest, test)


def _job(candidate: Candidate, alpha: Fraction, seed: int) -> Job | None:
    """Return the training that a candidate needs; equal jobs are one training."""
    if candidate.learner is None:
        return None
    varies = candidate.varies_with
    parts = [f"alpha {float(alpha):g}"] if "alpha" in varies else []
    parts += [f"seed {seed}"] if "seed" in varies else []
    return Job(", ".join([candidate.name, *parts]), candidate.learner, alpha, seed, not varies)


def _train(
    chosen: Sequence[Candidate], plan: Plan, dataset: Dataset, rows: IntArray, watch: Watch
) -> Mapping[tuple[object, ...], Fitted | None]:
    """Run each training once, whoever shares it; those of one arrangement side by side."""
    done: dict[tuple[object, ...], Fitted | None] = {}
    for in_pool in (False, True):
        jobs: dict[tuple[object, ...], Job] = {}
        mine = [one for one in chosen if (one.method.space == "pool") == in_pool]
        for candidate, alpha, seed in product(mine, plan.alphas, _seeds(plan)):
            job = _job(candidate, alpha, seed)
            if job is not None:
                jobs.setdefault(_key(candidate, alpha, seed), job)
        train = dataset.arranged("pool" if in_pool else "rounds").take(rows)
        found = ENGINES[plan.engine](list(jobs.values()), train, plan.workers or cores(), watch)
        done |= dict(zip(jobs, found, strict=True))
    return done


def _key(candidate: Candidate, alpha: Fraction, seed: int) -> tuple[object, ...]:
    varies = candidate.varies_with
    return (
        id(candidate.learner),
        alpha if "alpha" in varies else None,
        seed if "seed" in varies else None,
    )


def _lines(
    chosen: Sequence[Candidate],
    fitted: Mapping[tuple[object, ...], Fitted | None],
    plan: Plan,
    dataset: Dataset,
    rows: IntArray,
) -> list[_Line]:
    rest = {space: dataset.arranged(space).take(rows) for space in _spaces(chosen)}

    def line(candidate: Candidate, alpha: Fraction) -> _Line:
        trained = [fitted.get(_key(candidate, alpha, seed)) for seed in _seeds(plan)]
        return _line(candidate, alpha, trained, rest[candidate.method.space])

    return [line(candidate, alpha) for alpha in plan.alphas for candidate in chosen]


def _spaces(chosen: Sequence[Candidate]) -> set[Space]:
    return {candidate.method.space for candidate in chosen}


def _line(
    candidate: Candidate, alpha: Fraction, fitted: Sequence[Fitted | None], rest: TraceArrays
) -> _Line:
    """Replay a candidate's policies, or say why it has none to replay."""
    if candidate.learner is None:
        return _Line(candidate, alpha, note=candidate.note)
    whole = [one for one in fitted if one is not None]
    if len(whole) < len(fitted):
        return _Line(candidate, alpha, note=INTERRUPTED)
    try:
        entrants = tuple(
            Entrant(candidate, one, replay(one.policy, rest, candidate.empty)) for one in whole
        )
    except InputError as problem:
        return _Line(candidate, alpha, note=str(problem))
    remarks = (candidate.note, getattr(whole[0].policy, "note", ""))
    return _Line(candidate, alpha, entrants, "; ".join(filter(None, remarks)))


def _play_all(
    lines: Sequence[_Line],
    splits: Sequence[tuple[IntArray, IntArray]],
    population: Population,
    watch: Watch,
) -> list[list[_Played]]:
    """Play every line on every split; what Ctrl-C finds unfinished is left out for all alike."""
    played: list[list[_Played]] = []
    try:
        for number, (calibrate, test) in enumerate(splits):
            played.append([_play(line, number, calibrate, test, population) for line in lines])
            watch(Event("evaluate", "", number + 1, len(splits)))
    except KeyboardInterrupt:
        pass
    return played


def _play(
    line: _Line, number: int, calibrate: IntArray, test: IntArray, population: Population
) -> _Played:
    kappas = tuple(
        entrant.threshold(calibrate, line.alpha, population) for entrant in line.entrants
    )
    figures = tuple(
        metrics(play(entrant, kappa, test, stream(line.candidate.name, seed, number)))
        for seed, (entrant, kappa) in enumerate(zip(line.entrants, kappas, strict=True))
    )
    return _Played(kappas, figures)


def _row(line: _Line, played: Sequence[_Played]) -> Row:
    """Put one line's splits together, seed after seed."""
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
        curves={name: list(c) for name, c in line.entrants[0].fitted.curves.items()},
    )


def _made_up(dataset: Dataset) -> str:
    """Say what made the questions up, also where they come from a file."""
    if dataset.preset:
        return fitted_to(dataset.preset)
    generated = dataset.generator is not None or dataset.traces.models == MODELS
    return "made-up questions of a generator" if generated else ""


def _beside_optimum(
    fresh: Fresh, lines: Sequence[_Line], rows: Sequence[Row], watch: Watch
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


def _times_optimum(fresh: Fresh, line: _Line, row: Row) -> list[float]:
    each = len(row.kappa) // len(line.entrants)
    return [
        value
        for seed, entrant in enumerate(line.entrants)
        for value in fresh.times_optimum(entrant, row.kappa[seed * each : (seed + 1) * each], seed)
    ]


def _notes(dataset: Dataset, plan: Plan, division: Division, train: TraceArrays) -> list[str]:
    notes = [f"questions: {division}"]
    if train.roles != dataset.traces.roles:
        order = train.models[0]
        notes.append(f"a pool of models, asked one after another, the cheapest first: {order}")
    if plan.population == "solvable":
        notes.append(SOLVABLE_ONLY)
    if plan.policies is None and (absent := left_out(dataset)):
        whom = [f"{', '.join(names)} ({why})" for why, names in absent.items()]
        notes.append(f"left out: {'; '.join(whom)}")
    off = FeatureSet.fit(train).off
    if off:
        notes.append(f"features that these traces say nothing about: {', '.join(off)}")
    return notes


def _unfinished(plan: Plan, lines: Sequence[_Line], played: Sequence[object]) -> list[str]:
    lost = sum(line.note == INTERRUPTED for line in lines)
    notes = [f"interrupted: {lost} rows were not trained to the end and are empty"] if lost else []
    if len(played) < plan.splits:
        notes.append(f"interrupted: {len(played)} of {plan.splits} splits were played")
    return notes
