"""OpenAI's chat completions, which all other APIs here are one form of."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE
from farthing.models.usage import read_usage, usage_in
from farthing_gateway.apis.base import DONE, MOST_TOKENS, Api, ReadPiece, ReadReply

MOST_CHOICES = 128
Limit = Annotated[int, Meta(ge=1, le=MOST_TOKENS)] | None
Model = Annotated[str, Meta(min_length=1, title="the name of a model; GET /v1/models lists them")]


class ChatMessage(msgspec.Struct):
    """One message."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None


class StreamOptions(msgspec.Struct):
    """What a stream is to say."""

    include_usage: bool | None = None


class ChatBody(msgspec.Struct):
    """What is checked of a request for a chat completion."""

    model: Model
    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    n: Annotated[int, Meta(ge=1, le=MOST_CHOICES)] | None = None
    max_tokens: Limit = None
    max_completion_tokens: Limit = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None


class Chunk(msgspec.Struct, frozen=True):
    """What is read of a chunk, or of a whole reply."""

    choices: list[msgspec.Raw] | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")
    model: str | None = None


_CHUNK = msgspec.json.Decoder(Chunk)


class _Choice(msgspec.Struct, frozen=True):
    index: int = 0
    finish_reason: Any = None


_CHOICE = msgspec.json.Decoder(_Choice)


class ChatReader:
    """Reads the chunks of a chat, or of a text completion."""

    def __init__(self) -> None:
        self._finished: dict[int, bool] = {}

    def read(self, data: bytes) -> ReadPiece:
        """Return what a chunk says; usage beside choices may yet grow."""
        if data == DONE:
            return ReadPiece(counted=True, last=True, wanted=False)
        chunk = _CHUNK.decode(data)
        choices = chunk.choices or []
        for raw in choices:
            self._note(raw)
        usage = usage_in(data)
        final = usage is not None and not choices
        return ReadPiece(
            choices,
            usage,
            chunk.model,
            counted=final,
            wanted=not final,
            finished=len(self._finished) if all(self._finished.values()) else 0,
        )

    def _note(self, raw: msgspec.Raw) -> None:
        with suppress(*UNREADABLE):  # one that says nothing
            one = _CHOICE.decode(raw)
            ends = one.finish_reason not in (None, "", "null")
            self._finished[one.index] = ends or self._finished.get(one.index, False)


class ChatCompletions(Api):
    """`POST /v1/chat/completions`."""

    name: ClassVar = "chat"
    path: ClassVar = "/chat/completions"
    body: ClassVar[type[msgspec.Struct]] = ChatBody
    limit: ClassVar = "max_completion_tokens"

    def to_chat(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        return dict(body), ""

    def replies(self, body: Mapping[str, Any]) -> int:
        return body.get("n") or 1

    def read(self, body: bytes) -> ReadReply:
        found = _CHUNK.decode(body)
        if not found.choices:
            raise msgspec.ValidationError("it has no choices")
        return ReadReply(usage_in(body), found.model)

    def reader(self) -> ChatReader:
        return ChatReader()

    def events(self, body: bytes) -> list[bytes]:
        try:
            whole = msgspec.json.decode(body)
            choices = [{**one, "delta": one.pop("message")} for one in whole["choices"]]
        except (*UNREADABLE, KeyError, TypeError, AttributeError):
            return [body]
        chunk = {"object": "chat.completion.chunk", "choices": choices}
        return [msgspec.json.encode(whole | chunk)]

    def text(self, body: bytes) -> str:
        try:
            choices = CHAT_REPLY.decode(body).choices
        except UNREADABLE:
            return ""
        return "".join(one.said.text for one in choices if one.index == 0)


class ChatReplyMessage(msgspec.Struct, frozen=True):
    """The text of a choice, or what it adds to that."""

    content: Any = None
    refusal: Any = None

    @property
    def text(self) -> str:
        """What it says."""
        said = self.content if isinstance(self.content, str) else self.refusal
        return said if isinstance(said, str) else ""


_NOTHING = ChatReplyMessage()


class ChatReplyChoice(msgspec.Struct, frozen=True):
    """One choice of a reply, whole or a piece."""

    index: int = 0
    message: ChatReplyMessage | None = None
    delta: ChatReplyMessage | None = None
    finish_reason: str | None = None

    @property
    def said(self) -> ChatReplyMessage:
        """What a whole choice says, or a piece of one adds."""
        return self.message or self.delta or _NOTHING


class ChatReply(msgspec.Struct, frozen=True):
    """A chat's reply, or a chunk of one, as other APIs are written of it."""

    given: list[ChatReplyChoice] | None = msgspec.field(default=None, name="choices")
    usage: Any = None
    model: str | None = None

    @property
    def choices(self) -> list[ChatReplyChoice]:
        """Its choices, also where it has null in their place."""
        return self.given or []

    @property
    def counted(self) -> Usage | None:
        """The tokens; None where it does not say."""
        return read_usage(self.usage)


CHAT_REPLY = msgspec.json.Decoder(ChatReply)
CHAT = ChatCompletions()


def says_usage(data: bytes) -> bool:
    """Return whether a chunk is the one at the end that says what was used.

    >>> says_usage(b'{"choices": [], "usage": {}}'), says_usage(b'{"choices": [], "usage": null}')
    (True, False)
    """
    if b'"usage"' not in data:
        return False
    try:
        chunk = _CHUNK.decode(data)
    except UNREADABLE:
        return False
    return not chunk.choices and bytes(chunk.usage) != b"null"
