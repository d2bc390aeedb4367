"""The records of calibration: a threshold, and the certificate that says what it promises."""

from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from farthing.errors import CalibrationError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Level = Fraction | Decimal | str | float
"""A probability; a float counts as the decimal that it prints as, so 0.1 is exactly 1/10."""
Given = Literal["all", "solvable"]
"""Whether a promise is about every question (unsolvable ones count as covered) or the solvable."""
Guarantee = Literal[
    "marginal", "pac", "per-group", "online", "weighted", "selective", "parity", "budget", "none"
]


class Threshold(msgspec.Struct, frozen=True):
    """The k-th smallest of n critical thresholds."""

    kappa: float
    """The threshold; it acts as min(kappa, 1), and may be inf where most questions are unsolvable.
    0 means everything: every answer is returned."""
    k: int
    """Its rank; 0 where the questions are too few to promise anything tighter than everything."""
    n: int
    """Number of questions that it was taken from."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is promised, on what evidence, and until when."""

    guarantee: Guarantee
    """`marginal`: on average over calibration draws; `pac`: with confidence 1 - delta over the
    draw; `per-group`: marginal within each group; `online`: in the long run of one stream;
    `weighted`: marginal over another mix of questions. With confidence 1 - delta over the draw:
    `selective`: given answers are right; `parity`: as right as a reference; `budget`: a cost."""
    kappa: float = 0.0
    """The threshold; it acts as min(kappa, 1). Per group: the smallest, safe in every group. For a
    menu of one policy's thresholds: that of the setting; for any other menu 0."""
    alpha: str | None = None
    """The promised miscoverage (selective: wrong answers), exactly, as a decimal or a fraction."""
    delta: str | None = None
    """How often a promise with confidence may fail over calibration draws, exactly."""
    epsilon: str | None = None
    """Parity: how much accuracy may be lost against the reference, exactly."""
    budget_nano: int | None = None
    """Budget: what a question costs at most in expectation, in nano-dollars."""
    most_nano: int | None = None
    """Budget: the largest possible cost of a question that was assumed, in nano-dollars."""
    reference: str | None = None
    """Parity: the role that the reference model fills, where it is known."""
    setting: int | None = None
    """Index of the promised setting in its menu, from 0; none: nothing of the menu is proved."""
    settings: int = 0
    """Number of settings in the menu."""
    threshold: float | None = None
    """Selective: the confidence from which an answer is given, where settings are thresholds."""
    answered: int | None = None
    """Selective: number of the n calibration questions that the setting answers."""
    effective_n: float | None = None
    """Weighted: number of equally weighted questions that the n are worth."""
    n: int = 0
    """Number of questions (online: of updates) that it was computed from."""
    k: int = 0
    """Rank of kappa among their critical thresholds; 0: nothing tighter than everything."""
    given: Given = "all"
    """Which questions the promise is about."""
    interval: tuple[float, float] | None = None
    """Central 95 % interval of the coverage realised by this calibration set, Beta(n + 1 - k, k);
    with ties among the scores coverage is that or more."""
    bound: float | None = None
    """Online: the largest distance of the long-run error from alpha."""
    groups: dict[str, Threshold] = {}
    """Per group: its name and its own threshold."""
    conditional_on: tuple[str, ...] = ()
    """What must hold for the promise to be true, a sentence each."""
    invalid_when: tuple[str, ...] = ()
    """What ends it, a sentence each."""
    fingerprint: str = ""
    """SHA-256 of the traces that it was computed from."""

    @property
    def acts_as(self) -> float:
        """The threshold that a policy acts with, min(kappa, 1)."""
        return min(self.kappa, 1.0)

    @property
    def promises(self) -> bool:
        """Whether anything tighter than returning every answer is promised."""
        if self.guarantee == "per-group":
            return any(part.k > 0 for part in self.groups.values())
        if self.guarantee == "online":
            return self.bound is not None and self.bound < 1
        if self.guarantee in {"selective", "parity", "budget"}:
            return self.setting is not None
        return self.guarantee != "none" and self.k > 0

    def sentence(self) -> str:
        """Say in one plain sentence what is promised.

        >>> print(Certificate(guarantee="marginal", kappa=0.4, alpha="0.1", n=200, k=20).sentence())
        A new question is covered with probability at least 0.9, on average over draws of the \
200 calibration questions: a right answer is in the returned set, or no model had one.
        """
        if self.guarantee == "none":
            return f"Nothing is promised: the threshold {self.acts_as:g} was not calibrated."
        if self.guarantee in {"selective", "parity", "budget"}:
            return self._menu_sentence()
        if not self.promises and self.guarantee == "online":
            return f"{self.n} updates are too few to promise anything about their stream."
        if not self.promises:
            return (
                f"{self.n} calibration questions are too few to promise anything tighter than "
                f"everything at alpha = {self.alpha}, so every answer is returned."
            )
        return f"{self._claim()}: {_COVERED[self.given]}."

    def _claim(self) -> str:
        level = exact_text(1 - Fraction(self.alpha or 0))
        subject = "A new question" if self.given == "all" else "A new solvable question"
        covered = f"{subject} is covered with probability at least {level}"
        if self.guarantee == "marginal":
            return f"{covered}, on average over draws of the {self.n} calibration questions"
        if self.guarantee == "weighted":
            return (
                f"{covered} under the target mix, if the weights are right, on average over draws "
                f"of the {self.n} calibration questions (worth {self.effective_n:.0f})"
            )
        if self.guarantee == "pac":
            sure = exact_text(1 - Fraction(self.delta or 0))
            return f"With confidence {sure} in the draw of {self.n} questions, {_low(covered)}"
        if self.guarantee == "online":
            return (
                f"Over the {self.n} updates of its stream the share of questions covered is within "
                f"{self.bound:.3g} of {level}, and nothing is promised once kappa is frozen"
            )
        weak = [name for name, part in self.groups.items() if part.k == 0]
        but = f" (too few questions, so everything is returned: {', '.join(weak)})" if weak else ""
        return f"{covered} within each of {len(self.groups)} groups{but}"

    def _menu_sentence(self) -> str:
        sure = exact_text(1 - Fraction(self.delta or 0))
        level = exact_text(1 - Fraction(self.alpha or 0))
        usd = f"${(self.budget_nano or 0) / 1e9:.3g}"
        reference = self.reference or "the reference model"
        if self.setting is None:
            unproved = {
                "selective": f"answers of any setting are right with probability {level}, so every "
                "question is left unanswered or escalated",
                "parity": f"any setting is within {self.epsilon} of {reference}'s accuracy, so "
                f"{reference} answers, which is always valid",
                "budget": f"any setting costs less than {usd} a question, so none is chosen",
            }[self.guarantee]
            return (
                f"{self.n} calibration questions do not prove at confidence {sure} that {unproved}."
            )
        claim = {
            "selective": f"an answer that is given is right with probability at least {level}: "
            f"{self._chosen()} answers {self.answered} of them, and the rest is left unanswered or "
            "escalated",
            "parity": f"the accuracy of {self._chosen()} is above {reference}'s minus "
            f"{self.epsilon}",
            "budget": f"{self._chosen()} costs less than {usd} a question in expectation",
        }[self.guarantee]
        return f"With confidence {sure} in the draw of {self.n} questions, {claim}."

    def _chosen(self) -> str:
        if self.threshold is not None:
            return f"a confidence of {self.threshold:.3g} or more"
        return f"setting {(self.setting or 0) + 1} of {self.settings}"

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as JSON values; an infinite threshold is the text `inf`."""
        body: dict[str, Any] = msgspec.to_builtins(self)
        for part in (body, *body["groups"].values()):
            if part["kappa"] == np.inf:
                part["kappa"] = "inf"
        return body

    @classmethod
    def from_json(cls, body: Any) -> "Certificate":
        """Read what `to_json` wrote.

        Raises:
            CalibrationError: it is not a certificate; the message names the field.
        """
        try:
            certificate = msgspec.convert(body, cls, strict=False)
        except msgspec.ValidationError as problem:
            raise CalibrationError(f"not a certificate: {problem}") from None
        kappas = [certificate.kappa, *(part.kappa for part in certificate.groups.values())]
        if np.isnan(kappas).any():
            raise CalibrationError("not a certificate: a threshold is not a number")
        return certificate


_COVERED = {
    "all": "a right answer is in the returned set, or no model had one",
    "solvable": "a right answer is in the returned set",
}


def exact_level(value: Level, name: str = "alpha") -> Fraction:
    """Read a probability strictly between 0 and 1, exactly.

    >>> exact_level(0.1), exact_level("1/3"), exact_level("0.05")
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 20))

    Raises:
        CalibrationError: it is no number in (0, 1).
    """
    try:
        level = Fraction(repr(float(value)) if isinstance(value, float) else value)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):
        level = Fraction(0)
    if not 0 < level < 1:
        raise CalibrationError(f"{name} is {value}; give a number between 0 and 1, such as 0.1")
    return level


def exact_text(level: Fraction) -> str:
    """Write a fraction exactly, as a decimal where it has one.

    >>> exact_text(Fraction(1, 20)), exact_text(Fraction(1, 3))
    ('0.05', '1/3')
    """
    if 10**40 % level.denominator:
        return str(level)
    whole, part = divmod(level.numerator * (10**40 // level.denominator), 10**40)
    return f"{whole}.{part:040d}".rstrip("0").rstrip(".")


def as_scores(critical: FloatArray) -> FloatArray:
    """Return critical thresholds [n] as they may be calibrated on: each in [0, inf].

    Raises:
        CalibrationError: one is NaN (a truncated trace), negative, or the array has not one axis.
    """
    scores = np.asarray(critical, dtype=np.float64)
    if scores.ndim != 1:
        raise CalibrationError(
            f"critical thresholds have shape {scores.shape}; give one a question"
        )
    unknown = int(np.isnan(scores).sum())
    if unknown:
        raise CalibrationError(
            f"{unknown} of {len(scores)} critical thresholds are NaN: truncated traces cannot "
            "calibrate; leave them out of the calibration split"
        )
    if scores.size and scores.min() < 0:
        raise CalibrationError(
            f"a critical threshold is {scores.min():g}; scores of actions must be >= 0"
        )
    return scores


def _low(text: str) -> str:
    return text[0].lower() + text[1:]
