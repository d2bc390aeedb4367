"""Which methods to prove: what each is likely to cost once its promise is proved.

Of parity and agreement, and of a selective promise about a pool, several are proved side by side,
each at a share of delta. Training questions alone say which, at which points and shares
(`cross_fit`, `selective_trials`), so that all others can prove. Of any other promise one method is
proved; questions that prove nothing choose it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.errors import FarthingError, InputError
from farthing.methods.base import Fitted, Progress, Silent
from farthing.methods.pool import Rehearsed, RehearsingLearner
from farthing.methods.selective.learner import SELECTIVE
from farthing.process.latency import percentile_95
from farthing.process.replay import ReplayOutcome
from farthing.promises.statistics.cross_fitted import CrossFitted
from farthing.recommendation import pipeline
from farthing.recommendation.base import Candidate
from farthing.recommendation.bundle_run import run_bundle
from farthing.recommendation.candidates import (
    default_candidates,
    reads_features,
    with_reference_model,
)
from farthing.recommendation.cross_fit import beside, rehearsed, thresholds_of
from farthing.recommendation.fitting import fit
from farthing.recommendation.metrics import stream
from farthing.recommendation.plan import Plan
from farthing.recommendation.played import (
    ChoosingQuestions,
    PlayedPolicy,
    Questions,
    TrainingQuestions,
)
from farthing.recommendation.prove import prove
from farthing.recommendation.selection import Selection, Trial
from farthing.traces.arrays import IntArray, TraceArrays

NOBODY = "no method that could win can run on these questions"
ENOUGH = 100
"""Proving questions that each further candidate takes: fewer prove nothing at a share of delta."""
WORSE = 0.03
"""More questions go on to train until that raises the expected cost by more than this share."""


def select(plan: Plan, deadline_s: float | None, progress: Progress) -> Selection:
    """Train and try the methods that can win here: those with a share of delta, where these share.

    Of a large log more questions train while that is likely to pay. Training questions say whether
    it does, by what the learners that try several policies themselves expect; whatever has trained
    proves nothing, so that the last ones that were added train as well.

    Raises:
        InputError: none of them can run, or none in time.
    """
    if plan.side_by_side and plan.asked.layout == "sure":
        return _before_the_reference(plan, deadline_s, progress)
    candidates = _candidates(plan)
    own = [one for one in candidates if _rehearses(one)]
    curve: list[tuple[int, float]] = []
    known: dict[str, Trial] = {}
    if own and plan.side_by_side:
        plan, curve, known = _with_more_training(plan, own)
    trials: list[Trial] = []
    skipped: dict[str, str] = {}
    for group in _in_groups(plan, candidates):
        found, why = _tried(plan, group, known, deadline_s, progress)
        trials, skipped = found, skipped | why
        if trials:
            break
    if not trials:
        raise InputError(_nobody(skipped))
    shares = {candidate.name: candidate.method.proof_share for candidate in candidates}
    return Selection(plan, tuple(_shared(plan, trials, shares)), skipped, tuple(curve))


def _before_the_reference(plan: Plan, deadline_s: float | None, progress: Progress) -> Selection:
    """Try the candidates of a selective promise: of each family the first that is fast enough.

    Raises:
        InputError: none of them is.
    """
    from farthing.recommendation.selective_trials import prospects  # noqa: PLC0415 - scikit-learn

    n = plan.sizes()["prove"]
    arranged = plan.dataset.arranged(SELECTIVE.space)
    rows = plan.parts.train
    train = TrainingQuestions(plan.dataset.traces.take(rows), arranged.take(rows))
    selective = Candidate(SELECTIVE, SELECTIVE.on(plan.dataset)[0])
    trials, shares = list[Trial](), dict[str, Fraction]()
    skipped: dict[str, str] = {}
    families = list(prospects(plan.asked, plan.reference or "", train, n))
    for done, family in enumerate(families, start=1):
        for one in family:
            bundle = _bundle(plan, selective, Fitted(one.fit.policy))
            seconds = _slow(structs.replace(bundle, kappa=float(one.row[one.likely])), train)
            if deadline_s is None or (seconds is not None and seconds <= deadline_s):
                name, usd = one.fit.name, one.expected_nano / 1e9
                trials.append(Trial(name, bundle, usd, one.accuracy, seconds, one.row))
                shares[name] = one.share
                break
            skipped[one.fit.name] = _too_slow(seconds, deadline_s)
        progress.update(done, len(families), {})
    if not trials:
        raise InputError(_nobody(skipped))
    return Selection(plan, tuple(_shared(plan, trials, shares)), skipped)


def _tried(
    plan: Plan,
    group: Sequence[Candidate],
    known: Mapping[str, Trial],
    deadline_s: float | None,
    progress: Progress,
) -> tuple[list[Trial], dict[str, str]]:
    """Return what came of these methods, those known already too, and why others could not run."""
    trials: list[Trial] = []
    skipped: dict[str, str] = {}
    for done, candidate in enumerate(group, start=1):
        try:
            trial = known.get(candidate.name) or estimate_trial(plan, candidate)
        except FarthingError as problem:
            skipped[candidate.name] = str(problem)
        else:
            seconds = trial.latency_s
            if deadline_s is not None and (seconds is None or seconds > deadline_s):
                skipped[candidate.name] = _too_slow(seconds, deadline_s)
            else:
                trials.append(trial)
        progress.update(done, len(group), {})
    return trials, skipped


def _in_groups(plan: Plan, candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return who is tried first, and who is where none of those can run.

    Where several are proved side by side, only those that their cards give a share are worth the
    training.
    """
    several = plan.side_by_side and plan.sizes()["prove"] >= 2 * ENOUGH
    first = [one for one in candidates if several and one.method.proof_share]
    return [each for each in (first, [one for one in candidates if one not in first]) if each]


