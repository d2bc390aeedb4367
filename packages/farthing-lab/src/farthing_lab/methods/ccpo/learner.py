"""CPO and CCPO: a policy over {base answer, guide answer, next round} that costs least.

CPO (Achiam et al. 2017, arXiv 1705.10528) has no set: the sampled answer is to be right (or nothing
is) with probability 1 - alpha. It acts by sampling; CPO batch and CPO online turn the same policy
into sets, by split conformal calibration or by the threshold that this learner leaves behind.

CCPO (Si et al. 2025, arXiv 2511.11828) learns the policy and a threshold kappa together. What the
paper prints wrongly or leaves open is settled in `docs/research/ccpo.md`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from farthing.features.rounds import FeatureSet
from farthing.methods.base import Fitted, Progress
from farthing.process.replay import paths
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays
from farthing_lab.methods.ccpo.policy import NetworkPolicy
from farthing_lab.promises.online import OnlineThreshold, run_online, update
from farthing_lab.rl.actor_critic import (
    ActorCritic,
    Episodes,
    Questions,
    QuestionStream,
    RollOut,
    SampledSurrogate,
    draw,
)
from farthing_lab.rl.discount import Discount, Horizon, cheapest_success
from farthing_lab.rl.networks import Network
from farthing_lab.rl.schedules import SCHEDULES, ScheduleName
from farthing_lab.rl.soft_set import (
    critical_threshold,
    policy_metric,
    set_metric,
    soft_cost,
    soft_coverage,
    soft_mask_log,
    soft_paths,
    soft_set_policy,
    soft_set_size,
)
from farthing_lab.rl.trust_region import StepProblem, Surrogate, TrustRegion, improve, probabilities

REPORT_EVERY = 25
"""Updates between two reports of progress."""


def recorded(
    update: Callable[[], Mapping[str, float]], updates: int, progress: Progress
) -> tuple[dict[str, FloatArray], bool]:
    """Run all updates; return their figures as curves, and whether Ctrl-C ended them early."""
    figures, stopped = list[Mapping[str, float]](), False
    try:
        for done in range(1, updates + 1):
            figures.append(update())
            if done % REPORT_EVERY == 0 or done == updates:
                recent = figures[-REPORT_EVERY:]
                means = {name: float(np.mean([f[name] for f in recent])) for name in recent[0]}
                progress.update(done, updates, means)
    except KeyboardInterrupt:
        stopped = True
    names = figures[0] if figures else ()
    return {name: np.array([f[name] for f in figures]) for name in names}, stopped


Training = TypeVar("Training", "_CpoTraining", "_CcpoTraining")


def _trained(
    learner: "CpoLearner | CcpoLearner",
    kind: Callable[[Any, Questions, Fraction, int], Training],
    train: TraceArrays,
    alpha: Fraction,
    seed: int,
    progress: Progress,
) -> tuple[Training, NetworkPolicy, Fitted]:
    """Train on recorded questions; the same seed gives the same policy, bit for bit."""
    torch.set_num_threads(1)
    features = FeatureSet.fit(train, learner.extra_features)
    questions = Questions.of(train, features.transform(train))
    training = kind(learner.config, questions, alpha, seed)
    curves, stopped = recorded(training.update, learner.config.updates, progress)
    policy = to_policy(training.parts.network, features)
    return training, policy, Fitted(policy, None, curves, stopped)


@dataclass(frozen=True)
class CpoConfig:
    """The settings of one training."""

    updates: int = 2_000
    batch: int = 10
    """Episodes an update."""
    region: TrustRegion = field(default_factory=TrustRegion)


@dataclass(frozen=True)
class CpoLearner:
    """Learns a stochastic policy that answers once (Achiam et al. 2017)."""

    config: CpoConfig = field(default_factory=CpoConfig)
    extra_features: tuple[str, ...] = ()

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        """Train as `_trained` does.

        The threshold is that of CPO online: an online pass over the questions of all updates, in
        the order in which CCPO meets them under the same seed.
        """
        _, policy, fitted = _trained(self, _CpoTraining, train, alpha, seed, progress)
        critical = paths(policy.scores(train), train, empty="allow").critical
        stream = QuestionStream(len(train), self.config.batch, seed)
        order = np.concatenate([next(stream) for _ in range(self.config.updates)])
        return replace(fitted, kappa=float(run_online(critical[order], alpha, stream.batch)[-1]))


class _CpoTraining:
    def __init__(self, config: CpoConfig, questions: Questions, alpha: Fraction, seed: int) -> None:
        self.parts = ActorCritic(questions, config.batch, seed)
        self._config, self._target = config, float(1 - alpha)

    def update(self) -> dict[str, float]:
        """Roll out, update the critics, take one step; return the update's figures."""
        batch = self.parts.batch()
        pi = probabilities(self.parts.network, batch.observations)
        behaviour = pi.numpy()
        episodes = draw(behaviour, batch.correct, self.parts.rng)
        covered = episodes.right | ~batch.solvable
        coverage = (episodes.final & covered[:, None]).astype(float)
        sampled = self.parts.criticise(
            RollOut(
                batch, episodes, behaviour, behaviour, batch.cost, coverage, float(covered.mean())
            )
        )
        problem = StepProblem(
            batch.observations,
            lambda new: Surrogate(sampled.cost(new), sampled.coverage(new), (new,)),
            policy_metric(pi),
            self._target,
        )
        done = improve(self.parts.network, problem, self._config.region)
        self.parts.network = done.network
        return {
            "violation": done.violation,
            "cost": float((batch.cost * episodes.taken).sum(axis=1).mean()),
            "coverage": float(covered.mean()),
            "length": float(episodes.taken.sum(axis=1).mean()),
        }


