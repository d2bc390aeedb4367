"""Choose the method that keeps a promise for the least money, prove it, and measure it.

Each question does one thing. Some train every method that can win here; others choose among them
by what each is likely to cost once its promise is proved; others prove the promise of the one that
was chosen; the last only measure it. So the choice costs the proof nothing, and no figure of the
chosen method comes from questions that chose it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.errors import (
    FarthingError,
    InputError,
    UnprovedError,
)
from farthing.methods.base import Dataset, Progress, Silent
from farthing.methods.selective.policy import AS_TRAINED
from farthing.money import significant
from farthing.promises.base import Promise
from farthing.promises.certificate import Certificate
from farthing.recommendation import certify, evaluate, pipeline
from farthing.recommendation.base import Candidate
from farthing.recommendation.bundle_run import run_bundle, with_escalation
from farthing.recommendation.candidates import (
    default_candidates,
    reads_features,
    with_reference_model,
)
from farthing.recommendation.fallback import NoFallback, fallback
from farthing.recommendation.parallel import fit
from farthing.recommendation.plan import Plan, default, plan_of, plans_of, who_say
from farthing.recommendation.played import QuestionPart
from farthing.recommendation.prove import counted
from farthing.recommendation.record import FourWaySplit, Recommendation
from farthing.recommendation.replayed_candidate import stream
from farthing.recommendation.savings import SingleModels, guessed, paid_most
from farthing.recommendation.splits import complete_questions
from farthing.recommendation.trial import SelectionTask, Trial, estimate_trial
from farthing.recommendation.warnings import unlike
from farthing.traces.arrays import IntArray, TraceArrays
from farthing.traces.copies import check_every_request, n_distinct, note
from farthing.traces.costs import check_costs, doubt
from farthing.traces.eligibility import Eligibility, alike, draw_weights, eligible
from farthing.traces.pool import is_pool
from farthing.traces.question_hashes import question_hashes

RANKED = 100
"""Common questions below which proved candidates are not ranked by their cost."""
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

    Where some questions lack calls, a method is played on those that all models which it may ask,
    and the reference, were asked (`traces.eligibility`). Where chance decided that, each set of
    models has a method that is chosen and proved on the set's own questions, at its share of delta.

    Args:
        dataset: the questions.
        asked: what is to be promised; None: of a pool parity with the reference minus two points,
            or agreement with it where nobody graded answers; of questions in rounds coverage of
            nine tenths.
        reference: the model that is paid for today; None: the promise's, else a guess, which the
            notes say: the one that most was paid for (`value.paid_most`) on the questions that
            choose and those that take no part, as none that proves or measures may choose it.
        deadline_s: what the 95th percentile of a question's latency may be, in seconds.
        seed: of the division and of every training.
        progress: is told how many methods were tried.

    Raises:
        InputError: the promise cannot be recommended for, no method can run here, or costs are
            not known.
        TooFewTracesError: there are too few questions.
    """
    check_costs(dataset.traces)
    asked = default(dataset.traces) if asked is None else asked
    if asked.per == "request":
        check_every_request(dataset.traces)
    if reference is not None:
        asked = asked.beside(reference)
    known = replace(dataset, reference=asked.reference or reference)
    guess = known.reference is None and is_pool(dataset.traces) and not dataset.traces.made.all()
    if guess:  # by who was asked and paid for alone
        known = replace(known, reference=paid_most(dataset.traces))
    played = eligible(dataset.traces, known.reference, dataset.missing)
    plans = plans_of(known, asked, played, seed)
    if guess:
        _confirm(plans[0], played.traces)
    best, notes = _cheapest([_proved(plan, deadline_s, progress or Silent()) for plan in plans])
    plan = replace(best.plan, guessed=best.plan.guessed or guess)
    rows = alike(plan.dataset.traces, plan.parts.report)
    report = counted(plan.asked, plan.part(rows)(best.bundle))
    recorded = report.recorded
    found = evaluate.evaluate_in_memory(best.bundle, report, seed=seed)
    return Recommendation(
        bundle=structs.replace(best.bundle, value=found.value),
        name=best.name,
        found=found,
        trials=best.trials,
        skipped=tuple(best.skipped.items()),
        models=SingleModels.of(recorded).figures(),
        reference=plan.reference,
        guessed=plan.guessed,
        sizes=replace(plan.parts, report=rows).distinct(plan.dataset.traces.content),
        notes=(
            *filter(None, [_guess(plan), best.outlook, _late(found, deadline_s)]),
            *filter(None, [doubt(recorded), _copies(plan), _unlike(dataset.traces, played)]),
            *notes,
            *played.notes(),
        ),
    )


