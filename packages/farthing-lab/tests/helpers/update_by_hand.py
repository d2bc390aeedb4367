"""One update of CCPO or CPO from its definitions, with loops over questions, rounds and actions.

Slow on purpose, and it shares no formula with the package: V-trace is a naive sum, critics are
plain modules, Fisher matrices are differences (docs/research/ccpo.md, equations 4 to 9).
"""

import math

import numpy as np
import torch

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.ccpo.learner import CcpoConfig, CpoConfig
from farthing_lab.rl.actor_critic import Critics, Episodes, Questions
from farthing_lab.rl.networks import Network


class CriticsByHand:
    """Two separate networks of three hidden layers of 64, each with its Adam at 1e-3."""

    def __init__(self, start: Critics, steps: int | None = None) -> None:
        """Copy critics; `steps`: their rates fall on a line, to 0 after so many."""
        self.steps, self.done = steps, [0, 0]
        self.networks = [self._copied(start, k) for k in range(2)]
        self.optimisers = [torch.optim.Adam(n.parameters(), lr=1e-3) for n in self.networks]

    @staticmethod
    def _copied(start: Critics, k: int) -> torch.nn.Sequential:
        layers: list[torch.nn.Module] = []
        for weight, bias in zip(start._weights, start._biases, strict=True):
            layer = torch.nn.Linear(weight.shape[1], weight.shape[2], dtype=torch.float64)
            layer.load_state_dict({"weight": weight[k].detach().T, "bias": bias[k, 0].detach()})
            layers += [layer, torch.nn.Tanh()]
        assert [m.out_features for m in layers[::2]] == [64, 64, 64, 1]
        return torch.nn.Sequential(*layers[:-1])

    def values(self, k: int, observations: FloatArray) -> FloatArray:
        with torch.no_grad():
            found: FloatArray = self.networks[k](torch.from_numpy(observations))[..., 0].numpy()
        return found

    def fit(self, k: int, observations: FloatArray, targets: FloatArray, ends: list[int]) -> None:
        values = self.networks[k](torch.from_numpy(observations))[..., 0]
        loss = torch.zeros((), dtype=torch.float64)
        for i, end in enumerate(ends):
            for t in range(end):
                loss = loss + 0.5 * (float(targets[i, t]) - values[i, t]) ** 2 / len(ends)
        if self.steps is not None:
            [group] = self.optimisers[k].param_groups
            group["lr"] = 1e-3 * (1 - self.done[k] / self.steps)
        self.done[k] += 1
        self.optimisers[k].zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimisers[k].step()


def chances(network: Network, observations: FloatArray) -> FloatArray:
    """Return pi(a|o), [B, T, A]: tanh layers, a softmax, and no `next` in the last round."""
    *below, (weight, bias) = network.layers()
    pi = np.zeros((*observations.shape[:2], len(bias)))
    for i, t in np.ndindex(pi.shape[:2]):
        hidden = observations[i, t]
        for w, b in below:
            hidden = np.tanh(hidden @ w + b)
        odds = np.exp((hidden @ weight + bias)[: available(pi, t)])
        pi[i, t, : len(odds)] = odds / odds.sum()
    return pi


def available(pi: FloatArray, t: int) -> int:
    """Return how many of the actions there are in round t: `next` is last, and not in the last."""
    return int(pi.shape[2] - (t == pi.shape[1] - 1))


