"""Training-conditional (PAC) calibration: a tolerance limit of the critical thresholds."""

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from farthing.promises import wording
from farthing.promises.certificate import Certificate, FloatArray, Population, Threshold
from farthing.promises.figures import Figure, coverage_of
from farthing.promises.kinds.split import at_rank, choose
from farthing.promises.levels import Level, exact_level
from farthing.promises.observed import Acted, Facts
from farthing.promises.payload import Recorded
from farthing.promises.scores import as_scores
from farthing.promises.statistics.beta import realised_coverage
from farthing.promises.statistics.power import coverage_questions

_DIGITS = 60

if TYPE_CHECKING:
    from farthing.promises.base import Promise


class PacPromise(Recorded, frozen=True, kw_only=True, tag="pac"):
    """Coverage with confidence 1 - delta over the draw of the calibration questions."""

    evidence: ClassVar[type] = np.ndarray
    """[n] kappa* of the calibration questions."""
    right: ClassVar[Literal["answer", "sets", "given"]] = "sets"
    whole_sets: ClassVar[bool] = True

    alpha: Fraction
    """The promised miscoverage."""
    delta: Fraction
    """How often the promise may fail over calibration draws."""
    k: int
    """Rank of kappa among the critical thresholds; 0: nothing tighter than everything."""
    population: Population = "all"
    """Which questions the promise is about."""
    interval: tuple[float, float] | None = None
    """Central 95 % interval of the coverage realised by this calibration set, as for a split."""

    def sentence(self, of: Certificate) -> str:
        """Say what is promised."""
        if not self.promises:
            return wording.too_few(of, self.alpha)
        claim = (
            f"{wording.covered(self.alpha, self.population)}: {wording.meaning(self.population)}"
        )
        return wording.confident(self.delta, of, claim)

    def plain_language(self, of: Certificate) -> str:
        """Say what it means for a hundred questions."""
        if not self.promises:
            return wording.everything(of)
        sure = wording.how_sure(self.delta)
        return wording.of_hundred_covered(self.alpha, self.population, how_sure=sure)

    def asked(self) -> "Promise":
        """Return the same coverage."""
        from farthing.promises.kinds.coverage import Coverage  # noqa: PLC0415 - asks for this

        return Coverage(1 - self.alpha, self.delta, self.population)

    def realised(self, of: Acted, questions: Facts) -> Figure | None:
        """Measure coverage."""
        del questions
        return coverage_of(of, self.alpha, self.population)

    def forecast(self, evidence: object, of: Certificate) -> str:
        """Say how many questions it takes."""
        del evidence, of
        least = coverage_questions(self.alpha, self.delta)
        return f"It takes {least:,} calibration questions or more."


def certify(
    critical: FloatArray,
    alpha: Level,
    delta: Level,
    *,
    fingerprint: str,
    population: Population = "all",
    question_budget_nano: int | None = None,
) -> Certificate:
    """Calibrate so that coverage holds with confidence 1 - delta in the calibration draw.

    Args:
        critical: [n] kappa* of the calibration questions.
        alpha: miscoverage, in (0, 1).
        delta: how often the promise may fail over calibration draws, in (0, 1).
        fingerprint: SHA-256 of the traces that the scores were computed from.
        population: which questions the promise is about.
        question_budget_nano: the budget a question that kappa* was computed under; None: without.

    Raises:
        CalibrationError: as `pac_threshold`.
    """
    found = pac_threshold(critical, alpha, delta, population)
    return Certificate(
        promise=PacPromise(
            alpha=exact_level(alpha),
            delta=exact_level(delta, "delta"),
            k=found.k,
            population=population,
            interval=realised_coverage(found.n, found.k) if found.k else None,
        ),
        kappa=found.kappa,
        n=found.n,
        question_budget_nano=question_budget_nano,
        conditional_on=(
            wording.INDEPENDENT,
            wording.HELD_OUT,
            wording.SAME_SYSTEM,
            wording.CAPPED,
        ),
        invalid_when=wording.ends(question_budget_nano),
        fingerprint=fingerprint,
    )


def pac_threshold(
    critical: FloatArray, alpha: Level, delta: Level, population: Population = "all"
) -> Threshold:
    """Return a threshold whose coverage is at least 1 - alpha with confidence 1 - delta.

    The confidence is over the draw of the calibration questions, which are independent. It is the
    k-th smallest critical threshold for the largest k with Pr[Beta(n + 1 - k, k) < 1 - alpha] <=
    delta; where there is no such k, k = 0 and kappa = 0: everything.

    Args:
        critical: [n] kappa* of held-out questions; inf for an unsolvable one, -inf for a solvable
            one whose right answer a budget cannot pay for.
        alpha: miscoverage, in (0, 1).
        delta: how often the promise may fail over calibration draws, in (0, 1).
        population: `solvable`: the same over the solvable questions, a promise about those.

    Raises:
        CalibrationError: a NaN or negative score, alpha or delta outside (0, 1), or a threshold of
            -inf: the budget loses too many questions, whatever the threshold.

    Source: Wilks 1941 (tolerance limits); Vovk 2012, proposition 2a.

    >>> pac_threshold(np.linspace(0.01, 1, 100), 0.1, 0.05)
    Threshold(kappa=0.05, k=5, n=100)
    """
    scores, level = choose(as_scores(critical), population), exact_level(alpha)
    return at_rank(scores, pac_rank(len(scores), level, exact_level(delta, "delta")), level)


@cache
def pac_rank(n: int, alpha: Fraction, delta: Fraction) -> int:
    """Return the largest k with Pr[Beta(n + 1 - k, k) < 1 - alpha] <= delta; 0 if there is none.

    That probability is Pr[Binomial(n, alpha) <= k - 1], summed here term by term to 60 digits.

    >>> [pac_rank(n, Fraction("0.1"), Fraction("0.05")) for n in (28, 29, 200)]
    [0, 1, 13]
    """
    context = Context(prec=_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX)
    hit, miss = alpha.numerator, alpha.denominator - alpha.numerator
    limit = context.divide(Decimal(delta.numerator), Decimal(delta.denominator))
    stay = context.divide(Decimal(miss), Decimal(alpha.denominator))
    term = context.power(stay, n)
    total = term
    k = 0
    while k < n and total <= limit:
        term = context.divide(context.multiply(term, (n - k) * hit), (k + 1) * miss)
        total = context.add(total, term)
        k += 1
    return k
