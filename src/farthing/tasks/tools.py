"""What a tool is: a query in, a text out, for money and time."""

from dataclasses import dataclass
from typing import Protocol


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
    def cost_nano(self) -> int:
        """Price of one use, in nano-dollars."""
        ...

    async def run(self, query: str) -> ToolReply:
        """Answer one query.

        Raises:
            ModelError: it failed; what cannot be found is a reply that says so.
        """
        ...