CPO = CpoLearner()
"""The one learner that the three forms share, and so train once."""


def to_policy(network: Network, features: FeatureSet) -> NetworkPolicy:
    """Return the policy that ships."""
    weights, biases = zip(*network.layers(), strict=True)
    return NetworkPolicy(features, [w.copy() for w in weights], [b.copy() for b in biases])


Credit = Literal["end", "leaf"]


@dataclass(frozen=True)
class CcpoConfig:
    """The settings of one training."""

    updates: int = 2_000
    batch: int = 10
    """Questions an update."""
    constraint: Literal["exact", "leaf-count"] = "exact"
    """`exact`: mean sigmoid((kappa* - kappa) / epsilon); `leaf-count`: the paper's upper bound."""
    cost: Literal["exact", "sampled"] = "exact"
    """`sampled`: what the soft stand-in S of the set policy pays (the paper); `exact` adds what the
    set policy C itself pays."""
    set_size_price: float = 0.0
    """lambda: price of an answer in the set, in units of the mean cost of a round."""
    set_size_credit: Credit = "end"
    """Whether the set is charged where the episode ends (the paper) or leaf by leaf."""
    epsilon: float = 0.01
    """Width of the soft mask."""
    region: TrustRegion = field(default_factory=TrustRegion)
    discount: Discount = "fixed"
    """Whether what later rounds cost counts in full, or by `rl/discount.py`; coverage does."""
    critic_schedule: ScheduleName = "constant"
    """How the critics' learning rate falls."""


PUBLISHED = CcpoConfig(constraint="leaf-count", cost="sampled")
"""CCPO as published; its sets may be empty (`empty="allow"`)."""


@dataclass(frozen=True)
class CcpoLearner:
    """Learns a policy network and a threshold together."""

    config: CcpoConfig = field(default_factory=CcpoConfig)
    extra_features: tuple[str, ...] = ()

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        training, _, fitted = _trained(self, _CcpoTraining, train, alpha, seed, progress)
        return replace(fitted, kappa=training.threshold.kappa)


class _CcpoTraining:
    """Algorithm 1: alternate a CPO step on the policy and an online step on the threshold."""

    def __init__(
        self, config: CcpoConfig, questions: Questions, alpha: Fraction, seed: int
    ) -> None:
        self.parts = ActorCritic(questions, config.batch, seed)
        self.threshold = OnlineThreshold()
        self.horizon = Horizon.of(config.discount, questions.cost.shape[1])
        self._config, self._alpha, self._done = config, alpha, 0

    def update(self) -> dict[str, float]:
        batch, epsilon = self.parts.batch(), self._config.epsilon
        kappa = min(self.threshold.kappa, 1.0)
        pi = probabilities(self.parts.network, batch.observations)
        log_mask = soft_mask_log(pi, kappa, epsilon)
        problem = StepProblem(
            batch.observations,
            _SoftSetObjective(
                self._config,
                batch,
                kappa,
                self._roll_out(batch, pi, log_mask, kappa),
                self.horizon.gamma,
            ),
            policy_metric(pi) + set_metric(pi, log_mask, epsilon),
            float(1 - self._alpha),
        )
        done = improve(self.parts.network, problem, self._config.region)
        self.parts.network = done.network
        self._done += 1
        pi = probabilities(done.network, batch.observations)
        return {"violation": done.violation, **self._follow(batch, pi, kappa)}

    def _roll_out(
        self, batch: Questions, pi: Tensor, log_mask: Tensor, kappa: float
    ) -> SampledSurrogate:
        behaviour, target = pi.numpy(), soft_set_policy(log_mask).numpy()
        episodes = draw(behaviour, batch.correct, self.parts.rng)
        leaves = leaf_count(episodes, log_mask.exp().numpy())
        weight = episodes.product(episodes.of_action(target) / episodes.of_action(behaviour))
        level = float((weight * leaves).mean() + 1.0 - batch.solvable.mean())
        cost = batch.cost
        if price := self._config.set_size_price:
            _, member = followed(behaviour, batch, kappa)
            cost = cost + price * set_charge(episodes, member, self._config.set_size_credit)
        coverage = episodes.final * leaves[:, None]
        gamma = self.horizon.gamma
        share = SCHEDULES[self._config.critic_schedule](self._done / self._config.updates)
        return self.parts.criticise(
            RollOut(batch, episodes, behaviour, target, cost, coverage, level, gamma, share)
        )

    def _follow(self, batch: Questions, pi: Tensor, kappa: float) -> dict[str, float]:
        """Update the threshold on the new policy's coverage, and return the update's figures."""
        run, member = followed(pi.numpy(), batch, kappa)
        critical = critical_threshold(soft_paths(pi)[1], torch.from_numpy(batch.correct))
        self.threshold = update(self.threshold, critical.numpy(), self._alpha)
        covered = (member & batch.correct).any(axis=(1, 2)) | ~batch.solvable
        goes_on = np.pad(run[:, 1:], ((0, 0), (0, 1)))
        self.horizon = self.horizon.after(goes_on, cheapest_success(batch.correct))
        mastered = {"mastered": float(self.horizon.mastered)}
        return {
            "cost": float((batch.cost * run).sum(axis=1).mean()),
            "coverage": float(covered.mean()),
            "kappa": self.threshold.kappa,
            "length": float(run.sum(axis=1).mean()),
            "set_size": float(member.sum(axis=(1, 2)).mean()),
            **(mastered if self._config.discount == "automatic" else {}),
        }


