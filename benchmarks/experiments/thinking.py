"""How much of a thought must be paid for, at a proved agreement with its end or accuracy?

Recorded thoughts of ten cuts. Each of 40 draws trains on 90 questions and proves on the other 210,
as `recommend` divides them, and every method on the same ones: the best fixed cut, stopping once
the answer repeats k times, a threshold on the entropy, and `settled`. What proves nothing pays for
the full thought. *Hindsight* stops at the first cut whose answer is the full thought's, which
nobody can know. Draws overlap, so errors are those over draws of these 300 questions.

*Kept* is simulated: 210 proving questions are drawn with replacement from those that did not train,
on which the truth is then known, 50 times a draw.

    python benchmarks/experiments/thinking.py [--redraw] [--traces FOLDER]

The recordings are read from ../shared/data/traces unless another folder is named.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from common import Experiment, Row, draw, mean_and_error
from matplotlib.figure import Figure
from recordings import FOLDER, needed

from farthing.methods.base import Dataset, Fitted, Learner, Progress
from farthing.promises.base import Promise
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.parity import Parity
from farthing.promises.observed import Facts
from farthing.recommendation.candidates import single_candidate
from farthing.recommendation.cross_fit import beside
from farthing.recommendation.plan import Plan, plans_of
from farthing.recommendation.played import PlayedPolicy, operating_points_of, tested
from farthing.recommendation.recommend import recommend
from farthing.recommendation.trial import estimate_trial
from farthing.traces.arrays import BoolArray, TraceArrays
from farthing.traces.assemble import load
from farthing.traces.eligibility import eligible

SOURCES = {"Qwen": "gsm8k-thinking-qwen2.5-7b", "Mistral": "gsm8k-thinking-mistral-7b"}
METHODS = {
    "best-single": "fixed cut",
    "repeats": "answer repeats",
    "uala": "entropy",
    "settled": "settled",
    "dtrec": "signs agree",
}
ACCURACY = "accuracy, 5 points"
PROMISES = {
    "agreement .95": Agreement(epsilon=Fraction(1, 20)),
    "agreement .90": Agreement(epsilon=Fraction(1, 10)),
    "agreement .85": Agreement(epsilon=Fraction(3, 20)),
    ACCURACY: Parity(epsilon=Fraction(1, 20)),
}
DRAWS, AGAIN = 40, 50
PLACE = Path(sys.argv[sys.argv.index("--traces") + 1]) if "--traces" in sys.argv else FOLDER


def thoughts(source: str) -> Dataset:
    return Dataset(source, load(PLACE / f"{SOURCES[source]}.jsonl.gz"))


def planned(dataset: Dataset, asked: Promise, seed: int) -> Plan:
    (plan,) = plans_of(dataset, asked, eligible(dataset.traces), seed)
    return plan


def measure(source: str, seed: int) -> list[Row]:
    dataset = thoughts(source)
    rows = [
        {"source": source, "seed": seed, "promise": name, **row}
        for name, asked in PROMISES.items()
        for row in of_promise(dataset, asked, seed)
    ]
    if source == "Mistral":
        rows.append({"source": source, "seed": seed, "promise": ACCURACY, **chosen(dataset, seed)})
    return rows


def chosen(dataset: Dataset, seed: int) -> Row:
    """Return what `recommend` uses instead of the full thought, for a promise about accuracy."""
    found = recommend(dataset, PROMISES[ACCURACY], seed=seed)
    ours, theirs = found.found.value.yours, found.found.value.theirs
    return {"method": "recommend", "chosen": found.name, "cost": ours.cost_usd / theirs.cost_usd}


FITTED: dict[tuple[bytes, str, str], Fitted] = {}


@dataclass(frozen=True)
class Remembering:
    """Trains once on the same questions under the same grade, whatever is promised."""

    learner: Learner

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        """Train, or return what was trained before."""
        key = (train.ids.tobytes(), train.models[0] + train.grade, repr(self.learner))
        if key not in FITTED:
            FITTED[key] = self.learner.fit(train, alpha, seed, progress)
        return FITTED[key]


def of_promise(dataset: Dataset, asked: Promise, seed: int) -> Iterator[Row]:
    plan = planned(dataset, asked, seed)
    for name in METHODS:
        yield {"method": name, **of_method(plan, dataset, name, seed)}
    traces = dataset.traces.take(plan.parts.prove)
    first = (traces.answer[:, 0] == traces.answer[:, 0, -1:]).argmax(axis=1)
    cost = traces.cost_nano[:, 0]
    share = cost[np.arange(len(cost)), first].sum() / cost[:, -1].sum()
    accuracy = float(traces.correct[:, 0, -1].mean())
    yield {"method": "hindsight", "cost": float(share), "figure": 1.0, "accuracy": accuracy}


def of_method(plan: Plan, dataset: Dataset, name: str, seed: int) -> Row:
    """Prove a method's promise, say what it came to, and prove it again on simulated draws."""
    candidate, learner = single_candidate(plan.dataset, name)
    trial = estimate_trial(plan, candidate.learning_by(Remembering(learner)))
    prove = plan.proving(trial.bundle)
    plays = PlayedPolicy(trial.bundle.policy, trial.bundle.empty)
    points = operating_points_of(prove.replay(plays), trial.row)
    by_right = replace(plan, dataset=dataset).proving(trial.bundle)
    accepted = operating_points_of(by_right.replay(plays), trial.row).correct
    _, paid = beside(plan.asked, plan.reference, prove.recorded)
    theirs = prove.recorded.correct[:, 0, -1]
    facts = Facts(plan.reference, theirs, paid)
    proved = plan.asked.prover(tested(points), facts, len(paid))
    share, margin = points.cost_nano.sum(axis=0) / paid.sum(), float(plan.asked.margin)
    figure = points.correct.mean(axis=0) - (theirs.mean() if plan.asked.needs_gold else 0.0)
    line = -margin if plan.asked.needs_gold else 1.0 - margin
    at = proved(np.arange(len(paid)))
    rng = np.random.default_rng([seed, 7])
    again = [proved(rng.integers(len(paid), size=len(paid))) for _ in range(AGAIN)]
    found = {
        "kept": float(np.mean([one is None or figure[one] >= line for one in again])),
        "proved": at is not None,
        "cost": 1.0,
        "figure": 0.0 if plan.asked.needs_gold else 1.0,
        "accuracy": float(by_right.recorded.correct[:, 0, -1].mean()),
    }
    if at is None:
        return found
    lost, won = (float(x.mean()) for x in discordant(theirs, points.correct[:, at]))
    return found | {
        "cost": float(share[at]),
        "figure": float(figure[at]),
        "accuracy": float(accepted[:, at].mean()),
        "lost": lost,
        "won": won,
    }


