"""The rows of a comparison: every candidate at every alpha, played on every split.

How a candidate meets a split depends on what is promised: thresholds are set for coverage
(`thresholded`), and operating points are proved for everything else (`proved`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

from farthing.errors import CalibrationError, InputError
from farthing.methods.base import Fitted
from farthing.recommendation.base import METRICS, Candidate, Event, How, Row, Watch
from farthing.traces.arrays import IntArray
from farthing_lab.comparison.names import PROMISE_METRICS
from farthing_lab.comparison.trainings import INTERRUPTED, Trained

Split = tuple[IntArray, IntArray]
"""Calibration and test part, as places within the questions outside training."""
Points = list[tuple[float, float]]
"""Mean cost in USD a question, and what is reached for it."""


class Entrant(Protocol):
    """A trained candidate on all questions outside training, for any split of them."""

    @property
    def fitted(self) -> Fitted:
        """What its training left behind."""
        ...

    def play(self, split: Split, *key: int) -> Mapping[str, float]:
        """Return its figures on a test part, as calibration has it act; `kappa` of a threshold.

        Args:
            split: the parts.
            key: of what it draws by itself, if it draws: the seed and the number of the split.
        """
        ...

    def frontier(self) -> Points:
        """Return cost and the promised figure on all questions, as its setting sweeps."""
        ...

    def curve(self) -> Points:
        """Return cost and accuracy likewise; nothing where accuracy is not known."""
        ...


E = TypeVar("E", bound=Entrant)


@dataclass(frozen=True)
class Line(Generic[E]):
    """One row to be: a candidate at one alpha, as it enters under each seed."""

    candidate: Candidate
    alpha: Fraction
    entrants: tuple[E, ...] = ()
    note: str = ""


def lines_of(
    chosen: Sequence[Candidate],
    trained: Trained,
    alphas: Sequence[Fraction],
    enter: Callable[[Candidate, Fraction, Fitted], E],
) -> list[Line[E]]:
    """Let every candidate enter at each alpha; a note says why one could not."""

    def line(candidate: Candidate, alpha: Fraction) -> Line[E]:
        if candidate.learner is None:
            return Line(candidate, alpha, note=candidate.note)
        fitted = trained(candidate, alpha)
        whole = [one for one in fitted if one is not None]
        if len(whole) < len(fitted):
            return Line(candidate, alpha, note=INTERRUPTED)
        try:
            entrants = tuple(enter(candidate, alpha, one) for one in whole)
        except (InputError, CalibrationError) as problem:
            return Line(candidate, alpha, note=str(problem))
        remarks = (candidate.note, getattr(whole[0].policy, "note", ""))
        return Line(candidate, alpha, entrants, "; ".join(filter(None, remarks)))

    return [line(candidate, alpha) for alpha in alphas for candidate in chosen]


def rows_of(
    lines: Sequence[Line[E]], splits: Sequence[Split], watch: Watch, *, proved: bool
) -> tuple[list[Row], int]:
    """Play every line on every split; return the rows, and how many splits were played.

    What Ctrl-C finds unfinished is left out for all alike.
    """
    played: list[list[list[Mapping[str, float]]]] = []
    try:
        for number, split in enumerate(splits):
            played.append(
                [
                    [one.play(split, seed, number) for seed, one in enumerate(line.entrants)]
                    for line in lines
                ]
            )
            watch(Event("evaluate", "", number + 1, len(splits)))
    except KeyboardInterrupt:
        pass
    rows = []
    for place, line in enumerate(lines):
        how: How = "proved" if proved else line.candidate.calibration
        row = Row(line.candidate.name, line.candidate.label, line.alpha, how, note=line.note)
        figures = [split[place][seed] for seed in range(len(line.entrants)) for split in played]
        if figures:
            first, names = line.entrants[0], PROMISE_METRICS if proved else METRICS
            row = replace(
                row,
                per_split={name: [one[name] for one in figures] for name in names},
                kappa=[one["kappa"] for one in figures if "kappa" in one],
                frontier=first.frontier(),
                curve=first.curve(),
                curves={name: list(values) for name, values in first.fitted.curves.items()},
            )
        rows.append(row)
    return rows, len(played)
