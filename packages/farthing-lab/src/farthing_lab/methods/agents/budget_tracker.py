"""The Budget Tracker: what is used and left, and guidance by the share that is left.

From 70 % on an agent explores widely, from 30 % on it follows the best lead, from 10 % on it only
settles what the answer hangs on, and below it answers. The paper names the regimes; which wording
goes with each is ours. The tightest of several budgets decides.

Source: Budget-aware tool use enables effective agent scaling (arXiv 2511.17006).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from farthing.methods.base import SystemCard
from farthing.money import dollars
from farthing_lab.methods.agents.base import MONEY, AgentStep, Allowance, fitting

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
Outcome = Literal["succeed", "continue", "pivot"]
VERIFY = (
    "Before this answer is given: check every part of the question against the observations above. "
    "Reply with one word first: SUCCEED if all of it is supported, CONTINUE if this lead is good "
    "and something has yet to be looked up, PIVOT if this lead is wrong."
)
NEXT: dict[Outcome, str] = {
    "continue": "Dig deeper on this lead: look up what is not yet supported.",
    "pivot": "Leave this lead and try another one.",
}
"""What the agent is told after each outcome but success."""
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_OUTCOMES: dict[str, Outcome] = {"succeed": "succeed", "continue": "continue", "pivot": "pivot"}


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

    def allowed(self, allowance: Allowance, steps: Sequence[AgentStep]) -> tuple[bool, ...]:
        return fitting(allowance, steps)

    def told(self, allowance: Allowance) -> str:
        """Return the state of every budget, and the guidance of the tightest one."""
        if not allowance.budget:
            return ""
        parts = []
        for name, most in allowance.budget.items():
            label, shown = ("money", dollars) if name == MONEY else (name, str)
            used, left = shown(allowance.used[name]), shown(allowance.left[name])
            parts.append(f"{label} {used} used, {left} left of {shown(most)}")
        return f"Budget: {'; '.join(parts)}.\n{self.guidance[regime_of(allowance.share_left())]}"


BUDGET_TRACKER = BudgetTracker()


def verifies(allowance: Allowance) -> bool:
    """Return whether an answer is worth verifying: there is budget to act on what comes of it."""
    return regime_of(allowance.share_left()) != "critical"


def read_outcome(text: str) -> Outcome:
    """Return what a reply decides: its first word; an answer that nobody objects to is given.

    >>> read_outcome("Pivot, since ..."), read_outcome("**CONTINUE**"), read_outcome("It is fine.")
    ('pivot', 'continue', 'succeed')
    """
    first = _WORD.search(text)
    return _OUTCOMES.get(first[0].lower(), "succeed") if first else "succeed"


CARD = SystemCard(
    name="budget-tracker",
    label="Budget Tracker (BATS)",
    meaning="Tells an agent with tools what it has used and has left, and how wide to explore",
    kind="agent",
    make=BUDGET_TRACKER,
    paper="2511.17006",
    page="docs/research/budget-agents.md",
    place=10,
)
