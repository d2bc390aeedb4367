"""A workflow: parts that depend on each other, a choice of models for each, money and time.

A part can be started once all that it comes after is done. Who starts it chooses a model and how
many samples are drawn side by side. Each sample is right with the model's chance, and a checker
(tests, a proof checker) finds out. A part that failed can be started again.

`Workflow` is a `Simulator`: its actions start a part, which reserves the most that it can cost, or
wait for the next part to end, which gives back what was not used. What is not known yet is not in
its state: of a part under way it has how long that has run, and no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.errors import InputError
from farthing.methods.planners.base import Action, Left, Step
from farthing.methods.planners.executions import follow, usual_start
from farthing.methods.planners.parts import Part, Progress, Under, still_running
from farthing.traces.arrays import FloatArray

WAIT = Action("wait", 0, 0)
"""Goes on to the next event."""


@dataclass(frozen=True)
class Workflow:
    """Parts in an order in which each comes after those that it depends on."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        """Refuse what is no workflow.

        Raises:
            InputError: there is no part, one has no choice, or comes after itself or a later one.
        """
        if not self.parts:
            raise InputError("a workflow has no parts; give at least one")
        for place, part in enumerate(self.parts):
            if not part.choices:
                raise InputError(f"the part '{part.name}' has no model; give at least one")
            if not all(0 <= before < place for before in part.after):
                raise InputError(f"the part '{part.name}' comes after itself or a later part")

    @property
    def begin(self) -> Progress:
        """The state in which nothing is done."""
        return Progress((False,) * len(self.parts))

    @property
    def shortest_s(self) -> float:
        """The fewest seconds in which all can be done, whatever it costs."""
        ends: list[float] = []
        for part in self.parts:
            begun = max((ends[before] for before in part.after), default=0.0)
            ends.append(begun + min(choice.shortest_s for choice in part.choices))
        return max(ends)

    def ready(self, state: Progress) -> list[int]:
        """Return the parts that can be started."""
        busy = {one.part for one in state.under_way}
        return [
            place
            for place, part in enumerate(self.parts)
            if not state.done[place]
            and place not in busy
            and all(state.done[before] for before in part.after)
        ]

    def starts(self, state: Progress) -> list[tuple[int, int]]:
        """Return what can be started, as (part, choice), in the order of the actions."""
        return [
            (place, at)
            for place in self.ready(state)
            for at in range(len(self.parts[place].choices))
        ]

    def actions(self, state: Progress) -> Sequence[Action]:
        """Return one action for each part and choice that can be started, and waiting last."""
        if all(state.done):
            return []
        found = []
        for place, at in self.starts(state):
            part = self.parts[place]
            choice = part.choices[at]
            name = f"{part.name}: {choice.name}"
            found.append(Action(name, choice.expected_nano, choice.largest_nano))
        return [*found, WAIT] if state.under_way else found

    def step(self, state: Progress, action: int, rng: np.random.Generator) -> Step[Progress]:
        """Start a part, which reserves its largest cost; or wait until the next one ends."""
        starts = self.starts(state)
        if action < len(starts):
            place, at = starts[action]
            begun = Progress(state.done, (*state.under_way, Under(place, at)))
            return Step(begun, self.parts[place].choices[at].largest_nano)
        return self._waited(state, rng)

    def _waited(self, state: Progress, rng: np.random.Generator) -> Step[Progress]:
        ends = []
        for one in state.under_way:
            choice = self.parts[one.part].choices[one.choice]
            ends.append(still_running(choice, one.elapsed_s, 1, rng))
        waits = [
            float(end.seconds[0]) - one.elapsed_s
            for end, one in zip(ends, state.under_way, strict=True)
        ]
        waited, done, going, back = min(waits), list(state.done), [], 0
        for end, one, wait in zip(ends, state.under_way, waits, strict=True):
            if wait > waited:
                going.append(Under(one.part, one.choice, one.elapsed_s + waited))
                continue
            done[one.part] = bool(end.right[0])
            choice = self.parts[one.part].choices[one.choice]
            back += choice.largest_nano - int(end.cost_nano[0])
        return Step(Progress(tuple(done), tuple(going)), -back, waited)

    def value(self, state: Progress) -> float:
        """Return 1 where all parts are done, else 0."""
        return float(all(state.done))

    def score(self, state: Progress) -> float:
        """Return the share of parts that are done or can be expected from those under way."""
        under = sum(self.parts[o.part].choices[o.choice].any_right for o in state.under_way)
        return (sum(state.done) + under) / len(self.parts)

    def usual(self, state: Progress, left: Left) -> int | None:
        """Return what an even share of money and time would start; else wait."""
        starts = self.starts(state)
        for place in self.ready(state):
            at = usual_start(self.parts, place, state, left)
            if at is not None:
                return starts.index((place, at))
        return len(starts) if state.under_way else None

    def follow(
        self,
        state: Progress,
        actions: Sequence[int],
        left: Left,
        n: int,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return whether n executions of each action are done in time and budget, [A, n]."""
        starts = self.starts(state)
        first = [starts[action] if action < len(starts) else None for action in actions]
        return follow(self.parts, state, first, left, n, rng)
