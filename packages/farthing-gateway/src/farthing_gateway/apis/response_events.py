"""A chat's reply written as one of OpenAI's responses: whole, or event by event."""

import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec

from farthing.models.base import Usage
from farthing_gateway.apis.chat import CHAT_REPLY


class WrittenResponse:
    """A response that is written of a chat."""

    def __init__(self, model: str) -> None:
        self._name, self._model, self._at = uuid4().hex, model, int(time.time())

    @property
    def item(self) -> str:
        """The id of its message."""
        return f"msg_{self._name}"

    def message(self, parts: list[dict[str, Any]], status: str) -> dict[str, Any]:
        """Return its message."""
        return {
            "type": "message",
            "id": self.item,
            "status": status,
            "role": "assistant",
            "content": parts,
        }

    def response(
        self, parts: list[dict[str, Any]] | None, finish: str | None, usage: Usage | None
    ) -> dict[str, Any]:
        """Return it, with its text and usage or, at its beginning, without."""
        cut = finish == "length"
        status = "in_progress" if parts is None else "incomplete" if cut else "completed"
        return {
            "id": f"resp_{self._name}",
            "object": "response",
            "created_at": self._at,
            "status": status,
            "model": self._model,
            "output": [] if parts is None else [self.message(parts, status)],
            "usage": None if usage is None else _usage(usage),
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut and parts else None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
        }


class ResponseEvents:
    """Writes a chat's chunks as the events of a response."""

    def __init__(self, written: WrittenResponse) -> None:
        self._written, self._number = written, 0
        self._said: list[str] = []
        self._finish: str | None = None
        self._refused = False

    def pieces(self, chunk: bytes) -> list[bytes]:
        """Return the events of a chunk; the first has those of the beginning before it."""
        found = [] if self._number else self._begin()
        for choice in CHAT_REPLY.decode(chunk).choices[:1]:
            self._finish = choice.finish_reason or self._finish
            self._refused = self._refused or choice.said.refusal is not None
            if choice.said.text:
                self._said.append(choice.said.text)
                at = {"item_id": self._written.item, "output_index": 0, "content_index": 0}
                kind = "refusal" if self._refused else "output_text"
                more: dict[str, Any] = {} if self._refused else {"logprobs": []}
                found.append(self._event(f"{kind}.delta", at | more | {"delta": choice.said.text}))
        return found

    def end(self, usage: Usage) -> list[bytes]:
        found = [] if self._number else self._begin()
        text, written = "".join(self._said), self._written
        part = response_part(text, refused=self._refused)
        whole = written.response([part], self._finish, usage)
        at = {"item_id": written.item, "output_index": 0, "content_index": 0}
        kind, name = ("refusal", "refusal") if self._refused else ("output_text", "text")
        more: dict[str, Any] = {} if self._refused else {"logprobs": []}
        item = {"output_index": 0, "item": written.message([part], whole["status"])}
        last = "incomplete" if whole["status"] == "incomplete" else "completed"
        return [
            *found,
            self._event(f"{kind}.done", at | more | {name: text}),
            self._event("content_part.done", at | {"part": part}),
            self._event("output_item.done", item),
            self._event(last, {"response": whole}),
        ]

    def _begin(self) -> list[bytes]:
        written = self._written
        begun = {"response": written.response(None, None, None)}
        item = {"output_index": 0, "item": written.message([], "in_progress")}
        at = {"item_id": written.item, "output_index": 0, "content_index": 0}
        return [
            self._event("created", begun),
            self._event("in_progress", begun),
            self._event("output_item.added", item),
            self._event("content_part.added", at | {"part": response_part("", refused=False)}),
        ]

    def _event(self, kind: str, more: Mapping[str, Any]) -> bytes:
        event = {"type": f"response.{kind}", "sequence_number": self._number, **more}
        self._number += 1
        return msgspec.json.encode(event)


def response_part(text: str, *, refused: bool) -> dict[str, Any]:
    """Return the part of a message that says a text."""
    if refused:
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
