"""Prove a promise, and say what answers then: the cheapest that is proved, else its reference.

`recommend`, `calibrate`, `recalibrate` and the controllers of `corl` all end here. What is proved,
and at which share of delta, was fixed by questions that prove nothing.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from typing import Any, Self

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from farthing.bundle.base import Bundle
from farthing.errors import CalibrationError, InputError
from farthing.methods.base import Saveable
from farthing.methods.baselines.models import AlwaysPolicy
from farthing.methods.cards import name_of
from farthing.money import dollars, significant
from farthing.process.base import Policy
from farthing.process.budget import PerQuestion
from farthing.process.value import PolicyValue
from farthing.promises import wording
from farthing.promises.base import Promise
from farthing.promises.certificate import AskedOf, Certificate
from farthing.promises.chains import Chain, prove_all
from farthing.recommendation.bundle_run import run_bundle, with_escalation
from farthing.recommendation.metrics import stream
from farthing.recommendation.played import ProvingQuestions, TrainingQuestions
from farthing.recommendation.prove import LaidOut, Tested, counted, prove
from farthing.recommendation.savings import SingleModels, promised_by, requests_of, savings_of
from farthing.recommendation.warnings import AS_BEFORE
from farthing.traces.arrays import BoolArray, IntArray, TraceArrays
from farthing.traces.eligibility import Missing, alike
from farthing.traces.fingerprint import Marks, marks_of, seen_before
from farthing.traces.pool import is_pool
from farthing.traces.system import System, origin_of, recorded_system, unrecorded, with_longest

NO_MARKS: Marks = frozenset()
MEETINGS = {
    "train": "trained the policy",
    "choose": "chose the method",
    "calibrate": "set its threshold",
    "before": "proved an earlier promise of it",
}
"""What the questions that a bundle keeps marks of have done."""
RANKED = 100
"""Common questions below which proved candidates are not ranked by their cost."""


@dataclass(frozen=True)
class Serving:
    """How a policy is to be served, which is what its promise is about."""

    budget: PerQuestion | None = None
    """What a question may cost; None: no limit."""
    system: System | None = None
    """What the calibration questions were made with; None: what they say themselves."""
    asked_of: AskedOf | None = None
    """Which of the recorded questions it is about; None: all that were recorded in full."""
    missing: Missing | None = None
    """What to take of calls that were not made; None: what the traces say."""
    made_up: bool = False
    """Whether a generator made the questions, so that nobody was asked anything."""
    conditions: tuple[str, ...] = ()
    """What its certificate rests on besides, a sentence each."""


AS_RECORDED = Serving()


@dataclass(frozen=True)
class Contender:
    """A trained policy that takes part in a proof."""

    bundle: Bundle
    asked: Promise
    """The promise, at the policy's share of delta."""
    train: TrainingQuestions
    prove: ProvingQuestions
    serving: Serving = AS_RECORDED
    laid_out: LaidOut | None = None
    """The thresholds to prove; None: `train` lays them out."""
    name: str = ""
    """The method's."""


@dataclass(frozen=True)
class PointOutcomes:
    """What the points of a policy came to on the questions that tested them."""

    cost_nano: IntArray
    """[n, G] nano-dollars, points from the cheapest to the most expensive."""
    right: BoolArray
    """[n, G] whether the answer is as the grade asks."""
    proved: BoolArray | None
    """[G] whether the promise is proved of the point; None: this kind of promise does not say."""


@dataclass(frozen=True)
class Proved:
    """What came of a proof."""

    bundle: Bundle
    """What answers: the policy with the threshold that is proved, or the reference; where there is
    neither, the policy."""
    certificate: Certificate
    outlook: str
    """Where nothing was proved: what would probably be."""
    falls_back: bool = False
    """Whether the reference answers, since nothing cheaper is proved."""
    left: str = ""
    """Why nothing answers: nothing is proved, and no reference could answer instead."""
    points: PointOutcomes | None = None
    """None: no points were tested."""
    later: Callable[[Fraction], str] = lambda _: ""
    """Returns the outlook of another proof, which spends such a share of this one's delta."""

    @property
    def exhausted(self) -> bool:
        """Whether all points of the policy are proved."""
        proved = None if self.points is None else self.points.proved
        return self.certificate.promises and proved is not None and bool(proved.all())

    def among(self, chains: Sequence[Chain]) -> Self:
        """Return it with the candidates that were proved side by side, if there are several."""
        certificate = self.certificate.among(chains)
        bundle = structs.replace(self.bundle, certificate=certificate)
        return replace(self, bundle=bundle, certificate=certificate)


