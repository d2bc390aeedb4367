"""Does a certificate still apply? A test of new questions against those that calibrated."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from farthing.errors import CalibrationError, InputError
from farthing.methods.selective.policy import as_trained
from farthing.process.base import Policy
from farthing.process.batch_replay import NestedReplay, PointReplay, followed, replay
from farthing.recommendation import splits, warnings
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.fingerprint import marks_of, question_hashes

LEVEL = 0.01
"""The p-value below which the mix of questions counts as changed: one false alarm in a hundred."""


@dataclass(frozen=True)
class Drift:
    """What a comparison of scores found."""

    p_value: float | None
    """None: not compared, since the promise is `refuted`."""
    n_old: int
    """Questions that calibrated."""
    n_new: int
    refuted: str = ""
    """Why the promise is not proved at all, whatever the questions."""

    @property
    def applies(self) -> bool:
        """Whether nothing speaks against the certificate."""
        return self.p_value is not None and self.p_value >= LEVEL

    def sentence(self) -> str:
        """Say in one sentence whether the certificate still applies.

        >>> print(Drift(0.4, 200, 50).sentence())
        The scores of 50 new questions look like those of the 200 that calibrated (p = 0.4), so \
nothing speaks against the certificate.
        """
        if self.p_value is None:
            return self.refuted
        these = f"The scores of {self.n_new:,} new questions"
        those = f"those of the {self.n_old:,} that calibrated (p = {self.p_value:.2g})"
        if self.applies:
            return f"{these} look like {those}, so nothing speaks against the certificate."
        return (
            f"{these} differ from {those}, so the certificate does not apply to them: calibrate "
            "on such questions, or with --promise shift."
        )


def check(
    folder: str | Path,
    traces: TraceArrays,
    new: TraceArrays,
    *,
    split: splits.Split = splits.DEFAULT,
) -> Drift:
    """Compare a policy's scores on new questions with those on its calibration questions.

    A question's score is that of going on after round 1, which no grade is needed for. A change
    that leaves these scores alone goes unnoticed.

    Args:
        folder: a calibrated bundle.
        traces: the questions that it was calibrated on, among others.
        new: questions of the same kind, graded or not.
        split: as it was calibrated with; its seed is also that of the permutations.
    """
    bundle, arrays, parts = splits.open_bundle(folder, traces, split)
    certificate = bundle.certificate
    if certificate is not None and certificate.refuted:
        return Drift(None, certificate.n, len(new), certificate.refuted)
    old = arrays.take(parts.calibrate)
    if bundle.questions.get("calibrate") not in (marks_of(old), question_hashes(old)):
        raise InputError(
            f"{folder}: it was not calibrated on the calibration part of these traces; calibrate "
            f"it, and {warnings.SAME_OPTIONS}"
        )
    before = _scores(bundle.policy, old)
    after = _scores(bundle.policy, splits.as_played(folder, bundle, new))
    if (np.concatenate([before, after]) == before[0]).all():
        raise InputError(f"the policy '{bundle.kind}' scores every question alike; nothing to test")
    p_value = scores_p_value(before, after, np.random.default_rng(split.seed))
    return Drift(p_value, len(before), len(after))


def scores_p_value(
    old: FloatArray, new: FloatArray, rng: np.random.Generator, draws: int = 999
) -> float:
    """Return the p-value of the hypothesis that two samples of scores are of one distribution.

    A permutation test on the largest distance of their distribution functions (Kolmogorov and
    Smirnov), exact with ties. Any number known without grading will do: a confidence, the score of
    an action, a feature.

    Args:
        old: [n] scores of the calibration questions; may be infinite, not NaN.
        new: [m] the same of new questions.
        rng: draws the permutations.
        draws: number of permutations; no p-value is below 1 / (draws + 1).

    Raises:
        CalibrationError: an empty sample or a NaN.

    Source: Phipson and Smyth 2010 (the 1 + in numerator and denominator).

    >>> rng = np.random.default_rng(0)
    >>> scores_p_value(rng.random(200), rng.random(200) ** 2, rng)
    0.001
    """
    both = np.concatenate([old, new])
    if not len(old) or not len(new) or np.isnan(both).any():
        raise CalibrationError("both samples need at least one score, and none may be NaN")
    ordered, ranks = np.unique(both, return_inverse=True)
    is_new = np.arange(len(both)) >= len(old)
    seen = _distance(ranks, is_new, len(ordered))
    others = (_distance(ranks, rng.permutation(is_new), len(ordered)) for _ in range(draws))
    return (1 + sum(other >= seen for other in others)) / (draws + 1)


def _scores(policy: Policy, traces: TraceArrays) -> FloatArray:
    """Return the score of going on after round 1, [n]; where there is one round, the best one.

    A policy that says how sure it is goes on or does not, so that of the one below it is taken.
    """
    policy, _ = as_trained(policy, "")
    if policy.parameters is not None:
        return _mean_calls(replay(policy, traces))
    found = followed(policy, traces).scores
    first: FloatArray = found[:, 0, -1] if found.shape[1] > 1 else found[:, 0, :-1].max(axis=1)
    return first


def _mean_calls(played: NestedReplay | PointReplay) -> FloatArray:
    """Return how many calls each question takes, averaged over the operating points, [n]."""
    kappas = played.thresholds()
    calls = [played.act(float(kappa)).length for kappa in kappas]
    mean: FloatArray = np.mean(calls, axis=0, dtype=np.float64)
    return mean


def _distance(ranks: IntArray, is_new: BoolArray, values: int) -> int:
    """Return the largest distance of the two distribution functions, times n m."""
    m = int(is_new.sum())
    n = len(ranks) - m
    new = np.bincount(ranks, weights=is_new, minlength=values)
    old = np.bincount(ranks, weights=~is_new, minlength=values)
    return int(np.abs(np.rint(np.cumsum(n * new - m * old))).max())
