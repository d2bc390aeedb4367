"""Calibrate and say so: scores in, certificate out; and check a certificate against scores."""

from collections.abc import Sequence

import numpy as np

from farthing.calibration.base import (
    Certificate,
    FloatArray,
    Given,
    IntArray,
    Level,
    Threshold,
    exact_level,
    exact_text,
)
from farthing.calibration.beta import realised_coverage
from farthing.calibration.budget import Spending, budget_setting
from farthing.calibration.groups import group_thresholds
from farthing.calibration.online import OnlineThreshold, long_run_bound
from farthing.calibration.pac import pac_threshold
from farthing.calibration.parity import Paired, parity_setting
from farthing.calibration.selective import Answers, selective_setting
from farthing.calibration.split import split_threshold
from farthing.calibration.weighted import Weighted, effective_size, weighted_threshold
from farthing.errors import CalibrationError

Evidence = FloatArray | Weighted | Answers | Paired | Spending
"""What a promise was computed from: critical thresholds [n], or the record of its kind."""

EXCHANGEABLE = "A new question is exchangeable with the calibration questions."
INDEPENDENT = "The calibration questions and a new one are independent draws of one kind."
HELD_OUT = "No calibration question was used in training or in choosing the policy."
SAME_SYSTEM = "Models, prompts, prices and the version of the features are those of the traces."
ORDERED = "The settings and their order were chosen without the calibration questions."
SHIFTED = "Only the mix of questions differs, and the weights are its likelihood ratios."
HEAVIEST = "A new question's weight is at most the largest that was allowed for."
COMPARED = "The reference model answers as it did on the calibration questions."
DEAREST = "No question can cost more than the largest cost that was assumed."
CAPPED = "The policy acts with min(kappa, 1)."
BOUNDED = "Critical thresholds are capped at the bound of the online update."

DRIFT = "The kind or mix of questions changes."
NEW_SYSTEM = "A model, prompt, price, tool, or the version of the features changes."
RETRAINED = "The policy is trained again or its weights change."
CUT_SHORT = "A budget or a failed call stops an episode that the policy would have continued."
NEW_GROUP = "A question belongs to a group that is not listed."
FROZEN = "The threshold is no longer updated."

_MENU = (INDEPENDENT, HELD_OUT, ORDERED, SAME_SYSTEM)
_ENDS = (DRIFT, NEW_SYSTEM, RETRAINED, CUT_SHORT)


def certify_split(
    critical: FloatArray, alpha: Level, *, fingerprint: str, given: Given = "all"
) -> Certificate:
    """Calibrate by exact split conformal: a marginal promise.

    Args:
        critical: [n] kappa* of the calibration questions.
        alpha: miscoverage, in (0, 1).
        fingerprint: SHA-256 of the traces that the scores were computed from.
        given: which questions the promise is about.

    Raises:
        CalibrationError: as `split_threshold`.
    """
    found = split_threshold(critical, alpha, given)
    return Certificate(
        guarantee="marginal",
        kappa=found.kappa,
        alpha=exact_text(exact_level(alpha)),
        n=found.n,
        k=found.k,
        given=given,
        interval=realised_coverage(found.n, found.k),
        conditional_on=(EXCHANGEABLE, HELD_OUT, SAME_SYSTEM, CAPPED),
        invalid_when=_ENDS,
        fingerprint=fingerprint,
    )


def certify_pac(
    critical: FloatArray, alpha: Level, delta: Level, *, fingerprint: str, given: Given = "all"
) -> Certificate:
    """Calibrate so that coverage holds with confidence 1 - delta in the calibration draw.

    Raises:
        CalibrationError: as `pac_threshold`.
    """
    found = pac_threshold(critical, alpha, delta, given)
    return Certificate(
        guarantee="pac",
        kappa=found.kappa,
        alpha=exact_text(exact_level(alpha)),
        delta=exact_text(exact_level(delta, "delta")),
        n=found.n,
        k=found.k,
        given=given,
        interval=realised_coverage(found.n, found.k),
        conditional_on=(INDEPENDENT, HELD_OUT, SAME_SYSTEM, CAPPED),
        invalid_when=_ENDS,
        fingerprint=fingerprint,
    )


