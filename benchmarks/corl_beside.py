"""Which spends less at the same accuracy: a controller LLM, or a method on features?

    .venv/bin/python benchmarks/corl_beside.py [CONTROLLER] [--pool four] [--splits 20]

Each model of the pool answers the same drawn questions, and so does the controller, alone and in
each mode. Methods on features choose among the experts and the controller alone; a certificate
chooses among the controller's modes. All are proved alike: those of the part `train` train (nine
tenths anew each time), half of the others prove, half test, drawn anew. Where nothing cheaper is
proved the strongest expert answers and is paid. `--traces FILE` keeps the questions as traces.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from corl_beside_tables import (
    Found,
    Outcome,
    equal_record,
    equal_table,
    fixed_record,
    record,
    table,
)
from corl_recorded import SEED, Data, fixed, recorded_data
from question_router import fit_router
from rich.console import Console

from farthing.errors import FarthingError
from farthing.methods.base import Silent
from farthing.methods.baselines.models import BestSinglePolicy
from farthing.methods.pool import PoolPolicy, frontier
from farthing.process.operating_points import OperatingPoints
from farthing.promises.agreeing import Agreeing, agreement_point
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.parity import Parity
from farthing.promises.paired import Paired, parity_point
from farthing.recommendation.promised_grade import read_for
from farthing.traces.arrays import RIGHT, IntArray, TraceArrays
from farthing_lab.comparison.pools import PER_THOUSAND, Fallback, methods_of, reference_model
from farthing_lab.corl.certificate import modes_policy, role_of
from farthing_lab.corl.pool import pool_of
from farthing_lab.corl.rollouts import PoolSession

DELTA = Fraction(1, 10)
CORL = "CORL, certified mode"
ROUTER = "Router on the question"
ALONE_OR_ALL = ("Always one model", "Best single model", "Always all")
"""Methods that choose nobody; each model alone has a row of its own."""
RESULTS = Path(__file__).parent / "results/corl_beside.json"
Promise = Parity | Agreement
Plays = Callable[[TraceArrays], OperatingPoints]
Fit = Callable[[TraceArrays, int], Plays]
"""Learns from some questions, by a seed; what it returns plays any at every operating point."""


@dataclass(frozen=True)
class Split:
    """Which questions train, prove and test."""

    train: IntArray
    calibrate: IntArray
    test: IntArray


def splits(data: Data, number: int) -> Iterator[Split]:
    """Draw the parts anew: nine tenths of those that train, and the fresh ones in halves."""
    for seed in range(number):
        rng = np.random.default_rng(seed)
        train = rng.permutation(data.train)[: int(0.9 * len(data.train))]
        calibrate, test = np.array_split(rng.permutation(data.fresh), 2)
        yield Split(*map(np.sort, (train, calibrate, test)))


def fits(reference: str) -> dict[str, Fit]:
    """Return every method that chooses among models, by its label, and the plain router."""
    learners = methods_of(reference)

    def of(label: str) -> Fit:
        def fit(train: TraceArrays, seed: int) -> Plays:
            policy = learners[label].fit(train, DELTA, seed, Silent()).policy
            assert isinstance(policy, PoolPolicy)
            return policy.points

        return fit

    return {label: of(label) for label in learners if label not in ALONE_OR_ALL} | {
        ROUTER: fit_router
    }


def chosen_point(asked: Promise, points: OperatingPoints, reference: Fallback) -> int | None:
    """Return the cheapest point that calibration questions prove, if it is below the reference."""
    cost, correct, alone = points.cost_nano, points.correct, reference.cost_nano
    if isinstance(asked, Agreement):
        agreeing = Agreeing(cost, correct, asked.reference or "", reference_nano=alone)
        return agreement_point(agreeing, asked.epsilon, asked.delta)
    may_cost_more = Fraction(asked.epsilon) < 0  # accuracy must rise
    paired = Paired(cost, correct, reference.right, reference_nano=None if may_cost_more else alone)
    return parity_point(paired, asked.epsilon, asked.delta)


@dataclass(frozen=True)
class Judge:
    """Proves a promise and says what came of it."""

    asked: Promise
    alone: Fallback
    """The reference on all questions, by what is right."""
    same: Fallback
    """The same by what is promised."""

    def outcome(self, points: OperatingPoints, graded: OperatingPoints, split: Split) -> Outcome:
        """Prove on the questions to calibrate; measure on those to test.

        Args:
            points: by what is right, on all questions.
            graded: the same points by what is promised.
            split: the parts.
        """
        alone, rows = self.alone, split.calibrate
        reference = Fallback(self.same.cost_nano[rows], self.same.right[rows])
        point = chosen_point(self.asked, graded.take(rows), reference)
        test = split.test
        cost, right, kept = alone.cost_nano, alone.right, self.same.right
        if point is not None:
            cost, right = points.cost_nano[:, point], points.correct[:, point]
            kept = graded.correct[:, point]
        lost = Fraction(int(self.same.right[test].sum() - kept[test].sum()), len(test))
        return Outcome(
            cost=float(cost[test].mean()) * PER_THOUSAND,
            accuracy=float(right[test].mean()),
            saved=1 - int(cost[test].sum()) / int(alone.cost_nano[test].sum()),
            kept=lost <= Fraction(self.asked.epsilon),
            fell_back=point is None,
        )


def compared(data: Data, asked: Promise, number: int) -> Found:
    """Train, prove and test everybody on every split."""
    pool, controlled = (read_for(asked, one, RIGHT) for one in (data.pool, data.controlled))
    reference = asked.reference or ""
    judge = Judge(asked, reference_model(data.pool, reference), reference_model(pool, reference))
    found = Found(defaultdict(list), defaultdict(list), defaultdict(list), {})
    places = [data.controlled.roles.index(role_of(mode)) for mode in data.modes]
    every = BestSinglePolicy(np.array(places, dtype=float))
    for seed, split in enumerate(splits(data, number)):
        policy = modes_policy(controlled.take(split.train), data.modes)
        ours = judge.outcome(policy.points(data.controlled), policy.points(controlled), split)
        found.outcomes[CORL].append(ours)
        modes = every.points(data.controlled.take(split.test))
        for label, fit in fits(reference).items():
            if label in found.skipped:
                continue
            try:
                play = fit(pool.take(split.train), seed)
                points = play(data.pool)
            except FarthingError as problem:
                found.skipped[label] = str(problem)
                continue
            outcome = judge.outcome(points, play(pool), split)
            found.outcomes[label].append(outcome)
            at = modes.correct.mean(axis=0)
            found.equal[label].append([cost_at(points.take(split.test), each) for each in at])
            found.reverse[label].append(cost_at(modes, outcome.accuracy))
        print(f"{named(asked)}: split {seed + 1} of {number}", flush=True)
    return found


def cost_at(points: OperatingPoints, accuracy: float) -> float:
    """Return what an accuracy costs, USD per 1,000: between two points by lot; NaN beyond them."""
    cost, right = points.cost_nano.mean(axis=0) * PER_THOUSAND, points.correct.mean(axis=0)
    kept = frontier(cost, right)
    if accuracy > right[kept[-1]]:
        return float("nan")
    return float(np.interp(accuracy, right[kept], cost[kept]))


def promises(reference: str, gain: Fraction | None) -> list[Promise]:
    """Return parity within two points, agreement on 95 %, and more accuracy where it is asked."""
    found = [
        Parity(reference, Fraction(1, 50), DELTA),
        Agreement(reference, Fraction(1, 20), DELTA),
    ]
    return found if gain is None else [*found, Parity(reference, -gain, DELTA)]


def named(asked: Promise) -> str:
    """Return a promise's kind and epsilon."""
    return f"{type(asked).__name__.lower()} {float(asked.epsilon):g}"


