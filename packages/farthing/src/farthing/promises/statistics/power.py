"""How many questions would probably prove a promise, judged by what those at hand have shown.

Operating points are tested in turn, and the first failure ends it. So everything hangs on the first
of them: the chance that it is proved, if losses and wins stay as frequent as they were seen, is the
power. These are estimates and no promises: rates that were seen on few questions are uncertain.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Self

import numpy as np

from farthing.promises.certificate import IntArray
from farthing.promises.levels import Level, exact_level, exact_margin, exact_text
from farthing.promises.statistics.binomial import binomial_cdf
from farthing.promises.statistics.paired_test import OUTSIDE, SLACK, loss_p_value

if TYPE_CHECKING:
    from farthing.promises.agreeing import Agreeing
    from farthing.promises.answers import Answers
    from farthing.promises.paired import Paired

PROBABLY = 0.8
"""The chance of a proof that counts as probable."""
MOST = 5_000
"""Questions beyond which nobody looks."""
STEP = Fraction(1, 200)
"""Levels are looked for in steps of half a point."""
_CLOSE = 1.03
_FEW = 500
_EVERY = 20
_LOOKED = 9
_SIGMAS = 4
NORMAL = NormalDist()


class Rates(ABC):
    """How often questions were lost, and so how likely a number of them proves a level."""

    counted: float
    """The share of questions that count."""

    @property
    @abstractmethod
    def loss(self) -> float:
        """The level as it was seen: nothing below it is ever probable."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Of the loss of one question."""

    @abstractmethod
    def chance(self, questions: int, level: float, delta: float) -> float:
        """Return the chance that so many questions prove that the loss is below a level."""


@dataclass(frozen=True)
class Compared(Rates):
    """Losses and wins against a reference, as parity tests them."""

    losses: float
    """The chance that the reference alone is right."""
    wins: float
    """The chance that the operating point alone is."""
    counted: float = 1.0

    @classmethod
    def of(cls, paired: "Paired") -> Self:
        """Return the rates of the point that is tested first, the dearest."""
        right, reference = paired.correct[:, -1], paired.reference
        return cls(float((reference & ~right).mean()), float((~reference & right).mean()))

    @property
    def loss(self) -> float:
        """Accuracy lost."""
        return self.losses - self.wins

    @property
    def variance(self) -> float:
        """Of the difference on one question."""
        return self.losses + self.wins - self.loss**2

    def chance(self, questions: int, level: float, delta: float) -> float:
        """Sum the multinomial distribution over what the test of parity proves.

        The p-value is taken to rise with the score statistic. The largest statistic that is proved
        is looked for at a few numbers of discordant questions, and lies on a line between them.
        """
        n, share = questions, self.losses + self.wins
        if delta <= OUTSIDE:
            return 0.0  # no p-value is as small
        if not share:
            return float(loss_p_value(0, 0, n, level) <= delta)
        spread = math.sqrt(n * share * (1 - share))
        low, high = (int(np.clip(n * share + s * spread, 0, n)) for s in (-_SIGMAS, _SIGMAS))
        most = _proved(np.arange(low, high + 1), n, level, delta)
        return math.fsum(
            _binomial(k, n, share) * binomial_cdf(int(m), k, self.losses / share)
            for k, m in zip(range(low, high + 1), most, strict=True)
        )


@dataclass(frozen=True)
class Wrong(Rates):
    """Wrong answers among those that count, as agreement and selective accuracy test them."""

    wrong: float
    """The chance that an answer that counts is wrong."""
    counted: float = 1.0
    """The share of questions that count: those that are answered."""

    @classmethod
    def of_answers(cls, answers: "Answers") -> Self:
        """Return the rates of the point that is tested first, the most cautious."""
        given = answers.answered[:, 0]
        wrong = (given & ~answers.correct[:, 0]).sum() / max(int(given.sum()), 1)
        return cls(float(wrong), float(given.mean()))

    @classmethod
    def of_agreement(cls, agreeing: "Agreeing") -> Self:
        """Return the rates of the point that is tested first, the dearest."""
        return cls(1 - float(agreeing.same[:, -1].mean()))

    @property
    def loss(self) -> float:
        """The share of wrong answers."""
        return self.wrong

    @property
    def variance(self) -> float:
        """Of one question, worth less where few are answered."""
        return self.wrong * (1 - self.wrong) / max(self.counted, 1e-9)

    def chance(self, questions: int, level: float, delta: float) -> float:
        """Return the chance that the binomial test passes, with as many answers as expected."""
        number = round(questions * self.counted)
        proved, above = -1, number + 1
        while above - proved > 1:
            middle = (proved + above) // 2
            if binomial_cdf(middle, number, level) <= delta:
                proved = middle
            else:
                above = middle
        return binomial_cdf(proved, number, self.wrong) if self.wrong else float(proved >= 0)


def questions_needed(rates: Rates, level: Level, delta: Level, more_than: int) -> int | None:
    """Return how many questions would probably prove a level, rounded up to two digits.

    Args:
        rates: what was seen.
        level: the loss that is to be ruled out.
        delta: how often the promise may fail.
        more_than: so many did not prove it.

    Returns:
        None: more than 5,000, or no number, since as much was lost as is to be ruled out.
    """
    wanted, limit = float(exact_margin(level, "a level")), float(exact_level(delta, "delta"))
    room = wanted - rates.loss
    if room <= 0:
        return None
    z = NORMAL.inv_cdf(PROBABLY) - NORMAL.inv_cdf(limit)
    guess = z**2 * rates.variance / room**2
    if guess > 2 * MOST:
        return None
    low, high = more_than, max(int(guess), more_than + 1)
    while rates.chance(high, wanted, limit) < PROBABLY:
        low, high = high, high + high // 4 + 1
        if low > MOST:
            return None
    while high > low * _CLOSE + 1:
        middle = (low + high) // 2
        if rates.chance(middle, wanted, limit) < PROBABLY:
            low = middle
        else:
            high = middle
    return _two_digits(high) if high <= MOST else None