def prove_cheapest(contenders: Sequence[Contender]) -> tuple[int, list[Proved], list[str]]:
    """Prove contenders side by side; return which costs least of those proved, all, and why.

    Their shares of delta add up to one at most, so that the promises of all hold together and any
    may be chosen; what one no longer needs passes on to the others (`promises.chains`). Where they
    have fewer than a hundred proving questions in common they are not ranked, and the one with most
    questions is taken. Where nothing is proved it is the first, whose reference answers.

    Raises:
        ValueError: the shares of delta add up to more.
    """
    contenders, proofs = _side_by_side(list(contenders))
    proved = [place for place, proof in enumerate(proofs) if proof.certificate.promises]
    place, notes = _cheapest(contenders, proofs, proved) if proved else (0, [])
    proofs[place] = prove_or_fall_back(contenders[place], proofs[place])
    return place, proofs, notes


def _side_by_side(contenders: list[Contender]) -> tuple[list[Contender], list[Proved]]:
    """Prove each at its share, and again where more of delta is left to it."""
    proofs: dict[int, Proved] = {}

    def prove_at(place: int, share: Fraction) -> bool:
        asked = contenders[place].asked
        if len(contenders) > 1:
            contenders[place] = replace(contenders[place], asked=asked.sharing(share))
        proofs[place] = prove_bundle(contenders[place])
        return proofs[place].exhausted

    shares = [contender.asked.share for contender in contenders]
    _, passed = prove_all(shares, prove_at)
    chains = [
        Chain(name=contender.name, share=share, passed=done)
        for contender, share, done in zip(contenders, shares, passed, strict=True)
    ]
    return contenders, [proofs[place].among(chains) for place in range(len(contenders))]


def _cheapest(
    contenders: Sequence[Contender], proofs: Sequence[Proved], proved: Sequence[int]
) -> tuple[int, list[str]]:
    """Return which of those that are proved costs least on the questions that prove all of them."""
    if len(proved) == 1:
        return proved[0], []
    questions = [counted(contenders[place].asked, contenders[place].prove) for place in proved]
    ids = [part.recorded.ids for part in questions]
    common = reduce(np.intersect1d, ids)
    names = [" and ".join(contenders[place].prove.recorded.roles) for place in proved]
    same = all(len(those) == len(common) for those in ids)
    if len(common) < RANKED and not same:
        best = proved[int(np.argmax([len(those) for those in ids]))]
        few = (
            f"{len(proved)} candidates are proved, with {'; with '.join(names)}; they share "
            f"{len(common):,} proving questions, too few to rank them, so the one that is proved "
            "on most questions is taken"
        )
        return best, [few]
    costs = [_mean_usd(contenders[place], proofs[place].bundle, common) for place in proved]
    each = [
        f"{contenders[place].name}{'' if same else f' with {who}'} ${significant(cost)}"
        for place, who, cost in zip(proved, names, costs, strict=True)
    ]
    on = f"by their cost on {len(common):,} common questions"
    return proved[int(np.argmin(costs))], [f"proved side by side, {on}: {', '.join(each)}"]


def _mean_usd(contender: Contender, bundle: Bundle, common: NDArray[np.str_]) -> float:
    """Return what a question costs on some of the proving ones, in dollars.

    Where answers may be withheld, with the price of an answer by the model paid for today.
    """
    prove = counted(contender.asked, contender.prove)
    role = bundle.origin.reference if contender.asked.withholds else None
    done = with_escalation(bundle, prove, run_bundle(bundle, prove, stream(bundle.kind, 0)), role)
    return float(done.cost_nano[np.isin(prove.recorded.ids, common)].mean()) / 1e9


