"""Plans of a workflow side by side: how often it is done within its budget and its deadline."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from math import inf, isfinite
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import Progress as MethodProgress
from farthing.methods.cards import system
from farthing.money import NANO_PER_USD, dollars, significant, usd_from_nano
from farthing.promises.statistics.binomial import binomial_interval
from farthing.reports.table import Table, counted, share_interval
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
from farthing_lab.studies.study import LEVEL, Seed, StudyContext, StudyOption, StudyReport

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

    def measure(self, context: StudyContext) -> "PlanComparison":
        if self.deadline is not None and not self.deadline > 0.0:
            raise InputError(f"the deadline is {self.deadline:g} s; give more than 0")
        planner: Planner = system("planner", self.planner)
        seconds = inf if self.deadline is None else self.deadline
        return compare_plans(
            read_workflow(self.workflow),
            Remaining(int(self.budget * NANO_PER_USD), seconds),
            (self.planner, planner),
            self.executions,
            self.seed,
            context.progress,
        )

    def report(self, measured: "PlanComparison") -> StudyReport:
        left, executions = measured.left, counted(measured.executions, "execution")
        timed = isfinite(left.seconds)
        limit = f" and {left.seconds:g} s" if timed else ""
        parts = Table(
            (
                ("Part", lambda r: r["part"]),
                (
                    "first given to",
                    lambda r: f"{r['model']} x {r['samples']}" if r["model"] else "nobody",
                ),
                ("so in", lambda r: f"{r['share']:.0%}" if r["model"] else ""),
                ("starts", lambda r: f"{r['starts']:.1f}"),
                ("costs, USD", lambda r: significant(r["cost_usd"])),
                ("done", lambda r: f"{r['done']:.0%}"),
            ),
            [_in_usd(asdict(row), "expected_nano") for row in measured.parts],
        )
        plans = Table(
            (
                ("Plan", lambda r: r["name"]),
                ("done in time", lambda r: f"{r['done']:.1%}"),
                ("95 %", lambda r: share_interval(r["interval"])),
                ("costs, USD", lambda r: significant(r["cost_usd"])),
                ("seconds", lambda r: significant(r["seconds"])),
            ),
            [_in_usd(asdict(row), "spent_nano") for row in measured.rows],
            bold=(0,),
        )
        return StudyReport(
            f"{self.workflow.name}: {dollars(left.nano)}{limit}, {executions}",
            (parts, plans),
            {
                "budget_usd": usd_from_nano(left.nano),
                "deadline_s": left.seconds if timed else None,
                "executions": measured.executions,
                "parts": parts.records,
                "plans": plans.records,
            },
            KEY,
        )


def _in_usd(record: dict[str, Any], nano: str) -> dict[str, Any]:
    return {**record, "cost_usd": usd_from_nano(record.pop(nano))}


@dataclass(frozen=True)
class PlanRow:
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
class PartRow:
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
class PlanComparison:
    """A planner beside plans that do not simulate."""

    left: Remaining
    executions: int
    parts: tuple[PartRow, ...]
    rows: tuple[PlanRow, ...]


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


def compare_plans(
    workflow: Workflow,
    left: Remaining,
    planner: tuple[str, Planner],
    executions: int,
    seed: int,
    progress: Callable[[str], MethodProgress],
) -> PlanComparison:
    """Execute a workflow so often under a planner, and under plans that do not simulate.

    Execution i of every plan begins with the same seed.
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

    def executed(
        name: str, way: Callable[[], Planner]
    ) -> list[tuple[Planner, PlannedEpisode[WorkflowState]]]:
        played = []
        report = progress(name)
        for i in range(executions):
            planner, rng = way(), np.random.default_rng([seed, i])
            played.append((planner, play(planner, workflow, workflow.begin, left, rng)))
            report.update(i + 1, executions, {})
        return played

    mine = executed(planner[0], lambda: _DecisionRecorder(workflow, planner[1]))
    kinds = {(start.model, start.samples) for part in workflow.parts for start in part.choices}
    others: dict[str, Planner] = {
        "even share": UNPLANNED,
        "greedy": STEP_BY_STEP,
        **{f"all {m} x {k}": FixedPlan(workflow, m, k) for m, k in sorted(kinds)},
    }
    rows = [_row(planner[0], mine)]
    for name, other in others.items():
        rows.append(_row(name, executed(name, lambda other=other: other)))  # type: ignore[misc]
    return PlanComparison(left, executions, _parts(workflow, mine), tuple(rows))


def _row(name: str, played: Sequence[tuple[Planner, PlannedEpisode[WorkflowState]]]) -> PlanRow:
    episodes = [episode for _, episode in played]
    done = [episode for episode in episodes if episode.value > 0.0]
    seconds = float(np.mean([episode.seconds for episode in done])) if done else float("nan")
    return PlanRow(
        name,
        len(done) / len(episodes),
        binomial_interval(len(done), len(episodes), LEVEL),
        float(np.mean([episode.spent_nano for episode in episodes])),
        seconds,
    )


def _parts(
    workflow: Workflow, played: Sequence[tuple[Planner, PlannedEpisode[WorkflowState]]]
) -> tuple[PartRow, ...]:
    starts_of = [planner.starts for planner, _ in played if isinstance(planner, _DecisionRecorder)]
    rows = []
    for place, part in enumerate(workflow.parts):
        chosen = [[choice for at, choice in starts if at == place] for starts in starts_of]
        first = Counter(choices[0] for choices in chosen if choices)
        usual, count = first.most_common(1)[0] if first else (0, 0)
        every = [part.choices[choice].expected_nano for choices in chosen for choice in choices]
        rows.append(
            PartRow(
                part=part.name,
                model=part.choices[usual].model if first else "",
                samples=part.choices[usual].samples if first else 0,
                share=count / max(1, first.total()),
                starts=len(every) / len(played),
                expected_nano=sum(every) / len(played),
                done=sum(episode.state.done[place] for _, episode in played) / len(played),
            )
        )
    return tuple(rows)