def level_provable(rates: Rates, questions: int, delta: Level) -> Fraction | None:
    """Return the smallest level, in steps of half a point, that so many would probably prove.

    None: none up to one half.
    """
    limit = float(exact_level(delta, "delta"))
    low, high = int(max(rates.loss, 0) / float(STEP)) + 1, int(Fraction(1, 2) / STEP) + 1
    last = high
    while low < high:
        middle = (low + high) // 2
        if rates.chance(questions, float(middle * STEP), limit) < PROBABLY:
            low = middle + 1
        else:
            high = middle
    return low * STEP if low < last else None


def coverage_questions(alpha: Level, delta: Level) -> int:
    """Return the fewest questions with which coverage is promised with confidence 1 - delta.

    >>> coverage_questions("0.1", "0.05")
    29
    """
    stay, limit, n = 1 - exact_level(alpha), exact_level(delta, "delta"), 1
    while stay**n > limit:
        n += 1
    return n


def forecast(
    rates: Rates,
    name: str,
    level: Fraction,
    delta: Fraction,
    n: int,
    saved: float | None = None,
) -> str:
    """Say how many questions would probably do, and which level so many would do for.

    Args:
        rates: how often questions were lost.
        name: what the level is called.
        level: the loss that is to be ruled out.
        delta: how often the promise may fail.
        n: so many questions did not prove it.
        saved: what the point saves whose rates these are, where that is known.
    """
    if not rates.counted:
        return (
            "The first setting that was tested answered none of them, so nothing can be foretold."
        )
    needed = questions_needed(rates, level, delta, n)
    provable = level_provable(rates, n, delta)
    what = "this promise" if saved is None else f"a saving of {100 * saved:.0f} %"
    chance = f"(a chance of {100 * PROBABLY:.0f} %, if losses stay as they were)."
    enough = (
        "" if provable is None else f"{n:,} would probably do for {name} {exact_text(provable)}"
    )
    if needed is None and rates.loss >= level:
        first = f"More questions would not prove {what}: {rates.loss:.3f} was lost here, and "
        first += f"{exact_text(level)} is allowed."
        return f"{first} These {enough} {chance}" if enough else first
    first = f"More than {MOST:,} proving questions would be needed for {what}"
    if needed is not None:
        first = f"About {needed - n:,} more questions would probably prove {what}"
    return f"{first}; these {enough} {chance}" if enough else f"{first} {chance}"


def _proved(discordant: IntArray, n: int, level: float, delta: float) -> IntArray:
    """Return for each number of discordant questions how many losses are still proved, [K].

    Of few questions exactly, or at some of these numbers and on the line that fits them; of many by
    the normal distribution.
    """
    root = np.sqrt(n * (np.maximum(discordant / n, abs(level)) - level**2))
    if n > _FEW:
        edge = np.full(len(discordant), NORMAL.inv_cdf((delta - OUTSIDE) / (1 + SLACK)))
    elif len(discordant) <= _EVERY:
        return np.array([_most_lost(int(k), n, level, delta) for k in discordant])
    else:
        looked = discordant[np.linspace(0, len(discordant) - 1, _LOOKED).astype(int)]
        edges = [_edge(int(k), n, level, delta) for k in looked]
        edge = np.polyval(np.polyfit(looked, edges, 1), discordant)
    found: IntArray = np.floor((discordant + n * level + edge * root) / 2).astype(np.int64)
    return found


def _edge(discordant: int, n: int, level: float, delta: float) -> float:
    """Return the statistic between the last number of losses that is proved and the next one."""
    lost = _most_lost(discordant, n, level, delta) + 0.5
    root = max(math.sqrt(n * (max(discordant / n, abs(level)) - level**2)), 1e-9)
    return (2 * lost - discordant - n * level) / root


def _most_lost(discordant: int, n: int, level: float, delta: float) -> int:
    """Return the largest number of losses that is proved; -1: none.

    The search begins where the normal distribution puts it.
    """
    root = max(math.sqrt(n * (max(discordant / n, abs(level)) - level**2)), 1e-9)
    near = (discordant + n * level + NORMAL.inv_cdf(delta) * root) / 2
    proved, failed, step = -1, discordant + 1, 1
    tried = min(max(int(near), 0), discordant)
    while failed - proved > 1:
        if loss_p_value(tried, discordant - tried, n, level) <= delta:
            proved, tried = tried, min(tried + step, failed - 1)
        else:
            failed, tried = tried, max(tried - step, proved + 1)
        step *= 2
        if proved >= 0 and failed <= discordant:
            tried = (proved + failed) // 2
    return proved


def _binomial(successes: int, trials: int, chance: float) -> float:
    """Return Pr[Binomial(trials, chance) = successes]."""
    choose = (
        math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    )
    hit = successes * math.log(chance)
    miss = (trials - successes) * math.log1p(-chance) if successes < trials else 0.0
    return math.exp(choose + hit + miss)


def _two_digits(number: int) -> int:
    """Round up to two significant digits.

    >>> _two_digits(641), _two_digits(97)
    (650, 97)
    """
    unit: int = 10 ** max(len(str(number)) - 2, 0)
    return -(-number // unit) * unit