def prove_or_fall_back(contender: Contender, proof: Proved | None = None) -> Proved:
    """Prove a contender's promise; where nothing is proved, its reference answers for everything.

    That needs no proof, and the certificate says so.

    Args:
        contender: the policy.
        proof: what came of its proof; None: nobody has tried.
    """
    asked, prove = contender.asked, contender.prove
    proof = prove_bundle(contender) if proof is None else proof
    if proof.certificate.promises or asked.stands:
        return proof
    instead = _reference(proof.bundle, proof.certificate, prove)
    if isinstance(instead, str):
        return replace(proof, left=instead)
    recorded = counted(asked, prove).recorded
    alone = ProvingQuestions(recorded, recorded)  # nobody is asked in turn
    instead = structs.replace(instead, value=value_on(instead, alone))
    return replace(proof, bundle=instead, falls_back=True)


def prove_bundle(contender: Contender) -> Proved:
    """Return a bundle with the threshold that keeps its promise, or that of which none is proved.

    Raises:
        InputError: some of the questions trained the policy, the target has other roles or rounds
            than the bundle's, or the promise cannot be calibrated.
    """
    bundle, asked, serving = contender.bundle, contender.asked, contender.serving
    proving = contender.prove
    _check_held_out(bundle, proving.played, by_text=asked.per != "request")
    proving = counted(asked, proving)
    try:
        found = prove(asked, bundle, contender.train, proving, serving.budget, contender.laid_out)
    except CalibrationError as problem:
        budget = serving.budget
        under = f" under a budget of {dollars(budget.nano)} a question" if budget else ""
        raise InputError(f"cannot calibrate{under}: {problem}") from None
    system = system_behind(serving.system, contender.prove.recorded)
    certificate = found.certificate.of_questions(serving.asked_of)
    if not serving.made_up:
        certificate = resting_on(certificate, system)
    certificate = structs.replace(
        certificate, conditional_on=(*certificate.conditional_on, *serving.conditions)
    )
    origin = structs.replace(bundle.origin, system=system)
    if serving.budget is not None:
        largest = serving.budget.largest_nano
        origin = structs.replace(origin, largest_nano=None if largest is None else dict(largest))
    kept = structs.replace(
        bundle,
        policy=saveable(found.policy, bundle.kind),
        kind=name_of(found.policy),
        origin=origin,
        kappa=certificate.kappa,
        certificate=certificate,
        empty=found.empty,
        questions={**bundle.questions, "calibrate": marks_of(contender.prove.played)},
    )
    kept = structs.replace(kept, value=value_on(kept, proving))
    evidence = found.tested and found.tested.evidence
    later = partial(_outlook, certificate, evidence)
    points = _outcomes(asked, found.tested)
    return Proved(kept, certificate, later(Fraction(1)), points=points, later=later)


def remembering(made: Bundle, before: Bundle, part: TraceArrays) -> Bundle:
    """Return a bundle that knows what proved it earlier, and how often `part` did.

    The same certificate of the same questions is no new look.
    """
    old, new, marks = before.certificate, made.certificate, dict(made.questions)
    known = before.questions.get("calibrate", NO_MARKS) | before.questions.get("before", NO_MARKS)
    if earlier := known - marks["calibrate"]:
        marks["before"] = earlier
    made = structs.replace(made, questions=marks, looks=1)
    by_text = new is None or not new.per_request
    if not old or not new or not seen_before(part, {"": known}, by_text=by_text)[""].any():
        return made
    looks = before.looks + (old.promise != new.promise)
    said = (wording.look(looks),) if looks > 1 else ()
    new = structs.replace(new, conditional_on=(*new.conditional_on, *said))
    return structs.replace(made, looks=looks, certificate=new)


def _outcomes(asked: Promise, tested: Tested | None) -> PointOutcomes | None:
    """Return what the points that were tested came to; None: there were none."""
    if tested is None or tested.points is None:
        return None
    return PointOutcomes(*tested.points, asked.proved(tested.evidence))


def _outlook(certificate: Certificate, evidence: object, share: Fraction) -> str:
    """Say what would probably be proved at a share of delta; empty where this proof did that."""
    if certificate.promises or certificate.per_request:
        return ""
    promise: Any = certificate.promise
    if share != 1:
        promise = structs.replace(promise, delta=promise.delta * share)
    said: str = promise.forecast(evidence, certificate)
    return said


def system_behind(known: System | None, recorded: TraceArrays) -> System | None:
    """Return what recorded questions were made with: as is known of them, else as they say."""
    return recorded_system(recorded) if known is None else with_longest(known, recorded)


