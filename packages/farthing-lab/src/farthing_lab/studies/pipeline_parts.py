"""A task in parts, one budget: who does which part, with how many samples; beside even shares.

Half of the recorded tasks choose, and the other half measures what came of it. In place of money
the budget may be tokens: a cap on what a model may write for each part. Recorded replies say how
long each is. One that is longer than its cap is cut off: it takes the cap, and counts as wrong.
Each part goes to the model that is right there most often without a cap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np

from farthing.errors import InputError
from farthing.methods.cards import system
from farthing.money import NANO_PER_USD, dollars, significant, usd_from_nano
from farthing.reports.table import Heading, Record, Table, counted, share_interval
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.methods.allocators.agent_tts import AgentTts, Proposer, Space, even, rule
from farthing_lab.methods.allocators.base import Allocator, ItemBatch, room_nano
from farthing_lab.methods.allocators.lagrangian import LAGRANGIAN
from farthing_lab.methods.allocators.plan_and_budget import (
    PLAN_AND_BUDGET,
    SCHEDULES,
    curve,
    efficiency,
    scheduled,
    shares,
    spent,
    whole,
)
from farthing_lab.studies.part_samples import (
    Ids,
    MeasuredParts,
    PipelinePart,
    in_rows,
    logarithmic,
    measure,
    read_parts,
    shared_ids,
)
from farthing_lab.studies.study import (
    Seed,
    StudyContext,
    StudyOption,
    StudyReport,
    mean_and_half,
    percent,
    usd,
)

CURVES = "Plan-and-Budget, by curves"
CREDIT, PACKED = "Plan-and-Budget, by credit", "knapsack on caps"


@dataclass(frozen=True)
class CappedReplies:
    """Recorded replies to one part, n tasks and K replies each."""

    right: BoolArray
    """[n, K]"""
    length: IntArray
    """[n, K] tokens."""

    def under(self, cap: int) -> tuple[FloatArray, FloatArray]:
        """Return the share of replies that are right under a cap, and what they take, [n] each.

        >>> one = CappedReplies(np.array([[True, True]]), np.array([[3, 9]]))
        >>> one.under(5)
        (array([0.5]), array([4.]))
        """
        kept = self.right & (self.length <= cap)
        return kept.mean(axis=1), np.minimum(self.length, cap).mean(axis=1)

    def take(self, rows: IntArray) -> "CappedReplies":
        return CappedReplies(self.right[rows], self.length[rows])

    def chances(self, caps: IntArray) -> FloatArray:
        """Return the share of replies that are right under each cap, [len(caps)]."""
        return np.array([float(self.under(one)[0].mean()) for one in caps.tolist()])


def cap(parts: Sequence[PipelinePart], tokens: int, *, seed: int = 0) -> Record:
    """Share tokens among the parts of a task in several ways.

    Returns:
        Who does each part, and a row for each way, the last one without any cap: its caps, which
        add up to what was given, and what tasks that chose nothing really take and come to.
    """
    ids = shared_ids(parts)
    if not ids.size:
        raise InputError("the parts' traces have different ids; give each task one id in all files")
    if tokens < len(parts):
        raise InputError(f"{tokens} tokens are fewer than one for each of {len(parts)} parts")
    order = np.random.default_rng(seed).permutation(len(ids))
    learned, measured = order[: (len(order) + 1) // 2], order[(len(order) + 1) // 2 :]
    models, ours, others = {}, [], []
    for part in parts:
        every = {name: _replies(part, name, ids) for name in part.models}
        best = max(every, key=lambda name: float(every[name].right[learned].mean()))
        models[part.name] = best
        ours.append(every[best].take(learned))
        others.append(every[best].take(measured))
    ways = shared(ours, np.array([part.credit for part in parts]), tokens)
    ways["no cap"] = np.array([int(one.length.max()) for one in others])
    rows = []
    for name, caps in ways.items():
        each = [one.under(most) for one, most in zip(others, caps.tolist(), strict=True)]
        right, half = mean_and_half(np.prod([chances for chances, _ in each], axis=0))
        taken = float(sum(lengths.mean() for _, lengths in each))
        rows.append(
            {
                "name": name,
                "caps": dict(zip(models, caps.tolist(), strict=True)),
                "tokens": taken,
                "right": right,
                "right_half_interval": half,
                "e3": efficiency(right, taken),
            }
        )
    return {"tokens": tokens, "tasks": len(measured), "models": models, "rows": rows}


def shared(ours: Sequence[CappedReplies], credit: FloatArray, tokens: int) -> dict[str, IntArray]:
    """Return the caps of each way, [m] each, which add up to the tokens exactly."""
    m, most = len(ours), float(tokens)
    lengths = [part.length[part.length <= tokens - m + 1] for part in ours]
    grids = [np.unique(np.append(length, 1)) for length in lengths]  # where anything changes
    chances = [one.chances(grid) for one, grid in zip(ours, grids, strict=True)]
    fits = [curve(grid.astype(float), got) for grid, got in zip(grids, chances, strict=True)]
    c, beta = np.array(fits).T
    found = {
        EVENLY: whole(np.full(m, most / m), tokens),
        CURVES: whole(shares(c, beta, most, 1.0), tokens),
        CREDIT: whole(shares(credit, np.ones(m), most, 1.0), tokens),
    }
    for name in SCHEDULES:
        found[f"{name} decay"] = whole(most * scheduled(name, credit), tokens)
    width = max(map(len, grids))
    cost, value = np.zeros((m, width), dtype=np.int64), np.zeros((m, width))
    for i, (grid, got) in enumerate(zip(grids, chances, strict=True)):
        cost[i, : len(grid)], value[i, : len(grid)] = grid, got
    batch = logarithmic(ItemBatch(value, cost, cost, cost > 0))
    choice = LAGRANGIAN.allocate(batch, tokens).choice
    caps = cost[np.arange(m), choice]
    found[PACKED] = caps + whole(np.full(m, (tokens - caps.sum()) / m), int(tokens - caps.sum()))
    return found


def _replies(part: PipelinePart, model: str, ids: Ids) -> CappedReplies:
    arrays = in_rows(part, model, ids)
    length = arrays.signals.get("output_tokens")
    if length is None or np.isnan(length[:, :, 0]).any():
        raise InputError(f"{part.name}, {model}: no lengths; record `output_tokens` of each reply")
    return CappedReplies(arrays.correct[:, :, 0], length[:, :, 0].astype(np.int64))


EVENLY = "even shares"
OWN = {"plan-and-budget": "Plan-and-Budget", "agent-tts": "AgentTTS"}
"""Allocators that share a task's budget in a way of their own; others go by `logarithmic`."""
KEY = (
    "USD and right: of tasks that chose nothing. Even shares: each part's best option for an equal "
    "share. A task is right if all its parts are."
)
CAPS_KEY = "Tokens: what a task really takes. E3: the share of right tasks, squared, a token."


