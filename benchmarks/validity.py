"""How often what `recommend` proves is false, where the truth is known.

    .venv/bin/python benchmarks/validity.py [--trainings 20] [--redraws 1000] [--only NAME]

Parity with the large model at confidence 0.9. Methods are trained and their points laid out as
`recommend` does; then proving questions are drawn anew from 20,000, again and again, and each time
all candidates are proved side by side and the cheapest proved is taken. It is false if it loses
epsilon or more on all 20,000. Errors are over trainings. `whole runs` recommend from questions that
are all drawn anew.
"""

import argparse
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from farthing.bundle.base import Bundle
from farthing.methods.base import Dataset, Silent
from farthing.process.operating_points import OperatingPoints
from farthing.promises.chains import prove_all
from farthing.promises.kinds.parity import Parity
from farthing.promises.observed import Facts, PlayedPoints
from farthing.recommendation.cross_fit import beside
from farthing.recommendation.plan import plan_of
from farthing.recommendation.played import PlayedPolicy, operating_points_of, tested
from farthing.recommendation.recommend import recommend
from farthing.recommendation.selection import Trial
from farthing.recommendation.splits import FourWaySplit
from farthing.recommendation.trial import select
from farthing.traces.arrays import NO_ANSWER, FloatArray, IntArray, TraceArrays, joined
from farthing.traces.eligibility import only

ROLES = ("small", "medium", "large")
SKILL = np.array([[0.97, 0.5], [0.98, 0.6], [0.99, 0.96]])
COST_NANO = np.array([100_000, 200_000, 2_000_000])
DELTA = Fraction(1, 10)
WORLD = 20_000


@dataclass(frozen=True)
class Scenario:
    """What questions are like, and how many prove."""

    epsilon: Fraction = Fraction(3, 100)
    train: int = 150
    prove: int = 300
    hard: float = 0.25
    """Share of hard questions, also of those that prove."""
    hard_training: float = 0.25
    """The same of training questions: fewer make training flatter what is cheap."""
    levels: int = 0
    """Confidences that are told apart; 0: all."""
    copies: int = 1
    """How often a proving question is asked."""
    missing: float = 0.0
    """Share of the calls of the medium model that chance left out."""


SCENARIOS = {
    "as it is": Scenario(),
    "heavy ties": Scenario(levels=2),
    "60 prove": Scenario(epsilon=Fraction(8, 100), train=60, prove=60),
    "5,000 prove": Scenario(epsilon=Fraction(1, 50), prove=5_000),
    "copies": Scenario(copies=4),
    "training flatters": Scenario(hard_training=0.05),
    "40 train": Scenario(train=40),
    "nothing may be lost": Scenario(epsilon=Fraction(0), prove=1_000),
    "holes": Scenario(missing=0.3),
}


def pool(n: int, seed: int, of: Scenario, hard: float) -> TraceArrays:
    """Return questions for three models."""
    rng = np.random.default_rng(seed)
    is_hard = rng.random(n) < hard
    right = rng.random((n, 3)) < np.where(is_hard[:, None], SKILL[:, 1], SKILL[:, 0])
    sure = np.clip(np.where(right, 0.85, 0.5) + rng.normal(0, 0.15, (n, 3)), 0.02, 0.98)
    if of.levels:
        sure = np.round(sure * of.levels) / of.levels
    return TraceArrays(
        ids=np.array([f"q{seed}-{i}" for i in range(n)]),
        roles=ROLES,
        models=ROLES,
        answer=np.where(right, 0, rng.integers(1, 6, (n, 3)))[:, None].astype(np.int16),
        correct=right[:, None],
        cost_nano=np.tile(COST_NANO, (n, 1))[:, None],
        signals={"confidence": sure[:, None].astype(np.float32)},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
        content=np.arange(seed * n, (seed + 1) * n, dtype=np.uint64) + 1,
    )


def laid_out(of: Scenario, seed: int) -> list[Trial]:
    """Train and lay points out, as `recommend` does, for so many questions that will prove."""
    train = pool(of.train, 2 * seed + 1, of, of.hard_training)
    prove = pool(of.prove, 2 * seed + 2, of, of.hard)
    rows = np.arange(of.train + of.prove)
    parts = FourWaySplit(rows[: of.train], rows[:0], rows[of.train :], rows[:0])
    plan = plan_of(Dataset("", joined([train, prove])), asked_of(of), seed, parts)
    return [trial for trial in select(plan, None, Silent()).trials if trial.share]


def asked_of(of: Scenario) -> Parity:
    """Return the promise."""
    return Parity("large", of.epsilon, DELTA)


