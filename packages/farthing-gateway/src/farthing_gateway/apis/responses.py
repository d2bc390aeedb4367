"""OpenAI's Responses, the stateless part: what is asked stands in the request itself."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE
from farthing.models.usage import usage_in
from farthing_gateway.apis.base import (
    MOST_TOKENS,
    Api,
    ReadPiece,
    ReadReply,
    known_fields,
    text_of,
    typed_event,
)
from farthing_gateway.apis.chat import CHAT, CHAT_REPLY, Model
from farthing_gateway.apis.response_events import ResponseEvents, WrittenResponse, response_part
from farthing_gateway.errors import ApiError
from farthing_gateway.priced_places import PARTS, unit_of
from farthing_gateway.request_schema import RequestError

_TEXTS = ("input_text", "output_text", "text")
_STATEFUL = ("previous_response_id", "conversation", "prompt", "background")
_SAME = (
    "model",
    "temperature",
    "top_p",
    "stream",
    "user",
    "metadata",
    "store",
    "safety_identifier",
)
"""Fields that a chat completion has as well."""
_PLAIN = {"format": {"type": "text"}}
_KNOWN: Mapping[str, Any] = dict.fromkeys(
    (
        *_SAME,
        "input",
        "instructions",
        "max_output_tokens",
        "prompt_cache_key",
        "parallel_tool_calls",
    )
) | {
    "text": (
        None,
        {},
        {"format": {"type": "text"}},
        {"format": {"type": "text"}, "verbosity": "medium"},
    ),
    "truncation": (None, "disabled"),
    "stream_options": (None, {}, {"include_obfuscation": False}, {"include_obfuscation": True}),
    "include": (None, []),
    "service_tier": (None, "auto", "default"),
}


class ResponsesBody(msgspec.Struct):
    """What is checked of a request for a response."""

    model: Model
    input: str | Annotated[list[dict[str, Any]], Meta(min_length=1)]
    instructions: str | None = None
    max_output_tokens: Annotated[int, Meta(ge=1, le=MOST_TOKENS)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None


class _Part(msgspec.Struct, frozen=True):
    type: str = ""
    text: str = ""
    refusal: str = ""


class _Item(msgspec.Struct, frozen=True):
    type: str = ""
    content: list[_Part] | None = None


class _Response(msgspec.Struct, frozen=True):
    output: list[_Item]
    status: str = "completed"
    usage: msgspec.Raw = msgspec.Raw(b"null")
    model: str | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str = ""
    delta: Any = None
    response: msgspec.Raw = msgspec.Raw(b"null")


_RESPONSE = msgspec.json.Decoder(_Response)
_EVENT = msgspec.json.Decoder(_Event)
_OPENS = frozenset({"response.created", "response.in_progress", "response.queued"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class Responses(Api):
    """`POST /v1/responses`."""

    name: ClassVar = "responses"
    path: ClassVar = "/responses"
    body: ClassVar = ResponsesBody
    limit: ClassVar = "max_output_tokens"
    says_uses: ClassVar = True

    def to_chat(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return its instructions and messages as a chat; what is no text cannot be said."""
        for name in _STATEFUL:
            if body.get(name):
                said = f"'{name}' is kept by the provider, and the gateway keeps no state: send"
                raise RequestError(f"{said} the whole input with each request", name)
        given, other = body["input"], known_fields(body, _KNOWN)
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        messages = []
        if body.get("instructions"):
            messages.append({"role": "system", "content": body["instructions"]})
        for item in items:
            said, whole = text_of(item.get("content"), _TEXTS)
            if not whole or item.get("type") not in (None, "message"):
                other = other or "input"
            messages.append({"role": _role(item), "content": said})
        chat = {name: body[name] for name in _SAME if name in body} | {"messages": messages}
        if body.get("max_output_tokens"):
            chat["max_completion_tokens"] = body["max_output_tokens"]
        if effort := (body.get("reasoning") or {}).get("effort"):
            chat["reasoning_effort"] = effort
        return chat, other

    def read(self, body: bytes) -> ReadReply:
        found = _RESPONSE.decode(body)
        return ReadReply(_with_uses(usage_in(body), found.output), found.model)

    def reader(self) -> "ResponsesReader":
        return ResponsesReader()

    def events(self, body: bytes) -> list[bytes]:
        try:
            status = _RESPONSE.decode(body).status
        except UNREADABLE:
            return [body]
        return [b'{"type":"response.%s","response":%s}' % (status.encode(), body)]

    def text(self, body: bytes) -> str:
        try:
            items = _RESPONSE.decode(body).output
        except UNREADABLE:
            return ""
        parts = [part for item in items if item.type == "message" for part in item.content or ()]
        return "".join(part.text or part.refusal for part in parts)

    def text_in_piece(self, data: bytes) -> str:
        if b"_text.delta" not in data and b"refusal.delta" not in data:
            return ""
        found = _EVENT.decode(data)
        kinds = ("response.output_text.delta", "response.refusal.delta")
        return found.delta if found.type in kinds and isinstance(found.delta, str) else ""

    def whole(self, chat: bytes) -> bytes:
        reply = CHAT_REPLY.decode(chat)
        first = reply.choices[0]
        usage = reply.counted or Usage(0, 0)
        part = response_part(first.said.text, refused=first.said.content is None)
        made = WrittenResponse(reply.model or "").response([part], first.finish_reason, usage)
        return msgspec.json.encode(made)

    def translator(self, model: str) -> "ResponseEvents":
        return ResponseEvents(WrittenResponse(model))

    def problem(self, why: ApiError) -> dict[str, Any]:
        """Return OpenAI's form of a refusal, which as an event has a type."""
        return {"type": "error", **CHAT.problem(why)}

    def event(self, piece: bytes) -> bytes:
        return typed_event(piece)


class ResponsesReader:
    """Reads the events of one response."""

    def read(self, data: bytes) -> ReadPiece:
        """Return what an event says; the last one has the whole response."""
        found = _EVENT.decode(data)
        if found.type not in _ENDS:
            said = () if found.delta is None else (found.delta,)
            return ReadPiece(said, opening=found.type in _OPENS)
        try:
            whole = _RESPONSE.decode(found.response)
        except UNREADABLE:
            return ReadPiece(counted=True, last=True)
        return ReadPiece(
            usage=_with_uses(usage_in(bytes(found.response)), whole.output),
            model=whole.model,
            counted=True,
            last=True,
        )


def _with_uses(usage: Usage | None, output: Sequence[_Item]) -> Usage | None:
    """Return a usage with the uses of the provider's tools, which its output alone may say."""
    if usage is None or usage.uses:
        return usage
    ran = [one.type for one in output if one.type.endswith("_call") and one.type not in PARTS]
    uses = Counter(unit_of(kind.removesuffix("_call")) for kind in ran)
    return replace(usage, units=(*usage.units, *uses.items()))


def _role(item: Mapping[str, Any]) -> str:
    role = item.get("role", "user")
    if role not in ("system", "developer", "user", "assistant"):
        raise RequestError("'input' has a message whose 'role' is not known", "input")
    return str(role)


RESPONSES = Responses()
