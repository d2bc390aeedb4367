"""Connections of the server: slow clients are cut off, and no request is lost when workers change.

uvicorn by itself waits for the headers of a request, and for whoever does not read, without end. A
server of it that ends closes idle connections at once, on which a request may be under way.
"""

import asyncio
import fcntl
import struct
import termios
import threading
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.server import ServerState

LOOK_S = 0.05
"""How often a server that retires looks whether its last requests are answered."""


class ConnectionConfig(uvicorn.Config):
    """uvicorn's settings, and how long clients are waited for."""

    def __init__(
        self, app: Any, *, client_timeout_s: float, retire_s: float = 0.0, **settings: Any
    ) -> None:
        """Take what uvicorn takes.

        Args:
            app: as uvicorn takes it.
            client_timeout_s: how long a client may take to send headers or read nothing.
            retire_s: how long requests under way may take in a server that retires.
            settings: of uvicorn.
        """
        super().__init__(app, http=TimedProtocol, **settings)
        self.client_timeout_s = client_timeout_s
        self.retire_s = retire_s


class RetiringState(ServerState):
    """What the connections of a server share."""

    retiring = False
    """Whether others take new connections: each that is left ends with its next reply."""


class RetiringServer(uvicorn.Server):
    """A server that others can take over from without a request being lost."""

    config: ConnectionConfig

    def __init__(self, config: ConnectionConfig) -> None:
        super().__init__(config)
        self.server_state: RetiringState = RetiringState()
        self._retires = False
        self._ends = False
        self.closed = threading.Event()
        """Set once it takes no more connections."""

    def retire(self) -> None:
        """Take no new connections, and end once those that there are have ended; from any thread.

        A request under way may take as long as ever. An idle connection gets an answer to one more
        request, or is closed when it has been idle for as long as it always may.
        """
        self._retires = self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End, also where the server has begun to retire."""
        self._ends = True
        super().handle_exit(sig, frame)

    async def main_loop(self) -> None:
        """Serve, and finish what is under way where others take over."""
        await super().main_loop()
        if not self._retires:
            return
        for server in self.servers:
            server.close()
        self.closed.set()
        self.server_state.retiring = True
        for connection in list(self.server_state.connections):
            connection.retire()  # type: ignore[union-attr] # each is a TimedProtocol
        loop = asyncio.get_running_loop()
        until = loop.time() + self.config.retire_s
        while self.server_state.connections or self.server_state.tasks:
            if self._ends or loop.time() >= until:
                break
            await asyncio.sleep(LOOK_S)


class TimedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # httptools or h11
    """One connection, cut where its client takes too long; it may end with its next reply.

    Two things are waited for: the headers of the next request, from the connection's beginning or
    their first byte on, and that the client reads some of what piles up for it. Who reads on,
    however slowly, is not cut off. A body is the application's to wait for.
    """

    def __init__(self, config: ConnectionConfig, *arguments: Any, **settings: Any) -> None:
        super().__init__(config, *arguments, **settings)
        self._timeout_s = config.client_timeout_s
        self.timeout_keep_alive_task: asyncio.TimerHandle | None = None
        self._headers: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._unread = 0
        """Bytes that the client had not taken when its reading was last looked at."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for headers."""
        super().connection_made(transport)
        self._headers = self._cut_later()

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request; wait for headers unless they are there."""
        super().data_received(data)
        if not self._is_idle():
            self._stop_waiting(self._headers)
            self._headers = None
        elif self._headers is None:
            self._headers = self._cut_later()
        if self.server_state.retiring:
            self._end_with_reply()

    def retire(self) -> None:
        """End with the reply under way, or the next one; an idle client has as long as always."""
        self._end_with_reply()
        if self._is_idle() and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        if self._reading is None:
            self._watch_reading()

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        self._stop_waiting(self._reading)
        self._reading = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        super().connection_lost(exc)
        self._stop_waiting(self._headers, self._reading)

    def _is_idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _end_with_reply(self) -> None:
        """End with a reply whose headers, still to come, tell the client so.

        Were it to end otherwise, the client's next request might be under way by then.
        """
        if not self._is_idle() and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def _watch_reading(self) -> None:
        self._unread = self._count_unread()
        self._reading = self.loop.call_later(self._timeout_s, self._cut_unless_read)

    def _cut_unless_read(self) -> None:
        """Cut a client off that took nothing since its reading was last looked at.

        Nothing is written to one that piles up, so what is left only ever falls.
        """
        if self._count_unread() < self._unread:
            self._watch_reading()
        else:
            self.transport.abort()

    def _count_unread(self) -> int:
        """Return the bytes that wait here and, as far as the system says, in its own buffer.

        That buffer holds megabytes, and takes in more only when a good part of it is free.
        """
        here: int = self.transport.get_write_buffer_size()
        try:
            number = self.transport.get_extra_info("socket").fileno()
            said = fcntl.ioctl(number, termios.TIOCOUTQ, bytes(4))
        except (OSError, ValueError):  # a system that does not say, or a socket that is closed
            return here
        return here + int(struct.unpack("i", said)[0])

    def _cut_later(self) -> asyncio.TimerHandle:
        loop: asyncio.AbstractEventLoop = self.loop
        return loop.call_later(self._timeout_s, self.transport.abort)

    def _stop_waiting(self, *timers: asyncio.TimerHandle | None) -> None:
        for timer in timers:
            if timer is not None:
                timer.cancel()
