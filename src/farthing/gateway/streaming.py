"""A reply as server-sent events: its chunks unchanged, what it took at their end."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from farthing.errors import ModelConnectionError, ModelError
from farthing.gateway.stream_bounds import HiddenTokens, StreamedTokens
from farthing.gateway.upstream_base import Reply
from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE, WireUsage
from farthing.models.chat_endpoint import ChatEndpoint
from farthing.models.http_failures import failure

DONE = b"[DONE]"
MOST_OF_A_CHUNK = 16 * 2**20
"""Most bytes of one chunk."""


class Chunk(msgspec.Struct, frozen=True):
    """What is read of a chunk, or of a whole reply."""

    choices: list[Any] = []
    usage: msgspec.Raw = msgspec.Raw(b"null")
    model: str | None = None
    error: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def counted(self) -> Usage | None:
        """The tokens; None where it does not say, or not in a way that can be read."""
        if bytes(self.usage) == b"null":
            return None
        try:
            return msgspec.json.decode(self.usage, type=WireUsage).counted()
        except UNREADABLE:
            return None


CHUNK = msgspec.json.Decoder(Chunk)


@dataclass(frozen=True)
class Bounding:
    """What bounds the cost of a stream that is left before its end."""

    most: Usage
    """What it can take as a whole."""
    shown: HiddenTokens
    """Whether the model shows all that it writes."""
    silent: bool
    """Whether it was asked for more than it shows."""


class HttpStream:
    """Chunks of one reply; where it ends without a word on usage, it counts as the largest."""

    def __init__(
        self,
        endpoint: ChatEndpoint,
        response: Any,
        largest_nano: int | None,
        took: Callable[[Usage | None, str | None], Reply],
        bound: Bounding,
        *,
        include_usage: bool,
    ) -> None:
        self._endpoint, self._response = endpoint, response
        self._largest_nano = largest_nano
        self._took = took
        self._bound = bound
        self._heard = StreamedTokens()
        self._include_usage = include_usage
        self._chunks = self._read()
        self._first: list[bytes] | None = None
        self._usage: Usage | None = None
        self._counts = b""
        self._model: str | None = None
        self._counted = self._done = False
        self._reply: Reply | None = None

    async def begin(self) -> None:
        """Wait for the first chunk."""
        if "event-stream" not in self._response.content_type:
            problem = f"is {self._response.content_type}, no stream"
            raise self._endpoint.malformed(problem, b"", self._largest_nano)
        self._first = await anext(self._chunks, None)
        if self._first is None:
            raise self._endpoint.malformed("has no chunk", b"", self._spent_nano)

    def __aiter__(self) -> AsyncIterator[list[bytes]]:
        """Return the chunks, those of one read together."""
        return self

    async def __anext__(self) -> list[bytes]:
        """Return the next chunks."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return await anext(self._chunks)

    @property
    def ended(self) -> bool:
        """Whether all chunks are there."""
        return self._reply is not None

    @property
    def reply(self) -> Reply:
        """What it took; RuntimeError before the end."""
        if self._reply is None:
            raise RuntimeError("the stream has not ended")
        return self._reply

    @property
    def so_far(self) -> Reply | None:
        """The most that it took if it is left now; None: nothing bounds that."""
        if self._reply is not None or self._counted:
            return self._reply or self._took(self._usage, self._model)
        bound = self._bound
        if self._heard.tokens == 0 or bound.silent or not bound.shown.known:
            return None
        return self._took(self._heard.bound(bound.most), self._model)

    @property
    def _spent_nano(self) -> int | None:
        """What a stream costs that breaks now: counts before the last may yet grow."""
        if not self._counted:
            return self._largest_nano
        return self._took(self._usage, self._model).cost_nano

    async def _read(self) -> AsyncIterator[list[bytes]]:
        begun = False
        try:
            async for events in _payloads(
                self._endpoint.pieces(self._response, self._largest_nano)
            ):
                found, problem = self._take(events, begun=begun)
                if found:
                    begun = True
                    yield found
                if problem is not None:  # after what came before it
                    raise problem
                if self._done:
                    break
        except ModelError as error:
            if self._counted:
                error.cost_nano = self._spent_nano
            raise
        if not self._counted:
            problem = ModelConnectionError(
                f"{self._endpoint.place}: the stream ended before its end",
                cost_nano=self._largest_nano,
            )
            raise problem
        self._end()

    def _take(self, events: list[bytes], *, begun: bool) -> tuple[list[bytes], ModelError | None]:
        """Return what the client is to have of some events, and what is wrong with the next."""
        found: list[bytes] = []
        for data in events:
            if data == DONE:
                self._counted = self._done = True
                break
            try:
                if self._wanted(data, begun=begun or bool(found)):
                    found.append(data)
            except ModelError as error:
                return found, error
        return found, None

    def _end(self) -> None:
        self._reply = self._took(self._usage, self._model)
        if self._usage is not None and not self._bound.silent:
            self._bound.shown.learn(self._usage, self._counts, self._heard.tokens)

    def _wanted(self, data: bytes, *, begun: bool) -> bool:
        """Note what a chunk says of the whole; return whether the client is to have it."""
        if len(data) > MOST_OF_A_CHUNK:
            problem = f"has a chunk of more than {MOST_OF_A_CHUNK:,} bytes"
            raise self._endpoint.malformed(problem, b"", self._largest_nano)
        chunk = self._decoded(data)
        self._model = self._model or chunk.model
        if bytes(chunk.error) != b"null" and not chunk.choices:
            raise self._failed(bytes(chunk.error), begun=begun)
        self._heard.add(chunk.choices)
        counted = chunk.counted
        if counted is None:
            return True
        self._usage, self._counts = counted, bytes(chunk.usage)
        if chunk.choices:
            return True
        self._counted = True
        return self._include_usage

    def _decoded(self, data: bytes) -> Chunk:
        try:
            return CHUNK.decode(data)
        except UNREADABLE as error:
            problem = f"has a chunk that cannot be read: {error}"
        raise self._endpoint.malformed(problem, data, self._spent_nano)

    def _failed(self, error: bytes, *, begun: bool) -> ModelError:
        """Return the error that an event means; only before the first chunk it may be free."""
        said = self._endpoint.without_key(error.decode(errors="replace"))
        try:
            status = msgspec.json.decode(error, type=_Problem).code
        except UNREADABLE:
            status = 500
        if not 400 <= status < 600:
            status = 500
        found = failure(self._endpoint.place, status, {}, said, self._largest_nano)
        if begun:
            found.cost_nano = self._spent_nano
        return found


class _Problem(msgspec.Struct, frozen=True):
    code: int = 500


async def _payloads(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Yield the data of the events that each piece ends (WHATWG, server-sent events).

    Half an event at the end is none; only `[DONE]` counts without the blank line that ends one.
    """
    rest = b""
    data: list[bytes] = []
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        found: list[bytes] = []
        for line in lines:
            text = line.removesuffix(b"\r")
            if text.startswith(b"data:"):
                data.append(text[5:].removeprefix(b" "))
            elif not text and data:
                found.append(b"\n".join(data))
                data = []
        too_long = len(rest) > MOST_OF_A_CHUNK
        if found or too_long:
            yield [*found, *([rest] if too_long else [])]
        if too_long:
            return
    if DONE in (rest.removeprefix(b"data:").strip(), b"".join(data).strip()):
        yield [DONE]