@dataclass(frozen=True)
class PipelineParts:
    """Share a task's budget among its parts: which model does each, and with how many samples.

    From recorded samples of every part. Half of the tasks choose, the other half says what that
    costs and how often all parts are right, beside even shares at the same budget. With --tokens
    it is a cap on what the best model of each part may write.

    Example: farthing study parts --parts parts.toml --budget 0.002
    """

    parts: Annotated[
        Path,
        StudyOption("TOML: a section [parts.NAME] for each, with the sample traces of each model."),
    ]
    budget: Annotated[Fraction | None, StudyOption("For one task, all its parts.")] = None
    tokens: Annotated[
        int | None,
        StudyOption("In place of --budget: what a task may write in all its parts.", least=1),
    ] = None
    allocator: Annotated[
        str | None,
        StudyOption(
            "Who shares the budget; others stand beside it.  [default: lagrangian]",
            complete="allocators",
        ),
    ] = None
    trials: Annotated[
        int | None, StudyOption("That AgentTTS makes, on recorded tasks.  [default: 60]", least=1)
    ] = None
    seed: Seed = 0

    def measure(self, context: StudyContext) -> Record:
        del context  # nothing is said on the way
        if (self.budget is None) == (self.tokens is None):
            raise InputError("say what a task may cost: --budget USD, or --tokens N; one of both")
        if self.tokens is not None and (self.allocator is not None or self.trials is not None):
            raise InputError(
                "--tokens lays every way to share them side by side; leave --allocator and "
                "--trials out"
            )
        allocator = self.allocator or "lagrangian"
        system("allocator", allocator)
        parts = read_parts(self.parts)
        if self.budget is None:
            return cap(parts, self.tokens or 0, seed=self.seed)
        nano, trials = int(self.budget * NANO_PER_USD), self.trials or 60
        measured = measure(parts, seed=self.seed)
        return share(measured, nano, allocator, trials=trials, seed=self.seed).record

    def report(self, measured: Record) -> StudyReport:
        draw = _of_tokens if "tokens" in measured else _of_usd
        return draw(measured, self.parts.name)


