"""From one mix of questions to another: weights by what round 1 shows, and a test of the rest.

Weights can carry a promise over only where nothing but what they are made of has changed. What the
later rounds show is not in them, so it must be as the weights have it: if not, there is no promise.
"""

from dataclasses import dataclass

import numpy as np

from farthing.bundle.base import Bundle
from farthing.errors import CalibrationError, TooFewTracesError
from farthing.features.rounds import FeatureSet
from farthing.recommendation.splits import as_played
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays
from farthing.traces.copies import one_of_each
from farthing_lab.promises.weighted import Shift, Weighted

STRENGTHS = (0.01, 0.1, 1.0, 10.0)
"""Inverse strengths of the L2 penalty that cross-validation chooses from."""
FOLDS = 5


@dataclass(frozen=True)
class DensityRatio:
    """A log-linear likelihood ratio of target to source."""

    mean: FloatArray
    """[d] subtracted from the features."""
    scale: FloatArray
    """[d] divides them then."""
    slope: FloatArray
    """[d] of the log ratio."""
    intercept: float
    """Of the log ratio."""

    def weights(self, features: FloatArray) -> FloatArray:
        """Return the ratio at each question's features [n, d], as [n]."""
        standard = (features - self.mean) / self.scale
        ratio: FloatArray = np.exp(standard @ self.slope + self.intercept)
        return ratio


def fit_density_ratio(source: FloatArray, target: FloatArray, seed: int = 0) -> DensityRatio:
    """Estimate the likelihood ratio of a target mix of questions to a source mix.

    A classifier tells the two samples apart; its odds times n / m are the ratio. Penalised towards
    no difference, by cross-validation. Neither sample may contain the questions that are then
    calibrated on, for weights fitted to them would not be those of a new question.

    Args:
        source: [n, d] features of questions of the mix that calibration draws from.
        target: [m, d] the same of the mix that the promise is to be about.
        seed: of the folds.

    Source: Bickel, Brueckner and Scheffer 2009; Tibshirani et al. 2019, section 2.3.

    >>> rng = np.random.default_rng(0)
    >>> ratio = fit_density_ratio(rng.normal(0, 1, (400, 1)), rng.normal(1, 1, (400, 1)))
    >>> low, high = ratio.weights(np.array([[-1.0], [2.0]]))
    >>> bool(low < 0.5 < 2 < high)
    True
    """
    n, m = len(source), len(target)
    if min(n, m) < FOLDS:
        raise TooFewTracesError(
            f"a likelihood ratio needs at least {FOLDS} questions of each mix; got {n} and {m}"
        )
    both = np.concatenate([source, target])
    mean, spread = both.mean(axis=0), both.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - slow to load
    from sklearn.model_selection import GridSearchCV, StratifiedKFold  # noqa: PLC0415

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    search = GridSearchCV(
        LogisticRegression(max_iter=1_000), {"C": STRENGTHS}, scoring="neg_log_loss", cv=folds
    )
    best = search.fit((both - mean) / scale, np.arange(n + m) >= n).best_estimator_
    intercept = float(best.intercept_[0]) + float(np.log(n / m))
    return DensityRatio(mean, scale, best.coef_[0], intercept)


_AT_ONCE = 4_000_000
"""Labels drawn at a time, at most."""
_ROUNDING = 1e-9
"""A column that varies by less than this share of its size is constant."""


@dataclass(frozen=True)
class Observed:
    """Questions of one mix: what the weights were not made of, and the weights."""

    statistics: FloatArray
    """[n, K] numbers that are known of a question without grading."""
    weights: FloatArray
    """[n] likelihood ratio of target to calibration mix, up to a common factor; above 0."""

    def __post_init__(self) -> None:
        if self.statistics.ndim != 2 or self.weights.shape != self.statistics.shape[:1]:
            raise CalibrationError(
                f"statistics of shape {self.statistics.shape} do not fit weights of shape "
                f"{self.weights.shape}; give a row and a weight for each question"
            )
        if not len(self.weights) or not np.isfinite(self.statistics).all():
            raise CalibrationError("both samples need at least one question and finite statistics")
        if not np.isfinite(self.weights).all() or (self.weights <= 0).any():
            raise CalibrationError("weights must be finite and above 0")


