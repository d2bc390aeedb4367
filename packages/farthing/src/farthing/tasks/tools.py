"""Tools: a query in, a text out, for money and time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from farthing.tasks.base import Question


@dataclass(frozen=True)
class ToolReply:
    """What a tool said, and what it took."""

    text: str
    cost_nano: int = 0
    """Price in nano-dollars."""
    latency_s: float = 0.0
    """Wall time, in seconds."""


class Tool(Protocol):
    """Something an agent may use."""

    @property
    def name(self) -> str:
        """What prompts and logs call it."""
        ...

    @property
    def purpose(self) -> str:
        """What it does with its input, in a line that a model reads."""
        ...

    @property
    def cost_nano(self) -> int:
        """Price of one use, in nano-dollars."""
        ...

    async def run(self, query: str) -> ToolReply:
        """Answer one query."""
        ...


Toolbox = Callable[[Question], Sequence[Tool]]
"""Says which tools an agent has for a question."""


def always(*tools: Tool) -> Toolbox:
    """Return a toolbox that has the same tools for every question."""
    return lambda _: tools