def resting_on(certificate: Certificate, system: System | None) -> Certificate:
    """Return a certificate that says what nobody knows of the requests that it was computed from.

    >>> from farthing.promises.kinds import none
    >>> resting_on(none.certify(0.4, fingerprint=""), None).conditional_on
    ('Requests are made as the recorded ones were, whose system prompt and parameters were not \
recorded.',)
    """
    lacks = unrecorded(system)
    if not lacks:
        return certificate
    said = list(certificate.conditional_on)
    place = said.index(wording.SAME_SYSTEM) + 1 if wording.SAME_SYSTEM in said else len(said)
    said.insert(place, wording.as_recorded(lacks))
    return structs.replace(certificate, conditional_on=tuple(said))


def value_on(bundle: Bundle, prove: ProvingQuestions) -> PolicyValue | None:
    """Return what a bundle is worth on these questions; None where some were not graded."""
    rows = alike(prove.recorded, np.arange(len(prove.recorded)))
    if len(rows) < len(prove.recorded):
        prove = prove.take(rows)
    if prove.recorded.ungraded.any():
        return None
    done = with_escalation(bundle, prove, run_bundle(bundle, prove, stream(bundle.kind, 0)))
    return savings_of(
        done,
        SingleModels.of(prove.recorded),
        bundle.reference,
        "calibrate",
        promised=promised_by(bundle.certificate),
        clusters=requests_of(bundle.certificate, prove.recorded.content),
    )


def saveable(policy: Policy, kind: str) -> Saveable:
    """Return a policy that can be saved; raise InputError where it cannot."""
    if not isinstance(policy, Saveable):
        raise InputError(f"the policy '{kind}' cannot be saved; compare it instead")
    return policy


def met(
    bundle: Bundle, part: TraceArrays, of: str, *, by_text: bool, roles: Collection[str] = MEETINGS
) -> tuple[BoolArray, str]:
    """Return which questions a bundle has met, [n], and say how many did what.

    Args:
        bundle: with its marks, of records alone where an earlier version wrote it.
        part: the questions, as it plays them.
        of: what they are called.
        by_text: see `seen_before`.
        roles: what it has met them for.
    """
    marks = {role: bundle.questions.get(role, NO_MARKS) for role in roles}
    each = seen_before(part, marks, by_text=by_text)
    said = [f"{int(one.sum()):,} {MEETINGS[role]}" for role, one in each.items() if one.any()]
    known: BoolArray = np.any([*each.values()], axis=0)
    return known, " and ".join(said).replace(" ", f" of the {len(part):,} {of} ", 1)


def _check_held_out(bundle: Bundle, part: TraceArrays, *, by_text: bool) -> None:
    of = "calibration questions"
    known, did = met(bundle, part, of, by_text=by_text, roles=("train", "choose"))
    if known.any():
        raise InputError(f"{did}, so nothing could be promised; {AS_BEFORE}")


def _reference(bundle: Bundle, certificate: Certificate, prove: ProvingQuestions) -> Bundle | str:
    """Return a bundle that asks the reference of an unproved promise for every question.

    Its certificate says that nothing was proved and that the reference answers; that needs no
    proof, and nothing is tested. The trained policy is kept inside, for the next calibration.

    Args:
        bundle: the trained policy, with what is known of the calibration questions.
        certificate: of a promise that was not proved.
        prove: the calibration questions.
    """
    promise, recorded = certificate.promise, prove.recorded
    role = promise.fallback
    if role is None:
        return "this promise has no reference that could answer instead"
    if not is_pool(recorded):
        return f"in rounds nobody knows what {role} says where it is asked alone"
    if not recorded.independent.all():
        return f"{role} was not recorded alone"
    if certificate.question_budget_nano is not None:
        return f"a budget a question may not pay for {role}"
    policy = AlwaysPolicy(recorded.roles.index(role))
    before = bundle.origin
    origin = origin_of(recorded, before.fingerprint, before.system)
    return structs.replace(
        bundle,
        policy=policy,
        kind=name_of(policy),
        origin=structs.replace(
            origin, reference=before.reference, named=before.named, grade=before.grade
        ),
        kappa=certificate.kappa,
        certificate=certificate,
        empty="argmax",
        features=None,
    )
