"""Ask the same calls of every question, in one order."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.process.action_space import SpaceName
from farthing.process.base import NOTHING, Decision, State
from farthing.traces.arrays import IntArray


@dataclass(frozen=True)
class Row:
    """Buys the next item of each line of a row, one after the other, and then nothing more.

    An item that cannot be bought, since it was not recorded or is too dear, is left out. What is
    not in the row comes last, with a score of 0 for going on, so that the order is complete.
    """

    space: SpaceName
    lines: tuple[int, ...]
    """The lines to buy from; one that occurs k times gives its first k items."""
    stochastic: ClassVar[bool] = False
    parameters: ClassVar[None] = None

    def decide(self, state: State) -> Decision:
        """Go on while an item of the row can be bought; no answer scores."""
        n = len(state)
        rest = np.where(state.can_buy.any(axis=1), state.can_buy.argmax(axis=1), NOTHING)
        wanted = np.full(n, NOTHING)
        for line, number in reversed(list(self._places())):
            here = state.can_buy[:, line] & (state.bought[:, line] < number)
            wanted[here] = line
        goes_on = (wanted != NOTHING).astype(np.float64)
        return Decision(np.where(goes_on > 0, wanted, rest), goes_on, self._silent(state))

    def _places(self) -> list[tuple[int, int]]:
        """Return each line of the row, and how many items of it are bought by then."""
        return [(line, self.lines[: i + 1].count(line)) for i, line in enumerate(self.lines)]

    def _silent(self, state: State) -> np.ndarray:
        return np.zeros((len(state), state.space.width))


def cheapest_first(cost_nano: IntArray) -> list[int]:
    """Return the places of calls by their mean cost, those of equal cost in their order.

    >>> cheapest_first(np.array([[30, 10, 20], [30, 10, 20]]))
    [1, 2, 0]
    """
    return [int(place) for place in np.argsort(cost_nano.mean(axis=0), kind="stable")]
