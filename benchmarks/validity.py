"""How often what `recommend` proves is false, where the truth is known.

    .venv/bin/python benchmarks/validity.py [--trainings 20] [--redraws 1000] [--only NAME]

Parity with the large model at confidence 0.9, or a selective promise. Methods are trained and their
points laid out as `recommend` does; then proving questions are drawn anew from 20,000, again and
again, and each time all candidates are proved side by side and the cheapest proved is taken. It is
false if on all 20,000 it loses epsilon or more or, where answers may be withheld, if more than
alpha of those given are wrong. Errors are over trainings. `whole runs` recommend from questions
that are all drawn anew.
"""

import argparse
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from farthing.bundle.base import Bundle
from farthing.errors import UnprovedError
from farthing.methods.base import Dataset, Silent
from farthing.methods.selective.policy import SelectivePolicy
from farthing.process.operating_points import OperatingPoints
from farthing.promises.chains import prove_all
from farthing.promises.kinds.parity import Parity
from farthing.promises.kinds.selective import Selective
from farthing.promises.observed import Facts, PlayedPoints
from farthing.recommendation.certify import Contender
from farthing.recommendation.cross_fit import beside
from farthing.recommendation.escalation import EscalationModel
from farthing.recommendation.plan import plans_of
from farthing.recommendation.played import PlayedPolicy, Questions, operating_points_of, tested
from farthing.recommendation.recommend import recommend
from farthing.recommendation.splits import as_played
from farthing.recommendation.trial import select
from farthing.traces.arrays import (
    NO_ANSWER,
    NO_SPLIT,
    BoolArray,
    FloatArray,
    IntArray,
    TraceArrays,
    joined,
)
from farthing.traces.eligibility import eligible, only

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
    alpha: Fraction | None = None
    """Share of the answers given that may be wrong; None: parity is promised."""


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
    "selective": Scenario(alpha=Fraction(1, 20)),
    "selective, 5,000 prove": Scenario(alpha=Fraction(1, 20), prove=5_000),
    "selective, training flatters": Scenario(alpha=Fraction(1, 20), hard_training=0.05),
    "selective, heavy ties": Scenario(alpha=Fraction(1, 10), levels=2),
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


@dataclass(frozen=True)
class Candidate:
    """A trained method, and what its points come to on all questions there are."""

    asked: Parity | Selective
    """The promise, at the candidate's share of delta."""
    points: PlayedPoints
    facts: Facts
    false: BoolArray
    """[G] whether what is promised is false of each point."""
    total_nano: IntArray
    """[n, G] what each costs, with another's answer where none is given."""
    whole: bool
    """Whether it asks only models that were asked every question."""


def candidates(of: Scenario, seed: int) -> list[Candidate]:
    """Train and lay points out, as `recommend` does, for so many questions that will prove."""
    train = pool(of.train, 2 * seed + 1, of, of.hard_training)
    prove = pool(of.prove, 2 * seed + 2, of, of.hard)
    log = joined([train, prove])
    log = replace(log, split=np.repeat(np.array([0, NO_SPLIT], np.int8), [of.train, of.prove]))
    log = with_holes(log, of, np.random.default_rng(seed)) if of.missing else log
    missing = "chance" if of.missing else None
    known = Dataset("", log, missing=missing, reference="large")
    plans = plans_of(known, asked_of(of), eligible(log, "large", missing), seed, holdout=0)
    world = pool(WORLD, 10**6 + seed, of, of.hard)
    return [
        played(contender, world, of)
        for plan in plans
        for _, contender in select(plan, None, Silent()).contenders()
    ]


def with_holes(log: TraceArrays, of: Scenario, rng: np.random.Generator) -> TraceArrays:
    """Return questions of which chance asked the medium model some."""
    made = np.ones((len(log), 1, 3), dtype=bool)
    made[:, 0, 1] = rng.random(len(log)) >= of.missing
    answer = np.where(made, log.answer, NO_ANSWER).astype(np.int16)
    return replace(log, made=made, answer=answer, correct=log.correct & made)


