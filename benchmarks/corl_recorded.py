"""The questions of `corl_beside.py`, answered by experts, controller, modes and best plans."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from farthing.tasks.base import Question
from farthing.traces.arrays import BoolArray, IntArray, TraceArrays
from farthing.traces.jsonl import write_traces
from farthing_lab.corl.base import Mode
from farthing_lab.corl.certificate import (
    ALONE,
    alone_of,
    experts_of,
    laid_out,
    modes_of,
    role_of,
    traces_of,
)
from farthing_lab.corl.evaluation import cells_of, every_plan, recorded
from farthing_lab.corl.plan import best
from farthing_lab.corl.rollouts import PoolSession

SEED = 20_251
Paid = tuple[IntArray, BoolArray]
"""What each question costs, and whether it is answered rightly."""


@dataclass(frozen=True)
class Data:
    """The same questions, answered by everybody."""

    modes: tuple[Mode, ...]
    pool: TraceArrays
    """The experts and the controller alone: what methods on features choose among."""
    controlled: TraceArrays
    """The same questions, with the controller in each mode beside the experts."""
    plans: Mapping[str, Paid]
    """The best fixed plan of each cell under each mode, on the fresh questions."""
    train: IntArray
    fresh: IntArray
    """Rows of the questions that train, and of those that nobody has learned from."""


def recorded_data(opened: PoolSession, n_train: int, n: int, keep: Path | None) -> Data:
    """Ask everybody the same questions; n each of the parts that prove and test."""
    sizes = {"train": n_train, "calibrate": n, "test": n}
    drawn = {part: opened.pool.questions.sample(part, size, SEED) for part, size in sizes.items()}
    names, traces = opened.rules.names, []
    for part, questions in drawn.items():
        columns = [
            *experts_of(opened, questions, names),
            alone_of(opened, questions),
            *modes_of(opened, questions, opened.modes),
        ]
        traces += traces_of(opened, questions, part, columns)
        print(f"{part}: {len(questions)} questions asked", flush=True)
    if keep is not None:
        write_traces(keep, traces)
    roles = [*names, ALONE, *map(role_of, opened.modes)]
    fresh = [*drawn["calibrate"], *drawn["test"]]
    return Data(
        modes=opened.modes,
        pool=laid_out(traces, [*names, ALONE]),
        controlled=laid_out(traces, roles),
        plans=best_plans(opened, drawn["train"], fresh),
        train=np.arange(len(drawn["train"])),
        fresh=np.arange(len(drawn["train"]), len(traces)),
    )


def best_plans(
    opened: PoolSession, train: Sequence[Question], fresh: Sequence[Question]
) -> dict[str, Paid]:
    """Choose the best plan of each cell under each mode on some questions, and play others."""
    cells = cells_of(train)
    before, here = (every_plan(opened, recorded(opened, some, cells)) for some in (train, fresh))
    rows, found = np.arange(len(fresh)), {}
    for mode in opened.modes:
        plan = best(before, mode.budget_nano)[here.population.cell]
        found[mode.name] = here.cost_nano[plan, rows], here.right[plan, rows] > 0
    return found


def fixed(data: Data, rng: np.random.Generator) -> dict[str, Paid]:
    """Return who needs no proof, on the fresh questions: each alone, one at random, best plans."""
    cost, right = data.controlled.cost_nano[:, 0], data.controlled.correct[:, 0]
    rows, roles = data.fresh, data.controlled.roles
    experts = data.pool.n_roles - 1
    found = {role: (cost[rows, k], right[rows, k]) for k, role in enumerate(roles)}
    lot = rng.integers(experts, size=len(rows))
    found["an expert by lot"] = cost[rows, lot], right[rows, lot]
    return found | {f"best plan, {name}": paid for name, paid in data.plans.items()}
