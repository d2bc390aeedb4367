"""Chooses a tier for each memory module, one after another, by one small network; numpy alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from farthing.errors import BudgetError
from farthing.methods.base import SystemCard
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.agents.base import MONEY, AgentStep, Allowance, fitting
from farthing_lab.methods.agents.budget_mem.modules import (
    MODULES,
    PRICES,
    TIERS,
    Memory,
    ModulePrices,
    ParagraphSearch,
    distinct,
    largest_nano,
    line_of,
    reached,
    rest_nano,
    run,
)

ABOUT_STEP = 2 * len(MODULES)
"""Features that say which module is next, and which tiers were taken before."""
ABOUT_FOUND = 10
"""Features of the question and of what was found."""
FEATURES = ABOUT_STEP + ABOUT_FOUND


def features(memory: Memory, tiers: Sequence[int]) -> FloatArray:
    """Return what the network sees before the next module, [FEATURES].

    The module and the tiers so far; how long the question is, how many names it has, and whether it
    asks who; how much was found, how much of it twice, how many of the question's words are in it,
    how much its best line shares with the question, and how far its names lead.
    """
    step = np.zeros(ABOUT_STEP)
    step[len(tiers)] = 1.0
    step[len(MODULES) : len(MODULES) + len(tiers)] = np.array(tiers, dtype=float) / 2.0
    question, lines = memory.question, memory.lines
    shared = [len(line.words & question.words) for line in lines]
    seen = question.words & frozenset().union(*(line.words for line in lines))
    near, far = len(reached(memory, 1)), len(reached(memory, 2))
    found = (
        question.tokens / 10.0,
        len(question.names) / 2.0,
        float(question.text[:3].lower() == "who"),
        np.log1p(memory.tokens) / 6.0,
        np.log1p(len(lines)) / 4.0,
        1.0 - len(distinct(lines)) / len(lines) if lines else 0.0,
        len(seen) / max(1, len(question.words)),
        max(shared, default=0) / max(1, len(question.words)),
        (near - len(question.words)) / 10.0,
        (far - near) / 10.0,
    )
    return np.concatenate([step, found])


@dataclass(frozen=True)
class Router:
    """The trained network: tanh units, then a logit for each tier."""

    weights: tuple[FloatArray, ...]
    """[inputs, outputs] of each layer."""
    biases: tuple[FloatArray, ...]
    weight: float = 0.0
    """What cost weighed in training."""
    blind: bool = False
    """Whether it sees the module and the tiers alone, so that all questions get the same."""

    def logits(self, inputs: FloatArray) -> FloatArray:
        """Map features, [..., FEATURES], to a logit for each tier, [..., 3]."""
        hidden = inputs.copy()
        if self.blind:
            hidden[..., ABOUT_STEP:] = 0.0
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = np.tanh(hidden @ w + b)
        out: FloatArray = hidden @ self.weights[-1] + self.biases[-1]
        return out

    def choose(self, inputs: FloatArray, allowed: Sequence[bool]) -> int:
        """Return the likeliest tier among those allowed; at least one is."""
        logits = np.where(allowed, self.logits(inputs), -np.inf)
        return int(logits.argmax())


Choose = Callable[[FloatArray, Sequence[bool]], int]
"""Chooses a tier by the features and by which tiers are allowed."""


@dataclass(frozen=True)
class Fixed:
    """The same tiers for every question; a tier that is not allowed gives way to a lower one."""

    tiers: tuple[int, ...]

    def choose(self, inputs: FloatArray, allowed: Sequence[bool]) -> int:
        tier = self.tiers[int(inputs[: len(MODULES)].argmax())]
        below = [k for k in range(tier + 1) if allowed[k]]
        return below[-1] if below else int(np.argmax(allowed))


@dataclass(frozen=True)
class Remembered:
    """What was put together for a question."""

    context: str
    """What whoever answers is to read."""
    tiers: tuple[int, ...]
    cost_nano: int

    @property
    def said(self) -> dict[str, str]:
        return {name: TIERS[tier] for name, tier in zip(MODULES, self.tiers, strict=True)}


@dataclass(frozen=True)
class BudgetMem:
    """Pays for memory tier by tier, and never for one after which the cheapest rest would not fit.

    >>> mem = BudgetMem()
    >>> search = lambda query, top=None: [("Torva", "The mayor of Torva is Ada Marek.")]
    >>> got = mem.remember("Who is the mayor of Torva?", search, Fixed((0, 0, 0, 0, 0)).choose)
    >>> got.context, got.cost_nano
    ('The mayor of Torva is Ada Marek.', 6200)
    """

    prices: ModulePrices = PRICES

    def allowed(self, allowance: Allowance, steps: Sequence[AgentStep]) -> tuple[bool, ...]:
        return fitting(allowance, steps)

    def told(self, allowance: Allowance) -> str:
        """Return nothing: no model reads it."""
        return ""

    def remember(
        self, question: str, search: ParagraphSearch, choose: Choose, budget_nano: int | None = None
    ) -> Remembered:
        """Run the five modules for a question.

        Args:
            question: its text.
            search: finds paragraphs, as `LocalSearch.find` does.
            choose: chooses tiers, as `Router.choose` does.
            budget_nano: the most that it may cost, in nano-dollars; None: anything.
        """
        allowance = Allowance.of({} if budget_nano is None else {MONEY: budget_nano})
        memory, tiers, cost = Memory(line_of(question)), list[int](), 0
        for module, name in enumerate(MODULES):
            allowed = self.allowed(allowance, self._steps(module, memory))
            if not any(allowed):
                raise BudgetError(
                    f"not even the low tier of {name} fits what is left of a question's budget; "
                    "give a larger budget, or fewer questions"
                )
            tier = choose(features(memory, tiers), allowed)
            memory, paid = run(module, tier, memory, search, self.prices)
            allowance = allowance.charged({MONEY: paid})
            tiers.append(tier)
            cost += paid
        return Remembered(memory.text, tuple(tiers), cost)

    def _steps(self, module: int, memory: Memory) -> list[AgentStep]:
        rest = rest_nano(module, self.prices)
        most = [largest_nano(module, tier, memory, self.prices) + rest for tier in range(3)]
        return [AgentStep(tier, {MONEY: nano}) for tier, nano in zip(TIERS, most, strict=True)]


BUDGET_MEM = BudgetMem()


CARD = SystemCard(
    name="budget-mem",
    label="BudgetMem",
    meaning="Chooses, question by question, which tier of each memory module to pay for",
    kind="agent",
    make="farthing_lab.methods.agents.budget_mem.policy:BUDGET_MEM",
    paper="2602.06025",
    page="docs/research/budget-agents.md",
    extras=("search",),
    place=20,
)
