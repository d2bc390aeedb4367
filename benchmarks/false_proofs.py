"""How often something false is proved, where the truth is known and lies on the border.

    .venv/bin/python benchmarks/false_proofs.py [--runs 200] [--only TEXT]

Every setting promises what is just false in truth, or further from it, so each proof is a false
one, and delta bounds how often it may come. Counts are drawn for the provers themselves. Recorded
calls with holes are drawn from 20,000 known questions, and are read and proved as `calibrate` does.
Of what takes long, a fifth or a tenth of the runs are made. Exit code 1: a rate is exceeded.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from missing_calls import lacking
from msgspec import structs
from scipy import stats
from validity import Scenario
from validity import pool as three_models

import farthing as ft
from farthing.errors import FarthingError
from farthing.methods.base import Dataset
from farthing.methods.selective.learner import confident
from farthing.promises.agreeing import Agreeing, agreement_point
from farthing.promises.answers import Answers, selective_point
from farthing.promises.kinds.budget import Spending, budget_point
from farthing.promises.kinds.escalated import PassedOn, escalated_point
from farthing.promises.paired import Paired, parity_point
from farthing.promises.statistics.clusters import Clusters
from farthing.recommendation import splits
from farthing.recommendation.escalation import EscalationModel
from farthing.recommendation.played import (
    PlayedPolicy,
    ProvingQuestions,
    Questions,
    TrainingQuestions,
    operating_points_of,
)
from farthing.recommendation.promised_grade import read_for
from farthing.recommendation.prove import LaidOut, prove
from farthing.recommendation.prove_selective import laid_out_by
from farthing.recommendation.recalibrate import recalibrate
from farthing.runtime.tried import at_next_look
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, TraceArrays
from farthing.traces.eligibility import asked_all, only
from farthing.traces.store import Store
from farthing_lab.promises.weighted import Weighted, weighted_threshold

SEED = 7_350_000  # far from the seeds of the tests
WORLD = 20_000
ROLES = ("small", "large")
TENTH = Fraction(1, 10)
TOO_OFTEN = 0.001  # the p-value of the binomial test below which a rate is exceeded
Rng = np.random.Generator
Run = Callable[[Rng], Any]  # returns whether what is false was proved, or the bundle
Setting = tuple[str, Run, float, int]  # what is run, how often it may be proved, one of k runs


def counts() -> Iterator[Setting]:
    """The provers, on counts drawn at the very border."""
    for n, epsilon, apart, delta in (
        *((n, epsilon, 0.2, 0.1) for n in (40, 100, 400) for epsilon in (0.05, 0.0, -0.05)),
        *((100, 0.05, apart, delta) for apart, delta in ((0.06, 0.1), (0.2, 0.01), (0.2, 0.3))),
    ):
        name = f"6 parity, n {n}, epsilon {epsilon:g}, {apart:g} apart, delta {delta:g}"
        for hidden in (0, 2):
            run = parity(n, epsilon, apart, delta, hidden)
            yield f"{name}{', 2 grades hidden' if hidden else ''}", run, delta, 1
    for n, delta in ((40, 0.1), (100, 0.01), (400, 0.3)):
        for of in (agreement, selective, escalated, requests):
            yield f"{of.__name__}, n {n}, delta {delta}", partial(of, n, delta), delta, 1
        for mean in (0.05, 0.5, 1.0):
            run = partial(budget, n, mean, delta)
            yield f"6 budget {mean:g} of the most, n {n}, delta {delta}", run, delta, 1
    for weight in (1.0, 0.1):
        yield f"6 coverage, all weights {weight:g}", partial(weighted, weight), 0.1, 1


def parity(n: int, epsilon: float, apart: float, delta: float, hidden: int) -> Run:
    """As much is lost as may be; who hides grades counts as lost what that helps to prove."""
    chances = [(apart + epsilon) / 2, (apart - epsilon) / 2, 1 - apart]

    @cache
    def proves(lost: int, won: int) -> bool:
        right, ours = np.arange(n) >= won, (np.arange(n) < n - lost)[:, None]
        paired = Paired(np.ones((n, 1), int), ours, right)
        return parity_point(paired, str(epsilon), str(delta)) is not None

    def run(rng: Rng) -> bool:
        lost, won, neither = (int(number) for number in rng.multinomial(n, chances))
        return any(proves(lost + more, won) for more in range(1 + min(hidden, neither)))

    return run


def agreement(n: int, delta: float, rng: Rng) -> bool:
    """A twentieth is answered otherwise, and a hair less is promised."""
    agreeing = Agreeing(np.ones((n, 1), int), rng.random((n, 1)) >= 0.05, "large")
    return agreement_point(agreeing, "0.0499999", str(delta)) is not None


def selective(n: int, delta: float, rng: Rng) -> bool:
    """A tenth of the answers given is wrong, at each of three thresholds."""
    answered = rng.random((n, 1)) < [0.4, 0.6, 0.9]
    right = np.broadcast_to(rng.random((n, 1)) >= 0.1, answered.shape)
    return selective_point(Answers(answered, right), "0.0999999", str(delta)) is not None


def escalated(n: int, delta: float, rng: Rng) -> bool:
    """Answers given keep their level; with the rest passed on a twentieth is lost."""
    answered, wrong = rng.random((n, 1)) < 0.8, rng.random((n, 1)) < 0.0625
    some = Answers(answered, ~wrong, cost_nano=np.ones((n, 1), int))
    passed = PassedOn(some, np.ones(n, bool), "large")
    return escalated_point(passed, "0.2", "0.05", str(delta)) is not None


def requests(n: int, delta: float, rng: Rng) -> bool:
    """Questions are asked one to five times, with one answer each; a twentieth of them is lost."""
    question = np.repeat(np.arange(n), rng.integers(1, 6, n))
    ours, right = (rng.random(n) >= 0.05)[question, None], np.ones(len(question), bool)
    paired = Paired(np.ones(ours.shape, int), ours, right, clusters=Clusters(question, most=5))
    return parity_point(paired, "0.05", str(delta)) is not None


def budget(n: int, mean: float, delta: float, rng: Rng) -> bool:
    """A question costs the most or nothing, and in expectation what it is to stay below."""
    cost = np.where(rng.random((n, 1)) < mean, 1_000, 0)
    spending = Spending(cost, cost >= 0, 1_000)
    return budget_point(spending, round(1_000 * mean), str(delta)) is not None


def weighted(weight: float, rng: Rng) -> bool:
    """Return whether a question is missed, which takes the place of a false proof."""
    scores = rng.random(100)
    sample = Weighted(scores[1:], np.full(99, weight), weight)
    return bool(scores[0] < weighted_threshold(sample, "0.1").kappa)


def pool(n: int, seed: int) -> TraceArrays:
    """Return questions that both models were asked, with ties among their confidences."""
    return only(three_models(n, SEED + seed, Scenario(levels=8), 0.25), ROLES)


def drawn(of: TraceArrays, n: int, rng: Rng) -> TraceArrays:
    """Return so many questions of a world, each a new one."""
    content = rng.integers(1, 2**63, n, dtype=np.uint64)
    new = of.take(rng.integers(0, len(of), n))
    return replace(new, ids=np.array([f"n{i}" for i in range(n)]), content=content)


def answers(of: TraceArrays, right: BoolArray, failed: BoolArray) -> TraceArrays:
    """Return the questions with other answers, [n, 2] right or not; some, [n], have none at all."""
    there = ~failed[:, None, None]
    answer = np.where(there, np.where(right[:, None], 0, of.answer.clip(1)), NO_ANSWER)
    return replace(of, answer=answer.astype(np.int16), correct=right[:, None] & there)


HOLES = {
    "no hole": (False, False),
    "small missing where wrong": (True, False),
    "large missing where wrong": (False, True),
    "both missing where wrong": (True, True),
    "nested": (True, True),
}


def asked(of: TraceArrays, kind: str, rng: Rng) -> BoolArray:
    """Return which calls were made, [n, 2]; of the others 60 % are missing, by a lot a question."""
    out = rng.random((len(of), 1)) < 0.6
    made = of.correct[:, 0] | ~(np.array(HOLES[kind]) & out)
    return made & made[:, 1:] if kind == "nested" else made


def holes() -> Iterator[Setting]:
    """Promises at the worst, about the questions that the reference was asked."""
    for what in ("parity", "agreement", "selective", "escalated"):
        for kind in HOLES:
            for n in (100, 400):
                run = at_worst(what, kind, n, 1, 0.0)
                yield f"1 {what} at worst, {kind}, n {n}", run, 0.1, 1
        yield f"1 {what} at worst, small is free", at_worst(what, "nested", 400, 0, 0.0), 0.1, 1
        run = at_worst(what, "no hole", 400, 1, 0.15)
        yield f"2 {what}, 15 % without an answer", run, 0.1, 1


def at_worst(what: str, kind: str, n: int, price: int, failed: float) -> Run:
    """A policy at one threshold is promised a little more than is true of it in the world."""
    made = partial(border, what, kind, price, failed)
    return lambda rng: made().proves(drawn(made().recorded, n, rng))


@dataclass(frozen=True)
class Border:
    """A trained policy at one threshold, its false promise, and the world with its holes."""

    bundle: Any
    asked: Any
    train: TrainingQuestions
    laid: LaidOut
    recorded: TraceArrays

    def proves(self, log: TraceArrays) -> bool:
        """Return whether the promise is proved of recorded questions, read as `calibrate` does."""
        some, _ = asked_all(log, splits.models_of(self.bundle, self.asked, log), "worst")
        graded = read_for(self.asked, some, self.bundle.origin.grade)
        part = ProvingQuestions(graded, splits.as_played("", self.bundle, graded))
        found = prove(self.asked, self.bundle, self.train, part, None, self.laid)
        return found.certificate.promises


@cache
def border(what: str, kind: str, price: int, failed: float) -> Border:
    """Train a policy, and promise a little more than is true of it."""
    rng = np.random.default_rng([SEED, len(what), len(kind)])
    train, world = (replace(one, cost_nano=one.cost_nano * [price, 1]) for one in pools())
    world = answers(world, world.correct[:, 0], rng.random(WORLD) < failed)
    made = asked(world, kind, rng)
    grade = "same as large" if what == "agreement" else "right"
    bundle = ft.fit("conformal-arbitrage", traces(train), grade=grade).bundle
    row = np.array([0.9])
    if what in {"selective", "escalated"}:
        played = splits.as_played("", bundle, train)
        policy = confident(bundle.policy, played, bundle.empty, TENTH).policy
        row = laid_out_by(policy, TrainingQuestions(train, played), TENTH)[-1:]
        bundle = structs.replace(bundle, policy=policy, empty="allow")
    promise = false_of(what, bundle, world.take(np.flatnonzero(made[:, 1])), row)
    known = read_for(promise, train, bundle.origin.grade)
    trained = TrainingQuestions(known, splits.as_played("", bundle, known))
    return Border(bundle, promise, trained, LaidOut(row, "the policy"), lacking(world, made))


@cache
def pools() -> tuple[TraceArrays, TraceArrays]:
    """Return what trains, and the world."""
    return pool(300, 1), pool(WORLD, 2)


def traces(of: TraceArrays, missing: Any = None) -> ft.Traces:
    """Return questions as the library takes them."""
    return ft.Traces(Dataset("", of, missing=missing))


def false_of(what: str, bundle: Any, truth: TraceArrays, row: FloatArray) -> Any:
    """Return a promise that one question more would have kept, of those whose truth is given."""
    trial = ft.Agreement("large") if what == "agreement" else ft.Parity("large")
    graded = read_for(trial, truth, bundle.origin.grade)
    part = Questions(graded, splits.as_played("", bundle, graded))
    points = operating_points_of(PlayedPolicy(bundle.policy, bundle.empty).replay(part.played), row)
    right, given, n = points.correct[:, 0], points.answered[:, 0], len(truth)
    if what == "parity":
        return ft.Parity("large", Fraction(int(truth.correct[:, 0, 1].sum() - right.sum()), n))
    if what == "agreement":
        return ft.Agreement("large", Fraction(int((~right | ~given).sum()) - 1, n))
    wrong = Fraction(int((given & ~right).sum()) - 1, int(given.sum()))
    if what == "selective":
        return ft.Selective(1 - wrong, TENTH)
    theirs = EscalationModel.of(part, "large").right
    lost = int((theirs & given).sum() - (right & given).sum())  # the other promise is kept
    return ft.Selective(1 - wrong - TENTH, TENTH, "large", Fraction(max(lost, 1), n))


def texts() -> Iterator[Setting]:
    """Proofs from texts, and whole runs."""
    for asks, grade in ((ft.Parity, "right"), (ft.Agreement, "same as large")):
        yield f"3 {asks.kind}, 60 questions, ten wordings each", wordings(asks, grade), 0.1, 5
    for asked_for, rates, failed in (  # half the gain of those answered; the same where answered
        (ft.Parity("large", Fraction(-1, 20)), [0.9, 0.8], 0.5),
        (ft.Agreement("large", Fraction(3, 25)), [1.0, 1.0], 0.15),
    ):
        name = f"2 {asked_for.kind}, {failed:.0%} without an answer, recommended"
        yield name, partial(unanswered, asked_for, rates, failed), 0.1, 10
    yield "4 what proved proves again", partial(read_again, side_by_side=False), 0.1, 5
    yield "4 what chose proves again", partial(read_again, side_by_side=True), 0.1, 10
    yield "4 the best of five looks at a store", looks, 0.139, 1
    for gold in ("7.0", "seven", "7 %", "nan", "(B)"):
        yield f"5 gold {gold} beside 7", partial(gold_apart, gold), 0.1, 10
    yield "1 holes and a deadline", deadline, 0.1, 10


VARIANTS = ("{}", "{} ", "  {}", "{}?", "{}.", "{}\n", "{} .", "{}!", " {} ", "{}..")


def wordings(promise: Any, grade: str) -> Run:
    """The small model loses a tenth of the questions, and answers the wordings of one alike."""
    policy = cache(lambda: ft.fit("always-small", traces(pool(60, 3)), grade=grade))

    def run(rng: Rng) -> Any:
        log = [row for _ in range(60) for row in table(rng, 0.9, VARIANTS)]
        return proof(lambda: policy().calibrate(ft.from_records(log), promise("large", TENTH)))

    return run


def table(rng: Rng, share: float, forms: Any = ("{}",), **gold: Any) -> list[dict[str, Any]]:
    """Return the calls of one new question, which the small model answers as often as is said."""
    text = " ".join(bytes(word.tolist()).decode() for word in rng.integers(97, 123, (9, 6)))
    right = {"small": bool(rng.random() < share), "large": True}
    return [
        {"prompt": form.format(text), "llm": role, "response": "7" if right[role] else "5"}
        | {"usd": 1e-4 if role == "small" else 2e-3}
        | (gold or {"passed": right[role]})
        for form in forms
        for role in ROLES
    ]


def gold_apart(gold: str, rng: Rng) -> Any:
    """The small model is right half as often as the large one, which no gold says."""
    log = [row for _ in range(200) for row in table(rng, 0.5, gold=gold)]
    return proof(lambda: ft.recommend(ft.from_records(log), ft.Parity("large")))


def read_again(rng: Rng, *, side_by_side: bool) -> Any:
    """What proved a policy, or chose it too, proves it anew under other ids: any proof counts."""
    log, promise = independent(200, [1, 1], rng), ft.Parity("large", TENTH)
    one = ft.fit("always-small", traces(pool(60, 3)))
    made = proof(partial(ft.recommend if side_by_side else one.calibrate, traces(log), promise))
    again = replace(log, ids=np.array([f"again{i}" for i in range(200)]))
    return made and proof(lambda: recalibrate("again", made, again))


def looks(rng: Rng) -> bool:
    """Questions of one store prove five promises, of which each is false by draws of its own."""
    log, promise = drawn(pools()[1], 40, rng), ft.Agreement("large", TENTH)
    with TemporaryDirectory() as folder:
        store = Path(folder, "a.db")
        with Store.open(store):
            pass
        made: list[Any] = [at_next_look([store], log, promise, [i]).promise for i in range(5)]
    return any(agreement(400, float(each.delta), rng) for each in made)


def unanswered(promise: Any, rates: list[float], failed: float, rng: Rng) -> Any:
    """Both models are right as often as is said where they answer, and some have no answer."""
    log = traces(independent(800, rates, rng, failed))
    return proof(lambda: ft.recommend(log, promise))


def independent(n: int, rates: list[float], rng: Rng, failed: float = 0.0) -> TraceArrays:
    """Return new questions, which each model answers right as often as is said."""
    right = rng.random((n, 2)) < rates
    return answers(drawn(pools()[1], n, rng), right, rng.random(n) < failed)


def deadline(rng: Rng) -> Any:
    """The small model loses more than is allowed, and is missing where it is wrong."""
    log = independent(600, [0.6, 0.95], rng)
    log = lacking(log, asked(log, "small missing where wrong", rng))
    seconds = np.tile([0.5, 3.0], (600, 1))[:, None].astype(np.float32)
    log = replace(log, signals={**log.signals, "latency_s": seconds})
    promise = ft.Parity("large", TENTH)
    made = proof(lambda: ft.recommend(traces(log, "worst"), promise, deadline_s=1.0))
    fresh = traces(independent(WORLD, [0.6, 0.95], rng))
    return made and ft.Policy(made).evaluate(fresh).metrics["accuracy"] < 0.95 - 0.1


def proof(of: Callable[[], Any]) -> Any:
    """Return the bundle of which something is proved; None: nothing is, or it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = of()
        except FarthingError:
            return None
    bundle = getattr(made, "found", made).bundle
    return bundle if bundle.certificate and bundle.certificate.promises else None


def main() -> None:
    """Print a row for each setting; exit 1 where false proofs come too often."""
    options, too_often = argparse.ArgumentParser(), []
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--only", default="")
    given = options.parse_args()
    print("| setting | runs | proved | false | promised | p |\n|---|---:|---:|---:|---:|---:|")
    for place, (name, run, promised, one_of) in enumerate([*counts(), *holes(), *texts()]):
        if given.only not in name:
            continue
        runs = max(given.runs // one_of, 1)
        false = sum(bool(run(np.random.default_rng([SEED, place, i]))) for i in range(runs))
        p = stats.binomtest(false, runs, promised, alternative="greater").pvalue
        too_often += [name] if p < TOO_OFTEN else []
        row = f"| {name} | {runs} | {false} | {false / runs:.3f} | {promised:g} | {p:.2g} |"
        print(row, "TOO OFTEN" if p < TOO_OFTEN else "", flush=True)
    if too_often:
        sys.exit(f"false proofs come too often: {'; '.join(too_often)}")


if __name__ == "__main__":
    main()
