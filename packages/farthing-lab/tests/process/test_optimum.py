"""The optimum against enumeration of every rule, against sampling, and against rivals."""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import expit
from scipy.stats import chisquare
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from farthing.errors import InputError
from farthing.features.rounds import FeatureSet
from farthing.methods.base import Silent
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.process import replay
from farthing.process.base import InRounds
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing_lab.generator.config import CallPrice, GeneratorConfig, Level, Uncertainty, shift_mix
from farthing_lab.generator.generate import generate, uncertainty_bin
from farthing_lab.generator.optimum import (
    enumerate_histories,
    first_seen_next,
    frontier,
    optimal_cost,
    optimal_scores,
    solve,
)
from farthing_lab.generator.presets import PRESETS
from farthing_lab.methods.baselines.rounds import RandomPolicy
from farthing_lab.methods.baselines.uala import UalaPolicy
from farthing_lab.methods.ccpo.policy import NetworkPolicy
from farthing_lab.methods.stopping import StoppingLearner

BASE = CallPrice(10, 2, 100, 200, growth=3, spread=5)
GUIDE = CallPrice(50, 1, 2_500, 10_000, growth=20, spread=10)
EASY = Level(0.6, 0.5, 0.4, 0.8, 0.9, 0.2)
HARD = Level(0.4, 0.2, 0.3, 0.4, 0.7, 0.35)
SMALL = GeneratorConfig(
    (EASY, HARD), BASE, GUIDE, rounds=3, wrong_answers=2, base_persistence=0.3,
    guide_persistence=0.4, uncertainty=Uncertainty(bins=1),
)  # fmt: skip
USUAL = replace(SMALL, rounds=4, wrong_answers=5, uncertainty=Uncertainty(bins=3, noise=0.4))

Said = tuple[int, int, int]
"""Base's answer (0 is right), guide's answer, uncertainty bin."""
Outcome = tuple[float, tuple[Said, ...]]
"""Probability, and what was said in each round."""
History = tuple[tuple[int, ...], tuple[int, ...]]
"""Labels of all answers, and bins, round after round."""
Point = tuple[float, float]
"""Cost in nano-dollars, and coverage."""


class Enumeration:
    """Every joint outcome of a small generator, by the words of its documentation alone."""

    def __init__(self, config: GeneratorConfig) -> None:
        self.config = config
        self.answers = range(config.wrong_answers + 1)
        self.cost = [0.0] + [float(c) for c in config.round_cost_nano.cumsum()]
        self.outcomes: list[Outcome] = []
        for level in config.levels:
            self._walk(level, level.weight / sum(x.weight for x in config.levels), ())

    def _walk(self, level: Level, p: float, past: tuple[Said, ...]) -> None:
        if len(past) == self.config.rounds:
            self.outcomes.append((p, past))
            return
        bins = range(self.config.uncertainty.bins)
        for base, guide, drawn in product(self.answers, self.answers, bins):
            says = self._base(level, past, base) * self._guide(level, past, base, guide)
            weights = self.config.uncertainty.if_right
            if guide != 0:
                weights = weights[::-1]
            if says:
                self._walk(level, p * says * weights[drawn], (*past, (base, guide, drawn)))

    def _base(self, level: Level, past: tuple[Said, ...], base: int) -> float:
        skill = level.base_later if past else level.base_first
        fresh = skill if base == 0 else (1 - skill) / self.config.wrong_answers
        if not past:
            return fresh
        stays = self.config.base_persistence
        return stays * (past[-1][0] == base) + (1 - stays) * fresh

    def _guide(self, level: Level, past: tuple[Said, ...], base: int, guide: int) -> float:
        yes = level.yes_if_right if base == 0 else level.yes_if_wrong
        if guide == base:
            return yes
        others = [a for a in self.answers if a not in {0, base}]
        if base == 0:
            fresh = 1 / len(others)
        else:
            fresh = level.guide if guide == 0 else (1 - level.guide) / len(others)
        if not past or past[-1][1] == base:
            return (1 - yes) * fresh
        stays = self.config.guide_persistence
        return (1 - yes) * (stays * (past[-1][1] == guide) + (1 - stays) * fresh)

    def history(self, rounds: tuple[Said, ...]) -> History:
        names: dict[int, int] = {}
        labels = [
            names.setdefault(a, len(names)) for base, guide, _ in rounds for a in (base, guide)
        ]
        return tuple(labels), tuple(drawn for _, _, drawn in rounds)

    def points(self) -> list[Point]:
        """Return (cost, coverage) of every deterministic stopping rule."""
        return self._every_choice(self.outcomes, 1)

    def _every_choice(self, outcomes: list[Outcome], t: int) -> list[Point]:
        """Choose a rule for each history of round t, in all combinations."""
        branches: dict[History, list[Outcome]] = {}
        for outcome in outcomes:
            branches.setdefault(self.history(outcome[1][:t]), []).append(outcome)
        rules = [self._rules(branch, t) for branch in branches.values()]
        return [(sum(c for c, _ in rule), sum(v for _, v in rule)) for rule in product(*rules)]

    def _rules(self, outcomes: list[Outcome], t: int) -> list[Point]:
        cost = covered = 0.0
        for p, past in outcomes:
            appears = [s for s, (base, guide, _) in enumerate(past, 1) if 0 in {base, guide}]
            cost += p * self.cost[t]
            covered += p * (not appears or appears[0] <= t)
        later = self._every_choice(outcomes, t + 1) if t < self.config.rounds else []
        return [(cost, covered), *later]