def _of_usd(found: Record, source: str) -> StudyReport:
    rows = found["rows"]
    ways = Table(
        (
            ("Budget shared by", lambda row: row["name"]),
            usd("USD a task", "cost_usd", 4, none="none fits"),
            percent("right", "right"),
            ("95 %", lambda row: _within_half(row) if row["parts"] else ""),
        ),
        rows,
        bold=(0,),
    )
    ours, even = rows[0]["parts"], next(row for row in rows if row["name"] == EVENLY)["parts"]
    each = Table(
        (("Part", lambda row: row["part"]), *_gets("ours", "USD"), *_gets("even", "even: USD")),
        [{"part": part, "ours": ours[part], "even": even[part]} for part in ours],
    )
    budget = dollars(found["budget_usd"] * NANO_PER_USD)
    return StudyReport(
        f"{source}: {len(ours)} parts, {counted(found['tasks'], 'task')} to measure on, a budget "
        f"of {budget} a task",
        (ways, each),
        found,
        KEY,
    )


def _gets(who: str, heading: str) -> list[Heading]:
    def option(gets: Record) -> str:
        times = gets["samples"]
        return str(gets["model"]) if times == 1 else f"{gets['model']} x{times}"

    return [
        (heading, lambda row: significant(row[who]["expected_cost_usd"], 3)),
        ("gets", lambda row: option(row[who])),
        ("right", lambda row: f"{row[who]['chance']:.1%}"),
    ]


def _of_tokens(found: Record, source: str) -> StudyReport:
    ways = Table(
        (
            ("Shared by", lambda row: row["name"]),
            ("tokens", lambda row: f"{row['tokens']:.1f}"),
            percent("right", "right"),
            ("95 %", _within_half),
            ("E3 x 1000", lambda row: f"{1000 * row['e3']:.2f}"),
            ("caps", lambda row: " ".join(map(str, row["caps"].values()))),
        ),
        found["rows"],
    )
    who = ", ".join(f"{part} ({model})" for part, model in found["models"].items())
    return StudyReport(
        f"{source}: {len(found['models'])} parts, {counted(found['tasks'], 'task')} to measure on, "
        f"{counted(found['tokens'], 'token')} a task",
        (ways, f"Caps are of {who}."),
        found,
        CAPS_KEY,
    )


def _within_half(row: Record) -> str:
    right, half = row["right"], row["right_half_interval"]
    return share_interval((max(0.0, right - half), min(1.0, right + half)))


@dataclass(frozen=True)
class SharedRow:
    """One way to share the budget."""

    name: str
    choice: IntArray | None
    """[m]; None: it does not fit the budget."""
    expected_nano: int = 0
    """A task, by the tasks that chose."""
    cost_nano: float = 0.0
    """A task, by the others, as are the next two."""
    right: float = 0.0
    half_interval: float = 0.0


@dataclass(frozen=True)
class SharedBudget:
    """All ways, and what each part gets."""

    measured: MeasuredParts
    batch: ItemBatch
    """Parts and options by the tasks that chose."""
    budget_nano: int
    rows: tuple[SharedRow, ...]
    """That of the allocator that was asked for first."""
    tasks: int
    """Measured on."""

    @property
    def record(self) -> Record:
        return {
            "budget_usd": usd_from_nano(self.budget_nano),
            "tasks": self.tasks,
            "same_tasks_in_all_parts": self.measured.together,
            "rows": [self._row(row) for row in self.rows],
        }

    def _row(self, row: SharedRow) -> Record:
        if row.choice is None:
            return {"name": row.name, "parts": None}
        measured, batch = self.measured, self.batch
        return {
            "name": row.name,
            "cost_usd": usd_from_nano(row.cost_nano),
            "expected_cost_usd": usd_from_nano(row.expected_nano),
            "right": row.right,
            "right_half_interval": row.half_interval,
            "parts": {
                name: {
                    "model": measured.models[int(measured.model[i, k])],
                    "samples": int(measured.samples[i, k]),
                    "expected_cost_usd": usd_from_nano(int(batch.expected_nano[i, k])),
                    "chance": float(batch.value[i, k]),
                }
                for i, (name, k) in enumerate(zip(measured.parts, row.choice.tolist(), strict=True))
            },
        }


