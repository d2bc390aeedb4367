"""Connections of the server: a client that is slow to send or to read is not waited for.

uvicorn by itself waits for the headers of a request, and for whoever does not read, without end.
"""

import asyncio
import fcntl
import struct
import termios
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol


class ConnectionConfig(uvicorn.Config):
    """uvicorn's settings, and how long a client is waited for."""

    def __init__(self, app: Any, *, client_timeout_s: float, **settings: Any) -> None:
        """Take `client_timeout_s`, in seconds, and what uvicorn takes."""
        super().__init__(app, http=TimedProtocol, **settings)
        self.client_timeout_s = client_timeout_s


class TimedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type] # httptools or h11
    """One connection, cut where its client takes too long.

    Two things are waited for: the headers of the next request, from the connection's beginning or
    their first byte on, and that the client reads some of what piles up for it. Who reads on,
    however slowly, is not cut off. A body is the application's to wait for.
    """

    def __init__(self, config: ConnectionConfig, *arguments: Any, **settings: Any) -> None:
        super().__init__(config, *arguments, **settings)
        self._timeout_s = config.client_timeout_s
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
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting(self._headers)
            self._headers = None
        elif self._headers is None:
            self._headers = self._cut_later()

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
