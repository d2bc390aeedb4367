"""Constrained policy optimisation without a set: the paper's CPO baselines.

The sampled answer is to be right (or nothing is) with probability 1 - alpha. CPO acts by sampling;
CPO batch and CPO online turn the same policy into sets, by split conformal calibration or by the
threshold that this learner leaves behind.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from farthing.features.rounds import FeatureSet
from farthing.methods.base import Fitted, Progress
from farthing.methods.cpo.policy import NetworkPolicy
from farthing.methods.recorder import Recorder
from farthing.process.replay import paths
from farthing.promises.kinds.online import run_online
from farthing.rl.actor_critic import ActorCritic, RollOut, SampledSurrogate, question_stream
from farthing.rl.networks import Network
from farthing.rl.rollout import Questions, draw
from farthing.rl.soft_set import policy_metric
from farthing.rl.trust_region import Problem, Surrogate, TrustRegion, improve, probabilities
from farthing.traces.arrays import TraceArrays


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
        """Train on recorded questions; the same seed gives the same policy, bit for bit.

        The threshold is that of CPO online: an online pass over the questions of all updates, in
        the order in which CCPO meets them under the same seed.
        """
        torch.set_num_threads(1)
        features = FeatureSet.fit(train, self.extra_features)
        questions = Questions.of(train, features.transform(train))
        training = _Training(self.config, questions, alpha, seed)
        recorder = Recorder(progress, self.config.updates)
        stopped = recorder.run(training.update)
        policy = to_policy(training.parts.network, features)
        kappa = self._online(policy, train, alpha, seed)
        return Fitted(policy, kappa, recorder.curves(), stopped)

    def _online(
        self, policy: NetworkPolicy, train: TraceArrays, alpha: Fraction, seed: int
    ) -> float:
        critical = paths(policy.scores(train), train, empty="allow").critical
        stream = question_stream(len(train), self.config.batch, seed)
        order = np.concatenate([next(stream) for _ in range(self.config.updates)])
        return float(run_online(critical[order], alpha, stream.batch)[-1])


class _Training:
    """CPO on the network's own actions."""

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
        problem = Problem(batch.observations, _Objective(sampled), policy_metric(pi), self._target)
        done = improve(self.parts.network, problem, self._config.region)
        self.parts.network = done.network
        return {
            "violation": done.violation,
            "cost": float((batch.cost * episodes.taken).sum(axis=1).mean()),
            "coverage": float(covered.mean()),
            "length": float(episodes.taken.sum(axis=1).mean()),
        }


@dataclass(frozen=True)
class _Objective:
    """What a new policy is worth on one batch."""

    sampled: SampledSurrogate

    def __call__(self, probabilities: Tensor) -> Surrogate:
        return Surrogate(
            self.sampled.cost(probabilities),
            self.sampled.coverage(probabilities),
            (probabilities,),
        )


CPO = CpoLearner()
"""The one learner that the three forms share, and so train once."""


def to_policy(network: Network, features: FeatureSet) -> NetworkPolicy:
    """Return the policy that ships."""
    weights, biases = zip(*network.layers(), strict=True)
    return NetworkPolicy(features, [w.copy() for w in weights], [b.copy() for b in biases])
