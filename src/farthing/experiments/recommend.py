"""Choose the method that keeps a promise for the least money, prove it, and measure it.

Each question does one thing. Some train every method that can win here; others choose among them
by what each is likely to cost once its promise is proved; others prove the promise of the one that
was chosen; the last only measure it. So the choice costs the proof nothing, and no figure of the
chosen method comes from questions that chose it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.calibration.base import Certificate
from farthing.errors import (
    FarthingError,
    InputError,
    UnknownNameError,
    UnprovedError,
)
from farthing.experiments import division, evaluate_bundle, pipeline, proving
from farthing.experiments.base import Candidate
from farthing.experiments.candidates import ending_in, reads_features, who_can_win
from farthing.experiments.choosing import Contest, Tried, prospect_of
from farthing.experiments.fallback import NoFallback, fallback
from farthing.experiments.graded_for import read_for
from farthing.experiments.one_use import divide, usable
from farthing.experiments.plays import Part
from farthing.experiments.promises import Agreement, Coverage, Parity, Promise, Selective
from farthing.experiments.proofs import strongest
from farthing.experiments.recommendation import Parts, Recommendation
from farthing.experiments.run import fit
from farthing.experiments.value import Singles
from farthing.methods.base import Dataset, Progress, Silent
from farthing.methods.selective.policy import AS_TRAINED
from farthing.traces.arrays import IntArray, TraceArrays
from farthing.traces.costs import doubt
from farthing.traces.grades import check_graded, ungraded_questions
from farthing.traces.pool import is_pool
from farthing.traces.question_hashes import marks

NOBODY = "no method that could win can run on these questions"


def recommend(
    dataset: Dataset,
    asked: Promise | None = None,
    *,
    reference: str | None = None,
    deadline_s: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Recommendation:
    """Choose a method on some questions, prove its promise on others, and measure it on the last.

    Args:
        dataset: the questions.
        asked: what is to be promised; None: of a pool parity with its strongest model minus two
            points, or agreement with its dearest one where nobody graded answers; of questions in
            rounds coverage of nine tenths.
        reference: the model that is paid for today; None: the promise's, else the one that is right
            most often on the questions that choose.
        deadline_s: what the 95th percentile of a question's latency may be, in seconds.
        seed: of the division and of every training.
        progress: is told how many methods were tried.

    Raises:
        InputError: the promise cannot be recommended for, or no method can run here.
        TooFewTracesError: there are too few questions.
    """
    asked = default(dataset.traces) if asked is None else asked
    if reference is not None and isinstance(asked, Parity | Agreement):
        asked = replace(asked, reference=reference)
    known = replace(dataset, reference=reference)
    plan = _plan(known, asked, seed, divide(dataset.traces, seed))
    trials, skipped = _try_all(plan, deadline_s, progress or Silent())
    if not trials:
        raise InputError(_nobody(skipped))
    name, bundle, outlook = _proved(plan, trials)
    recorded = plan.dataset.traces.take(plan.parts.report)
    report = plan.part(plan.parts.report)(bundle)
    found = evaluate_bundle.measure(bundle, report, seed=seed)
    return Recommendation(
        bundle=structs.replace(bundle, value=found.value),
        name=name,
        found=found,
        trials=tuple(trials),
        skipped=tuple(skipped.items()),
        models=Singles.of(recorded).figures(),
        reference=plan.reference,
        sizes=plan.parts.sizes,
        notes=tuple(filter(None, [outlook, _late(found, deadline_s), doubt(recorded)])),
    )


def best_method(
    dataset: Dataset,
    asked: Promise | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> str:
    """Return the name of the method that `recommend` would choose, from training questions alone.

    Half of them train every method that can win, the others choose; as many as there are are taken
    to prove.

    Raises:
        InputError: the promise cannot be recommended for, or no method can run here.
        TooFewTracesError: there are too few questions.
    """
    order = np.random.default_rng(seed).permutation(usable(dataset.traces, "train and choose"))
    train, choose = (np.sort(rows) for rows in np.split(order, [len(order) // 2]))
    asked = default(dataset.traces) if asked is None else asked
    plan = _plan(dataset, asked, seed, Parts(train, choose, order, choose))
    trials, skipped = _try_all(plan, None, progress or Silent())
    if not trials:
        raise InputError(_nobody(skipped))
    return trials[0].name


@dataclass(frozen=True)
class _Plan:
    """Questions graded by what is promised, what each of them does, and what is asked for."""

    dataset: Dataset
    asked: Promise
    parts: Parts
    reference: str | None
    seed: int

    def part(self, rows: IntArray) -> Callable[[Bundle], Part]:
        """Return how a bundle plays some questions."""
        traces = self.dataset.traces

        def played(bundle: Bundle) -> Part:
            arrays = division.arranged("these traces", bundle, traces)
            return Part(traces.take(rows), arrays.take(rows))

        return played


def _plan(dataset: Dataset, asked: Promise, seed: int, parts: Parts) -> _Plan:
    traces = dataset.traces
    asked = _asked(asked, traces, parts)
    graded = read_for(asked, traces, dataset.traces.grade)
    reference = getattr(asked, "reference", None) or dataset.reference
    if reference is not None and reference not in traces.roles:
        raise UnknownNameError("role", reference, traces.roles)
    if reference is None and traces.independent.all():
        reference = strongest(graded.take(parts.choose))
    return _Plan(
        replace(dataset, traces=graded, reference=reference), asked, parts, reference, seed
    )


def _asked(asked: Promise, traces: TraceArrays, parts: Parts) -> Promise:
    """Return a promise that names its reference."""
    choose = traces.take(parts.choose)  # training questions may be unlike all others
    if isinstance(asked, Agreement) and asked.reference is None:
        dearest = int(choose.cost_nano[:, 0].mean(axis=0).argmax())
        return replace(asked, reference=traces.roles[dearest])
    if isinstance(asked, Parity) and asked.reference is None:
        check_graded(choose)
        return replace(asked, reference=strongest(choose))
    if not isinstance(asked, Parity | Agreement | Coverage | Selective):
        kind = type(asked).__name__.lower()
        raise InputError(
            f"nothing can be recommended for a promise of {kind}; ask for coverage, parity, "
            "agreement or selective"
        )
    return asked


def default(traces: TraceArrays) -> Coverage | Agreement | Parity:
    """Return what is promised where nobody says: see `recommend`."""
    if not is_pool(traces):
        return Coverage("0.9")
    return Agreement() if ungraded_questions(traces).any() else Parity()


def _try_all(
    plan: _Plan, deadline_s: float | None, progress: Progress
) -> tuple[list[Tried], dict[str, str]]:
    """Train and try everyone who can win here; return them by expected cost, and who cannot run."""
    found: list[Tried] = []
    skipped: dict[str, str] = {}
    entrants = _entrants(plan)
    for done, candidate in enumerate(entrants, start=1):
        try:
            one = _try(plan, candidate)
        except FarthingError as problem:
            skipped[candidate.name] = str(problem)
        else:
            late = deadline_s is not None and (one.latency_s is None or one.latency_s > deadline_s)
            if late:
                skipped[candidate.name] = _too_slow(one.latency_s, deadline_s)
            else:
                found.append(one)
        progress.update(done, len(entrants), {})
    return sorted(found, key=lambda one: (one.expected_usd, one.name)), skipped


def _late(found: evaluate_bundle.Evaluated, deadline_s: float | None) -> str:
    """Say so where what is recommended takes longer than it may after all."""
    seconds = found.value.yours.latency_s
    if deadline_s is None or seconds is None or seconds[1] <= deadline_s:
        return ""
    return (
        f"one of twenty questions takes more than {seconds[1]:.3g} s, and {deadline_s:g} s were "
        "given: nothing that is proved is faster"
    )


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


def _entrants(plan: _Plan) -> list[Candidate]:
    """Return who can win here, ending in the reference."""
    found = who_can_win(plan.dataset, "set" if isinstance(plan.asked, Coverage) else "one")
    if plan.dataset.features:
        found = [one for one in found if reads_features(one)]
    return [ending_in(one, plan.reference) for one in found]


def _try(plan: _Plan, candidate: Candidate) -> Tried:
    return prospect_of(_contest(plan), candidate.name, _trained(plan, candidate))


def _contest(plan: _Plan) -> Contest:
    return Contest(
        asked=plan.asked,
        choose=plan.part(plan.parts.choose),
        train=plan.part(plan.parts.train),
        prove=len(plan.parts.prove),
        reference=plan.reference,
        seed=plan.seed,
    )


def _trained(plan: _Plan, candidate: Candidate) -> Bundle:
    learner = candidate.learner
    if learner is None:
        raise InputError(candidate.note)
    questions = plan.dataset.arranged(candidate.method.space).take(plan.parts.train)
    alpha = Fraction(getattr(plan.asked, "alpha", Fraction(1, 10)))
    fitted = fit(learner, questions, alpha, plan.seed, Silent())
    recorded = plan.dataset.traces.take(plan.parts.train)
    return pipeline.bundle_of(candidate, fitted, questions, plan.dataset, recorded)


def _proved(plan: _Plan, trials: Sequence[Tried]) -> tuple[str, Bundle, str]:
    """Prove the promise of the one that is likely to cost least; else ask the reference.

    Returns:
        Its name, its bundle, and what would probably be proved where nothing was.

    Raises:
        UnprovedError: nothing is proved, and no reference could answer instead.
    """
    best = trials[0]
    serving = proving.Serving(None, plan.dataset.system)
    train, prove = (plan.part(rows)(best.bundle) for rows in (plan.parts.train, plan.parts.prove))
    kept, certificate, outlook = proving.tried(
        best.bundle, plan.asked, train, prove, serving, row=best.row
    )
    chose = marks(plan.part(plan.parts.choose)(best.bundle).played)
    kept = structs.replace(kept, questions={**kept.questions, "choose": chose})
    if certificate.promises or isinstance(plan.asked, Coverage):
        return _chosen(best.name, certificate), kept, ""
    instead = fallback(kept, certificate, prove)
    if isinstance(instead, NoFallback):
        raise UnprovedError(f"{certificate.sentence()} {instead.why.capitalize()}.")
    alone = Part(prove.recorded, prove.recorded)  # nobody is asked in turn
    value = proving.value_on(instead, alone)
    return f"always-{plan.reference}", structs.replace(instead, trained=None, value=value), outlook


def _chosen(name: str, certificate: Certificate) -> str:
    """Name what was proved: of a selective promise that may be another than the method."""
    candidate = getattr(certificate.promise, "candidate", "")
    return name if not candidate or candidate.startswith(AS_TRAINED) else candidate
