"""A bundle with the threshold that keeps a promise, proved on questions that it has not seen."""

from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.errors import CalibrationError, InputError
from farthing.methods.base import Saveable
from farthing.methods.cards import name_of
from farthing.money import dollars
from farthing.process.base import Policy
from farthing.process.budget import PerQuestion
from farthing.process.value import Value
from farthing.promises import wording
from farthing.promises.base import Promise
from farthing.promises.certificate import AskedOf, Certificate
from farthing.recommendation.bundle_run import run_bundle, with_escalation
from farthing.recommendation.bundle_splits import as_played
from farthing.recommendation.played import QuestionPart
from farthing.recommendation.prove import counted, promise
from farthing.recommendation.replayed_candidate import stream
from farthing.recommendation.savings import SingleModels, promised_by, requests_of, savings_of
from farthing.recommendation.warnings import AS_BEFORE
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.contexts import recorded_system, with_longest
from farthing.traces.eligibility import Missing, alike
from farthing.traces.question_hashes import Marks, question_hashes
from farthing.traces.system import System, unrecorded

NO_MARKS: Marks = frozenset()


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


AS_RECORDED = Serving()


def promised(
    bundle: Bundle,
    asked: Promise,
    train: QuestionPart,
    prove: QuestionPart,
    serving: Serving = AS_RECORDED,
) -> tuple[Bundle, Certificate]:
    """Return a bundle with the threshold that keeps a promise, and its certificate.

    `prove_bundle` says besides what would probably be proved where nothing was.
    """
    kept, certificate, _ = prove_bundle(bundle, asked, train, prove, serving)
    return kept, certificate


def prove_bundle(
    bundle: Bundle,
    asked: Promise,
    train: QuestionPart,
    prove: QuestionPart,
    serving: Serving = AS_RECORDED,
    *,
    row: FloatArray | None = None,
) -> tuple[Bundle, Certificate, str]:
    """Return a bundle with the threshold that keeps a promise, its certificate, and the outlook.

    Args:
        bundle: a trained policy.
        asked: the promise.
        train: questions that trained it, to lay operating points out on.
        prove: questions that it has not seen.
        serving: what it is to hold for.
        row: the thresholds to prove, where other questions chose them; see `proofs.promise`.

    Raises:
        InputError: some of the questions trained the policy, the target has other roles or rounds
            than the bundle's, or the promise cannot be calibrated.
    """
    _check_held_out(bundle, prove.played)
    if asked.mix is not None:
        asked = asked.about(as_played("the target mix", bundle, asked.mix))
    try:
        found = promise(asked, bundle, train, prove, serving.budget, row)
    except CalibrationError as problem:
        budget = serving.budget
        under = f" under a budget of {dollars(budget.nano)} a question" if budget else ""
        raise InputError(f"cannot calibrate{under}: {problem}") from None
    system = system_behind(serving.system, prove.recorded)
    certificate = found.certificate.of_questions(serving.asked_of)
    if not serving.made_up:
        certificate = resting_on(certificate, system)
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
        questions={**bundle.questions, "calibrate": question_hashes(prove.played)},
    )
    kept = structs.replace(kept, value=value_on(kept, counted(asked, prove)))
    return kept, certificate, _outlook(certificate, found.tested and found.tested.evidence)


def _outlook(certificate: Certificate, evidence: object) -> str:
    """Say what would probably be proved; empty where something was, or nobody knows."""
    if certificate.promises or certificate.per_request:
        return ""
    return certificate.promise.forecast(evidence, certificate)


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


def value_on(bundle: Bundle, prove: QuestionPart) -> Value | None:
    """Return what a bundle is worth on these questions; None where some were not graded."""
    rows = alike(prove.recorded, np.arange(len(prove.recorded)))
    if len(rows) < len(prove.recorded):
        prove = replace(prove, recorded=prove.recorded.take(rows), played=prove.played.take(rows))
    if prove.recorded.ungraded.any():
        return None
    done = with_escalation(bundle, prove, run_bundle(bundle, prove.played, stream(bundle.kind, 0)))
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


def _check_held_out(bundle: Bundle, part: TraceArrays) -> None:
    for which, did in (("train", "trained the policy"), ("choose", "chose the method")):
        if met := len(question_hashes(part) & bundle.questions.get(which, NO_MARKS)):
            raise InputError(
                f"{met:,} of the {len(part):,} calibration questions {did}, "
                f"so nothing could be promised; {AS_BEFORE}"
            )
