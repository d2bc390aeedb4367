"""What an agent under a budget is: it says which steps may be taken, and what is told of it.

An agent uses several things at once: calls of each tool, tokens, money. Each is a *resource* with a
budget in whole numbers: calls, tokens, nano-dollars. An `Allowance` says what each budget was and
what of it is used. An `AgentStep` is something that could be done next, with the most that it can
use. The system decides which steps are open; whoever acts takes one of these and charges what it
used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, Self

from farthing.errors import InputError

TOKENS = "tokens"
"""The resource that counts tokens, read and written."""
MONEY = "usd"
"""The resource that counts nano-dollars, of models and tools together."""

Amounts = Mapping[str, int]
"""Resource to calls, tokens or nano-dollars."""


@dataclass(frozen=True)
class Allowance:
    """What an agent may use, and what it has used; what has no budget is not counted.

    >>> allowance = Allowance.of({"search": 5}).charged({"search": 2, "tokens": 90})
    >>> allowance.used, allowance.left
    ({'search': 2}, {'search': 3})
    """

    budget: Amounts
    used: Amounts = field(default_factory=dict)
    """More than the budget only where something used more than the most that it said it could."""

    @classmethod
    def of(cls, budget: Amounts) -> Self:
        """Return the allowance of which nothing is used.

        Raises:
            InputError: a budget is negative, or no whole number.
        """
        for name, most in budget.items():
            if type(most) is not int or most < 0:
                raise InputError(f"the budget of {name} is {most}; give a whole number from 0 on")
        return cls(dict(budget), dict.fromkeys(budget, 0))

    @property
    def left(self) -> dict[str, int]:
        """What of each budget is left."""
        return {name: most - self.used[name] for name, most in self.budget.items()}

    def fits(self, needs: Amounts) -> bool:
        """Return whether so much of each resource is left."""
        left = self.left
        return all(need <= left[name] for name, need in needs.items() if name in left)

    def charged(self, used: Amounts) -> Self:
        """Return the allowance after so much more was used; it counts in full.

        Raises:
            ValueError: an amount is negative.
        """
        if any(amount < 0 for amount in used.values()):
            raise ValueError(f"nothing gives back what was used: {dict(used)}")
        return type(self)(self.budget, {k: v + used.get(k, 0) for k, v in self.used.items()})

    def share_left(self) -> Fraction:
        """Return the share of the tightest budget that is left; 1 where there is no budget.

        Of a budget of nothing, nothing is left.
        """
        shares = [Fraction(left, self.budget[k] or 1) for k, left in self.left.items()]
        return max(Fraction(0), min(shares, default=Fraction(1)))


@dataclass(frozen=True)
class AgentStep:
    """Something that could be done next."""

    name: str
    """A tool, a prompt, a tier of a module."""
    needs: Amounts
    """The most of each resource that it can use, with what has to follow it in any case."""


class AgentSystem(Protocol):
    """What a card of kind `agent` makes: pure functions of an allowance."""

    def allowed(self, allowance: Allowance, steps: Sequence[AgentStep]) -> tuple[bool, ...]:
        """Say of each step whether it may be taken now; never of one that does not fit."""
        ...

    def told(self, allowance: Allowance) -> str:
        """Return what the agent's model is told after each event; empty: nothing."""
        ...


def fitting(allowance: Allowance, steps: Sequence[AgentStep]) -> tuple[bool, ...]:
    """Say of each step whether it fits what is left of every budget.

    >>> fitting(Allowance.of({"search": 1}), [AgentStep("search", {"search": 1})])
    (True,)
    """
    return tuple(allowance.fits(step.needs) for step in steps)
