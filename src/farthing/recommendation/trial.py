"""Which method to prove: what each is likely to cost once its promise is proved.

Methods are trained on some questions and tried on others, which prove nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.errors import FarthingError, InputError
from farthing.methods.base import Progress, Silent
from farthing.process.replay import ReplayOutcome
from farthing.promises.statistics.expected_cost import Allowed
from farthing.recommendation import pipeline
from farthing.recommendation.base import Candidate
from farthing.recommendation.bundle_run import run_bundle
from farthing.recommendation.candidates import (
    default_candidates,
    reads_features,
    with_reference_model,
)
from farthing.recommendation.certify import Contender, Serving
from farthing.recommendation.parallel import fit
from farthing.recommendation.plan import Plan
from farthing.recommendation.played import ChoosingQuestions, PlayedPolicy
from farthing.recommendation.prove import prove
from farthing.recommendation.replayed_candidate import stream
from farthing.recommendation.start_point import Beginning, beginning
from farthing.traces.arrays import FloatArray
from farthing.traces.copies import n_distinct
from farthing.traces.fingerprint import question_hashes

NOBODY = "no method that could win can run on these questions"


@dataclass(frozen=True)
class Trial:
    """A trained method, and what it is likely to come to."""

    name: str
    bundle: Bundle
    expected_usd: float
    """A question, once so many questions have proved a point of it, or none; where answers may be
    withheld, with the reference's answer in their place."""
    accuracy: float
    """Of the point that is proved if new questions are like these."""
    latency_s: float | None
    """95th percentile of that point, in seconds, where it was recorded."""
    row: FloatArray | None
    """The thresholds to prove, from the last one on to the first; None: the proof lays them out."""


@dataclass(frozen=True)
class Selection:
    """Who was tried on the questions of one plan."""

    plan: Plan
    trials: tuple[Trial, ...]
    """The cheapest expected first; at least one."""
    skipped: dict[str, str]
    """Who could not run, and why."""

    def contender(self) -> Contender:
        """Return the one that is likely to cost least, for its proof."""
        plan, best = self.plan, self.trials[0]
        dataset = plan.dataset
        return Contender(
            best.bundle,
            plan.asked,
            plan.training(best.bundle),
            plan.proving(best.bundle),
            Serving(None, dataset.system, dataset.asked_of, made_up=dataset.generator is not None),
            best.row,
            best.name,
        )

    def remembered(self, bundle: Bundle) -> Bundle:
        """Return what was proved with the marks of the questions that chose it."""
        chose = question_hashes(self.plan.choosing(self.trials[0].bundle).played)
        return structs.replace(bundle, questions={**bundle.questions, "choose": chose})


def select(plan: Plan, deadline_s: float | None, progress: Progress) -> Selection:
    """Train and try every method that can win here.

    Raises:
        InputError: none of them can run, or none in time.
    """
    trials: list[Trial] = []
    skipped: dict[str, str] = {}
    candidates = _candidates(plan)
    for done, candidate in enumerate(candidates, start=1):
        try:
            trial = estimate_trial(plan, candidate.name, train_candidate(plan, candidate))
        except FarthingError as problem:
            skipped[candidate.name] = str(problem)
        else:
            seconds = trial.latency_s
            if deadline_s is not None and (seconds is None or seconds > deadline_s):
                skipped[candidate.name] = _too_slow(seconds, deadline_s)
            else:
                trials.append(trial)
        progress.update(done, len(candidates), {})
    if not trials:
        raise InputError(_nobody(skipped))
    # Equal costs are added up in different orders, which processors round differently.
    trials.sort(key=lambda trial: (float(f"{trial.expected_usd:.9g}"), trial.name))
    return Selection(plan, tuple(trials), skipped)


def _candidates(plan: Plan) -> list[Candidate]:
    """Return who can win here, ending in the reference."""
    found = default_candidates(plan.dataset, plan.asked.gives)
    if plan.dataset.features:
        found = [candidate for candidate in found if reads_features(candidate)]
    return [with_reference_model(candidate, plan.reference) for candidate in found]


def train_candidate(plan: Plan, candidate: Candidate) -> Bundle:
    """Train a method on the questions that train."""
    learner = candidate.learner
    if learner is None:
        raise InputError(candidate.note)
    questions = plan.dataset.arranged(candidate.method.space).take(plan.parts.train)
    fitted = fit(learner, questions, plan.asked.alpha, plan.seed, Silent())
    recorded = plan.dataset.traces.take(plan.parts.train)
    return pipeline.bundle_of(candidate, fitted, questions, plan.dataset, recorded)


def estimate_trial(plan: Plan, name: str, bundle: Bundle) -> Trial:
    """Estimate what a trained method will cost where it keeps the promise.

    Of parity and agreement the proof is run on questions that are drawn from those that choose; of
    any other promise, on these themselves.
    """
    choose = plan.choosing(bundle).distinct()
    if plan.asked.layout == "descending":
        return _expected_cost_by_losses(plan, name, bundle, choose)
    return _expected_cost_by_proof(plan, name, bundle, choose)


def _expected_cost_by_losses(
    plan: Plan, name: str, bundle: Bundle, choose: ChoosingQuestions
) -> Trial:
    asked = plan.asked
    n = n_distinct(plan.dataset.traces.content[plan.parts.prove])
    plays = PlayedPolicy(bundle.policy, bundle.empty)
    found = beginning(asked, plays, choose, plan.reference or "", n, plan.seed)
    point = _expected_point(found, partial(_proves, asked.allows(n), n))
    kappa = float(found.points.values[point])
    return Trial(
        name=name,
        bundle=bundle,
        expected_usd=float(found.expected_usd.min()),
        accuracy=float(found.points.correct[:, point].mean()),
        latency_s=_slow(structs.replace(bundle, kappa=kappa), choose),
        row=found.row,
    )


def _proves(allowed: Allowed, n: int, lost: float, won: float) -> bool:
    return bool(round(lost * n) <= allowed(round(won * n)))


def _expected_point(found: Beginning, proves: Callable[[float, float], bool]) -> int:
    """Return the point that testing from the start down chooses if new questions are like these."""
    cost, best = found.points.cost_nano.sum(axis=0), found.start
    for point in range(found.start, -1, -1):
        if not proves(float(found.lost[:, point].mean()), float(found.won[:, point].mean())):
            break
        best = point if cost[point] < cost[best] else best
    return best


def _expected_cost_by_proof(
    plan: Plan, name: str, bundle: Bundle, choose: ChoosingQuestions
) -> Trial:
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


def _slow(bundle: Bundle, choose: ChoosingQuestions) -> float | None:
    seconds = run_bundle(bundle, choose, stream(bundle.kind, 0)).latency_s
    known = np.zeros(0) if seconds is None else seconds[~np.isnan(seconds)]
    return float(np.quantile(known, 0.95)) if known.size else None


def _nobody(skipped: dict[str, str]) -> str:
    """Say why nobody can run, of the first of them."""
    why = [f"{name}: {reason.rstrip('.')}" for name, reason in skipped.items()]
    if not why:
        return f"{NOBODY}; see `farthing traces info`"
    more = f"; and {len(why) - 2} more" if len(why) > 2 else ""
    return f"{NOBODY} ({'; '.join(why[:2])}{more})"


def _too_slow(latency_s: float | None, deadline_s: float | None) -> str:
    if latency_s is None:
        return "its latency was not recorded, so no deadline can be held"
    return (
        f"one question of twenty takes more than {latency_s:.3g} s, and {deadline_s:g} were given"
    )
