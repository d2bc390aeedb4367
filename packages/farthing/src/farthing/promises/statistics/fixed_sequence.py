"""Test operating points in an order fixed beforehand, so that no false proof is likely."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.errors import CalibrationError
from farthing.promises.certificate import BoolArray, FloatArray, IntArray

AnyArray = BoolArray | FloatArray | IntArray


@dataclass(frozen=True)
class Candidates:
    """Several rows of operating points, each tested at a share of delta that was fixed before."""

    of_point: IntArray
    """[G] which candidate each operating point is of."""
    names: tuple[str, ...]
    """What each candidate is, in words."""
    shares: tuple[Fraction, ...]
    """Of delta, one a candidate; above 0, and at most 1 together."""

    def __post_init__(self) -> None:
        """Refuse shares that would promise more than delta allows.

        Raises:
            CalibrationError: as said, or a point of a candidate that is not there.
        """
        if len(self.names) != len(self.shares) or min(self.shares, default=Fraction(0)) <= 0:
            raise CalibrationError("give each candidate a name and a share of delta above 0")
        if sum(self.shares) > 1:
            raise CalibrationError(f"the shares of delta add up to {sum(self.shares)}, above 1")
        if not np.isin(self.of_point, np.arange(len(self.names))).all():
            raise CalibrationError("an operating point is of a candidate that is not there")


def proven_each(p_values: FloatArray, delta: Fraction, candidates: Candidates | None) -> BoolArray:
    """Return which operating points are proved where several candidates are tested.

    Each candidate's points are tested in their order, at its share of delta (`proven`). By
    Bonferroni's inequality a false proof of any happens with probability at most delta, so any of
    the proved ones may be chosen, by the same questions too.

    Args:
        p_values: [G] one a point.
        delta: how often a false proof may happen.
        candidates: whose they are; None: all of one, which has all of delta.

    >>> two = Candidates(np.array([0, 0, 1, 1]), ("a", "b"), (Fraction(3, 4), Fraction(1, 4)))
    >>> proven_each(np.array([0.03, 0.04, 0.03, 0.01]), Fraction(1, 20), two).tolist()
    [True, False, False, False]
    """
    if candidates is None:
        return proven(p_values, float(delta))
    found = np.zeros(len(p_values), dtype=bool)
    for which, share in enumerate(candidates.shares):
        of = candidates.of_point == which
        found[of] = proven(p_values[of], float(delta * share))
    return found


def proven(p_values: FloatArray, delta: float) -> BoolArray:
    """Return which operating points are proved, with probability at most delta of any false proof.

    Fixed-sequence testing: each at the full delta, until the first failure. The first operating
    point that should not be proved is tested once, and everything after its failure is left alone;
    so nothing is paid for a long row of them, and p-values may depend on each other.

    Args:
        p_values: [G] one a point, in the order of testing, which no calibration question chose.
        delta: how often a false proof may happen.

    Returns:
        [G] whether the operating point is proved.

    Source: learn then test, Angelopoulos et al. 2025, section 2.3 (fixed-sequence testing).

    >>> proven(np.array([0.01, 0.04, 0.2, 0.001]), 0.05).tolist()
    [True, True, False, False]
    """
    return np.logical_and.accumulate(np.asarray(p_values) <= delta)


def cheapest(
    found: IntArray, cost_nano: IntArray, reference_nano: IntArray | None = None
) -> int | None:
    """Return the cheapest of the points that are proved; None where none is.

    Where a reference's own cost is known, a point that costs as much or more is of no use: the
    reference answers instead, and loses nothing.

    Args:
        found: indices of the points that are proved.
        cost_nano: [n, G] what each costs.
        reference_nano: [n] what the reference costs alone; None: unknown.

    >>> cost = np.array([[2, 5, 9]])
    >>> cheapest(np.array([1, 2]), cost), cheapest(np.array([1, 2]), cost, np.array([4]))
    (1, None)
    """
    total = cost_nano.sum(axis=0)
    if reference_nano is not None:
        found = found[total[found] < reference_nano.sum()]
    return int(found[np.argmin(total[found])]) if found.size else None


def cheapest_proven(
    p_values: FloatArray,
    delta: Fraction,
    cost_nano: IntArray,
    reference_nano: IntArray | None = None,
) -> int | None:
    """Return the cheapest point that is proved where they are tested from the dearest down.

    Args:
        p_values: [G] one a point, from the cheapest to the dearest.
        delta: how often a false proof may happen.
        cost_nano: [n, G] what each costs.
        reference_nano: [n] what the reference costs alone; None: unknown.

    Returns:
        Its index; None where none is proved, or none that is proved is cheaper than the reference.

    >>> cost = np.array([[2, 5, 9]])
    >>> cheapest_proven(np.array([0.001, 0.2, 0.01]), Fraction(1, 20), cost)
    2
    """
    found = np.flatnonzero(proven(p_values[::-1], float(delta))[::-1])
    return cheapest(found, cost_nano, reference_nano)


def check_shapes(name: str, values: AnyArray, other: str, others: AnyArray) -> None:
    """Refuse two arrays that are not both [n, G], for at least one question.

    Raises:
        CalibrationError: as said; the message has their names.
    """
    if values.ndim != 2 or not len(values) or others.shape != values.shape:
        raise CalibrationError(
            f"{name} has shape {values.shape} and {other} {others.shape}; give both one row a "
            "question and one column an operating point"
        )


def point_kappa(kappas: FloatArray | None, point: int | None) -> float:
    """Return the threshold of the chosen operating point, from [G]; 0 where none is known."""
    return 0.0 if kappas is None or point is None else float(kappas[point])
