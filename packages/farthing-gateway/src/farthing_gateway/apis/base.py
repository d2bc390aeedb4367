"""An API that clients speak: how its requests and replies are read, and a chat's written in it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import msgspec

from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE
from farthing_gateway.errors import ApiError

DONE = b"[DONE]"
"""The last piece of every stream; what it is on the wire is its API's."""
MOST_TOKENS = 2**31 - 1
"""The largest limit on output tokens that a request may name."""


@dataclass(frozen=True)
class ReadReply:
    """What a whole reply says beside its text."""

    usage: Usage | None
    """None: it does not say, or not in a way that can be read."""
    model: str | None = None


class ReadPiece(msgspec.Struct, frozen=True):
    """What one piece of a stream says; a struct, since there is one for each token."""

    said: Sequence[Any] = ()
    """What it adds to the reply: all texts in it count."""
    usage: Usage | None = None
    """Of all so far; None: this piece does not say."""
    model: str | None = None
    opening: bool = False
    """Whether it says only that a reply begins: one that fails after it has not begun."""
    finished: int = 0
    """How many choices have finished, where all that have begun did."""
    counted: bool = False
    """Whether that usage is the last word."""
    last: bool = False
    """Whether nothing comes after it."""
    wanted: bool = True
    """Whether clients have it that did not ask to hear of usage."""


class PieceReader(Protocol):
    """Reads the pieces of one stream, in turn."""

    def read(self, data: bytes) -> ReadPiece:
        """Return what a piece says; one of `UNREADABLE` where it is none."""
        ...


class Translator(Protocol):
    """Writes the chunks of one chat as the events of another API."""

    def pieces(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that a chunk becomes."""
        ...

    def end(self, usage: Usage) -> list[bytes]:
        """Return the data of the events after the last chunk."""
        ...


class Untranslated:
    """Leaves chunks as they are."""

    def pieces(self, chunk: bytes) -> list[bytes]:
        return [chunk]

    def end(self, _: Usage) -> list[bytes]:
        return []


class Api(ABC):
    """One API, a stateless object; what is not said otherwise is as OpenAI's first ones have it."""

    name: ClassVar[str]
    """As configurations and figures call it."""
    path: ClassVar[str]
    """After the address of an endpoint up to its version."""
    body: ClassVar[type[msgspec.Struct]]
    """The fields that are checked; all others go to the provider unchanged."""
    limit: ClassVar[str | None]
    """The field that limits output tokens."""
    says_uses: ClassVar[bool] = False
    """Whether each reply says how often the provider ran its tools."""
    is_chat: ClassVar[bool] = True
    """Whether it is a chat in another form, about which policies may decide."""

    @abstractmethod
    def to_chat(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return a request as a chat completion, and which field of it that cannot say.

        Raises:
            RequestError: a part of it is not what it must be.
        """

    @abstractmethod
    def read(self, body: bytes) -> ReadReply:
        """Return what a whole reply says; one of `UNREADABLE` where it is none."""

    @abstractmethod
    def reader(self) -> PieceReader:
        """Return a reader of one stream."""

    @abstractmethod
    def text(self, body: bytes) -> str:
        """Return what the first choice of a whole reply says; nothing where it says no words."""

    def text_in_piece(self, data: bytes) -> str:
        """Return what a piece of a stream adds to it."""
        return self.text(data)

    def replies(self, _: Mapping[str, Any]) -> int:
        """Return how many replies are written for it, each up to the limit."""
        return 1

    def events(self, body: bytes) -> list[bytes]:
        """Return a whole reply as the data of a stream's events; an error as it is."""
        return [body]

    def whole(self, chat: bytes) -> bytes:
        """Return the reply of a chat completion in this API's form."""
        return chat

    def translator(self, _: str) -> Translator:
        """Return what writes a chat's stream in this API's form, of a model as it was asked."""
        return Untranslated()

    def problem(self, why: ApiError) -> dict[str, Any]:
        """Return the body of a refusal, which is also its event once a stream has begun."""
        return why.body()

    def event(self, piece: bytes) -> bytes:
        """Return a piece as it is on the wire."""
        return b"data: " + piece + b"\n\n"


def text_of(content: Any, kinds: Sequence[str]) -> tuple[str, bool]:
    """Return what a message's content says, and whether that is all of it.

    Args:
        content: a text, or a list of parts.
        kinds: the types of parts that are texts.
    """
    if isinstance(content, str):
        return content, True
    parts = content if isinstance(content, list) else [None]
    texts = [
        one["text"]
        for one in parts
        if isinstance(one, dict) and one.get("type") in kinds and isinstance(one.get("text"), str)
    ]
    return "".join(texts), len(texts) == len(parts)


def typed_event(piece: bytes) -> bytes:
    r"""Return an event that is called what the `type` of its data says, as most new APIs have it.

    >>> typed_event(b'{"type": "ping"}')
    b'event: ping\ndata: {"type": "ping"}\n\n'
    >>> typed_event(DONE)
    b''
    """
    if piece == DONE:
        return b""
    return b"event: " + type_of(piece).encode() + b"\ndata: " + piece + b"\n\n"


class _Typed(msgspec.Struct):
    type: str = "error"


_TYPED = msgspec.json.Decoder(_Typed)


def type_of(piece: bytes) -> str:
    """Return the `type` of a piece's data."""
    try:
        return _TYPED.decode(piece).type
    except UNREADABLE:
        return "error"


def known_fields(body: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Return the first field with an effect that is not known; nothing where there is none.

    Args:
        body: of a request.
        known: field to the values that have no effect, or None where any value can be said.
    """
    for name, value in body.items():
        idle = known.get(name, _IDLE)
        if idle is not None and value not in idle:
            return name
    return ""


_IDLE: tuple[Any, ...] = (None, False, 0, [], {}, "none", "auto")
"""Values with which any field has no effect."""
