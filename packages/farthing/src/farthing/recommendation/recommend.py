"""Choose the method that keeps a promise for the least money, prove it, and measure it.

Each question does one thing: it trains, proves or only measures. Training questions say which
methods are worth a proof; several are proved side by side, each at its share of delta, and the
cheapest of those proved is taken. Small logs hold nothing back to measure: figures are then of the
questions that proved, with intervals that allow for the choice. Of coverage, and of selective
promises in rounds, further questions choose the one method that is proved.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.errors import InputError, UnprovedError
from farthing.methods.base import Dataset, Progress, Silent
from farthing.methods.selective.policy import AS_TRAINED
from farthing.money import significant
from farthing.promises.base import Promise
from farthing.recommendation.bundle_run import run_bundle, with_escalation
from farthing.recommendation.certify import Proved, prove_cheapest
from farthing.recommendation.cross_fit import beside
from farthing.recommendation.evaluate import BundleEvaluation, Errors, evaluate_in_memory
from farthing.recommendation.metrics import stream
from farthing.recommendation.plan import (
    Plan,
    default,
    plan_of,
    plans_of,
    proves_side_by_side,
    who_say,
)
from farthing.recommendation.played import ReportingQuestions
from farthing.recommendation.prove import counted
from farthing.recommendation.record import Recommendation
from farthing.recommendation.savings import (
    SingleModels,
    guessed,
    no_worse,
    off_by,
    paid_most,
)
from farthing.recommendation.selection import Trial
from farthing.recommendation.splits import FourWaySplit, complete_questions
from farthing.recommendation.tradeoff import tradeoffs
from farthing.recommendation.trial import select
from farthing.recommendation.warnings import by_what_was_recorded, unlike
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.copies import check_every_request, n_distinct, near_note, note
from farthing.traces.costs import check_costs, doubt
from farthing.traces.eligibility import Eligibility, draw_weights, eligible
from farthing.traces.grades.below_chance import check_gold
from farthing.traces.grades.overlay import ungraded_questions
from farthing.traces.pool import is_pool


def recommend(
    dataset: Dataset,
    asked: Promise | None = None,
    *,
    reference: str | None = None,
    deadline_s: float | None = None,
    holdout: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    later: Fraction = Fraction(1),
) -> Recommendation:
    """Train methods on some questions, prove the promise on others, and take the cheapest proved.

    Where some questions lack calls, a method is played on those that all models which it may ask,
    and the reference, were asked (`traces.eligibility`). Where chance decided that, each set of
    models has methods that are proved on the set's own questions, at its share of delta.

    Args:
        dataset: the questions.
        asked: what is to be promised; None: of a pool parity with the reference minus two points,
            or agreement with it where nobody graded answers; of questions in rounds coverage of
            nine tenths.
        reference: the model that is paid for today; None: the promise's, else a guess, which the
            notes say: the one that most was paid for (`value.paid_most`) on the questions that
            choose and those that take no part, or else on those that train, as none that proves or
            measures may choose it.
        deadline_s: what the 95th percentile of a question's latency may be, in seconds.
        holdout: questions that only measure; None: a tenth, at most 500, of 2,000 and more.
        seed: of the division and of every training.
        progress: is told how many methods were tried.
        later: what another proof on these questions may spend, as a share of this one's delta: the
            outlook is about that one.
    """
    check_costs(dataset.traces)
    asked = default(dataset.traces) if asked is None else asked
    check_gold(dataset.traces, needed=asked.needs_gold)
    if asked.per == "request":
        check_every_request(dataset.traces)
    if reference is not None:
        asked = asked.beside(reference)
    known = replace(dataset, reference=asked.reference or reference)
    holes = is_pool(dataset.traces) and not dataset.traces.made.all() and not dataset.traces.cuts
    guess = known.reference is None and holes
    if guess:  # by who was asked and paid for alone
        known = replace(known, reference=paid_most(dataset.traces))
    played = eligible(dataset.traces, known.reference, dataset.missing)
    plans = plans_of(known, asked, played, seed, holdout=holdout)
    check_gold(dataset.traces, needed=asked.needs_gold, reference=plans[0].asked.reference)
    if guess:
        _confirm(plans[0], played.traces)
    selections = [select(plan, deadline_s, progress or Silent()) for plan in plans]
    proved = [(one, *pair) for one in selections for pair in one.contenders()]
    contenders = [contender for _, _, contender in proved]
    place, proofs, notes = prove_cheapest(contenders)
    proof = proofs[place]
    if proof.left:
        raise UnprovedError(f"{proof.certificate.sentence()} {proof.left.capitalize()}.")
    selection, trial, _ = proved[place]
    bundle = selection.remembered(proof.bundle)
    plan = replace(selection.plan, guessed=selection.plan.guessed or guess)
    outlook = proof.later(later) if proof.falls_back else ""
    report = counted(plan.asked, plan.reporting(bundle))
    errors = None if plan.holds_out else _errors(plan, proofs, report.recorded)
    found = evaluate_in_memory(bundle, report, seed=seed, errors=errors)
    named = guessed(plan.reference) if plan.guessed and plan.reference is not None else ""
    late = _late(found, deadline_s)
    withheld, differ = _withheld(plan, bundle, report), _unlike(dataset, played)
    several, near = _alike(plan)
    said = (
        *(named, outlook, _idle(plan, proof), _another(plan, proof), late),
        *(_ungraded(dataset.traces, asked), withheld, _silent(plan, report.recorded)),
        *(doubt(report.recorded), several, near, *differ),
    )
    return Recommendation(
        bundle=structs.replace(bundle, value=found.value),
        name=_name(selection.plan, trial, proof),
        found=found,
        trials=selection.trials,
        skipped=tuple(selection.skipped.items()),
        models=SingleModels.of(report.recorded).figures(),
        reference=plan.reference,
        guessed=plan.guessed,
        sizes=plan.sizes(),
        held_out=plan.holds_out,
        tradeoffs=tradeoffs(zip(contenders, proofs, strict=True), contenders[place]),
        curve=selection.curve,
        outlook=outlook,
        notes=(
            *filter(None, said),
            *_by_chance([one.plan for one in selections], played),
            *notes,
            *played.notes(),
        ),
        caveats=tuple(filter(None, [named, late, withheld, near, *differ])),
        requests_per_day=dataset.traces.requests_per_day,
    )


def _errors(plan: Plan, proofs: Sequence[Proved], recorded: TraceArrays) -> Errors:
    """Return how far off figures may be of whichever point these questions chose (`off_by`)."""
    right, paid = beside(plan.asked, plan.reference, recorded)
    tested = [proof.points for proof in proofs if proof.points is not None]
    points = [(each.cost_nano, each.right) for each in tested if len(each.right) == len(right)]
    return lambda level: off_by(points, (paid, right), np.random.default_rng(plan.seed), level)


def _confirm(plan: Plan, log: TraceArrays) -> None:
    """Refuse a guess that questions which prove and measure nothing would not have made."""
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

    As many questions as there are are taken to prove. Where some have to choose, half of them do,
    and the others train.
    """
    dataset = dataset.in_common(proving=False)
    check_costs(dataset.traces)
    together = complete_questions(dataset.traces, "train and choose")
    order = np.random.default_rng(seed).permutation(together.distinct)
    asked = default(dataset.traces) if asked is None else asked
    alone = proves_side_by_side(asked, dataset.traces)
    chosen = 0 if alone else len(order) - len(order) // 2
    train, choose = map(together.all_of, np.split(order, [len(order) - chosen]))
    plan = plan_of(dataset, asked, seed, FourWaySplit(train, choose, order, choose))
    return select(plan, None, progress or Silent()).trials[0].name


