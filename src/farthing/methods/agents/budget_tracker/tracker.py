"""The Budget Tracker: what is used and left, and guidance by the share that is left.

From 70 % on an agent explores widely, from 30 % on it follows the best lead, from 10 % on it only
settles what the answer hangs on, and below it answers. The paper names the regimes; which wording
goes with each is ours. The tightest of several budgets decides.

Source: Budget-aware tool use enables effective agent scaling (arXiv 2511.17006).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from farthing.methods.agents.base import MONEY, Allowance, Amounts, Step, fitting
from farthing.money import dollars

Regime = Literal["high", "medium", "low", "critical"]

EDGES: tuple[tuple[Regime, Fraction], ...] = (
    ("high", Fraction(7, 10)),
    ("medium", Fraction(3, 10)),
    ("low", Fraction(1, 10)),
)
"""A regime and the least share of the budget that has to be left for it; below all: `critical`."""

GUIDANCE: Mapping[Regime, str] = {
    "high": "Plenty is left: explore. Try different queries, and check a find in a second place.",
    "medium": "Some is left: follow the most promising lead, one precise query at a time.",
    "low": "Little is left: begin nothing new. Only look up what the answer hangs on.",
    "critical": "Almost nothing is left: answer now, from what you have seen.",
}


def regime_of(left: Fraction) -> Regime:
    """Return the regime of a share of the budget that is left; each edge belongs to the upper one.

    >>> [regime_of(Fraction(left, 10)) for left in (7, 6, 3, 2, 1, 0)]
    ['high', 'medium', 'medium', 'low', 'low', 'critical']
    """
    return next((name for name, least in EDGES if left >= least), "critical")


@dataclass(frozen=True)
class BudgetTracker:
    """States what is used and left of every budget, and says how wide to explore.

    >>> print(BudgetTracker().told(Allowance.of({"search": 5}).charged({"search": 4})))
    Budget: search 4 used, 1 left of 5.
    Little is left: begin nothing new. Only look up what the answer hangs on.
    """

    guidance: Mapping[Regime, str] = field(default_factory=lambda: dict(GUIDANCE))
    """What is said in each regime."""

    def allowed(self, allowance: Allowance, steps: Sequence[Step]) -> tuple[bool, ...]:
        """Return whether each step fits: what is told guides, and the budget is hard."""
        return fitting(allowance, steps)

    def told(self, allowance: Allowance) -> str:
        """Return the state of every budget, and the guidance of the tightest one."""
        if not allowance.budget:
            return ""
        parts = [_state(allowance, name) for name in allowance.budget]
        return f"Budget: {'; '.join(parts)}.\n{self.guidance[regime_of(allowance.share_left())]}"


def _state(allowance: Allowance, name: str) -> str:
    used, left, most = allowance.used[name], allowance.left[name], allowance.budget[name]
    if name == MONEY:
        return f"money {dollars(used)} used, {dollars(left)} left of {dollars(most)}"
    return f"{name} {used} used, {left} left of {most}"


def unified_cost_nano(tokens_nano: int, calls: Amounts, price_nano: Amounts) -> int:
    """Return what an agent cost in all: its tokens, and each tool's calls at the tool's price.

    Args:
        tokens_nano: what the models charged, in nano-dollars.
        calls: tool to how often it was used.
        price_nano: tool to the price of one call, in nano-dollars; a tool without one is free.

    Source: the unified cost of 2511.17006, tokens + sum over tools of calls x price.

    >>> unified_cost_nano(1_200, {"search": 3, "browse": 1}, {"search": 1_000})
    4200
    """
    return tokens_nano + sum(n * price_nano.get(tool, 0) for tool, n in calls.items())


BUDGET_TRACKER = BudgetTracker()
