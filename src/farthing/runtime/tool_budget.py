"""The budget of one call of an agent with tools: what it may do, and what it is told of it."""

from farthing.methods.agents.base import (
    MONEY,
    TOKENS,
    AgentSystem,
    Allowance,
    Amounts,
    Step,
    fitting,
)
from farthing.models.base import Completion, Model, Prompt
from farthing.models.prices import largest_usage
from farthing.tasks.tools import Tool

NO_ROOM = "(What was found is too long for what is left of the budget.)"
"""Stands in for an observation with which the next prompt would not fit."""


class ToolBudget:
    """Keeps the allowance of one call, and asks the system that decides within it."""

    def __init__(self, budget: Amounts, system: AgentSystem | None) -> None:
        """Begin with nothing used.

        Args:
            budget: calls of each tool, `tokens`, and nano-dollars as `usd`; what has none is free.
            system: decides and says what the agent is told; None: whatever fits, told nothing.

        Raises:
            InputError: a budget is none.
        """
        self.allowance = Allowance.of(budget)
        self._system = system

    def told(self) -> str:
        """Return what the agent is told now; empty: nothing."""
        return self._system.told(self.allowance) if self._system else ""

    def refusal(self, tool: Tool) -> str | None:
        """Return why a tool may not be used now, in words for the agent; None where it may."""
        needs = {tool.name: 1, MONEY: tool.cost_nano}
        if self._allows(Step(tool.name, needs)):
            return None
        if self.allowance.left.get(tool.name, 1) < 1:
            used, most = self.allowance.used[tool.name], self.allowance.budget[tool.name]
            return f"{tool.name} was not used: {used} of {most} uses are gone. Use what you have."
        return f"{tool.name} was not used: the budget does not allow it now. Use what you have."

    def may_ask(self, model: Model, prompt: Prompt, times: int = 1) -> bool:
        """Return whether so many prompts of this size fit, at the most that each can use.

        Raises:
            UnpricedModelError: money is limited, and the model has no price.
        """
        limited, needs = self.allowance.budget, {}
        if TOKENS in limited:
            most = largest_usage(prompt)
            needs[TOKENS] = times * (most.input_tokens + most.output_tokens)
        if MONEY in limited:
            needs[MONEY] = times * model.largest_cost_nano(prompt)
        return self._allows(Step("prompt", needs))

    def asked(self, done: Completion) -> None:
        """Charge a prompt that was answered."""
        tokens = done.usage.input_tokens + done.usage.output_tokens
        self._charge({TOKENS: tokens, MONEY: done.cost_nano or 0})

    def used(self, tool: Tool, cost_nano: int) -> None:
        """Charge a use of a tool."""
        self._charge({tool.name: 1, MONEY: cost_nano})

    def _allows(self, step: Step) -> bool:
        if self._system is None:
            return fitting(self.allowance, [step])[0]
        return self._system.allowed(self.allowance, [step])[0] and self.allowance.fits(step.needs)

    def _charge(self, used: Amounts) -> None:
        self.allowance = self.allowance.charged(used)