@dataclass(frozen=True)
class _SoftSetObjective:
    config: CcpoConfig
    batch: Questions
    kappa: float
    sampled: SampledSurrogate
    gamma: float = 1.0
    """Discount of a round's cost."""

    def __call__(self, probabilities: Tensor) -> Surrogate:
        config, kappa = self.config, self.kappa
        target = soft_set_policy(soft_mask_log(probabilities, kappa, config.epsilon))
        reach, path = soft_paths(probabilities)
        cost = self.sampled.cost(target)
        if config.cost == "exact":
            cost = cost + self._exact_cost(reach, path)
        if config.constraint == "exact":
            correct = torch.from_numpy(self.batch.correct)
            coverage = soft_coverage(path, correct, kappa, config.epsilon)
        else:
            coverage = self.sampled.coverage(target)
        return Surrogate(cost, coverage, (probabilities, target))

    def _exact_cost(self, reach: Tensor, path: Tensor) -> Tensor:
        weight = np.power(self.gamma, np.arange(self.batch.cost.shape[1]), dtype=np.float64)
        paid = torch.from_numpy(self.batch.cost * weight)
        cost = soft_cost(reach, paid, self.kappa, self.config.epsilon)
        if self.config.set_size_price:
            answered = torch.from_numpy(self.batch.answered * weight[:, None])
            size = soft_set_size(path, answered, self.kappa, self.config.epsilon)
            cost = cost + self.config.set_size_price * size
        return cost


def leaf_count(episodes: Episodes, mask: FloatArray) -> FloatArray:
    """Return prod_t sum_a m(a, o_t) where an episode's answer is right, and 0 elsewhere, [B].

    Its expectation under S is the expected number of right leaves in the set, each leaf counting
    the product of the masks on its path: the paper's bound on the coverage (section 4.2).

    Args:
        episodes: the episodes.
        mask: [B, T, A] the soft mask m.
    """
    return episodes.product(mask.sum(axis=2)) * episodes.right


def set_charge(episodes: Episodes, member: BoolArray, credit: Credit) -> FloatArray:
    """Return the answers that each step is charged for, [B, T].

    Args:
        episodes: the episodes.
        member: [B, T, L] which leaves are in the set.
        credit: `end`: all of them where the episode ends; `leaf`: each in its own round.
    """
    leaves: FloatArray = member.sum(axis=2, dtype=np.float64)
    if credit == "end":
        leaves = episodes.final * leaves.sum(axis=1, keepdims=True)
    return leaves


def followed(pi: FloatArray, batch: Questions, kappa: float) -> tuple[BoolArray, BoolArray]:
    """Follow the set policy: which rounds are run, [B, T], and which leaves taken, [B, T, L]."""
    reach, path = soft_paths(torch.from_numpy(pi))
    return reach.numpy() >= kappa, (path.numpy() >= kappa) & batch.answered


SET_SIZE_PRICE = 0.86
"""The paper's lambda of 2e-4 USD in units of its mean round."""
CCPO = CcpoLearner()
CCPO_LAMBDA = CcpoLearner(CcpoConfig(set_size_price=SET_SIZE_PRICE))
CCPO_PUBLISHED = CcpoLearner(PUBLISHED)


def published(set_size_price: float) -> CcpoLearner:
    """Return the paper's own with a price on each answer, in mean costs of a round."""
    return CcpoLearner(replace(PUBLISHED, set_size_price=set_size_price))
