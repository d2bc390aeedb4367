"""From one mix of questions to another: weights by what round 1 shows, and a test of the rest.

Weights can carry a promise over only where nothing but what they are made of has changed. What the
later rounds show is not in them, so it must be as the weights have it: if not, there is no promise.
"""

from dataclasses import dataclass

import numpy as np

from farthing.bundle.base import Bundle
from farthing.errors import CalibrationError
from farthing.features.rounds import FeatureSet
from farthing.recommendation.splits import as_played
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.copies import one_of_each
from farthing_lab.promises.covariate_shift import Observed, covariate_shift_p_values
from farthing_lab.promises.weighted import Shift, Weighted

REFUSED_WRONGLY = 0.05
"""How often the test may refuse a target that differs only in what round 1 shows."""
COMPARED = 5_000
"""Target questions that are compared at most, so that the test takes seconds."""
SEED = 0
"""Of the test's draws; fixed, so that a refusal does not go away by asking again."""
NAMED = 3
"""Differences that a refusal names."""


@dataclass(frozen=True)
class Shown:
    """What questions show, without their grades."""

    first: FloatArray
    """[n, F] features of round 1."""
    later: FloatArray
    """[n, F] mean of each feature over the later rounds."""

    @classmethod
    def by(cls, features: FeatureSet, questions: TraceArrays) -> "Shown":
        """Compute the features of questions that were recorded in full."""
        values = features.transform(questions)
        later = values[:, 1:]
        return cls(values[:, 0], later.sum(axis=1) / max(later.shape[1], 1))


@dataclass(frozen=True)
class Weighed:
    """What questions show, and how much likelier each is in the target mix."""

    shown: Shown
    weights: FloatArray
    """[n] up to a common factor."""


def weigh(
    asked: Shift, bundle: Bundle, train: TraceArrays, mine: TraceArrays, critical: FloatArray
) -> Weighted:
    """Weigh critical thresholds by how much likelier their questions are in the target mix.

    Args:
        asked: the promise, with a sample of that mix.
        bundle: the policy.
        train: questions that it was trained on, as it plays them.
        mine: the questions that prove, as it plays them.
        critical: [n] their critical thresholds.
    """
    target = as_played("the target mix", bundle, asked.target)
    target = target.take(one_of_each(target.content))
    check_comparable(target)
    features = FeatureSet.fit(train)
    complete = train.take(train.complete)
    old, new, shown = (Shown.by(features, part) for part in (complete, target, mine))
    from farthing_lab.promises.density_ratio import fit_density_ratio  # noqa: PLC0415 - loads scikit-learn

    ratio = fit_density_ratio(old.first, new.first)
    weights, theirs = ratio.weights(shown.first), ratio.weights(new.first)
    check_covariate_shift(features, old, Weighed(shown, weights), Weighed(new, theirs))
    return Weighted(critical, weights, max(float(weights.max()), float(theirs.max())))


def check_comparable(target: TraceArrays) -> None:
    """Refuse a target whose later rounds are not there to be compared."""
    if target.horizon == 1:
        raise CalibrationError(
            "with one round nothing shows whether the target mix differs in more than its weights "
            "are made of; calibrate on graded questions of that mix for coverage (--promise "
            "coverage, in Python Coverage)"
        )
    truncated = int((~target.complete).sum())
    if truncated:
        raise CalibrationError(
            f"{truncated} of {len(target)} target questions lack rounds, so it cannot be tested "
            "whether the weights account for the shift; leave them out or record them in full"
        )


def check_covariate_shift(
    features: FeatureSet, train: Shown, calibrate: Weighed, target: Weighed
) -> None:
    """Refuse a target that differs from the calibration questions in more than round 1 shows.

    Compared is what is left of the later rounds when the best linear guess from round 1 is taken
    away. The guess is learnt from training questions: a poor one costs power and no validity, and a
    good one makes up for small errors of the weights.
    """
    guess = np.linalg.lstsq(_with_one(train.first), train.later)[0].astype(np.float64)
    rng = np.random.default_rng(SEED)
    left = _left_over(target.shown, guess)
    chosen = rng.permutation(len(left))[:COMPARED]
    new = Observed(left[chosen], target.weights[chosen])
    old = Observed(_left_over(calibrate.shown, guess), calibrate.weights)
    p_values = covariate_shift_p_values(old, new, rng)
    if p_values.min() > REFUSED_WRONGLY:
        return
    differ = [k for k in np.argsort(p_values, kind="stable") if p_values[k] <= REFUSED_WRONGLY]
    named = ", ".join(f"{features.names[k]} p = {p_values[k]:.2g}" for k in differ[:NAMED])
    raise CalibrationError(
        f"the target mix differs in more than round 1 shows (later rounds: {named}), so no weights "
        "make up for it; grade some of its questions and calibrate on them for coverage (--promise "
        "coverage, in Python Coverage)"
    )


def _left_over(shown: Shown, guess: FloatArray) -> FloatArray:
    """Return what the guess leaves of the later rounds, [n, F], in standard deviations.

    Rounded, so that what is the same in every question is not compared by its last bits.
    """
    left: FloatArray = np.round(shown.later - _with_one(shown.first) @ guess, 9)
    return left


def _with_one(values: FloatArray) -> FloatArray:
    return np.column_stack([np.ones(len(values)), values])