def redrawn(of: Scenario, seed: int, redraws: int) -> list[bool | None]:
    """Return of each redraw whether what is proved is false; None: nothing is proved."""
    world, asked = pool(WORLD, 10**6 + seed, of, of.hard), asked_of(of)
    right, paid = beside(asked, asked.reference, world)
    trials = laid_out(of, seed)
    points = [tested(points_on(trial.bundle, world, trial.row)) for trial in trials]
    loses = [right.mean() - each.correct.mean(axis=0) for each in points]
    facts = Facts("large", right, paid)
    rng, found = np.random.default_rng(seed), list[bool | None]()
    for _ in range(redraws):
        rows = rng.integers(0, WORLD, of.prove)
        chosen = proved(asked, trials, [each.take(rows) for each in points], taken(facts, rows))
        found.append(None if chosen is None else bool(loses[chosen[0]][chosen[1]] >= of.epsilon))
    return found


def points_on(bundle: Bundle, world: TraceArrays, row: FloatArray) -> OperatingPoints:
    """Return what a bundle's points answer."""
    replayed = PlayedPolicy(bundle.policy, bundle.empty).replay(world)
    return operating_points_of(replayed, row)


def taken(facts: Facts, rows: IntArray) -> Facts:
    """Return what is known of some questions."""
    return replace(facts, right=facts.right[rows], alone_nano=facts.alone_nano[rows])


def proved(
    asked: Parity, trials: list[Trial], points: list[PlayedPoints], facts: Facts
) -> tuple[int, int] | None:
    """Return the candidate and its point that are cheapest of those proved side by side."""
    found: dict[int, tuple[int, int]] = {}

    def prove(place: int, share: Fraction) -> bool:
        own = asked.sharing(share)
        evidence = own.evidence(points[place], facts)
        promise: Any = own.prove(evidence, fingerprint="", question_budget_nano=None).promise
        point = promise.point
        found.pop(place, None)
        if point is not None:
            found[place] = int(evidence.cost_nano[:, point].sum()), point
        return point is not None and bool(own.proved(evidence).all())

    prove_all([trial.share for trial in trials], prove)
    if not found:
        return None
    best = min(found, key=lambda place: found[place])
    return best, found[best][1]


def whole_runs(of: Scenario, seed: int) -> list[bool | None]:
    """Return the same of one recommendation from questions that are all drawn anew."""
    n = of.train + of.prove
    log = pool(n, 2 * seed + 1, of, of.hard)
    rng = np.random.default_rng(seed)
    if of.copies > 1:
        log = log.take(np.repeat(np.arange(n), rng.integers(1, 2 * of.copies, n)))
        log = replace(log, ids=np.array([f"r{i}" for i in range(len(log))]))
    dataset = Dataset("", log)
    if of.missing:
        made = np.ones((n, 1, 3), dtype=bool)
        made[:, 0, 1] = rng.random(n) >= of.missing
        answer = np.where(made, log.answer, NO_ANSWER).astype(np.int16)
        log = replace(log, made=made, answer=answer, correct=log.correct & made)
        dataset = Dataset("", log, missing="chance")
    found = recommend(dataset, asked_of(of), seed=seed)
    if not found.bundle.certificate.promises:
        return [None]
    world = pool(WORLD, 10**6 + seed, of, of.hard)
    mine = only(world, found.bundle.origin.roles)
    at = np.array([found.bundle.kappa])
    correct = points_on(found.bundle, mine, at).correct[:, 0]
    return [bool(world.correct[:, 0, 2].mean() - correct.mean() >= of.epsilon)]


def said(name: str, runs: list[list[bool | None]]) -> None:
    """Print how often something was proved, and how often that was false."""
    false = np.array([np.mean([outcome is True for outcome in run]) for run in runs])
    proved_share = np.mean([np.mean([outcome is not None for outcome in run]) for run in runs])
    error = false.std(ddof=1) / np.sqrt(len(false))
    verdict = "" if false.mean() <= float(DELTA) + 3 * error else "  TOO OFTEN"
    print(
        f"| {name} | {proved_share:.3f} | {false.mean():.4f} ± {error:.4f} | {false.max():.3f} |"
        f"{verdict}",
        flush=True,
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--trainings", type=int, default=20)
    arguments.add_argument("--redraws", type=int, default=1_000)
    arguments.add_argument("--whole", type=int, default=50)
    arguments.add_argument("--only", default="")
    given = arguments.parse_args()
    print("| | proved | false | in the worst training |\n| --- | --- | --- | --- |")
    for name, of in SCENARIOS.items():
        if given.only not in name:
            continue
        if not of.missing and of.copies == 1:
            said(name, [redrawn(of, seed, given.redraws) for seed in range(given.trainings)])
        if of.prove <= 1_000:
            said(f"{name}, whole runs", [whole_runs(of, seed) for seed in range(given.whole)])


if __name__ == "__main__":
    main()
