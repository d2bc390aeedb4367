"""A reply as server-sent events: what it cost at their end, and where it fails amid them, that."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from farthing.errors import FarthingError
from farthing_gateway.apis.base import DONE
from farthing_gateway.client_connection import GONE, go_on, unless_gone
from farthing_gateway.completions import Receipt, headers_of
from farthing_gateway.errors import ApiError, is_late, logged, refusal, shutting_down, too_late
from farthing_gateway.idempotency import IdempotencyClaim
from farthing_gateway.metrics import Metrics
from farthing_gateway.request_context import RequestContext
from farthing_gateway.telemetry import Telemetry

EVENTS = "text/event-stream"
Pieces = Sequence[bytes | Receipt]
"""The data of events that are sent together; a receipt is a comment, which clients pass over."""


@dataclass(frozen=True)
class RequestEnd:
    """What is done once a request has ended, with its whole reply or without one."""

    asked: RequestContext
    metrics: Metrics
    telemetry: Telemetry | None = None
    claimed: IdempotencyClaim | None = None

    async def end(self, status: int, body: bytes | None) -> None:
        """Count it; keep its reply for those who send it again, or free its key."""
        # A client's own words are no label: there would be as many as it likes.
        model, took_s = self.asked.model or "unknown", self.asked.deadline.took_s
        self.metrics.end(model, status, took_s)
        if self.telemetry is not None:
            self.telemetry.ended(self.asked, status)
        if self.claimed is not None:
            await self.claimed.end(status, body)


class EventStream(Response):
    """A stream of events; a failure once it has begun is an event as well."""

    media_type = EVENTS

    def __init__(
        self,
        asked: RequestContext,
        pieces: AsyncGenerator[Pieces],
        first: Pieces,
        ending: RequestEnd,
    ) -> None:
        super().__init__(None, 200, {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self.headers["X-Farthing-Trace"] = asked.trace
        if isinstance(first[0], Receipt):
            self.headers.update(first[0].headers())
        else:
            sent = asked.tries[-1]
            known = {"max_tokens": sent.max_tokens, "dropped": sent.dropped}
            self.headers.update(headers_of(known | {"outside": asked.outside}))
        self._asked, self._pieces, self._first = asked, pieces, first
        self._ending = ending
        self._kept: list[bytes] = []
        self._status = GONE
        """What the client heard; until the last event is written, nothing whole."""

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send the events; whoever goes away ends it."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async with unless_gone(receive):
                self._status = await self._send_all(send)
        except ApiError:  # the client went away
            pass
        except asyncio.CancelledError:  # the server is out of patience as it ends
            go_on()
            self._status = await self._failed(send, shutting_down())
        finally:
            await asyncio.shield(self._end())

    async def _end(self) -> None:
        """Count it and keep it, once; the server says that a client is gone that has it all."""
        try:
            await self._ending.end(
                self._status, b"".join(self._kept) if self._status == 200 else None
            )
        except FarthingError as error:  # the reply is out
            logged(error)

    async def _send_all(self, send: Send) -> int:
        deadline = self._asked.deadline
        try:
            # Also where sending is cancelled, what is asked upstream is.
            async with aclosing(self._pieces), asyncio.timeout(deadline.left_s):
                await self._write(send, self._first)
                async for pieces in self._pieces:
                    await self._write(send, pieces)
        except Exception as error:  # noqa: BLE001 - a stream ends with an event in any case
            if is_late(error, deadline):
                return await self._failed(send, too_late(deadline.seconds))
            logged(error)
            return await self._failed(send, refusal(error))
        return 200

    async def _failed(self, send: Send, why: ApiError) -> int:
        self._asked.failed(why)
        problem = self._asked.request.api.problem(why)
        await self._write(send, [msgspec.json.encode(problem), DONE])
        return why.status

    async def _write(self, send: Send, pieces: Pieces) -> None:
        events = b"".join(map(self._event, pieces))
        if self._ending.claimed is not None:
            self._kept.append(events)
        more = pieces[-1] != DONE
        await send({"type": "http.response.body", "body": events, "more_body": more})

    def _event(self, piece: bytes | Receipt) -> bytes:
        if isinstance(piece, Receipt):
            return b": farthing " + msgspec.json.encode(piece.to_json()) + b"\n\n"
        return self._asked.request.api.event(piece)