def shown(pool: str, data: Data, number: int, gain: Fraction | None) -> dict[str, Any]:
    """Compare everybody under each promise, print the tables, and return all figures."""
    experts = data.pool.roles[:-1]
    right = data.pool.correct[data.train, 0, : len(experts)].mean(axis=0)
    reference = experts[int(right.argmax())]
    alone = fixed(data, np.random.default_rng(SEED))
    rows = {name: fixed_record(paid, alone[reference]) for name, paid in alone.items()}
    kept: dict[str, Any] = {"reference": reference, "fixed": rows}
    console = Console()
    for asked in promises(reference, gain):
        found = compared(data, asked, number)
        proved = {label: record(each) for label, each in found.outcomes.items()}
        equal = {label: equal_record(found, label) for label in found.equal}
        kept[named(asked)] = {"methods": proved, "equal": equal, "skipped": found.skipped}
        console.print(table(f"{pool}: {named(asked)} with {reference}", rows | proved), "")
        own = [rows[role_of(mode)]["usd_per_1000"] for mode in data.modes]
        console.print(equal_table(data.modes, own, equal), "")
    return kept


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("controller", type=Path, nargs="?")
    arguments.add_argument("--pool")
    arguments.add_argument("--splits", type=int, default=20)
    arguments.add_argument("--train", type=int, default=600)
    arguments.add_argument("--fresh", type=int, default=1_500, help="of each of two parts")
    arguments.add_argument("--gain", type=Fraction, help="accuracy to win, as 0.25")
    arguments.add_argument("--traces", type=Path)
    given = arguments.parse_args()
    chosen = pool_of(given.controller, given.pool).pool
    with PoolSession.of(chosen) as opened:
        data = recorded_data(opened, given.train, given.fresh, given.traces)
    kept = {"splits": given.splits, "questions": [given.train, given.fresh, given.fresh]}
    kept |= shown(chosen.name, data, given.splits, given.gain)
    written = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    written[chosen.name] = kept
    RESULTS.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
