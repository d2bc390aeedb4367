"""Anthropic's Messages."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar
from uuid import uuid4

import msgspec
from msgspec import Meta

from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE
from farthing.models.usage import largest, read_usage, usage_in
from farthing_gateway.apis.base import (
    MOST_TOKENS,
    Api,
    ReadPiece,
    ReadReply,
    known_fields,
    text_of,
    typed_event,
)
from farthing_gateway.apis.chat import CHAT_REPLY, Model
from farthing_gateway.errors import ApiError
from farthing_gateway.request_schema import RequestError

_TEXTS = ("text",)
_SAME = ("model", "max_tokens", "temperature", "top_p", "stream")
"""Fields that a chat completion has as well."""
_KNOWN: Mapping[str, Any] = dict.fromkeys(
    (*_SAME, "messages", "system", "stop_sequences", "metadata", "service_tier")
) | {"thinking": (None, {"type": "disabled"}), "top_k": (None,)}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}
_FINISH = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}


class AnthropicMessage(msgspec.Struct):
    """One message."""

    role: str
    content: str | list[dict[str, Any]]


class MessagesBody(msgspec.Struct):
    """What is checked of a request for a message."""

    model: Model
    messages: Annotated[list[AnthropicMessage], Meta(min_length=1)]
    max_tokens: Annotated[int, Meta(ge=1, le=MOST_TOKENS)]
    system: str | list[dict[str, Any]] | None = None
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    thinking: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None


class _Part(msgspec.Struct, frozen=True):
    type: str = ""
    text: Any = ""


class _Message(msgspec.Struct, frozen=True):
    content: list[_Part]
    model: str | None = None


class _Begun(msgspec.Struct, frozen=True):
    usage: Any = None
    model: str | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str = ""
    message: _Begun | None = None
    delta: Any = None
    content_block: Any = None
    usage: Any = None


_MESSAGE = msgspec.json.Decoder(_Message)
_EVENT = msgspec.json.Decoder(_Event)


class Messages(Api):
    """`POST /v1/messages`."""

    name: ClassVar = "messages"
    path: ClassVar = "/messages"
    body: ClassVar = MessagesBody
    limit: ClassVar = "max_tokens"

    def to_chat(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return its system prompt and messages as a chat; what is no text cannot be said."""
        other = known_fields(body, _KNOWN)
        messages = []
        system, whole = text_of(body.get("system") or "", _TEXTS)
        other = other or ("" if whole else "system")
        if system:
            messages.append({"role": "system", "content": system})
        for message in body["messages"]:
            said, whole = text_of(message["content"], _TEXTS)
            other = other or ("" if whole else "messages")
            messages.append({"role": _role(message), "content": said})
        chat = {name: body[name] for name in _SAME if name in body} | {"messages": messages}
        if body.get("stop_sequences"):
            chat["stop"] = body["stop_sequences"]
        if (body.get("thinking") or {}).get("type") not in (None, "disabled"):
            chat["thinking"] = body["thinking"]
        return chat, other

    def read(self, body: bytes) -> ReadReply:
        found = _MESSAGE.decode(body)
        return ReadReply(usage_in(body), found.model)

    def reader(self) -> "MessagesReader":
        return MessagesReader()

    def events(self, body: bytes) -> list[bytes]:
        try:
            whole = msgspec.json.decode(body)
            told = [one for at, part in enumerate(whole["content"]) for one in _block(at, part)]
        except (*UNREADABLE, KeyError, TypeError, AttributeError):
            return [body]
        ended = {name: whole.get(name) for name in ("stop_reason", "stop_sequence")}
        begun = _event("message_start", message=whole | {"content": [], "stop_reason": None})
        delta = _event("message_delta", delta=ended, usage=whole.get("usage"))
        return [begun, *told, delta, _event("message_stop")]

    def text(self, body: bytes) -> str:
        try:
            parts = _MESSAGE.decode(body).content
        except UNREADABLE:
            return ""
        return "".join(
            one.text for one in parts if one.type == "text" and isinstance(one.text, str)
        )

    def text_in_piece(self, data: bytes) -> str:
        if b"text_delta" not in data:
            return ""
        delta = _EVENT.decode(data).delta
        told = isinstance(delta, dict) and delta.get("type") == "text_delta"
        return str(delta.get("text", "")) if told else ""

    def whole(self, chat: bytes) -> bytes:
        reply = CHAT_REPLY.decode(chat)
        first = reply.choices[0]
        said = [{"type": "text", "text": first.said.text}]
        finish = _FINISH.get(first.finish_reason or "stop", "end_turn")
        refused = first.said.content is None and first.said.refusal is not None
        begun = _begun(reply.model or "", said, "refusal" if refused else finish)
        usage = reply.counted or Usage(0, 0)
        return msgspec.json.encode(begun | {"usage": _usage(usage)})

    def translator(self, model: str) -> "MessageEvents":
        return MessageEvents(model)

    def problem(self, why: ApiError) -> dict[str, Any]:
        said = {"type": error_type(why.status), "message": why.message, "code": why.code}
        return {"type": "error", "error": said | {"param": why.param}}

    def event(self, piece: bytes) -> bytes:
        return typed_event(piece)


