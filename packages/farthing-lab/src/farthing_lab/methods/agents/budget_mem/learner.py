"""Trains the router: one actor-critic for all five modules, on episodes drawn from a table.

Cost stands beside reward on a scale of its own: sliding quantiles of costs, and how far rewards
spread. Source: BudgetMem (arXiv 2602.06025). Ours: the window stands still once it is full, unless
`slides` is set, so that a weight means the same from the first update to the last and is a price;
and costs beyond the quantiles are not cut off, for the same reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from farthing.methods.base import Progress, Silent
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.methods.agents.budget_mem.policy import (
    DEPTH,
    FEATURES,
    Router,
    TierTable,
    blinded,
    first_state,
)

LOW, HIGH = 0.05, 0.95
"""Quantiles of the window that cost is measured by."""


@dataclass
class CostScale:
    """The latest costs and rewards.

    >>> scale = CostScale(window=4)
    >>> scale.see(np.array([100.0, 200.0, 300.0, 400.0]), np.array([0.0, 1.0, 0.0, 1.0]))
    >>> round(scale.per_nano(), 5), round(scale.price(2.0), 5)
    (0.0037, 0.00894)
    """

    window: int = 2_048
    slides: bool = False
    """Whether new costs push out old ones once the window is full."""
    costs: FloatArray = field(default_factory=lambda: np.zeros(0))
    rewards: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def full(self) -> bool:
        return len(self.costs) >= self.window

    def see(self, costs: FloatArray, rewards: FloatArray) -> None:
        """Take in the costs, in nano-dollars, and the rewards of some episodes."""
        if self.full and not self.slides:
            return
        self.costs = np.concatenate([self.costs, costs])[-self.window :]
        self.rewards = np.concatenate([self.rewards, rewards])[-self.window :]

    def per_nano(self) -> float:
        """Return by how much a nano-dollar moves the normalised cost: 1 from quantile to quantile.

        0 where all costs are the same: then cost says nothing.
        """
        low, high = np.quantile(self.costs, [LOW, HIGH])
        return 1.0 / float(high - low) if high > low else 0.0

    def price(self, weight: float) -> float:
        """Return what a nano-dollar costs in reward: the weight, at the spread of rewards."""
        spread = float((self.costs * self.per_nano()).std())
        if spread == 0.0:
            return 0.0
        return weight * self.per_nano() * float(self.rewards.std()) / spread


WEIGHTS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)
"""What cost weighs, in the family that is trained."""
HIDDEN = 48


@dataclass(frozen=True)
class RouterLearner:
    """Advantage actor-critic with the return to go of each module.

    Cost lowers the return by `CostScale.price` for each nano-dollar still to be paid.
    """

    updates: int = 300
    batch: int = 192
    """Episodes of an update."""
    rate: float = 5e-3
    entropy: float = 0.25
    """What randomness is worth at first; it falls to nothing along the training."""
    restarts: int = 2
    seed: int = 0
    """The same seed gives the same routers."""
    slides: bool = False
    """Whether the cost scale goes on sliding; see `CostScale`."""

    def scale(self, table: TierTable) -> CostScale:
        rng = np.random.default_rng([self.seed, 7])
        scale = CostScale(slides=self.slides)
        rows = rng.integers(len(table), size=scale.window)
        leaf = rng.integers(3**DEPTH, size=scale.window)
        scale.see(table.cost_nano[rows, leaf].astype(float), table.right[rows, leaf].astype(float))
        return scale

    def fit(self, table: TierTable, weight: float, *, blind: bool = False) -> Router:
        """Return the best router of some restarts, by its own objective on the table.

        The weight is that of cost, see `CostScale`; 0 means right answers alone. `blind` hides the
        questions, so that all get the same tiers.
        """
        seen = blinded(table) if blind else table
        price = self.scale(table).price(weight)
        found = [
            self._train(seen, weight, [self.seed, k], blind=blind) for k in range(self.restarts)
        ]
        return max(found, key=lambda one: worth(table, one, price))

    def _train(
        self, table: TierTable, weight: float, seed: Sequence[int], *, blind: bool
    ) -> Router:
        rng = np.random.default_rng([*seed, 1])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**31)))
            trunk = nn.Sequential(
                nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh()
            ).double()
            actor, critic = nn.Linear(HIDDEN, 3).double(), nn.Linear(HIDDEN, 1).double()
        parameters = [*trunk.parameters(), *actor.parameters(), *critic.parameters()]
        adam = torch.optim.Adam(parameters, lr=self.rate)
        scale = self.scale(table)
        for update in range(self.updates):
            left = 1.0 - update / self.updates
            states, tiers, back = self._episodes(
                table, scale, weight, rng, _router(trunk, actor, weight, blind=blind)
            )
            hidden = trunk(torch.from_numpy(states))
            log = torch.log_softmax(actor(hidden), dim=1)
            value = critic(hidden)[:, 0]
            returns = torch.from_numpy(back)
            ahead = (returns - value).detach()
            ahead /= ahead.std() + 1e-6
            taken = log.gather(1, torch.from_numpy(tiers)[:, None])[:, 0]
            random = -(log.exp() * log).sum(dim=1).mean()
            loss = -(taken * ahead).mean() + 0.5 * (returns - value).square().mean()
            loss -= self.entropy * left * random
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            for group in adam.param_groups:
                group["lr"] = self.rate * max(left, 0.05)
            adam.step()
        return _router(trunk, actor, weight, blind=blind)

    def _episodes(
        self,
        table: TierTable,
        scale: CostScale,
        weight: float,
        rng: np.random.Generator,
        now: Router,
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        """Draw a batch; return features, tiers and returns to go of each step, modules in turn."""
        rows = rng.integers(len(table), size=self.batch)
        at = np.zeros(self.batch, dtype=np.int64)
        states, tiers = [], []
        paid = np.zeros((DEPTH, self.batch))
        for module in range(DEPTH):
            state = first_state(module) + at
            states.append(table.features[rows, state])
            gumbel = rng.gumbel(size=(self.batch, 3))
            tiers.append((now.logits(states[-1]) + gumbel).argmax(axis=1))
            paid[module] = table.step_nano[rows, state, tiers[-1]]
            at = 3 * at + tiers[-1]
        right = table.right[rows, at].astype(float)
        scale.see(paid.sum(axis=0), right)
        to_pay = paid[::-1].cumsum(axis=0)[::-1]
        back = right - scale.price(weight) * to_pay
        return np.concatenate(states), np.concatenate(tiers), back.reshape(-1)


def _router(trunk: nn.Sequential, actor: nn.Linear, weight: float, *, blind: bool) -> Router:
    layers = [layer for layer in (*trunk, actor) if isinstance(layer, nn.Linear)]
    weights = tuple(layer.weight.detach().numpy().copy().T for layer in layers)
    return Router(
        weights, tuple(layer.bias.detach().numpy().copy() for layer in layers), weight, blind
    )


def worth(table: TierTable, router: Router, price: float) -> float:
    """Return the mean of right - price x cost on a table, tiers taken greedily."""
    right, cost = table.means(table.followed(router))
    return right - price * cost


@dataclass(frozen=True)
class Family:
    """Routers for several weights of cost: the more it weighs, the less is paid."""

    weights: tuple[float, ...]
    prices: tuple[float, ...]
    """What a nano-dollar costs in reward at each weight."""
    routers: tuple[Router, ...]
    right: tuple[float, ...]
    """Share of right answers at each weight, on the questions that were learned from."""
    cost_nano: tuple[float, ...]
    """Mean cost of a question at each weight, there; it never rises with the weight."""

    def within(self, mean_nano: float) -> int:
        """Return the smallest weight, as its place, that costs no more on average; else the last.

        The mean is that of the questions that were learned from.
        """
        fits = [k for k, cost in enumerate(self.cost_nano) if cost <= mean_nano]
        return fits[0] if fits else len(self.weights) - 1


def fit_family(
    table: TierTable,
    weights: Sequence[float] = WEIGHTS,
    learner: RouterLearner | None = None,
    progress: Progress | None = None,
) -> Family:
    """Train a router for each weight; each weight then takes the best of all of them.

    Since all choose from the same routers, the mean cost on the table cannot rise with the weight:
    if a dearer router were better at the larger price, it would be so at the smaller one.
    """
    learner, progress = learner or RouterLearner(), progress or Silent()
    ordered = tuple(sorted(weights))
    trained = []
    for done, weight in enumerate(ordered, start=1):
        trained.append(learner.fit(table, weight))
        progress.update(done, len(ordered), {})
    means = [table.means(table.followed(router)) for router in trained]
    scale = learner.scale(table)
    prices = tuple(scale.price(weight) for weight in ordered)
    taken = []
    for price in prices:
        worths = [right - price * cost for right, cost in means]
        best = max(worths)
        tied = [k for k, value in enumerate(worths) if value >= best - 1e-12]
        taken.append(min(tied, key=lambda k: means[k][1]))
    return Family(
        ordered,
        prices,
        tuple(trained[k] for k in taken),
        tuple(means[k][0] for k in taken),
        tuple(means[k][1] for k in taken),
    )