def covariate_shift_p_values(
    old: Observed, new: Observed, rng: np.random.Generator, draws: int = 999
) -> FloatArray:
    """Return p-values, [K], of the hypothesis that weights account for all of a shift.

    If nothing but what the weights are made of has changed, then given that and the statistics,
    each question is one of the target with odds proportional to its weight. So the labels are drawn
    anew with these odds, as many of the target as there are, and each statistic's sum over the
    target is compared with its sums in the draws, in their standard deviations. Each p-value is of
    the largest such distance of any statistic (Westfall and Young), so that under the hypothesis
    the smallest of them is at most p with probability at most p: exactly so for the true weights,
    for any sizes, ties and dependence among the statistics.

    Args:
        old: the calibration questions.
        new: questions of the target mix, with the same statistics.
        rng: draws the labels.
        draws: how often; no p-value is below 1 / (draws + 1).

    Raises:
        CalibrationError: the samples have different statistics.

    Source: Candes et al. 2018, section 4 (conditional randomisation).

    >>> rng = np.random.default_rng(0)
    >>> old = Observed(rng.normal(0, 1, (100, 2)), np.ones(100))
    >>> new = Observed(rng.normal([0, 1], 1, (100, 2)), np.ones(100))
    >>> unchanged, changed = covariate_shift_p_values(old, new, rng)
    >>> bool(unchanged > 0.1), float(changed)
    (True, 0.001)
    """
    if old.statistics.shape[1] != new.statistics.shape[1]:
        raise CalibrationError("both samples need the same statistics")
    values = np.concatenate([old.statistics, new.statistics])
    varies = np.ptp(values, axis=0) > _ROUNDING * np.abs(values).max(axis=0)
    centred = np.where(varies, values - values.mean(axis=0), 0.0)
    is_new = np.arange(len(values)) >= len(old.weights)
    others = _labels(np.concatenate([old.weights, new.weights]), len(new.weights), rng, draws)
    sums = np.concatenate([is_new[None], others]).astype(np.float64) @ centred
    # The observed labels are among those that mean and spread are of: no row stands out.
    apart = np.abs(sums - sums.mean(axis=0))
    spread = sums.std(axis=0)
    apart /= np.where(spread > _ROUNDING * np.abs(centred).max(axis=0), spread, np.inf)
    farthest = apart.max(axis=1, initial=0.0)
    p_values: FloatArray = (farthest[:, None] >= apart[0] * (1 - 1e-12)).mean(axis=0)
    return p_values


def _labels(weights: FloatArray, m: int, rng: np.random.Generator, draws: int) -> BoolArray:
    """Draw who is of the target, [draws, n]: independent with odds like weights, given m in all.

    Drawn until m are; their expected number is m, so that is the likeliest number to come up.
    """
    chance = _chances(np.log(weights), m)
    needed = 3 * draws * np.sqrt(1 + (chance * (1 - chance)).sum())
    rows = max(min(_AT_ONCE // len(weights), int(needed)), 1)
    found: list[BoolArray] = []
    while sum(map(len, found)) < draws:
        drawn = rng.random((rows, len(weights))) < chance
        found.append(drawn[drawn.sum(axis=1) == m])
    return np.concatenate(found)[:draws]


def _chances(log_weights: FloatArray, m: int) -> FloatArray:
    """Return the chance of each question to be of the target, [n]: m in sum, odds like weights."""
    low, high = -log_weights.max() - 50, -log_weights.min() + 50
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if _logistic(log_weights + middle).sum() > m else (middle, high)
    return _logistic(log_weights + high)


def _logistic(values: FloatArray) -> FloatArray:
    chance: FloatArray = np.exp(-np.logaddexp(0, -values))
    return chance


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
