"""From the bytes of a posted request to the bytes of its reply, whole or as a stream of events.

A client that goes away cancels what is asked for it. A request that is sent again under the same
idempotency key is neither run nor paid again.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar
from uuid import uuid4

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from farthing.errors import FarthingError, ModelTimeoutError
from farthing.gateway.app_state import GatewayState
from farthing.gateway.charging import DeferredSettlements
from farthing.gateway.chat import Chat
from farthing.gateway.chat_request import ChatRequest, CompletionContext, read_chat
from farthing.gateway.completions import Receipt, replayed
from farthing.gateway.config_sections import ServeSection
from farthing.gateway.deadline import Deadline
from farthing.gateway.errors import (
    ApiError,
    in_progress,
    logged,
    refusal,
    shutting_down,
    too_large,
    too_late,
    too_slow,
)
from farthing.gateway.refused_requests import RequestUnderWay
from farthing.storage.keys import KeyRecord
from farthing.storage.ledger.base import Different, Done, UnderWay

T = TypeVar("T")
GONE = 499
"""Status of a request whose client went away, in figures alone."""
JSON, EVENTS = "application/json", "text/event-stream"


async def create_chat_completion(
    gateway: GatewayState, http: Request, admit: Callable[[], Awaitable[KeyRecord | None]]
) -> Response:
    """Answer a posted chat completion.

    Args:
        gateway: what answers it.
        http: the request.
        admit: returns its key, or raises where it may not ask.
    """
    recorder = gateway.chat.recorder
    traffic = None if recorder is None else recorder.traffic
    asked = RequestUnderWay(uuid4().hex, traffic, gateway.chat.models)
    with asked.noting():
        asked.key = key = await admit()
        asked.admitted = True
        body = await read_body(http, gateway.config.serve)
        asked.request = request = read_chat(body, http.headers)
        most = gateway.config.serve.deadline_s
        asked.deadline = Deadline.within(min(most, request.options.deadline_s or most))
        posted = _CompletionHandler(gateway, request, key, asked)
        once = http.headers.get("idempotency-key")
        if once is None:
            return await posted.answer(http)
        # Only its digest is kept: it may be of any length, and a client may put anything into it.
        known = hashlib.sha256(once.encode(errors="replace")).hexdigest()
        return await posted.answer_once(http, f"{key.id if key else ''}:{known}", body)


@dataclass
class _CompletionHandler:
    """One request under way."""

    gateway: GatewayState
    request: ChatRequest
    key: KeyRecord | None
    asked: RequestUnderWay
    claimed: str | None = None
    """The idempotency key that it runs under."""
    waiting: DeferredSettlements | None = None
    """What is settled once the reply is kept."""

    @property
    def deadline(self) -> Deadline:
        """When it must have ended."""
        return self.asked.deadline

    @property
    def chat(self) -> Chat:
        """Who answers it."""
        return self.gateway.chat

    async def answer_once(self, http: Request, once: str, body: bytes) -> Response:
        """Answer, or repeat the answer that was given under this idempotency key."""
        mark = hashlib.sha256(body).hexdigest()
        lease = self._lease_s()
        match await self.gateway.ledger.claim(once, mark, lease_s=lease):
            case Done(status=status, body=known):
                kind = EVENTS if self.request.stream and status == 200 else JSON
                headers = {"Idempotent-Replayed": "true", **replayed(known)}
                return Response(known, status, headers, media_type=kind)
            case UnderWay(until=until):
                raise in_progress(until, lease)
            case Different():
                said = "this idempotency key was used for another request; take a new one"
                raise ApiError(422, said, code="idempotency_key_reused")
        self.claimed, self.waiting = once, DeferredSettlements(self.gateway.ledger)
        return await self.answer(http)

    async def answer(self, http: Request) -> Response:
        """Answer; of a stream the first piece is known when this returns."""
        self.gateway.metrics.begin()
        pieces = None
        asked = CompletionContext(
            self.request, self.key, self.asked.trace, self.deadline, self.asked.tries
        )
        try:
            async with asyncio.timeout(self.deadline.left_s):
                if self.request.stream:
                    pieces = self.chat.pieces(asked, self.waiting)
                    first = await cancel_on_disconnect(http, anext(pieces))
                    return _EventStream(self, pieces, first)
                whole = await cancel_on_disconnect(http, self.chat.whole(asked, self.waiting))
        except BaseException as error:
            if pieces is not None:  # its first piece may have come as the time ran out
                await pieces.aclose()
            if self.late(error):
                await self._not_answered(504)
                raise too_late(self.deadline.seconds) from None
            await self._not_answered(
                refusal(error).status if isinstance(error, Exception) else shutting_down().status
            )
            raise
        await self.end(200, whole.body)
        return Response(whole.body, 200, whole.receipt.headers(), media_type=JSON)

    async def end(self, status: int, body: bytes | None) -> None:
        """Count the request; keep its reply for those who send it again, or free its key."""
        self.gateway.metrics.end(self._label(), status, self.deadline.took_s)
        if self.claimed is None:
            return
        if body is None:
            await self.gateway.ledger.abandon(self.claimed)
        else:
            await self.gateway.ledger.finish(self.claimed, status, body)
        if self.waiting is not None:
            await self.waiting.settle()

    def _lease_s(self) -> float:
        """Return how long nobody else may run it: its deadline, and time to write what it cost."""
        serve = self.gateway.config.serve
        return self.deadline.seconds + serve.lease_s - serve.deadline_s

    def late(self, error: BaseException) -> bool:
        """Return whether an error means that the time is over: a model's own may come first."""
        slow = isinstance(error, ModelTimeoutError) and self.deadline.passed
        return slow or isinstance(error, TimeoutError)

    async def _not_answered(self, status: int) -> None:
        await asyncio.shield(self.end(status, None))

    def _label(self) -> str:
        """A client's own words are no label: there would be as many as it likes."""
        return self.asked.model or "unknown"


