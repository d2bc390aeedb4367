"""Where nothing was proved: how many questions would probably do, or which level these would."""

from dataclasses import replace
from fractions import Fraction

from farthing.promises.base import Certificate
from farthing.promises.kinds.agreement import Agreeing, AgreementPromise, agreement_point
from farthing.promises.kinds.pac import PacPromise
from farthing.promises.kinds.parity import Paired, ParityPromise, parity_point
from farthing.promises.kinds.selective import Answers, SelectivePromise
from farthing.promises.levels import exact_text
from farthing.promises.statistics.power import (
    MOST,
    PROBABLY,
    Compared,
    Rates,
    Wrong,
    coverage_questions,
    level_provable,
    questions_needed,
)

TOO_DEAR = "What is proved costs as much as the reference alone."
Evidence = Paired | Agreeing | Answers | None


def outlook(certificate: Certificate, evidence: Evidence) -> str:
    """Say in one line what would probably be proved; empty where something was, or nobody knows.

    Args:
        certificate: what came of asking for a promise.
        evidence: what operating points came to on the calibration questions.
    """
    if certificate.promises or certificate.per_request:
        return ""
    if _too_dear(certificate, evidence):
        cheaper = _cheaper(evidence)
        return f"{TOO_DEAR} {_of(certificate, cheaper)}" if cheaper else TOO_DEAR
    return _of(certificate, evidence)


def _of(certificate: Certificate, evidence: Evidence) -> str:
    match certificate.promise, evidence:
        case ParityPromise(epsilon=level, delta=delta), Paired() as paired:
            return _said(Compared.of(paired), "epsilon", level, delta, certificate.n)
        case AgreementPromise(epsilon=level, delta=delta), Agreeing() as agreeing:
            return _said(Wrong.of_agreement(agreeing), "epsilon", level, delta, certificate.n)
        case SelectivePromise(alpha=level, delta=delta), Answers() as answers:
            return _said(Wrong.of_answers(answers), "alpha", level, delta, certificate.n)
        case PacPromise(alpha=level, delta=delta), _:
            least = coverage_questions(level, delta)
            return f"It takes {least:,} calibration questions or more."
    return ""


def _too_dear(certificate: Certificate, evidence: Evidence) -> bool:
    """Return whether something is proved, and only costs too much."""
    match certificate.promise, evidence:
        case ParityPromise(epsilon=level, delta=delta), Paired() as paired:
            return parity_point(replace(paired, reference_nano=None), level, delta) is not None
        case AgreementPromise(epsilon=level, delta=delta, judge=None), Agreeing() as agreeing:
            cheapest = agreement_point(replace(agreeing, reference_nano=None), level, delta)
            return cheapest is not None
    return False


def _cheaper(evidence: Evidence) -> Evidence:
    """Return the points that cost less than the reference alone; None: there are none."""
    if not isinstance(evidence, Paired | Agreeing) or evidence.reference_nano is None:
        return None
    if isinstance(evidence, Paired) and evidence.sample is not None:
        return None
    less = evidence.cost_nano.sum(axis=0) < evidence.reference_nano.sum()
    if not less.any():
        return None
    cost, kappas = evidence.cost_nano[:, less], evidence.kappas
    kappas = None if kappas is None else kappas[less]
    if isinstance(evidence, Agreeing):
        return replace(evidence, cost_nano=cost, same=evidence.same[:, less], kappas=kappas)
    return replace(evidence, cost_nano=cost, correct=evidence.correct[:, less], kappas=kappas)


def _said(rates: Rates, name: str, level: Fraction, delta: Fraction, n: int) -> str:
    """Say how many questions it takes, and which level so many questions would do for."""
    if not rates.counted:
        return "The first operating point answered none of them, so nothing can be foretold."
    needed = questions_needed(rates, level, delta, n)
    provable = level_provable(rates, n, delta)
    enough = None if provable is None else f"{name} {exact_text(provable)}"
    chance = f" (a chance of {100 * PROBABLY:.0f} %, if losses stay as they were)."
    if needed is None and rates.loss >= level:
        lost = f"{rates.loss:.3f} was lost here, and {exact_text(level)} may be"
        said = f"More questions would not help: {lost}."
        return f"{said} These {n:,} would probably do for {enough}{chance}" if enough else said
    first = f"More than {MOST:,} calibration questions would be needed"
    if needed is not None:
        first = f"About {needed:,} calibration questions ({needed - n:,} more) would probably do"
    return f"{first}, or {enough} with these {n:,}{chance}" if enough else f"{first}{chance}"
