"""Plans of a workflow side by side: how often it is done within its budget and its deadline."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from farthing.errors import InputError
from farthing.methods.planners.base import (
    Episode,
    Left,
    Planner,
    S,
    Simulator,
    affordable,
    play,
)
from farthing.methods.planners.plain import STEP_BY_STEP, UNPLANNED
from farthing.methods.simulators.workflow import Workflow
from farthing.methods.simulators.workflow_parts import Progress
from farthing.money import dollars
from farthing.promises.statistics.binomial import binomial_interval


@dataclass(frozen=True)
class Planned:
    """What became of one way to plan."""

    name: str
    done: float
    """Share of executions that were done within budget and deadline."""
    interval: tuple[float, float]
    """Of that share, 95 %."""
    spent_nano: float
    """Mean of all executions."""
    seconds: float
    """Mean of the executions that were done."""


@dataclass(frozen=True)
class Chosen:
    """What the planner did about one part."""

    part: str
    model: str
    """That it was first given to most often."""
    samples: int
    share: float
    """Of the executions that started the part, those that began it so."""
    starts: float
    """Mean of all executions."""
    expected_nano: float
    """What its starts cost on average, in an execution."""
    done: float
    """Share of executions in which it was done."""


@dataclass(frozen=True)
class Plans:
    """A planner beside plans that do not simulate."""

    left: Left
    executions: int
    parts: tuple[Chosen, ...]
    rows: tuple[Planned, ...]


@dataclass(frozen=True)
class Fixed:
    """Gives every part to the same model with the same number of samples, again and again."""

    workflow: Workflow
    model: str
    samples: int

    def act(
        self, simulator: Simulator[S], state: S, left: Left, rng: np.random.Generator
    ) -> int | None:
        """Return the first start of that kind that can be paid, else waiting."""
        del rng  # nothing is drawn
        can = affordable(simulator, state, left)
        starts = _starts(self.workflow, state)
        for at in can:
            if at >= len(starts):
                return at
            place, choice = starts[at]
            one = self.workflow.parts[place].choices[choice]
            if (one.model, one.samples) == (self.model, self.samples):
                return at
        return None


@dataclass(frozen=True)
class _Noted:
    """Does what a planner says, and takes notes of what was started."""

    workflow: Workflow
    planner: Planner
    starts: list[tuple[int, int]] = field(default_factory=list)
    """Part and choice, in this order."""

    def act(
        self, simulator: Simulator[S], state: S, left: Left, rng: np.random.Generator
    ) -> int | None:
        """Return what the planner says."""
        action = self.planner.act(simulator, state, left, rng)
        starts = _starts(self.workflow, state)
        if action is not None and action < len(starts):
            self.starts.append(starts[action])
        return action


def _starts(workflow: Workflow, state: Hashable) -> list[tuple[int, int]]:
    return workflow.starts(state) if isinstance(state, Progress) else []


def compare_plans(
    workflow: Workflow,
    left: Left,
    planner: tuple[str, Planner],
    executions: int,
    seed: int,
    progress: Callable[[str, int, int], None],
) -> Plans:
    """Execute a workflow so often under a planner, and under plans that do not simulate.

    Execution i of every plan begins with the same seed.

    Raises:
        InputError: no part can be paid, nothing can be in time, or no execution is asked for.
    """
    if executions < 1:
        raise InputError(f"{executions} executions say nothing; give at least 1")
    if not affordable(workflow, workflow.begin, left):
        least = min(action.largest_nano for action in workflow.actions(workflow.begin))
        raise InputError(
            f"a budget of {dollars(left.nano)} starts no part; the cheapest start can cost "
            f"{dollars(least)}"
        )
    if workflow.shortest_s > left.seconds:
        raise InputError(
            f"nothing is done within {left.seconds:g} s; the quickest way through all parts takes "
            f"{workflow.shortest_s:.3g} s"
        )

    def executed(name: str, way: Callable[[], Planner]) -> list[tuple[Planner, Episode[Progress]]]:
        found = []
        for i in range(executions):
            one, rng = way(), np.random.default_rng([seed, i])
            found.append((one, play(one, workflow, workflow.begin, left, rng)))
            progress(name, i + 1, executions)
        return found

    mine = executed(planner[0], lambda: _Noted(workflow, planner[1]))
    kinds = {(one.model, one.samples) for part in workflow.parts for one in part.choices}
    others: dict[str, Planner] = {
        "even share": UNPLANNED,
        "greedy": STEP_BY_STEP,
        **{f"all {m} x {k}": Fixed(workflow, m, k) for m, k in sorted(kinds)},
    }
    rows = [_row(planner[0], mine)]
    for name, other in others.items():
        rows.append(_row(name, executed(name, partial(_same, other))))
    return Plans(left, executions, _parts(workflow, mine), tuple(rows))


def _same(planner: Planner) -> Planner:
    return planner


def _row(name: str, played: Sequence[tuple[Planner, Episode[Progress]]]) -> Planned:
    episodes = [episode for _, episode in played]
    done = [episode for episode in episodes if episode.value > 0.0]
    seconds = float(np.mean([one.seconds for one in done])) if done else float("nan")
    return Planned(
        name,
        len(done) / len(episodes),
        binomial_interval(len(done), len(episodes), 0.05),
        float(np.mean([one.spent_nano for one in episodes])),
        seconds,
    )


def _parts(
    workflow: Workflow, played: Sequence[tuple[Planner, Episode[Progress]]]
) -> tuple[Chosen, ...]:
    notes = [one.starts for one, _ in played if isinstance(one, _Noted)]
    found = []
    for place, part in enumerate(workflow.parts):
        chosen = [[choice for at, choice in starts if at == place] for starts in notes]
        first = Counter(choices[0] for choices in chosen if choices)
        usual, count = first.most_common(1)[0] if first else (0, 0)
        every = [part.choices[choice].expected_nano for choices in chosen for choice in choices]
        found.append(
            Chosen(
                part=part.name,
                model=part.choices[usual].model if first else "",
                samples=part.choices[usual].samples if first else 0,
                share=count / max(1, first.total()),
                starts=len(every) / len(played),
                expected_nano=sum(every) / len(played),
                done=sum(episode.state.done[place] for _, episode in played) / len(played),
            )
        )
    return tuple(found)
