"""Split conformal calibration: an exact quantile of the critical thresholds."""

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from farthing.promises import wording
from farthing.promises.certificate import Certificate, FloatArray, Population, Threshold
from farthing.promises.figures import Figure, coverage_of
from farthing.promises.levels import Level, exact_level
from farthing.promises.observed import Acted, Facts
from farthing.promises.payload import Recorded
from farthing.promises.scores import as_scores, out_of_reach
from farthing.promises.statistics.beta import realised_coverage

if TYPE_CHECKING:
    from farthing.promises.base import Promise


class SplitPromise(Recorded, frozen=True, kw_only=True, tag="split"):
    """Coverage on average over draws of the calibration questions."""

    evidence: ClassVar[type] = np.ndarray
    """[n] kappa* of the calibration questions."""
    right: ClassVar[Literal["answer", "sets", "given"]] = "sets"
    whole_sets: ClassVar[bool] = True

    alpha: Fraction
    """The promised miscoverage."""
    k: int
    """Rank of kappa among the critical thresholds; 0: nothing tighter than everything."""
    population: Population = "all"
    """Which questions the promise is about."""
    interval: tuple[float, float] | None = None
    """Central 95 % interval of the coverage realised by this calibration set, Beta(n + 1 - k, k);
    with ties among the scores coverage is that or more. None where nothing is promised."""

    def sentence(self, of: Certificate) -> str:
        """Say what is promised."""
        if not self.promises:
            return wording.too_few(of, self.alpha)
        draws = f"on average over draws of the {wording.counted(of, 'calibration questions')}"
        covered = wording.covered(self.alpha, self.population)
        return f"{covered}, {draws}: {wording.meaning(self.population)}"

    def plain_language(self, of: Certificate) -> str:
        """Say what it means for a hundred questions.

        >>> promise = SplitPromise(alpha=Fraction(1, 10), k=20)
        >>> print(promise.plain_language(Certificate(promise=promise)))
        At least 90 of 100 new questions of the same kind get a right answer among those returned, \
or had none to find, on average over what chance gives one to calibrate on.
        """
        if not self.promises:
            return wording.everything(of)
        return wording.of_hundred_covered(self.alpha, self.population)

    @classmethod
    def asks(cls) -> "type[Promise]":
        """Return the record of what is asked for."""
        from farthing.promises.kinds.coverage import Coverage  # noqa: PLC0415 - asks for this

        return Coverage

    def asked(self) -> "Promise":
        """Return the same coverage."""
        from farthing.promises.kinds.coverage import Coverage  # noqa: PLC0415 - asks for this

        return Coverage(1 - self.alpha, population=self.population)

    def realised(self, of: Acted, questions: Facts) -> Figure | None:
        """Measure coverage."""
        del questions
        return coverage_of(of, self.alpha, self.population)


def certify(
    critical: FloatArray,
    alpha: Level,
    *,
    fingerprint: str,
    population: Population = "all",
    question_budget_nano: int | None = None,
) -> Certificate:
    """Calibrate by exact split conformal: a marginal promise.

    Args:
        critical: [n] kappa* of the calibration questions.
        alpha: miscoverage, in (0, 1).
        fingerprint: SHA-256 of the traces that the scores were computed from.
        population: which questions the promise is about.
        question_budget_nano: the budget a question that kappa* was computed under; None: without.

    Raises:
        CalibrationError: as `split_threshold`.
    """
    found = split_threshold(critical, alpha, population)
    return Certificate(
        promise=SplitPromise(
            alpha=exact_level(alpha),
            k=found.k,
            population=population,
            interval=realised_coverage(found.n, found.k) if found.k else None,
        ),
        kappa=found.kappa,
        n=found.n,
        question_budget_nano=question_budget_nano,
        conditional_on=(
            wording.EXCHANGEABLE,
            wording.HELD_OUT,
            wording.SAME_SYSTEM,
            wording.CAPPED,
        ),
        invalid_when=wording.ends(question_budget_nano),
        fingerprint=fingerprint,
    )


def split_threshold(
    critical: FloatArray, alpha: Level, population: Population = "all"
) -> Threshold:
    """Return the k-th smallest critical threshold, k = floor(alpha (n + 1)).

    Then a new question that is exchangeable with these is covered with probability at least
    1 - alpha. k = 0 gives kappa = 0: everything, for nothing tighter can be promised.

    Args:
        critical: [n] kappa* of held-out questions; inf for an unsolvable one, -inf for a solvable
            one whose right answer a budget cannot pay for.
        alpha: miscoverage, in (0, 1), read exactly: no float accident in floor(alpha (n + 1)).
        population: `solvable`: the same quantile over the solvable questions, a promise about
            those.

    Raises:
        CalibrationError: a NaN or negative score, alpha outside (0, 1), or a quantile of -inf: the
            budget loses too many questions, whatever the threshold.

    Source: Vovk et al. 2005; Papadopoulos et al. 2002; CCPO (arXiv 2511.11828) section 4.3.

    >>> split_threshold(np.array([0.9, 0.2, 0.5, np.inf, 0.3, 0.7, 0.4, 0.8, 0.6]), 0.2)
    Threshold(kappa=0.3, k=2, n=9)
    """
    scores, level = choose(as_scores(critical), population), exact_level(alpha)
    return at_rank(scores, split_rank(len(scores), level), level)


def split_rank(n: int, alpha: Fraction) -> int:
    """Return floor(alpha (n + 1)) in exact arithmetic.

    >>> split_rank(9, Fraction("0.3")), int(0.3 * 10), split_rank(99, Fraction("0.29"))
    (3, 3, 29)
    """
    return alpha.numerator * (n + 1) // alpha.denominator


def choose(scores: FloatArray, population: Population) -> FloatArray:
    """Return the scores that a promise is about: [n], or those of solvable questions."""
    return scores if population == "all" else scores[scores < np.inf]


def at_rank(scores: FloatArray, k: int, alpha: Fraction) -> Threshold:
    """Return the k-th smallest of the scores [n]; k = 0 gives 0.

    Raises:
        CalibrationError: it is -inf; or k = 0 stands for everything, which is not all there is.
    """
    lost = int((scores == -np.inf).sum())
    if lost >= max(k, 1):
        raise out_of_reach(lost / len(scores), alpha)
    kappa = float(np.partition(scores, k - 1)[k - 1]) if k else 0.0
    return Threshold(kappa, k, len(scores))