def _rehearses(candidate: Candidate) -> bool:
    learner: Any = candidate.learner
    return isinstance(learner, RehearsingLearner)


def _with_more_training(
    plan: Plan, own: Sequence[Candidate]
) -> tuple[Plan, list[tuple[int, float]], dict[str, Trial]]:
    """Let more questions train until that raises the expected cost, or no more may.

    Returns:
        The plan, how many trained each time with the least cost expected then, and what was tried
        on the last of them by its name.
    """
    curve: list[tuple[int, float]] = []
    known: dict[str, Trial] = {}
    larger: Plan | None = plan
    while larger is not None:
        plan, known = larger, {}
        try:
            known = {one.name: estimate_trial(plan, one) for one in own}
        except FarthingError:  # which says why when all are tried
            break
        curve.append((plan.sizes()["train"], min(each.expected_usd for each in known.values())))
        if len(curve) > 1 and curve[-1][1] > curve[-2][1] * (1 + WORSE):
            break
        larger = plan.more_training()
    return plan, curve, known


def _shared(plan: Plan, trials: list[Trial], own: Mapping[str, Fraction]) -> list[Trial]:
    """Give those that are proved side by side their shares of delta; the cheapest expected first.

    As many are proved as the proving questions allow, those of the largest shares; none at a share
    at which even a point that loses nothing could not be proved. Where that leaves one, or none has
    a share, it is the one that is expected to cost least.

    Args:
        plan: what they are tried for.
        trials: who was tried.
        own: the share of each name, as its card or its family has it.
    """
    # Equal costs are added up in different orders, which processors round differently.
    trials = sorted(trials, key=lambda one: (float(f"{one.expected_usd:.9g}"), one.name))
    n, asked = plan.sizes()["prove"], plan.asked
    names = [trial.name for trial in trials if own[trial.name]]
    first = sorted(names, key=lambda name: -own[name])[: n // ENOUGH if plan.side_by_side else 1]
    whole = sum((own[name] for name in first), Fraction(0))
    while len(first) > 1 and asked.layout == "descending" and asked.margin > 0:
        least = asked.sharing(asked.share * own[first[-1]] / whole)
        if least.allows(n)(0) >= 0:
            break
        whole -= own[first.pop()]
    if len(first) < 2:
        return [replace(trials[0], share=Fraction(1)), *trials[1:]]
    return [
        replace(trial, share=own[trial.name] / whole if trial.name in first else Fraction(0))
        for trial in trials
    ]


def _candidates(plan: Plan) -> list[Candidate]:
    found = default_candidates(plan.dataset, plan.asked.gives)
    if plan.dataset.features:
        found = [candidate for candidate in found if reads_features(candidate)]
    return [with_reference_model(candidate, plan.reference) for candidate in found]


def estimate_trial(plan: Plan, candidate: Candidate) -> Trial:
    """Train a method, and estimate what it will cost where it keeps the promise.

    Of parity and agreement training questions say so, cross-fitted; of any other promise the proof
    is run on questions that choose.
    """
    if not plan.side_by_side:
        return _expected_by_proof(plan, candidate.name, train_candidate(plan, candidate))
    if not _rehearses(candidate):
        bundle = train_candidate(plan, candidate)
        return _expected(plan, candidate, bundle, _rehearsed(plan, candidate, bundle))
    told = {"margin": float(plan.asked.margin), "proving": plan.sizes()["prove"]}
    learner: Any = replace(candidate.learner, **told)  # type: ignore[type-var]
    found: Rehearsed = learner.rehearse(_training_traces(plan, candidate), plan.seed)
    return _expected(plan, candidate, _bundle(plan, candidate, Fitted(found.policy)), found.figures)


def train_candidate(plan: Plan, candidate: Candidate) -> Bundle:
    """Train a method on the questions that train."""
    return _bundle(plan, candidate, _fitted(plan, candidate, _training_traces(plan, candidate)))


def _fitted(plan: Plan, candidate: Candidate, questions: TraceArrays) -> Fitted:
    if candidate.learner is None:
        raise InputError(candidate.note)
    return fit(candidate.learner, questions, plan.asked.alpha, plan.seed, Silent())


def _training_traces(plan: Plan, candidate: Candidate) -> TraceArrays:
    return plan.dataset.arranged(candidate.method.space).take(plan.parts.train)


def _bundle(plan: Plan, candidate: Candidate, fitted: Fitted) -> Bundle:
    recorded = plan.dataset.traces.take(plan.parts.train)
    questions = _training_traces(plan, candidate)
    return pipeline.bundle_of(candidate, fitted, questions, plan.dataset, recorded)


def _rehearsed(plan: Plan, candidate: Candidate, bundle: Bundle) -> CrossFitted:
    """Return what a method comes to on its training questions, fitted without each."""
    train = plan.training(bundle)
    thresholds = thresholds_of(PlayedPolicy(bundle.policy, bundle.empty), train)

    def on(rows: IntArray) -> PlayedPolicy:
        some = _fitted(plan, candidate, train.played.take(rows))
        return PlayedPolicy(some.policy, bundle.empty)

    return rehearsed(on, thresholds, train, plan.asked, plan.seed)


def _expected(plan: Plan, candidate: Candidate, bundle: Bundle, figures: CrossFitted) -> Trial:
    asked, train, n = plan.asked, plan.training(bundle), plan.sizes()["prove"]
    thresholds = thresholds_of(PlayedPolicy(bundle.policy, bundle.empty), train)
    right, paid = beside(asked, asked.reference, train.recorded)
    free = asked.must_gain or not train.recorded.independent.all()  # then a point may cost more
    useful = np.ones_like(figures.cost, dtype=bool) if free else figures.cost < 1
    margin = float(asked.margin)
    start = figures.start(margin, useful, n)
    point = figures.likely_point(start, margin, n)
    kept = structs.replace(bundle, kappa=float(thresholds[point]))
    return Trial(
        name=candidate.name,
        bundle=bundle,
        expected_usd=figures.score(margin, n) * float(paid.mean()) / 1e9,
        accuracy=float(right.mean() - figures.lost[point] + figures.won[point]),
        latency_s=_slow(kept, train),
        row=thresholds[: start + 1],
    )


def _expected_by_proof(plan: Plan, name: str, bundle: Bundle) -> Trial:
    choose = plan.choosing(bundle).distinct()
    found = prove(plan.asked, bundle, plan.training(bundle), choose.rehearsing(), None)
    kept = structs.replace(
        bundle,
        policy=found.policy,
        kappa=found.certificate.kappa,
        certificate=found.certificate,
        empty=found.empty,
    )
    done = run_bundle(kept, choose, stream(bundle.kind, plan.seed))
    return Trial(
        name=name,
        bundle=bundle,
        expected_usd=_answering_all(plan, choose, done) / 1e9,
        accuracy=float(done.best_correct.mean()),
        latency_s=_slow(kept, choose),
        row=None,
    )


def _answering_all(plan: Plan, choose: ChoosingQuestions, done: ReplayOutcome) -> float:
    """Return what a question costs, in nano-dollars, with the reference's answer to the rest.

    Of a selective promise the rest is what was given no answer: else who answers least costs least.
    """
    spent = float(done.cost_nano.mean())
    withheld = done.set_size == 0
    if not plan.asked.withholds or not withheld.any():
        return spent
    if plan.reference is None:
        return spent / max(1 - float(withheld.mean()), 1 / len(withheld))
    place = choose.recorded.roles.index(plan.reference)
    return spent + float(np.where(withheld, choose.recorded.cost_nano[:, 0, place], 0).mean())


def _slow(bundle: Bundle, part: Questions) -> float | None:
    return percentile_95(run_bundle(bundle, part, stream(bundle.kind, 0)).latency_s)


def _nobody(skipped: dict[str, str]) -> str:
    """Say why nobody can run, of the first of them."""
    why = [f"{name}: {reason.rstrip('.')}" for name, reason in skipped.items()]
    if not why:
        return f"{NOBODY}; see `farthing traces info`"
    more = f"; and {len(why) - 2} more" if len(why) > 2 else ""
    return f"{NOBODY} ({'; '.join(why[:2])}{more})"


def _too_slow(latency_s: float | None, deadline_s: float | None) -> str:
    if latency_s is None:
        return "its latency was not recorded on one question of twenty, so no deadline can be held"
    return (
        f"one question of twenty takes more than {latency_s:.3g} s, and {deadline_s:g} were given"
    )