def _confirm(plan: Plan, log: TraceArrays) -> None:
    """Refuse a guess that questions which prove and measure nothing would not have made.

    Raises:
        InputError: they show another model as paid for most.
    """
    others = paid_most(log.take(who_say(len(log), plan.parts)))
    if others != plan.reference:
        raise InputError(
            f"these traces show as much paid for {plan.reference} as for {others}: name the model "
            "that you pay for today with --reference"
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
    dataset = dataset.in_common(proving=False)
    check_costs(dataset.traces)
    together = complete_questions(dataset.traces, "train and choose")
    order = np.random.default_rng(seed).permutation(together.distinct)
    train, choose = map(together.all_of, np.split(order, [len(order) // 2]))
    asked = default(dataset.traces) if asked is None else asked
    plan = plan_of(dataset, asked, seed, FourWaySplit(train, choose, order, choose))
    trials, skipped = _try_all(plan, None, progress or Silent())
    if not trials:
        raise InputError(_nobody(skipped))
    return trials[0].name


def _try_all(
    plan: Plan, deadline_s: float | None, progress: Progress
) -> tuple[list[Trial], dict[str, str]]:
    """Train and try everyone who can win here; return them by expected cost, and who cannot run."""
    found: list[Trial] = []
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


def _copies(plan: Plan) -> str:
    """Say so where some of the questions ask the same."""
    content = plan.dataset.traces.content[np.concatenate(list(vars(plan.parts).values()))]
    return note(len(content), n_distinct(content))


def _guess(plan: Plan) -> str:
    """Say so where nobody named the reference."""
    return guessed(plan.reference) if plan.guessed and plan.reference is not None else ""


def _late(found: evaluate.BundleEvaluation, deadline_s: float | None) -> str:
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


def _entrants(plan: Plan) -> list[Candidate]:
    """Return who can win here, ending in the reference."""
    found = default_candidates(plan.dataset, plan.asked.gives)
    if plan.dataset.features:
        found = [one for one in found if reads_features(one)]
    return [with_reference_model(one, plan.reference) for one in found]


def _try(plan: Plan, candidate: Candidate) -> Trial:
    return estimate_trial(_contest(plan), candidate.name, _trained(plan, candidate))


def _contest(plan: Plan) -> SelectionTask:
    return SelectionTask(
        asked=plan.asked,
        choose=lambda bundle: plan.part(plan.parts.choose)(bundle).distinct(),
        train=plan.part(plan.parts.train),
        prove=n_distinct(plan.dataset.traces.content[plan.parts.prove]),
        reference=plan.reference,
        seed=plan.seed,
    )


def _trained(plan: Plan, candidate: Candidate) -> Bundle:
    learner = candidate.learner
    if learner is None:
        raise InputError(candidate.note)
    questions = plan.dataset.arranged(candidate.method.space).take(plan.parts.train)
    fitted = fit(learner, questions, plan.asked.alpha, plan.seed, Silent())
    recorded = plan.dataset.traces.take(plan.parts.train)
    return pipeline.bundle_of(candidate, fitted, questions, plan.dataset, recorded)


@dataclass(frozen=True)
class _Proved:
    """What was chosen and proved on the questions of one plan."""

    plan: Plan
    name: str
    bundle: Bundle
    outlook: str
    """What would probably be proved, where nothing was."""
    trials: tuple[Trial, ...]
    skipped: dict[str, str]

    @property
    def cheaper(self) -> bool:
        """Whether anything but the reference is proved."""
        return self.bundle.trained is None and self.name != f"always-{self.plan.reference}"


def _proved(plan: Plan, deadline_s: float | None, progress: Progress) -> _Proved:
    """Prove the promise of the one that is likely to cost least; else ask the reference.

    Raises:
        InputError: no method can run here.
        UnprovedError: nothing is proved, and no reference could answer instead.
    """
    trials, skipped = _try_all(plan, deadline_s, progress)
    if not trials:
        raise InputError(_nobody(skipped))
    best = trials[0]
    made_up = plan.dataset.generator is not None
    serving = certify.Serving(None, plan.dataset.system, plan.dataset.asked_of, made_up=made_up)
    train, prove = (plan.part(rows)(best.bundle) for rows in (plan.parts.train, plan.parts.prove))
    kept, certificate, outlook = certify.prove_bundle(
        best.bundle, plan.asked, train, prove, serving, row=best.row
    )
    chose = question_hashes(plan.part(plan.parts.choose)(best.bundle).played)
    kept = structs.replace(kept, questions={**kept.questions, "choose": chose})
    found = _Proved(plan, _chosen(best.name, certificate), kept, "", tuple(trials), skipped)
    if certificate.promises or plan.asked.stands:
        return found
    instead = fallback(kept, certificate, prove)
    if isinstance(instead, NoFallback):
        raise UnprovedError(f"{certificate.sentence()} {instead.why.capitalize()}.")
    recorded = counted(plan.asked, prove).recorded
    alone = QuestionPart(recorded, recorded)  # nobody is asked in turn
    value = certify.value_on(instead, alone)
    instead = structs.replace(instead, trained=None, value=value)
    return replace(found, name=f"always-{plan.reference}", bundle=instead, outlook=outlook)


def _unlike(recorded: TraceArrays, played: Eligibility) -> str | None:
    """Say so where calls are not missing by chance, by what was recorded."""
    weighed = draw_weights(recorded) is not None  # then chance drew by what is known of questions
    if weighed or played.missing not in {"chance", "unknown"}:
        return None
    return unlike(recorded, played.sets[-1].rows)


def _cheapest(found: Sequence[_Proved]) -> tuple[_Proved, list[str]]:
    """Return the one that costs least on the questions common to all that are proved, and why.

    With fewer than a hundred of those they are not ranked, and the one with most questions is
    taken. Their promises hold together, so that any of them may be chosen.
    """
    proved = [one for one in found if one.cheaper]
    if len(proved) < 2:
        return (proved or list(found))[0], []
    common = reduce(np.intersect1d, [one.plan.parts.prove for one in proved])
    asked = [" and ".join(one.plan.dataset.traces.roles) for one in proved]
    if len(common) < RANKED:
        best = max(proved, key=lambda one: len(one.plan.parts.prove))
        few = (
            f"{len(proved)} candidates are proved, with {'; with '.join(asked)}; they share "
            f"{len(common):,} proving questions, too few to rank them, so the one that is proved "
            "on most questions is taken"
        )
        return best, [few]
    costs = [_mean_usd(one, common) for one in proved]
    each = [
        f"{one.name} with {who} ${significant(cost)}"
        for one, who, cost in zip(proved, asked, costs, strict=True)
    ]
    return proved[int(np.argmin(costs))], [
        f"proved side by side, by their cost on {len(common):,} common questions: {', '.join(each)}"
    ]


def _mean_usd(found: _Proved, rows: IntArray) -> float:
    """Return what a question costs on some questions, in dollars."""
    part = found.plan.part(rows)(found.bundle)
    done = run_bundle(found.bundle, part.played, stream(found.bundle.kind, 0))
    return float(with_escalation(found.bundle, part, done).cost_nano.mean()) / 1e9


def _chosen(name: str, certificate: Certificate) -> str:
    """Name what was proved: of a selective promise that may be another than the method."""
    candidate = getattr(certificate.promise, "candidate", "")
    return name if not candidate or candidate.startswith(AS_TRAINED) else candidate
