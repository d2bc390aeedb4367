"""Mondrian calibration: the same promise within each group, a threshold for each."""

from collections.abc import Sequence

import numpy as np

from farthing.calibration.base import (
    FloatArray,
    Given,
    IntArray,
    Level,
    Threshold,
    as_scores,
    exact_level,
)
from farthing.calibration.split import split_threshold
from farthing.errors import CalibrationError


def group_thresholds(
    critical: FloatArray,
    group: IntArray,
    names: Sequence[str],
    alpha: Level,
    given: Given = "all",
) -> dict[str, Threshold]:
    """Return the exact split-conformal threshold of each group, by name.

    A new question is covered with probability at least 1 - alpha given its group. A group that is
    too small to promise anything has k = 0 and kappa = 0; `too_small` names those.

    Args:
        critical: [n] kappa* of held-out questions; inf for an unsolvable one.
        group: [n] index of each question's group in `names`.
        names: the groups, also those without a question here.
        alpha: miscoverage, in (0, 1).
        given: `solvable`: the same over the solvable questions, a promise about those.

    Raises:
        CalibrationError: as `split_threshold`, or a question has no group.

    Source: Vovk et al. 2005, section 4.5 (Mondrian predictors).

    >>> scores = np.array([0.1, 0.2, 0.3, 0.4, 0.9])
    >>> found = group_thresholds(scores, np.array([0, 0, 0, 0, 1]), ["law", "art"], "0.2")
    >>> found["law"], too_small(found)
    (Threshold(kappa=0.1, k=1, n=4), ['art'])
    """
    scores, level = as_scores(critical), exact_level(alpha)
    group = np.asarray(group)
    if group.shape != scores.shape:
        raise CalibrationError(f"{len(scores)} scores but groups of shape {group.shape}")
    outside = int(((group < 0) | (group >= len(names))).sum())
    if outside:
        raise CalibrationError(f"{outside} questions have no group; name one or leave them out")
    return {
        name: split_threshold(scores[group == index], level, given)
        for index, name in enumerate(names)
    }


def too_small(thresholds: dict[str, Threshold]) -> list[str]:
    """Return the names of the groups that are too small to promise anything."""
    return [name for name, threshold in thresholds.items() if threshold.k == 0]