def certify_groups(
    critical: FloatArray,
    group: IntArray,
    names: Sequence[str],
    alpha: Level,
    *,
    fingerprint: str,
    given: Given = "all",
) -> Certificate:
    """Calibrate within each group; the certificate's own kappa is the smallest of theirs.

    Raises:
        CalibrationError: as `group_thresholds`, or there is no group.
    """
    found = group_thresholds(critical, group, names, alpha, given)
    if not found:
        raise CalibrationError("no groups to calibrate; give the traces a group, or ask for none")
    smallest = min(found.values(), key=lambda threshold: (threshold.kappa, threshold.k))
    return Certificate(
        guarantee="per-group",
        kappa=smallest.kappa,
        alpha=exact_text(exact_level(alpha)),
        n=sum(threshold.n for threshold in found.values()),
        k=smallest.k,
        given=given,
        groups=found,
        conditional_on=(f"Within each group: {EXCHANGEABLE}", HELD_OUT, SAME_SYSTEM, CAPPED),
        invalid_when=(*_ENDS, NEW_GROUP),
        fingerprint=fingerprint,
    )


def certify_online(state: OnlineThreshold, alpha: Level, *, fingerprint: str) -> Certificate:
    """State what an online threshold promises about the stream that it was updated on."""
    return Certificate(
        guarantee="online",
        kappa=state.kappa,
        alpha=exact_text(exact_level(alpha)),
        n=state.updates,
        bound=long_run_bound(state),
        conditional_on=(BOUNDED, CAPPED),
        invalid_when=(FROZEN,),
        fingerprint=fingerprint,
    )


def certify_weighted(sample: Weighted, alpha: Level, *, fingerprint: str) -> Certificate:
    """Calibrate for another mix of questions by their likelihood ratios: a marginal promise.

    Raises:
        CalibrationError: as `weighted_threshold`.
    """
    found = weighted_threshold(sample, alpha)
    return Certificate(
        guarantee="weighted",
        kappa=found.kappa,
        alpha=exact_text(exact_level(alpha)),
        n=found.n,
        k=found.k,
        effective_n=effective_size(sample.weights),
        conditional_on=(SHIFTED, HEAVIEST, HELD_OUT, SAME_SYSTEM, CAPPED),
        invalid_when=_ENDS,
        fingerprint=fingerprint,
    )


def certify_selective(
    answers: Answers, alpha: Level, delta: Level, *, fingerprint: str
) -> Certificate:
    """Choose the setting that answers most among those whose answers are proved right.

    Raises:
        CalibrationError: as `selective_setting`.
    """
    setting = selective_setting(answers, alpha, delta)
    n, settings = answers.answered.shape
    thresholds = answers.thresholds
    return Certificate(
        guarantee="selective",
        alpha=exact_text(exact_level(alpha)),
        delta=exact_text(exact_level(delta, "delta")),
        n=n,
        setting=setting,
        settings=settings,
        threshold=None if setting is None or thresholds is None else float(thresholds[setting]),
        answered=int(answers.answered[:, setting].sum()) if setting is not None else None,
        conditional_on=_MENU,
        invalid_when=_ENDS,
        fingerprint=fingerprint,
    )


def certify_parity(
    paired: Paired, epsilon: Level, delta: Level, *, fingerprint: str
) -> Certificate:
    """Choose the cheapest setting proved to lose less than epsilon against the reference.

    Raises:
        CalibrationError: as `parity_setting`.
    """
    return Certificate(
        guarantee="parity",
        epsilon=exact_text(exact_level(epsilon, "epsilon")),
        delta=exact_text(exact_level(delta, "delta")),
        n=len(paired.reference),
        setting=parity_setting(paired, epsilon, delta),
        settings=paired.correct.shape[1],
        conditional_on=(*_MENU, COMPARED),
        invalid_when=_ENDS,
        fingerprint=fingerprint,
    )


