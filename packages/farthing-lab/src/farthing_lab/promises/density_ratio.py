"""How much likelier each question is in a target mix: likelihood ratios by logistic regression."""

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from farthing.errors import TooFewTracesError
from farthing.traces.arrays import FloatArray

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
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    search = GridSearchCV(
        LogisticRegression(max_iter=1_000), {"C": STRENGTHS}, scoring="neg_log_loss", cv=folds
    )
    best = search.fit((both - mean) / scale, np.arange(n + m) >= n).best_estimator_
    intercept = float(best.intercept_[0]) + float(np.log(n / m))
    return DensityRatio(mean, scale, best.coef_[0], intercept)
