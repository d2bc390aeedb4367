"""Train every policy, then draw calibration and test anew many times: one fair comparison."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from farthing.errors import InputError
from farthing.features.rounds import FeatureSet
from farthing.methods.base import Dataset, Fitted
from farthing.process.action_space import recorded_space
from farthing.process.batch_replay import replay
from farthing.recommendation.base import Candidate, Comparison, Row, Watch, ignore
from farthing.recommendation.candidates import (
    beside_each_alone,
    candidates,
    unavailable,
    with_reference_model,
)
from farthing.recommendation.promised_grade import read_for
from farthing.recommendation.savings import guessed, held_against
from farthing.traces.arrays import TraceArrays
from farthing.traces.costs import check_costs
from farthing.traces.eligibility import check_alike
from farthing.traces.fingerprint import fingerprint
from farthing.traces.grades.below_chance import check_gold
from farthing.traces.grades.overlay import check_graded
from farthing.traces.splits import Division, divide
from farthing_lab.comparison.baselines import SingleModelBaselines, differences
from farthing_lab.comparison.lines import Points, Split, lines_of, rows_of
from farthing_lab.comparison.names import SOLVABLE_ONLY
from farthing_lab.comparison.plan import EVERYONE, Plan
from farthing_lab.comparison.proved import Ground, ProvedCandidate
from farthing_lab.comparison.published import fitted_to, published
from farthing_lab.comparison.router_figures import with_router_figures
from farthing_lab.comparison.thresholded import FreshSample, ThresholdedCandidate
from farthing_lab.comparison.trainings import INTERRUPTED, Trained, preload_workers, train
from farthing_lab.generator import optimum
from farthing_lab.generator.generate import MODELS

WHO_CAN_WIN = (
    f"policies that can win here, and each model alone where it was recorded so; `{EVERYONE}` adds "
    "the paper's and every other one that can run"
)


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
    """
    asked = plan.promise
    if dataset.missing == "worst":
        raise InputError(
            "a comparison is of questions that every model was asked; the worst case is for "
            "recommend, calibrate and evaluate"
        )
    dataset = dataset.in_common(None if asked is None else asked.reference)
    check_alike(dataset.traces)
    check_costs(dataset.traces)
    recorded, plan = dataset, _promising(dataset, plan)
    dataset = _graded(dataset, plan)
    check_gold(dataset.traces)
    preload_workers(plan, dataset)
    found = compare_these(_taking_part(dataset, plan), dataset, plan, watch, recorded=recorded)
    named = recorded.reference or recorded.traces.cuts  # the full thought is no guess
    if asked is None or not asked.held_to_reference or asked.reference or named:
        return found
    return replace(found, notes=[guessed(dataset.reference or ""), *found.notes])


def compare_these(
    chosen: Sequence[Candidate],
    dataset: Dataset,
    plan: Plan,
    watch: Watch = ignore,
    *,
    recorded: Dataset | None = None,
) -> Comparison:
    """Compare candidates that the caller made; the plan's policies and action space say nothing.

    Args:
        chosen: the candidates.
        dataset: the questions, graded by what is promised.
        plan: how thoroughly they are compared.
        watch: is told how far the work is.
        recorded: the questions as they were recorded; None: they are.
    """
    recorded = dataset if recorded is None else replace(recorded, reference=dataset.reference)
    arrays = dataset.arranged("rounds")
    rng = np.random.default_rng(plan.seed)
    division = divide(arrays, rng, **plan.sizes)
    splits = []
    for _ in range(plan.splits):
        calibrate, test = (np.searchsorted(division.rest, part) for part in division.redraw(rng))
        splits.append((calibrate, test))
    trained = train(chosen, plan, dataset, division.train, watch)
    accepted = None if recorded.traces.ungraded.any() else recorded
    if accepted is not None and recorded.traces is dataset.traces:
        accepted = dataset
    ground = Ground(dataset, accepted, division.train, division.rest, division.sizes["calibrate"])
    rows, played, best, notes = _rows(chosen, trained, plan, ground, splits, watch)
    singles = SingleModelBaselines.of(recorded, division, [test for _, test in splits[:played]])
    if singles is not None:
        rows = [singles.row(row) for row in rows]
    rows = with_router_figures(rows, recorded.traces.take(division.rest))
    return Comparison(
        source=dataset.name,
        fingerprint=fingerprint(recorded.traces),
        sizes=division.sizes,
        horizon=arrays.horizon,
        roles=arrays.roles,
        splits=played,
        seeds=plan.seeds_used,
        rows=rows,
        differences=differences(rows, division.n_test / len(division.rest), plan.promise),
        optimum=best,
        published=published(dataset.preset) if dataset.preset and plan.promise is None else [],
        reference="" if singles is None else singles.reference,
        today=None if singles is None else singles.today,
        promise=plan.promise,
        made_up=_made_up(dataset),
        notes=[
            *_notes(dataset, plan, division, arrays.take(division.train)),
            *notes,
            *_unfinished(plan, rows, played),
        ],
    )


