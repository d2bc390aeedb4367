"""Which policy should be the default? Every candidate on recorded and on generated questions.

    .venv/bin/python benchmarks/candidates.py ../shared/data/traces [--splits 3] [--seeds 2]

All choose what to buy next, and score going on; the threshold is then set to the coverage asked for
on the questions outside training, so that what is compared is policies and not calibrations' luck.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from farthing.experiments.evaluate import metrics
from farthing.features.calls import CallFeatures
from farthing.methods.base import Silent
from farthing.methods.ccpo.learner import CcpoLearner
from farthing.methods.lookahead.learner import Cases, some_states
from farthing.methods.lookahead.policy import Order, offered, ordered
from farthing.process.action_space import Ledger, Protocol, arrange, priced, protocol
from farthing.process.generator.generate import generate
from farthing.process.generator.optimum import optimal_cost
from farthing.process.generator.presets import preset
from farthing.process.replay import outcome, paths
from farthing.rl.soft_set import soft_cost, soft_coverage, soft_paths
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.assemble import load

RECORDED = "reasoning-llama2-13b-gpt4.jsonl.gz"
PRESET = "hotpotqa-llama2-7b"
N_TRAIN, FRESH = 1_000, 10_000
SWEEPS = 4
PRICES = (1.0, 2.0, 4.0, 8.0)
"""Lagrange prices of coverage, in mean costs of the dearest purchase."""
STEPS, WIDTH, PENALTY = 300, 32, 20.0
AGREEMENT = ("votes", "share", "backs", "confidence for")
"""Names of features with which what is left to gain should only fall."""

Scored = tuple[TraceArrays, FloatArray]
"""Questions in an order of purchases [n, S, U], and scores there [n, S, U + 1]."""
Played = Callable[[TraceArrays], Scored]
Candidate = Callable[["Task"], Played]


@dataclass(frozen=True)
class Task:
    """What a candidate learns from."""

    train: TraceArrays
    rules: Protocol
    alpha: Fraction
    seed: int

    @property
    def shelf(self) -> Ledger:
        """Prices and grades of every purchase."""
        return priced(self.train, self.rules)

    def cases(self) -> Cases:
        """States to learn from."""
        return some_states(self.shelf.on_offer, np.random.default_rng(self.seed))

    def features(self, cases: Cases) -> CallFeatures:
        """Return what is seen in them."""
        return CallFeatures.fit(self.train, cases.row, self.rules.seen(cases.bought))


def covered(task: Task, row: IntArray, bought: IntArray) -> BoolArray:
    right = task.train.correct.reshape(len(task.train), -1)[row]
    return np.asarray((task.rules.seen(bought) & right).any(axis=1))


def one_more(bought: IntArray, line: int) -> IntArray:
    return bought + (np.arange(bought.shape[1]) == line)


def gains(task: Task, cases: Cases, line: int) -> BoolArray:
    """Whether the next purchase of a line covers what is not covered; in rounds, any later one."""
    bought = one_more(cases.bought, line)
    if task.rules.lines == 1:
        bought = np.full_like(bought, task.rules.items)
    before = covered(task, cases.row, cases.bought)
    return covered(task, cases.row, bought) & ~before


def mean_cost(task: Task) -> FloatArray:
    """[F] nano-dollars a purchase."""
    return task.shelf.cost_nano.mean(axis=(0, 2)).astype(float)


@dataclass(frozen=True)
class Follow:
    """Buys what is worth most, and so on."""

    task: Task
    features: CallFeatures
    values: Callable[[FloatArray], FloatArray]
    """[R, features] to what each line is worth, [R, F]."""

    def order(self, traces: TraceArrays) -> Order:
        """Choose every purchase of every question."""
        rules = self.task.rules

        def judge(row: IntArray, bought: IntArray) -> tuple[FloatArray, FloatArray]:
            worth = self.values(self.features.look(traces, row, rules.seen(bought)))
            return worth, np.ones_like(worth)

        return ordered(priced(traces, rules).on_offer, judge)

    def along(self, traces: TraceArrays, line: IntArray) -> FloatArray:
        """[n, S, features] what is known after each purchase of an order."""
        bought = (line[:, :, None] == np.arange(self.task.rules.lines)).cumsum(axis=1)
        rows = np.repeat(np.arange(len(traces)), line.shape[1])
        known = self.task.rules.seen(bought.reshape(len(rows), -1))
        return self.features.look(traces, rows, known).reshape(*line.shape, -1)

    def __call__(self, traces: TraceArrays) -> Scored:
        """Return every answer; going on scores its worth, squeezed into [0, 1]."""
        order = self.order(traces)
        laid = arrange(traces, self.task.rules, order.line)
        worth = np.nan_to_num(order.worth[:, 1:], neginf=-1e30)
        return laid, with_answers(0.5 + np.arctan(worth) / np.pi, laid)


def with_answers(going: FloatArray, laid: TraceArrays) -> FloatArray:
    """[n, S, U + 1] from the scores of going on, [n, S - 1]; every answer scores 1."""
    scores = np.ones((len(laid), laid.horizon, laid.n_roles + 1))
    scores[:, :-1, -1], scores[:, -1, -1] = going, 0.0
    return scores


def by_gain(make: Callable[[CallFeatures, int], object]) -> Candidate:
    """A classifier of each line's gain, divided by the line's mean cost."""

    def learn(task: Task) -> Played:
        models, features = fitted(task, make)
        cost = mean_cost(task) / mean_cost(task).max()
        return Follow(task, features, lambda seen: chances(models, seen) / cost)

    return learn


def fitted(
    task: Task, make: Callable[[CallFeatures, int], object]
) -> tuple[list[object], CallFeatures]:
    cases = task.cases()
    features = task.features(cases)
    seen = features.look(task.train, cases.row, task.rules.seen(cases.bought))
    can = offered(task.shelf.on_offer, cases.row, cases.bought)
    models = []
    for line in range(task.rules.lines):
        label = gains(task, cases, line)[can[:, line]]
        models.append(make(features, task.seed).fit(seen[can[:, line]], label))
    return models, features


def chances(models: list[object], seen: FloatArray) -> FloatArray:
    return np.stack([model.predict_proba(seen)[:, -1] for model in models], axis=1)


def logistic(features: CallFeatures, seed: int) -> object:  # noqa: ARG001
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))


def calibrated(features: CallFeatures, seed: int) -> object:
    return CalibratedClassifierCV(logistic(features, seed), method="isotonic", cv=5)


def boosting(features: CallFeatures, seed: int) -> object:  # noqa: ARG001
    return HistGradientBoostingClassifier(max_iter=60, max_depth=3, random_state=seed)


def monotone(features: CallFeatures, seed: int) -> object:
    falls = [-1 if name.startswith(AGREEMENT) else 0 for name in features.names]
    return HistGradientBoostingClassifier(
        max_iter=60, max_depth=3, monotonic_cst=falls, random_state=seed
    )


def forest(features: CallFeatures, seed: int) -> object:  # noqa: ARG001
    return ExtraTreesClassifier(32, min_samples_leaf=10, max_features=0.5, random_state=seed)


def ensemble(task: Task) -> Played:
    """The mean gain of a logistic regression, boosted trees and a forest."""
    parts = [fitted(task, make) for make in (logistic, boosting, forest)]
    cost = mean_cost(task) / mean_cost(task).max()

    def worth(seen: FloatArray) -> FloatArray:
        return np.mean([chances(models, seen) for models, _ in parts], axis=0) / cost

    return Follow(task, parts[0][1], worth)


def backward(task: Task) -> Played:
    """Fitted backward induction at a Lagrange price; the price is chosen on questions left out."""
    n = len(task.train)
    part = np.random.default_rng(task.seed).permutation(n) < 2 * n // 3
    most = Task(task.train.take(part), task.rules, task.alpha, task.seed)
    out = task.train.take(~part)
    spent = [cost_at(*induced(most, price)(out), task.alpha) for price in PRICES]
    return induced(task, PRICES[int(np.argmin(spent))])


def induced(task: Task, price: float) -> Played:
    """Value of a purchase: what it gains, minus its cost at a price, plus the best that follows."""
    cases = task.cases()
    features, shelf = task.features(cases), task.shelf
    can = offered(shelf.on_offer, cases.row, cases.bought)
    seen = features.look(task.train, cases.row, task.rules.seen(cases.bought))
    unit = mean_cost(task).max() * price
    before = covered(task, cases.row, cases.bought)
    value = nothing(task.rules.lines)
    for _ in range(SWEEPS):
        models = []
        for line in range(task.rules.lines):
            rows = can[:, line]
            row, bought = cases.row[rows], cases.bought[rows]
            after = one_more(bought, line)
            gain = covered(task, row, after) & ~before[rows]
            paid = shelf.cost_nano[row, line, bought[:, line]] / unit
            later = value(features.look(task.train, row, task.rules.seen(after)))
            later = np.where(offered(shelf.on_offer, row, after), later, 0.0).max(axis=1)
            model = ExtraTreesRegressor(
                24, min_samples_leaf=20, max_features=0.5, random_state=task.seed
            )
            models.append(model.fit(seen[rows], gain - paid + np.maximum(later, 0.0)))
        value = stacked(models)
    return Follow(task, features, value)


def nothing(lines: int) -> Callable[[FloatArray], FloatArray]:
    return lambda seen: np.zeros((len(seen), lines))


def stacked(models: list[ExtraTreesRegressor]) -> Callable[[FloatArray], FloatArray]:
    return lambda seen: np.stack([model.predict(seen) for model in models], axis=1)


def direct(task: Task) -> Played:
    """A network whose scores of going on are optimised through the minima along each path.

    In the order that the forest buys in; cost plus a penalty on the coverage that is missing.
    """
    models, features = fitted(task, forest)
    cost = mean_cost(task) / mean_cost(task).max()
    follow = Follow(task, features, lambda seen: chances(models, seen) / cost)
    line = follow.order(task.train).line
    laid, seen = arrange(task.train, task.rules, line), follow.along(task.train, line)
    mean, scale = seen.mean(axis=(0, 1)), seen.std(axis=(0, 1)) + 1e-9
    torch.manual_seed(task.seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(seen.shape[2], WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 1)
    ).double()

    def going(seen: FloatArray) -> torch.Tensor:
        return torch.sigmoid(network(torch.tensor((seen - mean) / scale))[:, :-1, 0])

    spent = laid.round_cost_nano
    paid, right = torch.tensor(spent / spent.sum(axis=1).mean()), torch.tensor(laid.correct)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(STEPS):
        scores = torch.tensor(with_answers(0.0, laid))
        scores[:, :-1, -1] = going(seen)
        reach, path = soft_paths(scores)
        short = torch.relu(float(1 - task.alpha) - soft_coverage(path, right, 0.5, 0.05))
        loss = soft_cost(reach, paid, 0.5, 0.05) + PENALTY * short
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def played(traces: TraceArrays) -> Scored:
        line = follow.order(traces).line
        laid = arrange(traces, task.rules, line)
        with torch.no_grad():
            return laid, with_answers(going(follow.along(traces, line)).numpy(), laid)

    return played


def ccpo(task: Task) -> Played:
    """CCPO itself; call by call each call is a round of its own, the cheapest role's first."""
    cheapest = np.repeat(np.argsort(mean_cost(task), kind="stable"), task.rules.items)

    def laid(traces: TraceArrays) -> TraceArrays:
        if task.rules.lines == 1:
            return traces
        return arrange(traces, task.rules, np.tile(cheapest, (len(traces), 1)))

    policy = CcpoLearner().fit(laid(task.train), task.alpha, task.seed, Silent()).policy
    return lambda traces: (laid(traces), policy.scores(laid(traces)))