def _alike(plan: Plan) -> tuple[str, str]:
    """Say so where some of the questions ask the same, and where some are worded alike."""
    asked = plan.dataset.traces.take(np.sort(np.concatenate(list(vars(plan.parts).values()))))
    return note(len(asked), n_distinct(asked.content)), near_note(asked)


def _idle(plan: Plan, proof: Proved) -> str:
    """Say which questions could prove as well, where nothing is proved."""
    n = plan.sizes()["report"]
    if not proof.falls_back or not n or not plan.side_by_side:
        return ""
    return f"{n:,} questions only measure; with --holdout 0 they prove as well"


def _withheld(plan: Plan, bundle: Bundle, report: ReportingQuestions) -> str:
    if not plan.asked.withholds or plan.asked.passes_to or plan.reference is None:
        return ""
    found = run_bundle(bundle, report, stream(bundle.kind, plan.seed))
    withheld = int((found.set_size == 0).sum())
    if not withheld:
        return ""
    whole = with_escalation(bundle, report, found, plan.reference)
    cost, right = float(whole.cost_nano.mean()) / 1e6, float(whole.best_correct.mean())
    return (
        f"{withheld:,} of these {len(found.set_size):,} questions get no answer; with "
        f"{plan.reference}'s, 1,000 cost ${significant(cost)} and {right:.3f} are right, of which "
        "nothing is promised"
    )


