"""What a question may cost, and the bounds that say beforehand what a call can cost at most.

What can be afforded is judged by a bound and never by the recorded cost, which nobody knows before
the call. So a replay under a budget buys what a live question under it would.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from farthing.errors import InputError
from farthing.money import dollars
from farthing.process.base import Budget
from farthing.traces.arrays import IntArray, TraceArrays

CASCADE = ("model",)
"""The roles of a pool that is played one model after another."""


@dataclass(frozen=True)
class PerQuestion:
    """A budget a question, with bounds of the calls whose traces record none."""

    nano: int
    """Nano-dollars a question."""
    largest_nano: Mapping[str, int] | None = None
    """Role, in a cascade model, to the most that one of its calls can cost, in nano-dollars; live
    play enforces it."""

    def of(self, traces: TraceArrays, replies: str | None = None) -> Budget:
        """Return the budget of recorded questions, with the bound of each of their calls.

        A bound that is declared for a role is that of all its calls; else it is the recorded one.
        That one is not known in time where a call sees another one of its round: it depends on what
        was said, and a round is begun before.

        Args:
            traces: the questions.
            replies: the role of an LLM that is asked what to do after each round; it is paid out of
                the same budget, and its bound must be declared.
        """
        declared = self.largest_nano or {}
        self._check_in_time(traces)
        largest = traces.largest_cost_nano.copy()
        for name, cells in calls_of(traces).items():
            if name in declared:
                largest[:, cells[0], cells[1]] = declared[name]
        self._check(traces, largest)
        budget = Budget(self.nano, largest.reshape(len(traces), -1))
        return budget if replies is None else self._asking(budget, traces, replies)

    def _asking(self, budget: Budget, traces: TraceArrays, role: str) -> Budget:
        bound = (self.largest_nano or {}).get(role)
        if bound is None:
            raise InputError(
                f"{role} is paid for saying what to do, and nothing says the most that a reply of "
                f"it can cost; {_declare(role)}"
            )
        asked = traces.replies.get(role)
        if asked is None:
            return budget  # the policy refuses such questions
        if (most := int(asked.cost_nano.max())) > bound:
            raise InputError(
                f"a reply of {role} cost {dollars(most)}, more than its bound of "
                f"{dollars(bound)}; {_declare(role)}, with a larger one"
            )
        return replace(budget, asking_nano=asked.cost_nano, largest_asking_nano=bound)

    def _check_in_time(self, traces: TraceArrays) -> None:
        late = [role for role in traces.roles[1:] if role not in (self.largest_nano or {})]
        if late and not traces.independent.all():
            raise InputError(
                f"calls of {' and '.join(late)} saw others of their round, so the most that they "
                f"can cost is not known before it; {_declare(*late)}"
            )

    def _check(self, traces: TraceArrays, largest: IntArray) -> None:
        over = traces.cost_nano > largest
        if not over.any():
            return
        row, turn, place = (int(at[0]) for at in np.nonzero(over))
        cost = int(traces.cost_nano[row, turn, place])
        bound, role = int(largest[row, turn, place]), _whose(traces, turn, place)
        which = f"question {traces.ids[row]}, round {turn + 1}, {role}"
        if not bound:
            raise InputError(
                f"{which}: nothing says the most that this call could have cost, so no budget can "
                f"be kept to; record `largest_cost_usd`, or {_declare(role)}"
            )
        raise InputError(
            f"{which}: this call cost {dollars(cost)}, more than its bound of "
            f"{dollars(bound)}; {_declare(role)}, with a larger one"
        )


def _declare(*roles: str) -> str:
    options = " ".join(f"--largest {role}=USD" for role in roles)
    given = ", ".join(f'"{role}": USD' for role in roles)
    return f"give {options} (in Python largest_usd={{{given}}})"


def calls_of(traces: TraceArrays) -> dict[str, tuple[slice | int, int]]:
    """Return whose calls are where, as rounds and role; in a cascade they are models."""
    if traces.roles != CASCADE:
        return {role: (slice(None), place) for place, role in enumerate(traces.roles)}
    return {_whose(traces, turn, 0): (turn, 0) for turn in range(traces.horizon)}


def _whose(traces: TraceArrays, turn: int, place: int) -> str:
    if traces.roles != CASCADE:
        return traces.roles[place]
    names = traces.models[0].split(" -> ")
    return names[turn] if turn < len(names) else f"model {turn + 1}"