CANDIDATES: dict[str, Candidate] = {
    "logistic": by_gain(logistic),
    "logistic, isotonic": by_gain(calibrated),
    "boosted trees": by_gain(boosting),
    "boosted trees, monotone": by_gain(monotone),
    "forest": by_gain(forest),
    "mean of three": ensemble,
    "backward induction, Lagrange price": backward,
    "direct, through path minima": direct,
    "CCPO": ccpo,
}


def cost_at(laid: TraceArrays, scores: FloatArray, alpha: Fraction) -> float:
    """USD a question with the threshold set to the coverage on these very questions."""
    followed = paths(scores, laid)
    critical = np.sort(followed.critical)
    kappa = float(critical[int(alpha * len(critical))])
    return metrics(outcome(followed, laid, kappa))["cost_usd"]


def recorded(path: Path, candidate: Candidate, splits: int) -> str:
    traces, alpha = load(path), Fraction(1, 10)
    found = []
    for seed in range(splits):
        rows = np.random.default_rng(seed).permutation(len(traces))
        train, rest = traces.take(rows[:769]), traces.take(rows[769:])
        played = candidate(Task(train, protocol("lazy", train), alpha, seed))
        found.append(cost_at(*played(rest), alpha))
    error = np.std(found, ddof=1) / np.sqrt(splits) if splits > 1 else 0.0
    return f"{np.mean(found):.4f} +- {error:.4f}"


def generated(candidate: Candidate, alpha: Fraction, seeds: int) -> str:
    config = preset(PRESET).config
    best, found = optimal_cost(config, float(1 - alpha)), []
    for seed in range(seeds):
        train, fresh = (
            generate(config, n, np.random.default_rng([seed, k]))
            for n, k in ((N_TRAIN, 1), (FRESH, 2))
        )
        played = candidate(Task(train, protocol("paper", train), alpha, seed))
        found.append(f"{cost_at(*played(fresh), alpha) / best:.3f}")
    return ", ".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"| candidate | reasoning, USD a question | {PRESET}, cost / optimum at 0.95 | at 0.90 |")
    print("| --- | --- | --- | --- |", flush=True)
    for name, candidate in CANDIDATES.items():
        real = recorded(given.folder / RECORDED, candidate, given.splits)
        made = [generated(candidate, Fraction(a), given.seeds) for a in ("0.05", "0.1")]
        print(f"| {name} | {real} | {made[0]} | {made[1]} |", flush=True)


if __name__ == "__main__":
    main()
