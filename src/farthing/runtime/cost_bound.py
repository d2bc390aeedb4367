"""The longest replies, and so the most that calls can cost, without asking anybody."""

from dataclasses import dataclass

from farthing.errors import UnpricedModelError
from farthing.methods.agents.base import MONEY
from farthing.models.base import Completion, Model, Prompt, Usage
from farthing.runtime.agents.react import ReactAgent
from farthing.runtime.base import Agent, Turn
from farthing.tasks.tools import Tool, ToolReply

TOOL_REPLY = 4_000
"""Bytes that a tool's reply is taken to have."""
_ACTION = "Action: search[{}]"
"""The longest reply leads an agent with tools on to its last step."""


def longest_completion(model: Model, prompt: Prompt) -> Completion:
    """Return a reply of the largest length; n tokens of it count as n where it is repeated."""
    text = _ACTION.format("x" * max(1, prompt.max_tokens - len(_ACTION)))
    return Completion(text, model.name, "length", Usage(0, prompt.max_tokens), 0, 0.0)


@dataclass
class CostBoundClient:
    """A client that asks nobody and adds up the most that the calls can cost, without retries."""

    largest_nano: int = 0

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        """Count a call to a model."""
        self.largest_nano += model.largest_cost_nano(prompt)
        return longest_completion(model, prompt)

    async def use(self, tool: Tool, query: str) -> ToolReply:  # noqa: ARG002 - the protocol's
        """Count a use of a tool."""
        self.largest_nano += tool.cost_nano
        return ToolReply("x" * TOOL_REPLY)


async def cost_bound(agent: Agent, turn: Turn) -> int | None:
    """Return the most that an agent's call can cost, in nano-dollars, without retries.

    None where one of its models has no price. What an agent's own budget refuses it counts as if
    it were not refused, but for the money: a refused tool leaves room for longer ways.
    """
    client, most = CostBoundClient(), None
    if isinstance(agent, ReactAgent):
        agent, most = agent.dearest(), agent.budget.get(MONEY)
    try:
        await agent.act(turn, client)
    except UnpricedModelError:
        return None
    return client.largest_nano if most is None else min(most, client.largest_nano)
