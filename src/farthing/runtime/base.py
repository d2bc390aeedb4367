"""Who acts in a live round, and the client through which every paid call goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from farthing.models.base import Completion, Model, Prompt
from farthing.tasks.base import Question
from farthing.tasks.tools import Tool, ToolReply
from farthing.traces.base import Call


class Client(Protocol):
    """Makes the calls that agents ask for, for one question.

    Agents never call a model or a tool themselves: what is asked through a client can be written
    down, answered from the journal, reserved against a budget, or cut off.
    """

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        """Have a model answer.

        Raises:
            ModelError: the call failed.
            BudgetError: the budget does not allow it; nothing was sent.
        """
        ...

    async def use(self, tool: Tool, query: str) -> ToolReply:
        """Have a tool answer; raises like `ask`."""
        ...


class DirectClient:
    """Makes every call there and then."""

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        """Have a model answer."""
        return await model.complete(prompt)

    async def use(self, tool: Tool, query: str) -> ToolReply:
        """Have a tool answer."""
        return await tool.run(query)


@dataclass(frozen=True)
class Turn:
    """What an agent is to act on."""

    question: Question
    round: int
    """From 1."""
    so_far: Sequence[Call] = ()
    """What it may see: calls of earlier rounds, and this round's base for its guide."""


class Agent(Protocol):
    """Makes one call of a trace: one or more prompts and tool calls that end in an answer."""

    @property
    def role(self) -> str:
        """The role that it fills: `base`, `guide`, or any other name."""
        ...

    @property
    def model(self) -> Model:
        """Who answers for it."""
        ...

    async def act(self, turn: Turn, client: Client) -> Call:
        """Return the call as it goes into the trace, with its cost and everything known about it.

        A reply that cannot be read becomes `answer=None`; a call that failed carries its `error`.
        Only what no call can mend is raised: BudgetError, AuthenticationError, UnpricedModelError.
        """
        ...
