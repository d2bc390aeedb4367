"""Has the mix of questions changed? A test on outcomes, and weights where it has."""

import numpy as np

from farthing.errors import CalibrationError
from farthing.promises.certificate import FloatArray, IntArray

_WORST_CONDITION = 1e6


def mix_p_value(
    old: IntArray, new: IntArray, rng: np.random.Generator, draws: int = 9_999
) -> float:
    """Return the p-value of the hypothesis that two tables of counts are of one mix.

    A permutation test on the chi-square statistic: of outcomes, groups, or predicted labels.

    Args:
        old: [K] how often each kind occurred among the calibration questions.
        new: [K] the same among new questions.
        rng: draws the permutations.
        draws: number of permutations.

    Raises:
        CalibrationError: tables of different shape, negative, or empty.

    >>> mix_p_value(np.array([50, 50]), np.array([80, 20]), np.random.default_rng(0))
    0.0001
    """
    old, new = np.asarray(old, dtype=np.int64), np.asarray(new, dtype=np.int64)
    if old.ndim != 1 or old.shape != new.shape or min(old.min(), new.min()) < 0:
        raise CalibrationError("give two tables of counts over the same kinds, none negative")
    if not old.sum() or not new.sum():
        raise CalibrationError("both tables of counts need at least one question")
    total = old + new
    expected = total / total.sum() * new.sum()
    others = rng.multivariate_hypergeometric(total, int(new.sum()), size=draws)
    # Chi-square is this times a constant: the other table's deviations are the same.
    kinds = total > 0
    weight = 1 / expected[kinds]
    seen = float(((new - expected)[kinds] ** 2) @ weight)
    as_far = (((others - expected)[:, kinds] ** 2) @ weight >= seen * (1 - 1e-12)).sum()
    return (1 + int(as_far)) / (draws + 1)


def label_weights(predicted: IntArray, actual: IntArray, new_predicted: IntArray) -> FloatArray:
    """Return how much likelier each label has become, from predictions for new questions alone.

    If questions of one label look as before and only the labels' shares have changed, the shares of
    new predictions are the confusion matrix times these weights. They serve `Weighted` as
    weights[actual].

    Args:
        predicted: [n] predicted label of the calibration questions, from 0.
        actual: [n] their true label.
        new_predicted: [m] predicted label of new questions.

    Returns:
        [K] new share over old share of each label, none negative.

    Raises:
        CalibrationError: a label that never occurs, or predictions that do not tell labels apart.

    Source: black-box shift estimation, Lipton et al. 2018, equation 5.

    >>> told_apart = np.array([0, 0, 1, 1])
    >>> label_weights(told_apart, told_apart, np.array([0, 1, 1, 1])).round(2).tolist()
    [0.5, 1.5]
    """
    if min(int(part.min(initial=0)) for part in (predicted, actual, new_predicted)) < 0:
        raise CalibrationError("a label is negative; number them from 0, 'no answer' included")
    labels = 1 + max(int(part.max(initial=0)) for part in (predicted, actual, new_predicted))
    confusion = np.zeros((labels, labels))
    np.add.at(confusion, (predicted, actual), 1 / len(actual))
    if not confusion.sum(axis=0).all() or np.linalg.cond(confusion) > _WORST_CONDITION:
        raise CalibrationError(
            "the predicted labels do not tell the true ones apart; every label must occur among "
            "the calibration questions and predictions must depend on it"
        )
    shares = np.bincount(new_predicted, minlength=labels) / len(new_predicted)
    weights: FloatArray = np.maximum(np.linalg.solve(confusion, shares), 0)
    return weights
