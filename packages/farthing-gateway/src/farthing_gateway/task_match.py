"""Which requests are a policy's task, and what the others are outside it by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from farthing.models.thinking import effort_of
from farthing_gateway.chat_request import ChatRequest

Reason = Literal["effort", "not text", "parameters", "limit", "temperature", "history", "prompt"]
"""What a request is outside a task by, for figures."""
_TAKEN = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "n", "user", "metadata", "store"),
        *("max_tokens", "max_completion_tokens", "temperature", "safety_identifier"),
        *("prompt_cache_key", "seed"),
    }
)
"""Parameters that a request of a task may have; any other may change what models reply."""
_INSTRUCTING = frozenset({"system", "developer"})
_NO_EFFECT: tuple[Any, ...] = (None, False, 0, 1, [], {}, "none", "auto", {"type": "text"})


@dataclass(frozen=True)
class Mismatch:
    """Why a request is not part of a task."""

    reason: Reason
    said: str
    """In words, as a clause."""
    near_miss: bool
    """Whether it is asked as the task is, by its prompt and messages, and only sent otherwise."""

    def __str__(self) -> str:
        return self.said


@dataclass(frozen=True)
class TaskTemplate:
    """What the requests of a task have in common."""

    system: str
    """The system prompt."""
    max_output: int
    """Most output tokens."""
    temperature: float

    def mismatch(self, request: ChatRequest) -> Mismatch | None:
        """Say why a request is not part of the task; None where it is."""
        other = self._other_messages(request.messages)
        found = self._other_parameters(request)
        if found is not None:
            return Mismatch(*found, near_miss=other is None)
        return None if other is None else Mismatch(*other, near_miss=False)

    def _other_parameters(self, request: ChatRequest) -> tuple[Reason, str] | None:
        if (effort := effort_of(request.body)) is not None:
            return "effort", f"it says itself how long to think ({effort[:20]})"
        if not request.plain:
            said = "it is more than plain text: tools, images, several choices or a format"
            return "not text", said
        body = request.body
        others = sorted(name for name in body.keys() - _TAKEN if body[name] not in _NO_EFFECT)
        if others:
            return "parameters", f"it sets {', '.join(others)[:80]}"
        if request.limit not in {None, self.max_output}:
            said = f"it takes {request.limit} output tokens at most, the task {self.max_output}"
            return "limit", f"{said} (max_tokens of its section)"
        asked = body.get("temperature")
        if asked not in {None, self.temperature}:
            said = f"its temperature is {asked}, and the task's {self.temperature:g}"
            return "temperature", f"{said} (temperature of its section)"
        return None

    def _other_messages(self, messages: Sequence[Mapping[str, Any]]) -> tuple[Reason, str] | None:
        *before, last = messages
        if last.get("role") != "user":
            return "history", "its last message is not the user's"
        if any(one.get("role") not in _INSTRUCTING for one in before):
            return "history", "it has a history"
        if "".join(map(text_of, before)).strip() != self.system.strip():
            return "prompt", "its system prompt is not the task's"
        return None


def text_of(message: Mapping[str, Any]) -> str:
    """Return what a message says in words.

    >>> text_of({"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]})
    '2 + 2?'
    """
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
