"""Operating points: what each of a policy's settings costs and answers on each question.

Promises are then made by choosing one of them, whatever the policy is.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from farthing.money import usd_from_nano
from farthing.process import latency
from farthing.process.replay import Counts, at_worst
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.pool import check_complete, spent_nano


@dataclass(frozen=True)
class OperatingPoints:
    """`G` points, from the cheapest to the dearest on the training questions."""

    values: FloatArray
    """[G] value of the policy's parameter at each point, in the policy's own unit."""
    cost_nano: IntArray
    """[n, G] price of every call made, in nano-dollars."""
    correct: BoolArray
    """[n, G] whether the single answer given is right."""
    answered: BoolArray
    """[n, G] whether an answer was given at all."""
    covered: BoolArray
    """[n, G] whether some answer that was paid for is right."""
    calls: Counts
    """[n, G] number of calls, or rounds, that were made."""
    set_size: Counts
    """[n, G] number of distinct answers that were paid for."""
    answers: Counts
    """[n, G] number of answers that were paid for, repetitions counted."""
    latency_s: FloatArray | None = None
    """[n, G] seconds that the calls take, NaN where unknown; None where nothing was recorded."""

    def __len__(self) -> int:
        return len(self.cost_nano)

    @property
    def n_points(self) -> int:
        """The number of points, G."""
        return len(self.values)

    def take(self, index: IntArray | BoolArray) -> "OperatingPoints":
        """Return the questions at an index or under a mask, in that order."""
        return self._map(lambda values: values[index])

    def keep(self, points: IntArray) -> "OperatingPoints":
        """Return the points at an index, in that order."""
        kept = self._map(lambda values: values[:, points])
        return replace(kept, values=self.values[points])

    def as_sets(self) -> "OperatingPoints":
        """Return the points of the policy that hands over every answer it has paid for."""
        return replace(self, correct=self.covered, answered=self.answered | self.covered)

    def mean_usd(self) -> list[float]:
        """Return the mean cost of each point in dollars a question."""
        return [usd_from_nano(int(total)) / len(self) for total in self.cost_nano.sum(axis=0)]

    def cost_and(self, right: BoolArray) -> list[tuple[float, float]]:
        """Return (mean cost in dollars, accuracy) of each point; right is [n, G]."""
        return list(zip(self.mean_usd(), right.mean(axis=0).tolist(), strict=True))

    def _map(self, change: Callable[[np.ndarray], np.ndarray]) -> "OperatingPoints":
        names = [field.name for field in fields(self) if field.name != "values"]
        columns = {name: getattr(self, name) for name in names}
        kept = {name: values for name, values in columns.items() if values is not None}
        return replace(self, **{name: change(values) for name, values in kept.items()})


def of_calls(
    traces: TraceArrays, values: FloatArray, made: BoolArray, chosen: IntArray
) -> OperatingPoints:
    """Price and grade the calls that are made on a pool at each point.

    Args:
        traces: a pool, [n, 1, L].
        values: [G].
        made: [n, G, L] the calls made.
        chosen: [n, G] the model whose answer is given; -1 to give none.

    Returns:
        The points, in the order given.
    """
    check_complete(traces)
    rows = np.arange(len(traces))[:, None]
    right = traces.correct[:, 0, :]
    answer = traces.answer[:, 0, :]
    given = (chosen >= 0) & (answer[rows, chosen] != NO_ANSWER)
    heard = made & (answer != NO_ANSWER)[:, None]
    seconds = latency.of_calls(traces)
    lost: BoolArray = np.any(made & ~traces.made[:, 0][:, None], axis=2)  # the way on is unknown
    found = OperatingPoints(
        values=np.asarray(values, dtype=np.float64),
        cost_nano=spent_nano(traces, made),
        correct=right[rows, chosen] & given,
        answered=given,
        covered=np.asarray((made & right[:, None, :]).any(axis=2)) & ~lost,
        calls=made.sum(axis=2, dtype=np.int16),
        set_size=distinct(heard, answer),
        answers=heard.sum(axis=2, dtype=np.int16),
        latency_s=None if seconds is None else np.where(made, seconds[:, None], 0.0).sum(axis=2),
    )
    return at_worst(found, lost, traces.dearest_nano[:, None])


def distinct(heard: BoolArray, answer: NDArray[np.int16]) -> Counts:
    """Return the number of distinct answers among those heard, [n, G].

    Args:
        heard: [n, G, L]
        answer: [n, L] codes of the answers.
    """
    first = np.ones(heard.shape, dtype=bool)
    for later in range(1, answer.shape[1]):
        same = answer[:, :later] == answer[:, later : later + 1]
        first[:, :, later] = ~(heard[:, :, :later] & same[:, None]).any(axis=2)
    count: Counts = (heard & first).sum(axis=2, dtype=np.int16)
    return count