def _promising(dataset: Dataset, plan: Plan) -> Plan:
    """Return a plan whose promise names its reference; coverage is what it promises without one."""
    asked = plan.promise
    if asked is None:
        return plan
    asked.comparable()
    if asked.layout == "critical":
        return replace(plan, promise=None, population=getattr(asked, "population", "all"))
    if len(plan.alphas) > 1 and not asked.of_alpha:
        raise InputError(f"a promise of {asked.kind} has no alpha; give at most one, to train for")
    if plan.population != "all":
        raise InputError("a population is for a promise of coverage; leave it out")
    training = dataset.traces.take(
        divide(dataset.arranged("rounds"), np.random.default_rng(plan.seed), **plan.sizes).train
    )
    if not asked.held_to_reference:
        return plan
    reference = held_against(asked, dataset.reference, training, training, alone=False)
    return replace(plan, promise=asked.beside(reference))


def _graded(dataset: Dataset, plan: Plan) -> Dataset:
    if plan.promise is None:
        check_graded(dataset.traces)
        return dataset
    reference = plan.promise.reference or dataset.reference
    read = read_for(plan.promise, dataset.traces, dataset.traces.grade)
    return replace(dataset, traces=read, reference=reference)


def _rows(
    chosen: Sequence[Candidate],
    trained: Trained,
    plan: Plan,
    ground: Ground,
    splits: Sequence[Split],
    watch: Watch,
) -> tuple[list[Row], int, Points, list[str]]:
    """Play what was trained on every split.

    Returns:
        The rows, how many splits were played, the frontier of the optimum where it is known, and
        why it is not.
    """
    asked, dataset = plan.promise, ground.dataset
    if asked is not None:
        proved = lines_of(
            chosen,
            trained,
            plan.alphas,
            lambda one, alpha, fitted: ProvedCandidate.of(asked.at(alpha), one, fitted, ground),
        )
        return *rows_of(proved, splits, watch, proved=True), [], []
    spaces = {candidate.method.space for candidate in chosen}
    rest = {space: dataset.arranged(space).take(ground.rest) for space in spaces}

    def enter(candidate: Candidate, alpha: Fraction, fitted: Fitted) -> ThresholdedCandidate:
        replayed = replay(fitted.policy, rest[candidate.method.space], candidate.empty)
        return ThresholdedCandidate(candidate, fitted, replayed, alpha, plan.population)

    lines = lines_of(chosen, trained, plan.alphas, enter)
    rows, played = rows_of(lines, splits, watch, proved=False)
    if dataset.generator is None:
        return rows, played, [], []
    try:
        best = optimum.frontier(dataset.generator)
    except InputError as problem:
        return rows, played, [], [f"the optimum is not known: {problem}"]
    rows = FreshSample.draw(dataset.generator, plan.seed).beside(lines, rows, watch)
    return rows, played, best, []


def _taking_part(dataset: Dataset, plan: Plan) -> list[Candidate]:
    """Return the candidates of a plan that its action space allows, if the traces do."""
    if plan.space == "pool" and not dataset.is_pool:
        raise InputError(
            f"{dataset.name} holds {dataset.traces.horizon} rounds of "
            f"{', '.join(dataset.traces.roles)}, not a pool; use --action-space rounds or calls"
        )
    if plan.space == "calls":
        recorded_space("calls", dataset.traces)  # refuses calls that saw others
    chosen = _chosen(dataset, plan)
    if plan.space == "rounds":
        chosen = [one for one in chosen if "rounds" in one.method.action_spaces]
        if not chosen:
            raise InputError(
                f"{', '.join(plan.policies or ())}: buys call by call; use --action-space calls"
            )
    return chosen


def _chosen(dataset: Dataset, plan: Plan) -> list[Candidate]:
    """Return those that can win, all that can run, or those of the plan's names.

    Where a promise is held against a reference, rows of models end in it, as `recommend` has them:
    one that ends in another model is seldom proved to be as good.
    """
    if plan.policies is None:
        found = beside_each_alone(dataset, plan.gives)
    else:
        found = candidates(dataset, None if plan.everyone else plan.policies)
        if plan.promise is None:
            return found
    return [with_reference_model(one, dataset.reference) for one in found]


def _made_up(dataset: Dataset) -> str:
    """Say what made the questions up, also where they come from a file."""
    if dataset.preset:
        return fitted_to(dataset.preset)
    generated = dataset.generator is not None or dataset.traces.models == MODELS
    return "made-up questions of a generator" if generated else ""


def _notes(dataset: Dataset, plan: Plan, division: Division, train: TraceArrays) -> list[str]:
    notes = [f"questions: {division}"]
    if dataset.asked_of is not None:
        notes.append(dataset.asked_of.note())
    if train.roles != dataset.traces.roles:
        order = train.models[0]
        models = f"a pool of models, asked one after another, the cheapest first: {order}"
        thought = f"a thought of {train.horizon} cuts in turn"
        notes.append(thought if train.cuts else models)
    if plan.population == "solvable":
        notes.append(SOLVABLE_ONLY)
    if plan.policies is None:
        notes.append(WHO_CAN_WIN)
    if plan.everyone and (absent := unavailable(dataset)):
        whom = [f"{', '.join(names)} ({why})" for why, names in absent.items()]
        notes.append(f"left out: {'; '.join(whom)}")
    off = FeatureSet.fit(train).off
    if off:
        notes.append(f"features that these traces say nothing about: {', '.join(off)}")
    return notes


def _unfinished(plan: Plan, rows: Sequence[Row], played: int) -> list[str]:
    lost = sum(row.note == INTERRUPTED for row in rows)
    notes = [f"interrupted: {lost} rows were not trained to the end and are empty"] if lost else []
    if played < plan.splits:
        notes.append(f"interrupted: {played} of {plan.splits} splits were played")
    return notes
