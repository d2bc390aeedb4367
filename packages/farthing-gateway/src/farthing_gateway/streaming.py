"""A reply as server-sent events: its chunks unchanged, what it took at their end."""

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from farthing.errors import ModelConnectionError, ModelError
from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE
from farthing.models.chat_endpoint import BOM, ChatEndpoint
from farthing.models.failures import ReplyFailure, failure_in
from farthing.models.usage import largest
from farthing_gateway.apis.base import DONE, Api, ReadPiece
from farthing_gateway.stream_bounds import HiddenTokens, StreamedTokens
from farthing_gateway.upstream_base import Reply

MOST_OF_A_CHUNK = 16 * 2**20
"""Most bytes of one chunk."""
_LINE_END = re.compile(rb"\r\n|\r|\n")


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
    choices: int = 1
    """How many choices it has at least, each of which finishes."""


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
        self._model: str | None = None
        self._counted = self._done = self._finished = False
        self._opening = True
        self._told_at = 0  # pieces that were heard when usage was last told
        self._cut: ReplyFailure | None = None
        self._reply: Reply | None = None

    async def begin(self) -> None:
        """Wait for the first chunk that says more than that a reply begins."""
        if "html" in self._response.content_type:
            problem = f"is {self._response.content_type}, no stream"
            raise self._endpoint.malformed(problem, b"", self._largest_nano)
        self._first = await anext(self._chunks, None)
        if self._first is None:
            raise self._endpoint.malformed("has no chunk", b"", self._spent_nano)
        while self._opening and (more := await anext(self._chunks, None)):
            self._first += more

    def __aiter__(self) -> AsyncIterator[list[bytes]]:
        return self

    async def __anext__(self) -> list[bytes]:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return await anext(self._chunks)

    @property
    def ended(self) -> bool:
        return self._reply is not None

    @property
    def reply(self) -> Reply:
        if self._reply is None:
            raise RuntimeError("the stream has not ended")
        return self._reply

    @property
    def so_far(self) -> Reply | None:
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
        async for events in self._events():
            found, problem = self._take(events)
            if found:
                yield found
            if problem is not None:  # after what came before it
                raise problem
            if self._done:
                break
        if self._cut is not None and self._usage is None:
            raise self._failed(self._cut)
        if not self._counted and not self._finished:
            raise ModelConnectionError(
                f"{self._endpoint.place}: the stream ended before its end",
                cost_nano=self._largest_nano,
            )
        self._end()

    async def _events(self) -> AsyncIterator[list[bytes]]:
        """Yield the data of events; what breaks after a counted end breaks nothing."""
        parser = EventParser(self.api.events)
        try:
            async for piece in self._endpoint.pieces(self._response, self._largest_nano):
                if found := parser.read(piece):
                    yield found
            yield parser.end()
        except ModelError as error:
            if not self._finished or self._usage is None:
                error.cost_nano = self._spent_nano if self._counted else error.cost_nano
                raise

    def _take(self, events: list[bytes]) -> tuple[list[bytes], ModelError | None]:
        found: list[bytes] = []
        for data in events:
            try:
                wanted = self._wanted(data)
            except ModelError as error:
                return found, error
            if wanted:
                found.append(data)
            if self._done:
                break
        return found, None

    def _end(self) -> None:
        told = self._usage
        if told is not None and self._heard.wrote(self._told_at if told.output_tokens else 0):
            self._usage = replace(told, unknown=("output_tokens",))  # what came after is not in it
        reply = self._took(self._usage, self._model)
        self._reply = replace(reply, cut=self._cut)
        if self._usage is not None and not self._bound.silent:
            self._bound.shown.learn(self._usage, self._heard)

    def _wanted(self, data: bytes) -> bool:
        if len(data) > MOST_OF_A_CHUNK:
            problem = f"has a chunk of more than {MOST_OF_A_CHUNK:,} bytes"
            raise self._endpoint.malformed(problem, b"", self._largest_nano)
        piece = self._read_piece(data)
        self._model = self._model or piece.model
        if piece.usage is not None:
            self._usage = largest(self._usage, piece.usage)
        self._heard.add(piece.said)
        self._told_at = self._told_at if piece.usage is None else len(self._heard)
        self._counted = piece.counted or (self._counted and not piece.said)
        self._finished = piece.finished >= self._bound.choices
        self._done, self._opening = piece.last, self._opening and piece.opening
        return piece.wanted or (self._bound.include_usage and data != DONE)

    def _read_piece(self, data: bytes) -> ReadPiece:
        try:
            failed = failure_in(data)
            if failed is not None and not failed.mild:
                raise self._failed(failed)
            self._cut = self._cut or failed
            return self._reader.read(data)
        except UNREADABLE as error:
            problem = f"has a chunk that cannot be read: {error}"
        raise self._endpoint.malformed(problem, data, self._spent_nano)

    def _failed(self, failed: ReplyFailure) -> ModelError:
        """Return the error that a piece means; it costs what was said so far."""
        used = largest(self._usage, failed.used)
        used = used and replace(used, unknown=())
        cost = self._took(used, self._model).cost_nano
        endpoint = self._endpoint
        return replace(failed, used=used).error(endpoint.place, cost, endpoint.without_key)


class EventParser:
    """Reads server-sent events (WHATWG), or one JSON value in their place."""

    def __init__(self, split: Callable[[bytes], list[bytes]]) -> None:
        self._split = split
        self._rest = b""
        self._data: list[bytes] = []
        self._begun = self._whole = self._after_cr = self._error = False

    def read(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that a piece ends."""
        text = self._rest + (piece[1:] if self._after_cr and piece[:1] == b"\n" else piece)
        if not self._begun:
            begin = text.removeprefix(BOM)
            self._begun = len(text) >= len(BOM) and bool(begin.strip())
            self._whole = self._begun and begin.lstrip()[:1] in (b"{", b"[")
            text = begin if self._begun else text
        self._rest = text
        if self._whole or not self._begun:
            return [text] if len(text) > MOST_OF_A_CHUNK else []
        self._after_cr = text.endswith(b"\r")
        *lines, self._rest = _LINE_END.split(text)
        found = [data for line in lines if (data := self._line(line))]
        return [*found, self._rest] if len(self._rest) > MOST_OF_A_CHUNK else found

    def end(self) -> list[bytes]:
        """Return what came last; half an event is none."""
        if self._whole:
            return self._split(self._rest)
        if self._rest:
            self._line(self._rest)
        last = self._line(b"").strip() or self._rest.strip()
        try:
            msgspec.json.decode(last)
        except UNREADABLE:
            return [DONE] if last == DONE else []
        return [last]

    def _line(self, line: bytes) -> bytes:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"event:"):
            self._error = line[6:].strip() == b"error"
        elif not line:
            data, error = b"\n".join(self._data), self._error
            self._data, self._error = [], False
            unnamed = error and data.startswith(b"{") and b'"error"' not in data
            return b'{"error":' + data + b"}" if unnamed else data
        return b""
