"""A policy with a knob, as a menu: what each of its settings costs and answers on each question.

Promises are then made by choosing a setting, whatever the policy is.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays


@dataclass(frozen=True)
class Menu:
    """`G` settings, from the cheapest to the dearest on the training questions."""

    knobs: FloatArray
    """[G] value of the knob at each setting, in the policy's own unit."""
    cost_nano: IntArray
    """[n, G] price of every call made, in nano-dollars."""
    correct: BoolArray
    """[n, G] whether the single answer given is right."""
    answered: BoolArray
    """[n, G] whether an answer was given at all."""
    covered: BoolArray
    """[n, G] whether some answer that was paid for is right."""

    def __len__(self) -> int:
        return len(self.cost_nano)

    @property
    def settings(self) -> int:
        """The number of settings, G."""
        return len(self.knobs)

    def take(self, index: IntArray | BoolArray) -> "Menu":
        """Return the questions at an index or under a mask, in that order."""
        return self._map(lambda values: values[index])

    def keep(self, settings: IntArray) -> "Menu":
        """Return the settings at an index, in that order."""
        kept = self._map(lambda values: values[:, settings])
        return replace(kept, knobs=self.knobs[settings])

    def as_sets(self) -> "Menu":
        """Return the menu of the policy that hands over every answer it has paid for."""
        return replace(self, correct=self.covered, answered=self.answered | self.covered)

    def _map(self, change: Callable[[np.ndarray], np.ndarray]) -> "Menu":
        names = ("cost_nano", "correct", "answered", "covered")
        return replace(self, **{name: change(getattr(self, name)) for name in names})


def of_calls(traces: TraceArrays, knobs: FloatArray, made: BoolArray, chosen: IntArray) -> Menu:
    """Price and grade the calls that each setting makes on a pool.

    A call that was never recorded costs nothing and says nothing.

    Args:
        traces: a pool, [n, 1, L].
        knobs: [G].
        made: [n, G, L] the calls made.
        chosen: [n, G] the model whose answer is given; -1 to give none.

    Returns:
        The menu, with the settings in the order given.
    """
    rows = np.arange(len(traces))[:, None]
    right, cost = traces.correct[:, 0, :], traces.cost_nano[:, 0, :]
    given = (chosen >= 0) & (traces.answer[:, 0, :][rows, chosen] != NO_ANSWER)
    return Menu(
        knobs=np.asarray(knobs, dtype=np.float64),
        cost_nano=(made * cost[:, None, :]).sum(axis=2),
        correct=right[rows, chosen] & given,
        answered=given,
        covered=np.asarray((made & right[:, None, :]).any(axis=2)),
    )


def sweep(
    traces: TraceArrays,
    order: IntArray,
    score: FloatArray,
    chosen: IntArray,
    knobs: FloatArray,
) -> Menu:
    """Ask models in an order until a score reaches the knob; the last one asked ends it anyway.

    Args:
        traces: a pool, [n, 1, L].
        order: [K] or [n, K] the models to ask, without repetition.
        score: [n, K] score after each call, from what was seen up to it.
        chosen: [n, K] whose answer to give when stopping there; -1 to give none.
        knobs: [G] thresholds, ascending, so that later settings cost more on every question.

    Returns:
        One setting a knob.
    """
    n = len(traces)
    order = np.broadcast_to(order, score.shape)
    reached = np.maximum.accumulate(score, axis=1)[:, None, :-1] >= knobs[:, None]
    stop = (~reached).sum(axis=2)
    rows = np.arange(n)[:, None]
    place = np.full((n, traces.n_roles), traces.n_roles)  # a model that is not in the order: never
    place[rows, order] = np.arange(order.shape[1])
    made = place[:, None, :] <= stop[:, :, None]
    return of_calls(traces, knobs, made, chosen[rows, stop])
