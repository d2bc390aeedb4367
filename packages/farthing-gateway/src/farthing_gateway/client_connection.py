"""The client's side of a request: its body in time, and what happens once it goes away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request
from starlette.types import Receive

from farthing_gateway.config_sections import ServeSection
from farthing_gateway.errors import ApiError, too_large, too_slow

GONE = 499
"""Status of a request whose client went away, in figures alone."""


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


@asynccontextmanager
async def unless_gone(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block, and raise ApiError in its place, once the client goes away."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"  # noqa: S101
    left = False

    def leave(_: asyncio.Future[None]) -> None:
        nonlocal left
        left = True
        task.cancel()

    watching = asyncio.ensure_future(_disconnected(receive))
    watching.add_done_callback(leave)
    try:
        yield
    except asyncio.CancelledError:
        if left and task.uncancel() == 0:
            raise gone() from None
        raise
    finally:
        watching.remove_done_callback(leave)
        watching.cancel()


def gone() -> ApiError:
    """Return what is noted of a request whose client went away."""
    return ApiError(GONE, "the client went away", "server_error", "client_gone")


def go_on() -> None:
    """Let this task go on, which the server cancelled as it ends, so that it can say so."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
