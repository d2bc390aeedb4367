"""Whole updates of CCPO and CPO are what their definitions say.

A training runs on a few questions, and what it draws and hands to the trust region is recorded.
`update_by_hand.py` computes the same from the definitions.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from update_by_hand import CriticsByHand, UpdateByHand, chances, critical, divergence, walk

from farthing.traces.arrays import BoolArray, FloatArray
from farthing_lab.methods.ccpo import learner as ccpo
from farthing_lab.methods.ccpo.learner import PUBLISHED, CcpoConfig, CpoConfig
from farthing_lab.promises.online import OnlineThreshold
from farthing_lab.rl.actor_critic import Episodes, Questions
from farthing_lab.rl.networks import Network
from farthing_lab.rl.trust_region import Improvement, StepProblem, TrustRegion

N, T, L, F = 24, 3, 2, 4
ALPHA = Fraction(1, 4)
UPDATES = 6


def everything(seed: int = 0) -> Questions:
    """Return questions of which some have no right answer and some lack one."""
    rng = np.random.default_rng(seed)
    answer = np.where(rng.random((N, T, L)) < 0.9, 0, -1)
    right = (rng.random((N, T, L)) < 0.3) & (answer >= 0)
    solvable = np.asarray(right.any(axis=(1, 2)))
    assert 0 < solvable.sum() < N
    cost = rng.uniform(0.5, 1.5, size=(N, T))
    return Questions(rng.normal(size=(N, T, F)), cost, right, answer, solvable)


@dataclass
class Update:
    """What one update began with, drew, asked for and left behind."""

    network: Network
    kappa: float
    gamma: float
    drawn_from: FloatArray
    episodes: Episodes
    problem: StepProblem
    region: TrustRegion
    done: Improvement
    figures: dict[str, float] = field(default_factory=dict)
    kappa_after: float = math.nan


@dataclass(frozen=True)
class Case:
    """A training to recompute."""

    config: CcpoConfig | CpoConfig
    threshold: OnlineThreshold = field(default_factory=lambda: OnlineThreshold(kappa=0.3))

    def training(self, questions: Questions) -> Any:
        made = ccpo._CcpoTraining if isinstance(self.config, CcpoConfig) else ccpo._CpoTraining
        return made(self.config, questions, ALPHA, 0)  # type: ignore[arg-type]


CASES = {
    "as we do it": Case(CcpoConfig()),
    "wide mask": Case(CcpoConfig(epsilon=0.1)),
    "as published": Case(PUBLISHED),
    "as published, wide mask": Case(
        CcpoConfig(constraint="leaf-count", cost="sampled", epsilon=0.1)
    ),
    "priced at the end": Case(CcpoConfig(set_size_price=0.7)),
    "priced leaf by leaf": Case(CcpoConfig(set_size_price=0.7, set_size_credit="leaf")),
    "long steps": Case(CcpoConfig(epsilon=0.1, region=TrustRegion(radius=0.2))),
    "threshold above one": Case(CcpoConfig(), OnlineThreshold(kappa=1.1, updates=3)),
    "critics that slow down": Case(CcpoConfig(updates=UPDATES, critic_schedule="linear")),
    "automatic discount": Case(CcpoConfig(discount="automatic", set_size_price=0.7)),
    "automatic discount, as published": Case(replace(PUBLISHED, discount="automatic")),
    "cpo": Case(CpoConfig(region=TrustRegion(radius=0.02))),
}


class Recording:
    """Runs a training and keeps what it does."""

    def __init__(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        self.case, self.questions, self.updates = case, everything(), list[Update]()
        self.training = case.training(self.questions)
        self.training.threshold = case.threshold
        parts = self.training.parts
        nudge = np.random.default_rng(1).normal(size=len(parts.network.parameters))
        parts.network = parts.network.moved(0.1 * nudge)
        falls = isinstance(case.config, CcpoConfig) and case.config.critic_schedule != "constant"
        self.critics = CriticsByHand(parts._critics, UPDATES if falls else None)
        module: ModuleType = ccpo
        draw: Callable[..., Episodes] = module.draw
        improve: Callable[..., Improvement] = module.improve

        def drawing(pi: FloatArray, correct: BoolArray, rng: np.random.Generator) -> Episodes:
            self._drawn = pi.copy(), draw(pi, correct, rng)
            return self._drawn[1]

        def improving(network: Network, problem: StepProblem, region: TrustRegion) -> Improvement:
            done = improve(network, problem, region)
            kappa, gamma = self.training.threshold.kappa, 1.0
            if isinstance(case.config, CcpoConfig):
                gamma = self.training.horizon.gamma
            self.updates.append(Update(network, kappa, gamma, *self._drawn, problem, region, done))
            return done

        monkeypatch.setattr(ccpo, "draw", drawing)
        monkeypatch.setattr(ccpo, "improve", improving)

    def run(self) -> Iterator[Update]:
        for _ in range(UPDATES):
            figures = self.training.update()
            now = self.updates[-1]
            now.figures, now.kappa_after = figures, self.training.threshold.kappa
            assert self.training.parts.network is now.done.network
            yield now

    def batch(self, now: Update) -> Questions:
        seen = self.questions.observations
        index = [
            int(np.flatnonzero((seen == o).all(axis=(1, 2)))[0]) for o in now.problem.observations
        ]
        assert len(set(index)) == 10
        return self.questions.take(np.array(index))


@pytest.fixture(params=CASES)
def recording(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Recording:
    return Recording(CASES[request.param], monkeypatch)


def close(found: float, want: float) -> bool:
    return found == pytest.approx(want, rel=1e-7, abs=1e-9)


def by_hand(recording: Recording, now: Update) -> UpdateByHand:
    batch, start = recording.batch(now), (now.network, now.kappa, now.gamma)
    return UpdateByHand(recording.case.config, batch, start, now.episodes, recording.critics)


def test_what_a_step_is_asked_for(recording: Recording) -> None:
    """Target, region, metric, and the worth of policies at, near and far from the present one."""
    rng = np.random.default_rng(2)
    for now in recording.run():
        want = by_hand(recording, now)
        np.testing.assert_allclose(now.drawn_from, want.pi, rtol=1e-9)
        assert close(now.problem.target, 1 - float(ALPHA))
        assert now.region == recording.case.config.region
        np.testing.assert_allclose(now.problem.metric.numpy(), want.metric(), rtol=1e-4, atol=1e-5)
        after = chances(now.done.network, want.batch.observations)
        other = rng.dirichlet(np.full(L + 1, 5.0), size=want.pi.shape[:2])
        other[:, -1] = after[:, -1]
        for pi in (want.pi, after, other):
            found = now.problem.evaluate(torch.from_numpy(pi))
            assert close(found.cost.item(), want.cost(pi))
            assert close(found.coverage.item(), want.coverage(pi))
            for p, q in zip(found.distributions, want.distributions(pi), strict=True):
                np.testing.assert_allclose(p.numpy(), q, rtol=1e-8, atol=1e-12)


def test_what_a_step_does(recording: Recording) -> None:
    """It keeps both divergences within the region, and nothing that matters gets worse."""
    region, accepted = recording.case.config.region, 0
    for now in recording.run():
        want = by_hand(recording, now)
        before, after = want.pi, chances(now.done.network, want.batch.observations)
        moved = zip(want.distributions(after), want.distributions(before), strict=True)
        assert max(divergence(new, old) for new, old in moved) <= region.radius
        violation = 1 - float(ALPHA) - want.coverage(before)
        assert close(now.figures["violation"], violation)
        if violation <= 0:
            assert want.cost(after) <= want.cost(before)
        assert 1 - float(ALPHA) - want.coverage(after) <= max(violation, 0) + 1e-12
        accepted += now.done.accepted
    assert accepted > UPDATES / 2


def test_the_threshold_and_the_figures_follow_the_new_policy(recording: Recording) -> None:
    """For CPO, which has no set, the figures are those of the episodes."""
    for t, now in enumerate(recording.run(), start=1 + recording.case.threshold.updates):
        batch = recording.batch(now)
        if isinstance(recording.case.config, CpoConfig):
            assert now.figures == pytest.approx(of_episodes(now, batch))
            continue
        pi = chances(now.done.network, batch.observations)
        missed = np.mean([min(k, 1.0) < now.kappa for k in critical(pi, batch)])
        kappa = now.kappa + 0.05 * t**-0.6 * (float(ALPHA) - missed)
        assert close(now.kappa_after, kappa)
        want = of_set(pi, batch, min(now.kappa, 1.0)) | {"kappa": kappa}
        if recording.case.config.discount == "automatic":
            want["mastered"] = recording.training.horizon.mastered
        assert now.figures == pytest.approx(want | {"violation": now.done.violation})


@pytest.mark.slow
def test_the_discount_grows_with_rounds_that_are_decided_as_in_hindsight() -> None:
    """Round by round, by the definition: k first decisions against those of the batch's others."""
    questions = everything()
    training = ccpo._CcpoTraining(CcpoConfig(discount="automatic"), questions, ALPHA, 0)
    asked: list[Questions] = []
    draw_batch = training.parts.batch

    def batch() -> Questions:
        asked.append(draw_batch())
        return asked[-1]

    training.parts.batch = batch  # type: ignore[method-assign]
    k = [1]
    for _ in range(40):
        kappa = min(training.threshold.kappa, 1.0)
        training.update()
        pi = chances(training.parts.network, asked[-1].observations)
        reach, _ = walk(pi, asked[-1])
        goes_on = [[t + 1 < T and row[t + 1] >= kappa for t in range(T)] for row in reach]
        first = [
            next((t for t in range(T) if any(row[t])), 0) if row.any() else 0
            for row in asked[-1].correct
        ]
        alike = [
            np.mean([g[t] == (t < f) for t in range(k[-1])])
            for g, f in zip(goes_on, first, strict=True)
        ]
        pairs = [
            np.mean([(t < a) == (t < b) for t in range(k[-1])]) for a, b in combinations(first, 2)
        ]
        up = k[-1] < T and np.mean(alike) >= 0.9 * np.mean(pairs)
        k.append(k[-1] + int(up))
        assert training.horizon.mastered == k[-1]
    assert k[-1] == T
    assert len(k) - len(set(k)) > 5, "and not at once"


def of_set(pi: FloatArray, batch: Questions, kappa: float) -> dict[str, float]:
    reach, leaf = walk(pi, batch)
    taken = [place for place, path in leaf.items() if path >= kappa]
    held = {i for i, t, a in taken if batch.correct[i, t, a]}
    return {
        "cost": sum(batch.cost[reach >= kappa]) / len(pi),
        "coverage": (len(held) + int((~batch.solvable).sum())) / len(pi),
        "length": int((reach >= kappa).sum()) / len(pi),
        "set_size": len(taken) / len(pi),
    }


def of_episodes(now: Update, batch: Questions) -> dict[str, float]:
    cost, covered, length = 0.0, 0, 0
    for i, row in enumerate(now.episodes.action):
        end = next(t for t, a in enumerate(row) if a < L)
        cost += sum(batch.cost[i, : end + 1])
        covered += bool(batch.correct[i, end, row[end]] or not batch.solvable[i])
        length += end + 1
    n = len(batch.solvable)
    return {
        "cost": cost / n,
        "coverage": covered / n,
        "length": length / n,
        "violation": now.done.violation,
    }
