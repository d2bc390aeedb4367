"""Plans of a workflow side by side: how often it is done within its budget and its deadline."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isfinite, nan
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from farthing.errors import InputError
from farthing.methods.cards import system
from farthing.money import NANO_PER_USD, dollars, significant, usd_from_nano
from farthing.promises.statistics.binomial import binomial_interval
from farthing.reports.table import Record, Table, counted
from farthing_lab.methods.planners.base import (
    STEP_BY_STEP,
    UNPLANNED,
    PlannedEpisode,
    Planner,
    Remaining,
    S,
    Simulator,
    affordable,
    play,
)
from farthing_lab.methods.simulators.workflow import Workflow, WorkflowState, read_workflow
from farthing_lab.studies.study import (
    LEVEL,
    Seed,
    StudyContext,
    StudyOption,
    StudyReport,
    interval,
    percent,
    usd,
)

KEY = (
    "Even share: each part gets its share of money and time. Greedy: what is likeliest right now. "
    "All MODEL x N: the same for every part, again and again. Nothing is started that could cost "
    "more than is left."
)


@dataclass(frozen=True)
class WorkflowPlan:
    """Plan a workflow under a budget and a deadline: who does which part, with how many samples.

    Executes the workflow in simulation, planning anew after every event, and says how often it is
    done in time, beside plans that do not simulate. Nobody is asked and nothing is paid.

    Example: farthing study plan workflow.toml --budget 0.01 --deadline 30
    """

    lost: ClassVar[str] = "nothing was planned"

    workflow: Annotated[
        Path,
        StudyOption(
            "Models with prices and speeds; the parts.", metavar="WORKFLOW.toml", argument=True
        ),
    ]
    budget: Annotated[Fraction, StudyOption("For one execution.")]
    deadline: Annotated[
        float | None,
        StudyOption("For one execution; none: it may take forever.", metavar="SECONDS"),
    ] = None
    planner: Annotated[str, StudyOption("Who plans.", complete="planners")] = "mcpp"
    executions: Annotated[int, StudyOption("Simulated executions of each plan.", least=1)] = 100
    seed: Seed = 0

    def measure(self, context: StudyContext) -> Record:
        if self.deadline is not None and not self.deadline > 0.0:
            raise InputError(f"the deadline is {self.deadline:g} s; give more than 0")
        planner: Planner = system("planner", self.planner)
        workflow, seconds = read_workflow(self.workflow), self.deadline or inf
        left = Remaining(int(self.budget * NANO_PER_USD), seconds)
        _check_possible(workflow, left)
        kinds = {(start.model, start.samples) for part in workflow.parts for start in part.choices}
        others: dict[str, Planner] = {
            "even share": UNPLANNED,
            "greedy": STEP_BY_STEP,
            **{f"all {m} x {k}": FixedPlan(workflow, m, k) for m, k in sorted(kinds)},
        }

        def executed(name: str, planners: Sequence[Planner]) -> list[Executed]:
            """Execute the workflow under each; execution i of every plan begins with one seed."""
            episodes, progress = [], context.progress(name)
            for i, one in enumerate(planners):
                rng = np.random.default_rng([self.seed, i])
                episodes.append(play(one, workflow, workflow.begin, left, rng))
                progress.update(i + 1, len(planners), {})
            return episodes

        watched = [_DecisionRecorder(workflow, planner) for _ in range(self.executions)]
        mine = executed(self.planner, watched)
        rest = {name: executed(name, [one] * self.executions) for name, one in others.items()}
        return {
            "budget_usd": usd_from_nano(left.nano),
            "deadline_s": seconds if isfinite(seconds) else None,
            "executions": self.executions,
            "parts": [
                _part(workflow, at, [one.starts for one in watched], mine)
                for at in range(len(workflow.parts))
            ],
            "plans": [_row(name, one) for name, one in {self.planner: mine, **rest}.items()],
        }

    def report(self, measured: Record) -> StudyReport:
        seconds = measured["deadline_s"]
        limit = "" if seconds is None else f" and {seconds:g} s"
        budget = dollars(int(self.budget * NANO_PER_USD))
        parts = Table(
            (
                ("Part", lambda row: row["part"]),
                (
                    "first given to",
                    lambda row: f"{row['model']} x {row['samples']}" if row["model"] else "nobody",
                ),
                ("so in", lambda row: f"{row['share']:.0%}" if row["model"] else ""),
                ("starts", lambda row: f"{row['starts']:.1f}"),
                usd("costs, USD", "cost_usd"),
                percent("done", "done", 0),
            ),
            measured["parts"],
        )
        plans = Table(
            (
                ("Plan", lambda row: row["name"]),
                percent("done in time", "done"),
                interval("95 %", "interval"),
                usd("costs, USD", "cost_usd"),
                ("seconds", lambda row: significant(row["seconds"])),
            ),
            measured["plans"],
            bold=(0,),
        )
        return StudyReport(
            f"{self.workflow.name}: {budget}{limit}, {counted(self.executions, 'execution')}",
            (parts, plans),
            measured,
            KEY,
        )


Executed = PlannedEpisode[WorkflowState]


@dataclass(frozen=True)
class FixedPlan:
    """Gives every part to the same model with the same number of samples, again and again."""

    workflow: Workflow
    model: str
    samples: int

    def act(
        self, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
    ) -> int | None:
        """Return the first start of that kind that can be paid, else waiting."""
        del rng  # nothing is drawn
        can = affordable(simulator, state, left)
        starts = _starts(self.workflow, state)
        for at in can:
            if at >= len(starts):
                return at
            place, choice = starts[at]
            start = self.workflow.parts[place].choices[choice]
            if (start.model, start.samples) == (self.model, self.samples):
                return at
        return None


@dataclass(frozen=True)
class _DecisionRecorder:
    workflow: Workflow
    planner: Planner
    starts: list[tuple[int, int]] = field(default_factory=list)
    """Part and choice, in this order."""

    def act(
        self, simulator: Simulator[S], state: S, left: Remaining, rng: np.random.Generator
    ) -> int | None:
        action = self.planner.act(simulator, state, left, rng)
        starts = _starts(self.workflow, state)
        if action is not None and action < len(starts):
            self.starts.append(starts[action])
        return action


def _starts(workflow: Workflow, state: Hashable) -> list[tuple[int, int]]:
    return workflow.starts(state) if isinstance(state, WorkflowState) else []


def _check_possible(workflow: Workflow, left: Remaining) -> None:
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


def _row(name: str, episodes: Sequence[Executed]) -> Record:
    """Return what became of one way to plan; seconds are those of what was done in time."""
    done = [episode.seconds for episode in episodes if episode.value > 0.0]
    spent = float(np.mean([episode.spent_nano for episode in episodes]))
    return {
        "name": name,
        "done": len(done) / len(episodes),
        "interval": binomial_interval(len(done), len(episodes), LEVEL),
        "spent_nano": spent,
        "seconds": float(np.mean(done)) if done else nan,
        "cost_usd": usd_from_nano(spent),
    }


def _part(
    workflow: Workflow,
    place: int,
    starts_of: Sequence[Sequence[tuple[int, int]]],
    episodes: Sequence[Executed],
) -> Record:
    """Return what the planner did about one part, on average over all executions."""
    part, n = workflow.parts[place], len(episodes)
    chosen = [[choice for at, choice in starts if at == place] for starts in starts_of]
    first = Counter(choices[0] for choices in chosen if choices)
    usual, count = first.most_common(1)[0] if first else (0, 0)
    every = [part.choices[choice].expected_nano for choices in chosen for choice in choices]
    return {
        "part": part.name,
        "model": part.choices[usual].model if first else "",
        "samples": part.choices[usual].samples if first else 0,
        "share": count / max(1, first.total()),
        "starts": len(every) / n,
        "expected_nano": sum(every) / n,
        "done": sum(episode.state.done[place] for episode in episodes) / n,
        "cost_usd": usd_from_nano(sum(every) / n),
    }