def played(contender: Contender, world: TraceArrays, of: Scenario) -> Candidate:
    """Return what a candidate's points come to."""
    bundle, asked, row = contender.bundle, contender.asked, contender.laid_out.row
    mine = only(world, [role for role in ROLES if role in contender.prove.recorded.roles])
    part = Questions(mine, as_played("the world", bundle, mine))
    points = tested(points_on(bundle, part.played, row))
    right, paid = beside(asked, "large", mine)
    facts = Facts("large", right, paid)
    total = points.spent
    if isinstance(bundle.policy, SelectivePolicy):
        extra = EscalationModel.of(part, "large").extra_nano(bundle.policy.calls_made(part.played))
        total = total + np.where(points.answered, 0, extra[:, None])
        wrong = (points.answered & ~points.correct).sum(axis=0)
        false = wrong > float(of.alpha) * points.answered.sum(axis=0)
    else:
        false = right.mean() - points.correct.mean(axis=0) >= of.epsilon
    return Candidate(asked, points, facts, false, total, "medium" not in mine.roles)


def asked_of(of: Scenario) -> Parity | Selective:
    """Return the promise."""
    if of.alpha is not None:
        return Selective(1 - of.alpha, DELTA)
    return Parity("large", of.epsilon, DELTA)


def redrawn(of: Scenario, seed: int, redraws: int) -> list[bool | None]:
    """Return of each redraw whether what is proved is false; None: nothing is proved."""
    everyone, rng, found = candidates(of, seed), np.random.default_rng(seed), list[bool | None]()
    for _ in range(redraws):
        rows = rng.integers(0, WORLD, of.prove)
        asked = rng.random(of.prove) >= of.missing  # of these the medium model as well
        found.append(proved(everyone, rows, rows[asked]))
    return found


def points_on(bundle: Bundle, world: TraceArrays, row: FloatArray) -> OperatingPoints:
    """Return what a bundle's points answer."""
    replayed = PlayedPolicy(bundle.policy, bundle.empty).replay(world)
    return operating_points_of(replayed, row)


def taken(facts: Facts, rows: IntArray) -> Facts:
    """Return what is known of some questions."""
    return replace(facts, right=facts.right[rows], alone_nano=facts.alone_nano[rows])


def proved(everyone: list[Candidate], rows: IntArray, common: IntArray) -> bool | None:
    """Return whether the cheapest of those proved side by side is falsely proved; None: none is.

    Args:
        everyone: the candidates.
        rows: the questions that prove.
        common: those of them that every model was asked, on which costs are compared.
    """
    found: dict[int, int] = {}

    def prove(place: int, share: Fraction) -> bool:
        one = everyone[place]
        mine, own = rows if one.whole else common, one.asked.sharing(share)
        evidence = own.evidence(one.points.take(mine), taken(one.facts, mine))
        promise: Any = own.prove(evidence, fingerprint="", question_budget_nano=None).promise
        found.pop(place, None)
        if promise.point is not None:
            found[place] = promise.point
        return promise.point is not None and bool(own.proved(evidence).all())

    prove_all([one.asked.share for one in everyone], prove)
    if not found:
        return None
    best = min(found, key=lambda place: everyone[place].total_nano[common, found[place]].sum())
    return bool(everyone[best].false[found[best]])


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
        dataset = Dataset("", with_holes(log, of, rng), missing="chance")
    try:
        found = recommend(dataset, asked_of(of), reference="large", seed=seed)
    except UnprovedError:
        return [None]
    if not found.bundle.certificate.promises:
        return [None]
    world = pool(WORLD, 10**6 + seed, of, of.hard)
    mine = as_played("the world", found.bundle, only(world, list(found.models)))
    points = points_on(found.bundle, mine, np.array([found.bundle.kappa]))
    correct, given = points.correct[:, 0], points.answered[:, 0]
    if of.alpha is not None:
        return [bool(correct[given].mean() < 1 - of.alpha)]
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
        if of.copies == 1:
            said(name, [redrawn(of, seed, given.redraws) for seed in range(given.trainings)])
        if of.prove <= 1_000:
            said(f"{name}, whole runs", [whole_runs(of, seed) for seed in range(given.whole)])


if __name__ == "__main__":
    main()