class MessagesReader:
    """Reads the events of one message: its input is counted at its beginning, all at its end."""

    def __init__(self) -> None:
        self._usage: Usage | None = None
        self._finished = 0

    def read(self, data: bytes) -> ReadPiece:
        found = _EVENT.decode(data)
        if found.type == "message_start" and found.message is not None:
            begun = read_usage(found.message.usage)
            self._usage = begun and replace(begun, unknown=(*begun.unknown, "output_tokens"))
            return ReadPiece(model=found.message.model, opening=True)
        if found.type == "message_stop":
            return ReadPiece(counted=True, last=True)
        said = [one for one in (found.delta, found.content_block) if one is not None]
        ended = isinstance(found.delta, dict) and found.delta.get("stop_reason") is not None
        self._finished = self._finished or int(ended)
        if found.type != "message_delta" or found.usage is None:
            said = said if found.type.startswith("content_block") else []
            return ReadPiece(said, opening=found.type == "ping", finished=self._finished)
        self._usage = largest(self._usage, read_usage(found.usage))
        return ReadPiece(usage=self._usage, finished=self._finished)


class MessageEvents:
    """Writes a chat's chunks as the events of a message."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._finish = "end_turn"
        self._begun = False

    def pieces(self, chunk: bytes) -> list[bytes]:
        """Return the events of a chunk; the first has those of the beginning before it."""
        found = self._begin()
        for choice in CHAT_REPLY.decode(chunk).choices[:1]:
            if choice.said.refusal is not None:
                self._finish = "refusal"
            elif choice.finish_reason and self._finish != "refusal":
                self._finish = _FINISH.get(choice.finish_reason, "end_turn")
            if choice.said.text:
                delta = {"type": "text_delta", "text": choice.said.text}
                found.append(_event("content_block_delta", index=0, delta=delta))
        return found

    def end(self, usage: Usage) -> list[bytes]:
        ended = {"stop_reason": self._finish, "stop_sequence": None}
        return [
            *self._begin(),
            _event("content_block_stop", index=0),
            _event("message_delta", delta=ended, usage=_usage(usage)),
            _event("message_stop"),
        ]

    def _begin(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        message = _begun(self._model, [], None) | {"usage": _usage(Usage(0, 0))}
        block = {"type": "text", "text": ""}
        return [
            _event("message_start", message=message),
            _event("content_block_start", index=0, content_block=block),
        ]


def error_type(status: int) -> str:
    """Return Anthropic's name of an error with a status.

    >>> error_type(404), error_type(502)
    ('not_found_error', 'api_error')
    """
    return _ERRORS.get(status, "invalid_request_error" if status < 500 else "api_error")


def _event(kind: str, **more: Any) -> bytes:
    return msgspec.json.encode({"type": kind, **more})


def _block(at: int, part: dict[str, Any]) -> list[bytes]:
    text = [part["text"]] if part.get("type") == "text" else []
    start = _event(
        "content_block_start", index=at, content_block=part | ({"text": ""} if text else {})
    )
    deltas = [{"type": "text_delta", "text": one} for one in text]
    said = (_event("content_block_delta", index=at, delta=one) for one in deltas)
    return [start, *said, _event("content_block_stop", index=at)]


def _begun(model: str, content: list[dict[str, Any]], finish: str | None) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": finish,
        "stop_sequence": None,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    written = usage.cache_writes + usage.cache_writes_hour
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }


def _role(message: Mapping[str, Any]) -> str:
    if message["role"] not in ("user", "assistant", "system"):
        raise RequestError("'messages' has a message whose 'role' is not known", "messages")
    return str(message["role"])


MESSAGES = Messages()
