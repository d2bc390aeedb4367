"""Calibrate and say so: scores in, certificate out; and check a certificate against scores."""

from collections.abc import Sequence

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
from farthing.calibration.groups import group_thresholds
from farthing.calibration.online import OnlineThreshold, long_run_bound
from farthing.calibration.pac import pac_threshold
from farthing.calibration.split import split_threshold
from farthing.errors import CalibrationError

EXCHANGEABLE = "A new question is exchangeable with the calibration questions."
INDEPENDENT = "The calibration questions and a new one are independent draws of one kind."
HELD_OUT = "No calibration question was used in training or in choosing the policy."
SAME_SYSTEM = "Models, prompts, prices and the version of the features are those of the traces."
CAPPED = "The policy acts with min(kappa, 1)."
BOUNDED = "Critical thresholds are capped at the bound of the online update."

DRIFT = "The kind or mix of questions changes."
NEW_SYSTEM = "A model, prompt, price, tool, or the version of the features changes."
RETRAINED = "The policy is trained again or its weights change."
CUT_SHORT = "A budget or a failed call stops an episode that the policy would have continued."
NEW_GROUP = "A question belongs to a group that is not listed."
FROZEN = "The threshold is no longer updated."

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


def certify_nothing(kappa: float, *, fingerprint: str) -> Certificate:
    """State that a threshold was chosen without calibration, and so promises nothing."""
    return Certificate(guarantee="none", kappa=kappa, fingerprint=fingerprint)


def verify(
    certificate: Certificate,
    critical: FloatArray,
    group: IntArray | None = None,
    names: Sequence[str] = (),
) -> list[str]:
    """Recompute a certificate from the scores; return what does not match, a sentence each.

    Args:
        certificate: the certificate in question.
        critical: [n] kappa* of the calibration questions, under the certified policy.
        group: [n] index into `names`, for a promise per group.
        names: the groups.

    Returns:
        Nothing when the certificate is what these scores give.

    Raises:
        CalibrationError: the scores cannot be calibrated on.

    >>> import numpy as np
    >>> scores = np.arange(1, 101) / 100
    >>> verify(certify_split(scores, "0.1", fingerprint="f"), scores)
    []
    >>> verify(certify_split(scores, "0.1", fingerprint="f"), scores / 2)
    ['kappa is 0.1 in the certificate but 0.05 by these scores']
    """
    again = _again(certificate, critical, group, names)
    if again is None:
        kind = certificate.guarantee
        return [f"a certificate of kind '{kind}' cannot be checked from scores alone"]
    compared = ("kappa", "n", "k", "interval", "groups")
    return [
        f"{name} is {_show(getattr(certificate, name))} in the certificate "
        f"but {_show(getattr(again, name))} by these scores"
        for name in compared
        if getattr(certificate, name) != getattr(again, name)
    ]


def _again(
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


def _show(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_show(part)}" for name, part in value.items())
    return f"{value.kappa:g}" if isinstance(value, Threshold) else str(value)
