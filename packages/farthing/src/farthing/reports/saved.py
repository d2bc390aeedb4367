"""Saved against lost: what a first screen draws, with the reference at the origin."""

from dataclasses import dataclass

from farthing.process.value import AnswerFigures, Interval
from farthing.recommendation.losses import LossTable
from farthing.recommendation.record import Recommendation


@dataclass(frozen=True)
class Mark:
    """A way to answer every question."""

    name: str
    label: str
    saved: float
    """1 - cost / the reference's cost."""
    lost: float
    """The reference's accuracy, or agreement, less its own."""
    within: Interval | None = None
    """What it loses, at least and at most: a 95 % interval, or up to what is proved."""
    alone: bool = False
    """Whether one model answers alone."""
    chosen: bool = False


@dataclass(frozen=True)
class Sweep:
    """One method at each of its settings."""

    name: str
    label: str
    points: tuple[tuple[float, float], ...]
    """(lost, saved)"""
    proved: tuple[bool, ...] = ()
    """Whether the promise is proved of each; empty: settings were not tested one by one."""


@dataclass(frozen=True)
class SavedAgainstLost:
    """What a first screen draws."""

    reference: str
    measure: str
    """What is lost: accuracy, or agreement."""
    allowed: float | None
    """What may be lost; None: the promise is about something else."""
    marks: tuple[Mark, ...]
    sweeps: tuple[Sweep, ...] = ()
    stairs: tuple[tuple[float, float], ...] = ()
    """(loss at most, saved): what is proved at several losses together."""
    held_out: bool = False
    """Whether models alone were measured on other questions than those that proved."""

    def sentence(self) -> str:
        """Say how to read the figure."""
        said = f"{self.reference}, at the origin, saves and loses nothing; higher saves more, "
        said += f"further left loses less {self.measure}."
        if any(sweep.proved for sweep in self.sweeps):
            said += (
                " Each dot is a method at one setting. Full dots are proved to stay left of the "
                "red line; hollow ones were tested, and are not proved."
            )
            if self.stairs:
                said += " The black stairs: what is saved at each loss, all proved together."
            if self.held_out:
                said += " Dots are of the questions that proved, models alone of those held out."
            return said
        if self.sweeps:
            said += " Each line is a method, from its cheapest setting to its most expensive."
        if any(mark.within for mark in self.marks):
            said += " The bar is a 95 % interval."
        return said


def of_recommendation(
    found: Recommendation, losses: LossTable | None = None
) -> SavedAgainstLost | None:
    """Return what was tested for a recommendation; None where no reference is known.

    What was chosen is drawn where it was proved; where other questions measured, they say so in
    words beside it.
    """
    value = found.found.value
    theirs = found.models.get(found.reference or "")
    if found.reference is None or theirs is None or not theirs.cost_nano:
        return None
    marks = [
        Mark(name, name, *_beside(each, theirs), alone=True)
        for name, each in found.models.items()
        if each is not None and name != found.reference
    ]
    asked = None if found.certificate is None else found.certificate.promise
    epsilon = getattr(asked, "epsilon", None)
    allowed = None if epsilon is None else float(epsilon)
    chosen = next((point for point in found.tradeoffs if point.chosen), None)
    if chosen is not None:
        within = None if allowed is None else (chosen.lost, allowed)
        marks.append(Mark(found.name, found.name, chosen.saved, chosen.lost, within, chosen=True))
    elif not found.nothing_cheaper and value.saved is not None and value.gained is not None:
        low, high = value.gained_interval or (value.gained, value.gained)
        marks.append(
            Mark(found.name, found.name, value.saved, -value.gained, (-high, -low), chosen=True)
        )
    methods = dict.fromkeys(point.method for point in found.tradeoffs)
    return SavedAgainstLost(
        found.reference,
        found.measure,
        allowed,
        tuple(marks),
        tuple(_sweep(found, method) for method in methods),
        _stairs(losses) if losses else (),
        found.held_out,
    )


def _beside(each: AnswerFigures, theirs: AnswerFigures) -> tuple[float, float]:
    """Return what a model alone saves and loses."""
    return 1 - each.cost_usd / theirs.cost_usd, theirs.accuracy - each.accuracy


def _stairs(losses: LossTable) -> tuple[tuple[float, float], ...]:
    best = [(line.loss, losses.at(line.loss)) for line in losses.lines]
    return tuple((float(loss), each.saved) for loss, each in best if each.proved)


def _sweep(found: Recommendation, method: str) -> Sweep:
    points = [point for point in found.tradeoffs if point.method == method]
    return Sweep(
        method,
        method,
        tuple((point.lost, point.saved) for point in points),
        tuple(point.proved for point in points),
    )