def _silent(plan: Plan, report: TraceArrays) -> str:
    """Say how many questions the reference gave no answer to, though it was asked."""
    if plan.reference is None:
        return ""
    place = report.roles.index(plan.reference)
    silent = report.made[:, 0, place] & (report.answer[:, 0, place] == NO_ANSWER)
    if not silent.any():
        return ""
    then = "that counts as wrong" if plan.asked.needs_gold else "no answer agrees with that"
    return (
        f"{plan.reference} gave no answer to {int(silent.sum()):,} of these {len(report):,} "
        f"questions: {then}"
    )


def _by_chance(plans: Sequence[Plan], played: Eligibility) -> Iterator[str]:
    """Say on how many questions candidates are proved and compared, where chance left calls out."""
    if played.missing != "chance":
        return
    each = [
        f"{plan.sizes()['prove']:,} for what asks {', '.join(plan.dataset.traces.roles)}"
        for plan in plans
    ]
    common = reduce(np.intersect1d, [plan.parts.prove for plan in plans])
    compared = n_distinct(plans[0].dataset.traces.content[common])
    yield (
        f"chance decided who was asked, so as many questions prove as were asked of all: "
        f"{'; '.join(each)}; costs are compared on {compared:,}"
    )


def _ungraded(traces: TraceArrays, asked: Promise) -> str:
    """Say so where agreement is promised though some answers were graded."""
    missing = int(ungraded_questions(traces).sum())
    graded = bool(((traces.answer != NO_ANSWER) & ~traces.ungraded).any())
    if asked.needs_gold or not (missing and graded):
        return ""
    return (
        f"{missing:,} of {len(traces):,} questions are not graded, and agreement reads no grade; "
        "with all of them graded, parity can be promised"
    )


def _another(plan: Plan, proof: Proved) -> str:
    """Say which reference would be cheaper and looks as good, where nothing is proved."""
    if not proof.falls_back or plan.reference is None or not plan.asked.needs_gold:
        return ""
    return no_worse(plan.dataset.traces.take(plan.parts.train), plan.reference)


def _late(found: BundleEvaluation, deadline_s: float | None) -> str:
    """Say so where what is recommended takes longer than it may after all."""
    seconds = found.value.yours.latency_s
    if deadline_s is None or (seconds is not None and seconds[1] <= deadline_s):
        return ""
    if seconds is None:
        return (
            f"of more than one question of twenty nobody knows how long it takes, and "
            f"{deadline_s:g} s were given: whether they are kept is unknown"
        )
    return (
        f"one of twenty questions takes more than {seconds[1]:.3g} s, and {deadline_s:g} s were "
        "given: nothing that is proved is faster"
    )


def _unlike(dataset: Dataset, played: Eligibility) -> list[str]:
    """Say so where calls are not missing by chance, by what was recorded, or nobody could tell."""
    recorded, rows = dataset.traces, played.sets[-1].rows
    if dataset.missing == "chance":
        return by_what_was_recorded(recorded, rows)
    weighed = draw_weights(recorded) is not None  # then chance drew by what is known of questions
    if weighed or played.missing not in {"chance", "unknown"}:
        return []
    return [*filter(None, [unlike(recorded, rows)])]


def _name(plan: Plan, trial: Trial, proof: Proved) -> str:
    """Name what answers: of a selective promise that may be another than the method."""
    if proof.falls_back:
        return f"always-{plan.reference}"
    candidate = getattr(proof.certificate.promise, "candidate", "")
    named = candidate and not candidate.startswith(AS_TRAINED)
    return candidate if named else trial.name
