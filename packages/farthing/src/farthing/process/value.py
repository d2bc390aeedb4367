"""What a policy costs and how often it is right, beside one model that answers everything alone.

The records and their sentences; `recommendation.savings` computes them.
"""

from typing import Literal

import msgspec

from farthing.money import significant, usd_from_nano
from farthing.promises.texts import signed
from farthing.traces.arrays import RIGHT

Interval = tuple[float, float]


class AnswerFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What answering some questions came to, one answer each."""

    questions: int
    cost_nano: int
    """In all, in nano-dollars."""
    right: int
    unanswered: int = 0
    """Questions that were given no answer, which count as not right."""
    latency_s: tuple[float, float] | None = None
    """Median and 95th percentile, in seconds, of the questions for which it was recorded."""

    @property
    def cost_usd(self) -> float:
        """US dollars a question."""
        return usd_from_nano(self.cost_nano) / self.questions

    @property
    def accuracy(self) -> float:
        """The share of questions whose single answer is right."""
        return self.right / self.questions

    def sentence(self, who: str, measure: str = "accuracy") -> str:
        """Say what somebody's answers came to.

        >>> print(AnswerFigures(questions=4, cost_nano=800_000, right=3).sentence("You"))
        You: $0.000200 a question at accuracy 0.750.
        """
        said = f"{who}: ${significant(self.cost_usd)} a question at {measure} {self.accuracy:.3f}"
        if self.unanswered:
            said += f" ({self.unanswered:,} of {self.questions:,} left unanswered)"
        if self.latency_s is None:
            return f"{said}."
        median, slow = map(significant, self.latency_s)
        return f"{said}; latency: median {median} s, 95th percentile {slow} s."


class PolicyValue(msgspec.Struct, frozen=True, kw_only=True):
    """A policy and a reference on the same questions: money, answers, time."""

    part: Literal["calibrate", "test"]
    """Whether these questions set the threshold, or only judge it."""
    yours: AnswerFigures
    reference: str | None = None
    """The model that answers alone; None: `missing` says why there is none."""
    theirs: AnswerFigures | None = None
    """Of the reference, on the same questions."""
    saved: float | None = None
    """1 - cost / the reference's cost; None where the reference is free."""
    saved_interval: Interval | None = None
    """95 %, of a ratio of means (Fieller); of requests, of sums by question."""
    gained: float | None = None
    """Accuracy less the reference's."""
    gained_interval: Interval | None = None
    """95 % or more, exact; of requests, valid by question."""
    instead: str | None = None
    """A single model that is cheaper and at least as often right; None: none is known to be."""
    one_answer: bool = False
    """Whether that model is so beside the best answer alone, and not beside the promised sets."""
    missing: str = ""
    grade: str = RIGHT
    """What is called right: the grade of the answers."""

    @property
    def measure(self) -> str:
        """What the share of right answers is called: agreement where a model's answers are it."""
        return "accuracy" if self.grade == RIGHT else "agreement"

    def lines(self) -> list[str]:
        """Return the statement, money first, a sentence each."""
        found = [self.yours.sentence("You", self.measure)]
        if self.theirs is not None:
            who = f"Always {self.reference} alone"
            found.append(self.theirs.sentence(who, self.measure))
        found += self.findings()
        if self.part == "calibrate":
            asked = f"{self.yours.questions:,} questions that set the threshold"
            found.append(f"These figures are of the {asked}.")
        return found

    def __str__(self) -> str:
        return " ".join(self.lines())

    def findings(self) -> list[str]:
        """Say what is saved, or why that is not known, and whether one model would do better."""
        found = [self._difference() if self.theirs is not None else f"{self.missing}."]
        if self.instead is not None:
            unless = ", unless you need its sets" if self.one_answer else ""
            as_good = "at least as often right" if self.grade == RIGHT else "agrees as often"
            found.append(
                f"{self.instead} alone is cheaper and {as_good}: use "
                f"always-{self.instead} instead of this policy{unless}."
            )
        return found

    def _difference(self) -> str:
        accuracy = ""
        if self.gained is not None and self.gained_interval is not None:
            low, high = self.gained_interval
            accuracy = f"{self.measure} {signed(self.gained)} ({signed(low)} to {signed(high)})"
        if self.saved is None:
            return f"{self.reference} is free; {accuracy}."
        sign, against = (-1, "More expensive than") if self.saved < 0 else (1, "Saved against")
        within = ""
        if self.saved_interval is not None:
            low, high = sorted(sign * end for end in self.saved_interval)
            within = f" (95 % interval {_percent(low)} to {_percent(high)})"
        share = _percent(sign * self.saved)
        return f"{against} always {self.reference}: {share} %{within}; {accuracy}."


def _percent(share: float) -> str:
    """Write a share in percent with one decimal, without its unit.

    >>> _percent(0.9012), _percent(-0.2)
    ('90.1', '−20.0')
    """
    written = f"{abs(100 * share):.1f}"
    return f"−{written}" if share < 0 and float(written) else written