class _EventStream(Response):
    """A stream of events; a failure once it has begun is an event as well."""

    media_type = EVENTS

    def __init__(
        self,
        posted: _CompletionHandler,
        pieces: AsyncGenerator[bytes | Receipt],
        first: bytes | Receipt,
    ) -> None:
        super().__init__(None, 200, {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self.headers["X-Farthing-Trace"] = posted.asked.trace
        tries = posted.asked.tries
        if isinstance(first, Receipt):
            self.headers.update(first.headers())
        elif tries[-1].max_tokens is not None:
            self.headers["X-Farthing-Max-Tokens"] = str(tries[-1].max_tokens)
        self._posted, self._pieces, self._first = posted, pieces, first
        self._kept: list[bytes] = []
        self._status = GONE
        """What the client heard; until the last event is written, nothing whole."""

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send the events; whoever goes away ends it."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        sending = asyncio.ensure_future(self._send_all(send))
        gone = asyncio.ensure_future(_gone(receive))
        cut = False
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            go_on()
            cut = True
        finally:
            gone.cancel()
            if not sending.done():
                sending.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)
            if cut:
                await self._done(send, await self._failed(send, shutting_down()))
            await asyncio.shield(self._end())

    async def _end(self) -> None:
        """Count it and keep it, once; the server says that a client is gone that has it all."""
        try:
            kept = b"".join(self._kept) if self._status == 200 else None
            await self._posted.end(self._status, kept)
        except FarthingError as error:  # the reply is out
            logged(error)

    async def _send_all(self, send: Send) -> None:
        posted = self._posted
        status: int = 200
        try:
            # Also where sending is cancelled, what is asked upstream is.
            async with aclosing(self._pieces), asyncio.timeout(posted.deadline.left_s):
                await self._event(send, self._first)
                async for piece in self._pieces:
                    await self._event(send, piece)
        except Exception as error:  # noqa: BLE001 - a stream ends with an event in any case
            if posted.late(error):
                status = await self._failed(send, too_late(posted.deadline.seconds))
            else:
                logged(error)
                status = await self._failed(send, refusal(error))
        await self._done(send, status)

    async def _done(self, send: Send, status: int) -> None:
        await self._write(send, b"data: [DONE]\n\n")
        self._status = status
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _event(self, send: Send, piece: bytes | Receipt) -> None:
        if isinstance(piece, Receipt):  # a comment, which clients pass over
            said = msgspec.json.encode(piece.to_json())
            await self._write(send, b": farthing " + said + b"\n\n")
        else:
            await self._write(send, b"data: " + piece + b"\n\n")

    async def _failed(self, send: Send, why: ApiError) -> int:
        self._posted.asked.failed(why)
        await self._write(send, b"data: " + msgspec.json.encode(why.body()) + b"\n\n")
        return why.status

    async def _write(self, send: Send, event: bytes) -> None:
        if self._posted.claimed is not None:
            self._kept.append(event)
        await send({"type": "http.response.body", "body": event, "more_body": True})


async def cancel_on_disconnect(http: Request, made: Awaitable[T]) -> T:
    """Return what is made, unless the client goes away first: then it is cancelled."""
    making = asyncio.ensure_future(made)
    gone = asyncio.ensure_future(_gone(http.receive))
    try:
        await asyncio.wait({making, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not making.done():
            raise ApiError(GONE, "the client went away", "server_error", "client_gone")
        return making.result()
    finally:
        gone.cancel()
        if not making.done():
            making.cancel()
        await asyncio.gather(making, gone, return_exceptions=True)


def go_on() -> None:
    """Let this task go on, which the server cancelled as it ends, so that it can say so."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def read_body(http: Request, serve: ServeSection) -> bytes:
    """Return the body of a request, which must be there in time."""
    parts: list[bytes] = []
    length = 0
    try:
        async with asyncio.timeout(serve.client_timeout_s):
            async for part in http.stream():
                length += len(part)
                if length > serve.most_body_bytes:
                    raise too_large(serve.most_body_bytes)
                parts.append(part)
    except TimeoutError:
        raise too_slow(serve.client_timeout_s) from None
    return b"".join(parts)