CASES = {
    "two rounds, three bins": replace(
        SMALL, rounds=2, uncertainty=Uncertainty(bins=3, noise=0.3), wrong_answers=3
    ),
    "three rounds, one bin": SMALL,
    "three rounds, cheap later": replace(SMALL, guide_call=CallPrice(9, 1, 100, 100, growth=1)),
    "one level, no persistence": replace(
        SMALL, levels=(EASY,), base_persistence=0.0, guide_persistence=0.0
    ),
    "stubborn agents": replace(SMALL, base_persistence=0.95, guide_persistence=1.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_it_is_the_best_of_all_stopping_rules(name: str) -> None:
    config = CASES[name]
    points = np.array(Enumeration(config).points())
    corners = np.array(frontier(config))
    for coverage in (*np.linspace(points[:, 1].min() + 1e-9, 1, 9), 0.0):
        best = linprog(
            points[:, 0] / 1e5,
            A_ub=-points[:, 1:].T,
            b_ub=[-coverage],
            A_eq=np.ones((1, len(points))),
            b_eq=[1],
        )
        assert best.success
        least = float(best.fun or 0) * 1e5
        assert optimal_cost(config, coverage) * 1e9 == pytest.approx(least, rel=1e-6)
    for mu in np.geomspace(1e5, 1e9, 40):
        worth = (mu * points[:, 1] - points[:, 0]).max()
        assert (mu * corners[:, 1] - corners[:, 0] * 1e9).max() == pytest.approx(worth, rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_histories_have_the_probabilities_of_the_enumeration(name: str) -> None:
    config = CASES[name]
    enumeration = Enumeration(config)
    for t, histories in enumerate(enumerate_histories(config, config.rounds - 1), 1):
        expected: dict[History, float] = defaultdict(float)
        gains: dict[History, float] = defaultdict(float)
        for p, past in enumeration.outcomes:
            expected[enumeration.history(past[:t])] += p
            unseen = all(0 not in said[:2] for said in past[:t])
            gains[enumeration.history(past[:t])] += p if unseen and 0 in past[t][:2] else 0.0
        found = histories.probability
        assert sorted(found) == pytest.approx(sorted(expected.values()), abs=1e-12)
        assert sorted(first_seen_next(config, histories)) == pytest.approx(
            sorted(gains.values()), abs=1e-12
        )


@pytest.mark.parametrize("rounds", [2, 3, 4])
def test_probabilities_sum_to_one_and_gains_to_what_leaves_the_unseen(rounds: int) -> None:
    config = replace(USUAL, rounds=rounds)
    levels = enumerate_histories(config, rounds)
    for before, after in pairwise(levels):
        assert after.probability.sum() == pytest.approx(1, abs=1e-12)
        left = before.weight[:, :, 0].sum() - after.weight[:, :, 0].sum()
        assert first_seen_next(config, before).sum() == pytest.approx(left, abs=1e-12)


def test_with_one_bin_histories_are_the_ways_to_be_equal() -> None:
    config = replace(USUAL, uncertainty=Uncertainty(bins=1), wrong_answers=20)
    bell_numbers_of_2t = [2, 15, 203, 4140]
    assert [len(h) for h in enumerate_histories(config, 4)] == bell_numbers_of_2t


@pytest.mark.slow
def test_sampled_histories_have_the_enumerated_frequencies() -> None:
    n = 200_000
    traces = generate(USUAL, n, np.random.default_rng(5))
    drawn = uncertainty_bin(USUAL, traces.signals["uncertainty"][:, :, 1])
    shown = np.concatenate([traces.answer, drawn[:, :, None]], axis=2)[:, :2].reshape(n, 6)
    _, counts = np.unique(shown, axis=0, return_counts=True)
    expected = n * enumerate_histories(USUAL, 2)[1].probability
    assert len(counts) == len(expected) == 135
    often = expected > 10
    assert (
        chisquare(
            counts[often], expected[often] * counts[often].sum() / expected[often].sum()
        ).pvalue
        > 1e-3
    )
    assert counts[~often].sum() == pytest.approx(expected[~often].sum(), abs=4 * n**0.5 / 10)


@pytest.mark.slow
@pytest.mark.parametrize("config", [USUAL, shift_mix(USUAL, (0.2, 0.8))])
def test_replaying_its_scores_attains_the_optimum(config: GeneratorConfig) -> None:
    traces = generate(config, 100_000, np.random.default_rng(11))
    followed = replay.paths(optimal_scores(config, traces), traces)
    best = solve(config)
    prices = np.concatenate(best.price)
    for price in np.quantile(prices[np.isfinite(prices)], [0.001, 0.02, 0.1, 0.3]):
        kappa = config.round_cost_nano.min() / price
        ended = replay.outcome(followed, traces, kappa)
        assert beaten_by(config, ended, price) == pytest.approx(0, abs=2)
        assert (ended.cost_nano.mean() > config.round_cost_nano[0] * 1.01) or price < 1e6


@pytest.mark.slow
def test_no_random_threshold_policy_beats_it() -> None:
    rng = np.random.default_rng(3)
    traces = generate(USUAL, 30_000, rng)
    signals = observed(traces)
    for _ in range(60):
        score = expit(signals @ rng.normal(size=signals.shape[2]) * 2)
        assert beats(USUAL, traces, score, rng.uniform(0.05, 0.9)) < 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(max_iter=1000),
        pytest.param(
            HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8, random_state=0),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_no_learned_stopping_rule_beats_it_but_it_comes_close(model: Any) -> None:
    learned_on = generate(USUAL, 20_000, np.random.default_rng(21))
    fresh = generate(USUAL, 100_000, np.random.default_rng(22))
    seen = np.logical_or.accumulate(learned_on.correct.any(axis=2), axis=1)
    gains = ~seen & learned_on.solvable[:, None]
    signals, fresh_signals = observed(learned_on), observed(fresh)
    score = np.zeros((len(fresh), USUAL.rounds))
    for t in range(USUAL.rounds - 1):
        model.fit(signals[:, t], gains[:, t])
        score[:, t] = model.predict_proba(fresh_signals[:, t])[:, 1]
    for kappa in (0.05, 0.1, 0.2):
        assert beats(USUAL, fresh, score, kappa) < 2
        ended = replay.outcome(replay.paths(all_answers(score), fresh), fresh, kappa)
        least = optimal_cost(USUAL, float(ended.covered.mean()))
        assert ended.cost_nano.mean() / 1e9 == pytest.approx(least, rel=0.1)


def at_thresholds(policy: InRounds, traces: TraceArrays) -> list[replay.ReplayOutcome]:
    """Act with a strict, a middling and a loose threshold."""
    scores = policy.scores(traces)
    followed = replay.paths(scores, traces, empty="allow")
    kappas = np.quantile(scores[:, :-1, -1], [0.9, 0.5, 0.1])
    return [replay.outcome(followed, traces, kappa) for kappa in kappas]


def random_network(traces: TraceArrays, rng: np.random.Generator) -> NetworkPolicy:
    features = FeatureSet.fit(traces)
    weight = rng.normal(size=(len(features.names), 3))
    return NetworkPolicy(features, [weight], [rng.normal(size=3)])


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_no_policy_beats_it_on_a_preset(name: str) -> None:
    config = PRESETS[name].config
    rng = np.random.default_rng([8, *name.encode()])
    train, fresh = generate(config, 1_000, rng), generate(config, 10_000, rng)
    learned = StoppingLearner().fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(learned, InRounds)
    rivals: list[InRounds] = [learned, UalaPolicy(), RandomPolicy()]
    rivals += [FixedDepthPolicy(depth) for depth in range(1, config.rounds + 1)]
    rivals += [random_network(train, rng) for _ in range(2)]
    ended = [replay.sample(p.scores(fresh), fresh, rng) for p in rivals if p.stochastic]
    ended += [outcome for policy in rivals for outcome in at_thresholds(policy, fresh)]
    assert max(ahead(config, outcome) for outcome in ended) < 2
    careful = at_thresholds(learned, fresh)[0]
    least = optimal_cost(config, float(careful.covered.mean()))
    assert careful.cost_nano.mean() / 1e9 < 1.05 * least


@pytest.mark.slow
def test_it_refuses_horizons_too_long_to_enumerate() -> None:
    with pytest.raises(InputError, match=r"8 rounds would need more than .* stopping policy"):
        frontier(replace(USUAL, rounds=8))


def test_it_refuses_other_traces() -> None:
    traces = generate(USUAL, 100, np.random.default_rng(0))
    with pytest.raises(InputError, match="it gives 3 rounds"):
        optimal_scores(SMALL, traces)
    other = replace(USUAL, wrong_answers=2, base_persistence=0.0)
    certain = replace(other, levels=(replace(EASY, base_first=1.0, base_later=1.0),))
    with pytest.raises(InputError, match="in round 2 what this generator cannot produce"):
        optimal_scores(certain, traces)


def test_one_round_leaves_nothing_to_decide() -> None:
    config = replace(USUAL, rounds=1)
    assert frontier(config) == [(config.round_cost_nano[0] / 1e9, 1.0)]


def observed(traces: TraceArrays) -> FloatArray:
    """Return [n, T, F] what a policy may go by."""
    verdict = traces.signals["verdict"][:, :, 1].astype(float)
    uncertainty = traces.signals["uncertainty"][:, :, 1].astype(float)
    base, guide = traces.answer[:, :, 0], traces.answer[:, :, 1]
    before = np.maximum.accumulate(traces.answer.max(axis=2), axis=1)
    repeated = np.zeros((2, *base.shape))
    repeated[0, :, 1:] = base[:, 1:] == base[:, :-1]
    repeated[1, :, 1:] = guide[:, 1:] == guide[:, :-1]
    return np.stack(
        [
            verdict,
            verdict.cumsum(axis=1),
            uncertainty,
            uncertainty.cumsum(axis=1),
            before,
            *repeated,
        ],
        axis=2,
    )


def all_answers(score: FloatArray) -> FloatArray:
    scores = np.ones((*score.shape, 3))
    scores[:, :, 2] = score
    scores[:, -1, 2] = 0
    return scores


def beats(config: GeneratorConfig, traces: TraceArrays, score: FloatArray, kappa: float) -> float:
    ended = replay.outcome(replay.paths(all_answers(score), traces), traces, kappa)
    return ahead(config, ended)


def ahead(config: GeneratorConfig, ended: replay.ReplayOutcome) -> float:
    """Return by how many standard errors a policy beats the optimum at its own coverage."""
    corners = np.array(frontier(config))
    at = int(np.clip(np.searchsorted(corners[:, 1], ended.covered.mean()), 1, len(corners) - 1))
    rise = corners[at] - corners[at - 1]
    return beaten_by(config, ended, rise[0] / rise[1] * 1e9)


def beaten_by(config: GeneratorConfig, ended: replay.ReplayOutcome, price: float) -> float:
    """Return by how many standard errors a policy's worth at this price exceeds the optimum's."""
    corners = np.array(frontier(config))
    optimum = (price * corners[:, 1] - corners[:, 0] * 1e9).max()
    worth = price * ended.covered - ended.cost_nano
    return float((worth.mean() - optimum) / (worth.std() / np.sqrt(len(worth))))
