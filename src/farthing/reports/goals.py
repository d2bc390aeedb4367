"""What a comparison's rows are held to beside money: coverage, or the figure of another promise."""

from dataclasses import dataclass
from fractions import Fraction

from farthing.money import significant
from farthing.process.value import signed
from farthing.promises.levels import exact_margin
from farthing.recommendation.base import ANSWERED, REALISED, Comparison
from farthing.recommendation.promises import Agreement, Budget, Parity, Promise, Selective
from farthing.recommendation.ranking import beside_cost, line_of
from farthing.reports.base import decimal, percent

BESIDE = {"accuracy": "Accuracy", ANSWERED: "Answered", REALISED: "Agreement"}
"""What the metric is called that is paired beside cost."""
ROOM = 0.2
"""What is further below the line than that would flatten a plot."""


@dataclass(frozen=True)
class Goal:
    """What is promised, and how it is shown."""

    title: str
    """Of tables and sections."""
    metric: str
    """What plots show beside cost."""
    name: str
    """What that is called."""
    line: float | None
    """The figure to keep; None: it is no figure of that metric."""
    level: str
    """That figure, written."""
    asked: str
    """What is written beside the line."""
    worst: float
    """What lies below it is drawn at the edge."""
    beside_metric: str = "coverage"
    """What is paired beside cost."""
    beside: str = "Coverage"
    """What that is called."""
    of_alpha: bool = True
    """Whether it differs from alpha to alpha."""


def goal_of(comparison: Comparison, alpha: Fraction) -> Goal:
    """Return what the rows of one alpha are held to."""
    promise = comparison.promise
    if promise is None:
        asked = f"{percent(1 - alpha)} asked for"
        title = f"alpha = {decimal(alpha)}: coverage of at least {percent(1 - alpha)} is asked for"
        worst = float(1 - 3 * alpha)
        level = percent(1 - alpha)
        return Goal(title, "coverage", "Coverage", float(1 - alpha), level, asked, worst)
    metric = "accuracy" if isinstance(promise, Budget) else REALISED
    may_lose = isinstance(promise, Parity) and exact_margin(promise.epsilon) > 0
    said = "allowed" if may_lose else "asked for"
    line = float(1 - alpha) if isinstance(promise, Selective) else line_of(promise)
    if isinstance(promise, Budget):
        line = None
    return Goal(
        title=_title(promise, alpha),
        metric=metric,
        name=_name(promise),
        line=line,
        level=_level(promise, alpha),
        asked=f"{_level(promise, alpha)} {said}",
        worst=-1.0 if line is None else line - ROOM,
        beside_metric=beside_cost(promise),
        beside=BESIDE[beside_cost(promise)],
        of_alpha=isinstance(promise, Selective),
    )


def _title(promise: Promise, alpha: Fraction) -> str:
    match promise:
        case Parity():
            epsilon = exact_margin(promise.epsilon)
            if epsilon > 0:
                goal = f"at most {decimal(epsilon)} of accuracy may be lost"
            else:
                goal = f"more than {decimal(-epsilon)} of accuracy is to be won"
            return f"Parity with {promise.reference}: {goal}"
        case Agreement():
            other = decimal(Fraction(promise.epsilon))
            return f"Agreement with {promise.reference}: at most {other} may be answered otherwise"
        case Selective():
            return f"alpha = {decimal(alpha)}: {percent(1 - alpha)} of the answers given are right"
        case Budget():
            return f"Budget: a question costs less than ${significant(float(promise.usd))}"
    return ""


def _name(promise: Promise) -> str:
    match promise:
        case Parity():
            return f"Accuracy less {promise.reference}'s"
        case Agreement():
            return f"Agreement with {promise.reference}"
        case Selective():
            return "Accuracy of the answers given"
    return "Accuracy"


def _level(promise: Promise, alpha: Fraction) -> str:
    match promise:
        case Parity():
            return signed(-float(promise.epsilon))
        case Agreement():
            return percent(1 - Fraction(promise.epsilon))
        case Selective():
            return percent(1 - alpha)
    return ""