def discordant(theirs: BoolArray, ours: BoolArray) -> tuple[BoolArray, BoolArray]:
    return theirs & ~ours, ~theirs & ours


def show(rows: list[Row]) -> None:
    for source in SOURCES:
        for promise in PROMISES:
            print(f"\n**{source}, {promise}**\n")
            print(
                "| | share of the cost | over the fixed cut's | figure | accuracy | proved | kept |"
            )
            print("| --- " * 7 + "|")
            fixed = of(rows, source, promise, "best-single", "cost")
            for name, label in {**METHODS, "hindsight": "hindsight"}.items():
                cost = of(rows, source, promise, name, "cost")
                mean, error = mean_and_error(cost)
                ratio = np.mean(cost) / np.mean(fixed)
                cells = [
                    f"{np.mean(of(rows, source, promise, name, key)):.3f}"
                    if name != "hindsight" or key in {"figure", "accuracy"}
                    else "–"
                    for key in ("figure", "accuracy", "proved", "kept")
                ]
                line = [label, f"{mean:.3f} ± {error:.3f}", f"{ratio:.2f}", *cells]
                print(f"| {' | '.join(line)} |")
    fixed = np.array(of(rows, "Mistral", ACCURACY, "best-single", "cost"))
    print(f"\ncut 1 proved as the fixed cut: {(fixed < 0.2).mean():.3f} of the draws")
    picked = [row for row in rows if row["method"] == "recommend"]
    print("recommend:", Counter(row["chosen"] for row in picked).most_common())
    print("at the cost", mean_and_error(row["cost"] for row in picked))
    print("it pays at most .2:", np.mean([row["cost"] < 0.2 for row in picked]))


def paint(figure: Figure, rows: list[Row]) -> None:
    """Paint what a promise of agreement costs, and how right its answers are at that cost."""
    panels = figure.subplots(1, 4)
    agreed = [name for name in PROMISES if name != ACCURACY]
    for row, source in enumerate(SOURCES):
        cost, right = panels[2 * row : 2 * row + 2]
        for name, label in METHODS.items():
            paid = [np.mean(of(rows, source, promise, name, "cost")) for promise in agreed]
            cost.plot([0.95, 0.90, 0.85], paid, marker="o", label=label)
            accuracy = [np.mean(of(rows, source, promise, name, "accuracy")) for promise in agreed]
            right.plot(paid, accuracy, marker="o", label=label)
        known = of(rows, source, agreed[0], "hindsight", "accuracy")
        right.axhline(float(np.mean(known)), color="grey", linestyle=":", label="full thought")
        cost.set(title=source, xlabel="proved agreement", ylabel="share of the thought's cost")
        right.set(title=source, xlabel="share of the thought's cost", ylabel="accuracy")
    handles, labels = panels[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def of(rows: list[Row], source: str, promise: str, method: str, key: str) -> list[float]:
    wanted = (source, promise, method)
    return [row[key] for row in rows if (row["source"], row["promise"], row["method"]) == wanted]


if __name__ == "__main__":
    if "--redraw" not in sys.argv:
        needed(*(PLACE / f"{name}.jsonl.gz" for name in SOURCES.values()))
    cases = [{"source": source, "seed": seed} for seed in range(DRAWS) for source in SOURCES]
    found = Experiment("thinking", measure).rows(cases)
    show(found)
    draw("thinking", lambda figure: paint(figure, found))