def certify_budget(
    spending: Spending, budget_nano: int, delta: Level, *, fingerprint: str
) -> Certificate:
    """Choose the setting that achieves most among those proved to cost less than the budget.

    Raises:
        CalibrationError: as `budget_setting`.
    """
    n, settings = spending.cost_nano.shape
    return Certificate(
        guarantee="budget",
        delta=exact_text(exact_level(delta, "delta")),
        budget_nano=budget_nano,
        most_nano=spending.most_nano,
        n=n,
        setting=budget_setting(spending, budget_nano, delta),
        settings=settings,
        conditional_on=(*_MENU, DEAREST),
        invalid_when=_ENDS,
        fingerprint=fingerprint,
    )


def certify_nothing(kappa: float, *, fingerprint: str) -> Certificate:
    """State that a threshold was chosen without calibration, and so promises nothing."""
    return Certificate(guarantee="none", kappa=kappa, fingerprint=fingerprint)


def verify(
    certificate: Certificate,
    evidence: Evidence,
    group: IntArray | None = None,
    names: Sequence[str] = (),
) -> list[str]:
    """Recompute a certificate from its evidence; return what does not match, a sentence each.

    Args:
        certificate: the certificate in question.
        evidence: [n] kappa* of the calibration questions under the certified policy, or the
            record that a promise of its kind is computed from.
        group: [n] index into `names`, for a promise per group.
        names: the groups.

    Returns:
        Nothing when the certificate is what this evidence gives.

    Raises:
        CalibrationError: the scores cannot be calibrated on.

    >>> import numpy as np
    >>> scores = np.arange(1, 101) / 100
    >>> verify(certify_split(scores, "0.1", fingerprint="f"), scores)
    []
    >>> verify(certify_split(scores, "0.1", fingerprint="f"), scores / 2)
    ['kappa is 0.1 in the certificate but 0.05 by these scores']
    """
    if isinstance(evidence, np.ndarray):
        again = _from_scores(certificate, evidence, group, names)
    else:
        again = _from_record(certificate, evidence)
    if again is None:
        kind = certificate.guarantee
        return [f"a certificate of kind '{kind}' cannot be checked from {_NAMES[type(evidence)]}"]
    return [
        f"{name} is {_show(getattr(certificate, name))} in the certificate "
        f"but {_show(getattr(again, name))} by these {_NAMES[type(evidence)].split()[0]}"
        for name in (_OF_MENU if isinstance(evidence, Answers | Paired | Spending) else _COMPARED)
        if getattr(certificate, name) != getattr(again, name)
    ]


_OF_MENU = ("n", "setting", "settings", "threshold", "answered", "most_nano")
_COMPARED = ("kappa", "n", "k", "interval", "groups", "effective_n")
_NAMES: dict[type, str] = {
    np.ndarray: "scores alone",
    Weighted: "weights",
    Answers: "answers",
    Paired: "answers",
    Spending: "costs",
}


def _from_scores(
    old: Certificate, critical: FloatArray, group: IntArray | None, names: Sequence[str]
) -> Certificate | None:
    alpha, delta, mark = old.alpha or "", old.delta or "", old.fingerprint
    if old.guarantee == "marginal":
        return certify_split(critical, alpha, fingerprint=mark, given=old.given)
    if old.guarantee == "pac":
        return certify_pac(critical, alpha, delta, fingerprint=mark, given=old.given)
    if old.guarantee == "per-group" and group is not None:
        return certify_groups(critical, group, names, alpha, fingerprint=mark, given=old.given)
    return None


def _from_record(
    old: Certificate, evidence: Weighted | Answers | Paired | Spending
) -> Certificate | None:
    alpha, delta, mark = old.alpha or "", old.delta or "", old.fingerprint
    match evidence:
        case Weighted() if old.guarantee == "weighted":
            return certify_weighted(evidence, alpha, fingerprint=mark)
        case Answers() if old.guarantee == "selective":
            return certify_selective(evidence, alpha, delta, fingerprint=mark)
        case Paired() if old.guarantee == "parity":
            return certify_parity(evidence, old.epsilon or "", delta, fingerprint=mark)
        case Spending() if old.guarantee == "budget":
            return certify_budget(evidence, old.budget_nano or 0, delta, fingerprint=mark)
    return None


def _show(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_show(part)}" for name, part in value.items())
    return f"{value.kappa:g}" if isinstance(value, Threshold) else str(value)
