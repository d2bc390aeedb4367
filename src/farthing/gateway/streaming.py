"""A reply as server-sent events: its chunks unchanged, what it took at their end."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from farthing.errors import ModelConnectionError, ModelError
from farthing.gateway.apis.base import DONE, Api, ReadPiece
from farthing.gateway.stream_bounds import HiddenTokens, StreamedTokens
from farthing.gateway.upstream_base import Reply
from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE
from farthing.models.chat_endpoint import ChatEndpoint
from farthing.models.http_failures import failure
from farthing.models.usage import largest

MOST_OF_A_CHUNK = 16 * 2**20
"""Most bytes of one chunk."""


@dataclass(frozen=True)
class Bounding:
    """What bounds the cost of a stream that is left before its end."""

    most: Usage
    """What it can take as a whole."""
    shown: HiddenTokens
    """Whether the model shows all that it writes."""
    silent: bool
    """Whether it was asked for more than it shows."""
    include_usage: bool
    """Whether the client wants the piece that says what was used."""


class HttpStream:
    """Chunks of one reply; where it ends without a word on usage, it counts as the largest."""

    def __init__(
        self,
        endpoint: ChatEndpoint,
        response: Any,
        largest_nano: int | None,
        took: Callable[[Usage | None, str | None], Reply],
        bound: Bounding,
        api: Api,
    ) -> None:
        self._endpoint, self._response = endpoint, response
        self._largest_nano = largest_nano
        self._took = took
        self._bound = bound
        self._heard = StreamedTokens()
        self.api, self._reader = api, api.reader()
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
            try:
                wanted = self._wanted(data, begun=begun or bool(found))
            except ModelError as error:
                return found, error
            if wanted:
                found.append(data)
            if self._done:
                break
        return found, None

    def _end(self) -> None:
        self._reply = self._took(self._usage, self._model)
        if self._usage is not None and not self._bound.silent:
            self._bound.shown.learn(self._usage, self._counts, self._heard)

    def _wanted(self, data: bytes, *, begun: bool) -> bool:
        """Note what a chunk says of the whole; return whether the client is to have it."""
        if len(data) > MOST_OF_A_CHUNK:
            problem = f"has a chunk of more than {MOST_OF_A_CHUNK:,} bytes"
            raise self._endpoint.malformed(problem, b"", self._largest_nano)
        piece = self._read_piece(data)
        self._model = self._model or piece.model
        if piece.error is not None:
            raise self._failed(piece.error, begun=begun)
        self._heard.add(piece.said)
        if piece.usage is not None:
            self._usage, self._counts = largest(self._usage, piece.usage), piece.counts
        self._counted = self._counted or piece.counted
        self._done = piece.last
        return piece.wanted or (self._bound.include_usage and data != DONE)

    def _read_piece(self, data: bytes) -> ReadPiece:
        try:
            return self._reader.read(data)
        except UNREADABLE as error:
            problem = f"has a chunk that cannot be read: {error}"
        raise self._endpoint.malformed(problem, data, self._spent_nano)

    def _failed(self, error: bytes, *, begun: bool) -> ModelError:
        """Return the error that an event means; only before the first chunk it may be free."""
        said = self._endpoint.without_key(error.decode(errors="replace"))
        try:
            status = msgspec.json.decode(error, type=_Problem).status
        except UNREADABLE:
            status = 500
        if not 400 <= status < 600:
            status = 500
        found = failure(self._endpoint.place, status, {}, said, self._largest_nano)
        if begun:
            found.cost_nano = self._spent_nano
        return found


class _Named(msgspec.Struct, frozen=True):
    type: Any = None


class _Problem(msgspec.Struct, frozen=True):
    code: Any = 500
    error: _Named | None = None

    @property
    def status(self) -> int:
        """As a number, or as Anthropic names it."""
        if self.error is not None and self.error.type == "overloaded_error":
            return 529
        return self.code if isinstance(self.code, int) else 500


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
