"""Who does each step of a task: boundary policies, a random mixture and BoPO, under one budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from farthing.errors import InputError
from farthing.methods.routers.bopo.episodes import UNLIMITED, Chain, Chances, always, at_random, run
from farthing.methods.routers.bopo.learner import BopoConfig, Boundaries
from farthing.methods.routers.bopo.policy import CLASSES
from farthing.money import dollars
from farthing.traces.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Row:
    """What one policy came to on tasks that nobody learned from."""

    name: str
    success: FloatArray
    """[n] 1 where the episode succeeded."""
    cost_nano: IntArray
    """[n]"""
    large: FloatArray
    """[n] share of the steps that the large model did."""
    over: int
    """Episodes that cost more than the budget: none, ever."""

    @property
    def rate(self) -> float:
        """Share of the episodes that succeeded."""
        return float(self.success.mean())

    @property
    def cost_usd(self) -> float:
        """Mean dollars of a task."""
        return float(self.cost_nano.mean()) / 1e9


def played(
    name: str, chain: Chain, chances: Chances, budget_nano: IntArray, rng: np.random.Generator
) -> Row:
    """Play every task once under its budget, [tasks]."""
    done = run(chain, np.arange(chain.tasks), chances, budget_nano, rng)
    made: BoolArray = done.action >= 0
    large = (done.action == 1).sum(axis=1) / np.maximum(made.sum(axis=1), 1)
    over = int((done.cost_nano > budget_nano).sum())
    return Row(name, done.success.astype(float), done.cost_nano, large, over)


def refuse(chain: Chain, budget_nano: int) -> None:
    """Refuse a budget in which no task can be done.

    Raises:
        InputError: it is below what the small model can cost in every task.
    """
    state = chain.begin(np.arange(chain.tasks))
    whole = chain.largest_nano(state, 0)[:, 0] + chain.rest_nano(state, 0)
    least = int(whole.min())
    if budget_nano < least:
        raise InputError(
            f"a budget of {dollars(budget_nano)} pays for no task; one by the small model alone "
            f"can cost {dollars(least)}"
        )


def compare(
    chain: Chain,
    policies: Mapping[str, Chances],
    budget_nano: int | None,
    rng: np.random.Generator,
) -> list[Row]:
    """Play all tasks under one budget each: the boundaries, mixtures of both, and policies.

    Args:
        chain: tasks that no policy learned from.
        policies: name to what is to be compared.
        budget_nano: most that a task may cost; None for no limit.
        rng: the draws.
    """
    budget = np.full(chain.tasks, UNLIMITED if budget_nano is None else budget_nano)
    shares = {f"drawn, {share:.0%} large": share for share in (0.25, 0.5, 0.75)}
    every: dict[str, Chances] = {"always small": always(0), "always large": always(1)}
    every |= {
        name: at_random(np.full(chain.tasks, share)) for name, share in shares.items()
    } | dict(policies)
    return [played(name, chain, chances, budget, rng) for name, chances in every.items()]


def classes(known: Boundaries) -> dict[str, float]:
    """Return the share of the tasks in each class."""
    count = np.bincount(known.kind, minlength=len(CLASSES))
    return dict(zip(CLASSES, (count / count.sum()).tolist(), strict=True))


def configs(prices: Sequence[float], config: BopoConfig) -> dict[str, BopoConfig]:
    """Return how to learn for each lambda, by the name of its row."""
    return {f"BoPO, lambda {price:g}": replace(config, price=price) for price in prices}