def masks(pi: FloatArray, kappa: float, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Return log m and S, [B, T, A] each; 0 for `next` in the last round."""
    log_mask = -np.logaddexp(0.0, (kappa - pi) / epsilon)
    s = np.zeros_like(pi)
    for i, t in np.ndindex(pi.shape[:2]):
        open_ = log_mask[i, t, : available(pi, t)]
        weight = np.exp(open_ - open_.max())
        s[i, t, : len(open_)] = weight / weight.sum()
    log_mask[:, -1, -1] = -np.inf
    return log_mask, s


def walk(pi: FloatArray, batch: Questions) -> tuple[FloatArray, dict[tuple[int, int, int], float]]:
    """Return reach, [B, T], and path of each leaf that is an answer, by question, round, role."""
    reach = np.ones(pi.shape[:2])
    leaf: dict[tuple[int, int, int], float] = {}
    for i, t in np.ndindex(reach.shape):
        if t > 0:
            reach[i, t] = min(reach[i, t - 1], pi[i, t - 1, -1])
        for a in range(pi.shape[2] - 1):
            if batch.answer[i, t, a] >= 0:
                leaf[i, t, a] = min(reach[i, t], pi[i, t, a])
    return reach, leaf


def critical(pi: FloatArray, batch: Questions) -> list[float]:
    """Return kappa* of each question."""
    _, leaf = walk(pi, batch)
    right = [
        [p for (j, t, a), p in leaf.items() if j == i and batch.correct[j, t, a]]
        for i in range(len(pi))
    ]
    return [max(paths, default=math.inf) for paths in right]


def sigmoid(x: float) -> float:
    return 1.0 if x == math.inf else math.exp(-np.logaddexp(0.0, -x))


def naive_vtrace(
    reward: FloatArray, value: FloatArray, rho: FloatArray, gamma: float
) -> FloatArray:
    """Return the targets of one episode: a sum of corrected differences (equation 4)."""
    following = [*value[1:], 0.0]
    differences = [
        r * (x + gamma * f - v) for r, x, f, v in zip(rho, reward, following, value, strict=True)
    ]
    return np.array(
        [
            value[s]
            + sum(
                gamma ** (t - s) * math.prod(rho[s:t]) * differences[t]
                for t in range(s, len(value))
            )
            for s in range(len(value))
        ]
    )


def divergence(new: FloatArray, old: FloatArray) -> float:
    total = 0.0
    for place in np.ndindex(new.shape):
        if new[place] > 0:
            p, q = float(new[place]), max(float(old[place]), 1e-300)
            total += p * (math.log(p) - math.log(q))
    return total / math.prod(new.shape[:2])


class UpdateByHand:
    """One update, from its definitions."""

    def __init__(
        self,
        config: CcpoConfig | CpoConfig,
        batch: Questions,
        start: tuple[Network, float, float],
        episodes: Episodes,
        critics: CriticsByHand,
    ) -> None:
        network, kappa, self.gamma = start
        self.config, self.batch, self.episodes = config, batch, episodes
        self.kappa = min(kappa, 1.0)
        self.pi = chances(network, batch.observations)
        self.s = self.target(self.pi)
        self.ends = [int(np.flatnonzero(row)[0]) + 1 for row in episodes.final]
        self.level = self._level()
        rewards = np.stack([self._costs(), self._covers()])
        self.advantage, targets = np.zeros_like(rewards), np.zeros_like(rewards)
        for k, i in np.ndindex(rewards.shape[:2]):
            end = self.ends[i]
            rho = np.array([min(1.0, self.ratio(i, t)) for t in range(end)])
            value = critics.values(k, batch.observations)[i, :end]
            gamma = 1.0 if k else self.gamma  # of costs alone
            target = naive_vtrace(rewards[k, i, :end], value, rho, gamma)
            targets[k, i, :end] = target
            following = gamma * np.array([*target[1:], 0.0])
            self.advantage[k, i, :end] = rewards[k, i, :end] + following - value
        for k in range(2):
            critics.fit(k, batch.observations, targets[k], self.ends)

    def target(self, pi: FloatArray) -> FloatArray:
        """Return S for CCPO; CPO's target is the policy itself."""
        if isinstance(self.config, CpoConfig):
            return pi
        return masks(pi, self.kappa, self.config.epsilon)[1]

    def distributions(self, pi: FloatArray) -> list[FloatArray]:
        """Return what may not move further than the radius."""
        return [pi] if isinstance(self.config, CpoConfig) else [pi, self.target(pi)]

    def ratio(self, i: int, t: int) -> float:
        a = self.episodes.action[i, t]
        return float(self.s[i, t, a] / self.pi[i, t, a])

    def _right(self, i: int) -> bool:
        t = self.ends[i] - 1
        return bool(self.batch.correct[i, t, self.episodes.action[i, t]])

    def _leaves(self, i: int) -> float:
        """Return prod_t sum_a m(a, o_t) of a right episode, else 0."""
        assert isinstance(self.config, CcpoConfig)
        mask = np.exp(masks(self.pi, self.kappa, self.config.epsilon)[0])
        return self._right(i) * math.prod(float(mask[i, t].sum()) for t in range(self.ends[i]))

    def _end_value(self, i: int) -> float:
        """Return what an episode's last step adds to the constraint."""
        if isinstance(self.config, CpoConfig):
            return float(self._right(i) or not self.batch.solvable[i])
        return self._leaves(i)

    def _level(self) -> float:
        everyone = range(len(self.ends))
        values = [
            self._end_value(i) * math.prod(self.ratio(i, t) for t in range(self.ends[i]))
            for i in everyone
        ]
        if isinstance(self.config, CpoConfig):
            return float(np.mean(values))
        return float(np.mean(values)) + 1.0 - float(np.mean(self.batch.solvable))

    def _covers(self) -> FloatArray:
        value = np.zeros(self.batch.cost.shape)
        for i, end in enumerate(self.ends):
            value[i, end - 1] = self._end_value(i)
        return value

    def _costs(self) -> FloatArray:
        cost = self.batch.cost.copy()
        if isinstance(self.config, CcpoConfig):
            for (i, t, _), path in walk(self.pi, self.batch)[1].items():
                charged = t if self.config.set_size_credit == "leaf" else self.ends[i] - 1
                cost[i, charged] += self.config.set_size_price * (path >= self.kappa)
        return cost

    def cost(self, new: FloatArray) -> float:
        """Return the surrogate of the cost of a new policy, [B, T, A]."""
        s, total = self.target(new), 0.0
        for i, end in enumerate(self.ends):
            for t in range(end):
                a = self.episodes.action[i, t]
                moved = s[i, t, a] / self.s[i, t, a]
                total += min(1.0, self.ratio(i, t)) * moved * self.advantage[0, i, t]
        if isinstance(self.config, CcpoConfig) and self.config.cost == "exact":
            total += self._paid_by_the_set(new, self.config)
        return total / len(self.ends)

    def _paid_by_the_set(self, new: FloatArray, config: CcpoConfig) -> float:
        reach, leaf = walk(new, self.batch)

        def soft(path: float) -> float:
            return sigmoid((path - self.kappa) / config.epsilon)

        paid = sum(
            self.gamma**t * cost * soft(float(reach[i, t]))
            for (i, t), cost in np.ndenumerate(self.batch.cost)
        )
        size = sum(self.gamma**t * soft(path) for (_, t, _), path in leaf.items())
        return float(paid) + config.set_size_price * size

    def coverage(self, new: FloatArray) -> float:
        """Return the surrogate of its coverage."""
        config = self.config
        if isinstance(config, CcpoConfig) and config.constraint == "exact":
            found = critical(new, self.batch)
            return float(np.mean([sigmoid((k - self.kappa) / config.epsilon) for k in found]))
        s, total = self.target(new), 0.0
        for i, end in enumerate(self.ends):
            for t in range(end):
                a = self.episodes.action[i, t]
                gained = (s[i, t, a] - self.s[i, t, a]) / self.pi[i, t, a]
                total += gained * self.advantage[1, i, t]
        return self.level + total / len(self.ends)

    def metric(self) -> FloatArray:
        """Return sum_a p_a (d log p_a / dz)(d log p_a / dz)', for pi and (CCPO) S, [B, T, A, A]."""
        kinds = 1 if isinstance(self.config, CpoConfig) else 2
        actions, h = self.pi.shape[2], 1e-6
        total = np.zeros((*self.pi.shape, actions))
        slopes = np.zeros((kinds, *self.pi.shape, actions))
        for b in range(actions):
            for sign in (1, -1):
                shifted = self.pi * np.exp(sign * h * (np.arange(actions) == b))
                shifted /= shifted.sum(axis=2, keepdims=True)
                for k, p in enumerate((shifted, self.target(shifted))[:kinds]):
                    slopes[k, ..., b] += sign * np.log(np.maximum(p, 1e-300)) / (2 * h)
        for k, p in enumerate((self.pi, self.s)[:kinds]):
            for place in np.ndindex(self.pi.shape):
                total[place[:2]] += p[place] * np.outer(slopes[k][place], slopes[k][place])
        return total