def share(
    measured: MeasuredParts,
    budget_nano: int,
    allocator: str = "lagrangian",
    *,
    proposer: Proposer = rule,
    trials: int = 60,
    seed: int = 0,
) -> SharedBudget:
    """Share a budget a task among its parts in several ways.

    The budget is for a task's expected cost. The row of `allocator` comes first. AgentTTS tries
    what `proposer` says, on the recorded tasks to choose by, so that no trial of it costs anything.
    """
    ours, others = measured.half("choose", seed), measured.half("measure", seed)
    batch = ours.batch()
    if batch.least_nano > budget_nano:
        raise InputError(
            f"the budget is {dollars(budget_nano)} a task, and the cheapest options of its "
            f"{len(batch)} parts cost {dollars(batch.least_nano)}; give at least that"
        )
    space = measured.space(batch, budget_nano)

    def chosen_by(name: str) -> IntArray:
        if name == "plan-and-budget":
            return PLAN_AND_BUDGET.shared(batch, budget_nano, measured.credit)
        if name == "agent-tts":
            search = AgentTts(trials, proposer, seed)
            return search.maximise(space, lambda k: float(ours.tasks(k).mean())).choice
        other: Allocator = system("allocator", name)
        return other.allocate(logarithmic(batch), budget_nano).choice

    named = list(dict.fromkeys([allocator, "lagrangian", *OWN]))
    choices: list[tuple[str, IntArray | None]] = [
        *((OWN.get(name, name), chosen_by(name)) for name in named),
        (EVENLY, evenly(batch, budget_nano)),
        *_alone(measured, space, ours),
    ]
    rows = tuple(_row(name, choice, batch, others) for name, choice in choices)
    return SharedBudget(measured, batch, budget_nano, rows, others.right[0].shape[1])


def evenly(batch: ItemBatch, budget_nano: int) -> IntArray:
    """Return each part's best option within an even share, [m]; what is left is passed on.

    A part whose cheapest option costs more than that gets it, and the others share the rest.
    """
    room_nano(batch, budget_nano)
    least = batch.expected_nano[np.arange(len(batch)), batch.cheapest]
    dear = np.zeros(len(batch), dtype=bool)
    while True:
        left = budget_nano - int(least[dear].sum())
        each = np.where(dear, least, left / max(1, int((~dear).sum())))
        if not (more := (least > each) & ~dear).any():
            break
        dear |= more
    return spent(batch, np.maximum(least, whole(each, budget_nano)), budget_nano)


def _alone(
    measured: MeasuredParts, space: Space, ours: MeasuredParts
) -> list[tuple[str, IntArray | None]]:
    """Return the best model for everything, and the cheapest option of each part."""
    everyone = [
        np.array(options)
        for options in even(space)
        if len({int(space.model[i, k]) for i, k in enumerate(options)}) == 1 and space.fits(options)
    ]
    best = max(everyone, key=lambda options: ours.tasks(options).mean(), default=None)
    name = "one model for all"
    if best is not None:
        name += f": {measured.models[int(space.model[0, best[0]])]}"
    return [(name, best), ("the cheapest of each part", space.batch.cheapest)]


def _row(name: str, choice: IntArray | None, batch: ItemBatch, others: MeasuredParts) -> SharedRow:
    if choice is None:
        return SharedRow(name, None)
    pairs = zip(others.cost_nano, choice.tolist(), strict=True)
    cost = sum(float(costs[k].mean()) for costs, k in pairs)
    return SharedRow(name, choice, batch.cost_of(choice), cost, *others.interval(choice))
