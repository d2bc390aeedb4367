"""Requests under way, so that nothing is closed beneath them.

A server that is out of patience cancels what is under way and goes on at once. What was cancelled
still has to say in the ledger what became of its money.
"""

import asyncio
import logging

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOG = logging.getLogger("farthing_gateway")
CLOSING_S = 5.0
"""Seconds that cancelled requests are given to write what they must."""


class InFlightRequests:
    """Counts requests; belongs to one event loop."""

    def __init__(self) -> None:
        self._number = 0
        self._changed = asyncio.Event()

    def begin(self) -> None:
        """Count one that begins."""
        self._number += 1

    def end(self) -> None:
        """Count one that ended."""
        self._number -= 1
        self._changed.set()

    async def none(self, within_s: float = CLOSING_S) -> None:
        """Return once there are none, or after so many seconds."""
        try:
            async with asyncio.timeout(within_s):
                while self._number:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            LOG.warning("%d requests did not end in time", self._number)


class InFlightMiddleware:
    """An application whose requests are counted."""

    def __init__(self, app: ASGIApp, under_way: InFlightRequests) -> None:
        self._app = app
        self._under_way = under_way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, _briefly(send))
            return
        self._under_way.begin()
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way.end()


def _briefly(send: Send) -> Send:

    async def brief(message: Message) -> None:
        if message["type"] == "lifespan.startup.failed":
            *_, last = message["message"].strip().splitlines()
            kind, _, said = last.partition(": ")
            if kind.startswith("farthing."):
                message = {**message, "message": said}
        await send(message)

    return brief
