"""The scale of cost beside reward: sliding quantiles of costs, and how far rewards spread.

Source: BudgetMem (arXiv 2602.06025). Ours: the window stands still once it is full, unless `slides`
is set, so that a weight means the same from the first update to the last and is a price; and
costs beyond the quantiles are not cut off, for the same reason.
"""

from dataclasses import dataclass, field

import numpy as np

from farthing.traces.arrays import FloatArray

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
        """Whether as many episodes as the window holds were seen."""
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
