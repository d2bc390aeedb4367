"""What is posted to one endpoint, as `POST {url}/chat/completions`, and each failure as its error.

Built on aiohttp, which carries several times the requests per second that OpenAI's own client does.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Self, TypeVar

from farthing.errors import (
    MalformedReplyError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    UnreachableError,
)
from farthing.models.http_failures import failure
from farthing.models.remote import Key


@dataclass
class Sending:
    """A call that is about to be sent."""

    begun: bool = False
    """Whether anything of it was written; once it was, its outcome may be unknown."""


_SENDING: ContextVar[Sending | None] = ContextVar("_SENDING", default=None)


def watched() -> Sending:
    """Return what the next call of this task is noted in."""
    sending = Sending()
    _SENDING.set(sending)
    return sending


def current() -> Sending | None:
    """Return what the call of this task is noted in; None where nobody asks."""
    return _SENDING.get()


BOM = b"\xef\xbb\xbf"
"""What some servers put before UTF-8."""
CHAT, MESSAGES = "/chat/completions", "/messages"
ANTHROPIC = "://api.anthropic.com/"
ANTHROPIC_VERSION = "2023-06-01"
_NO_HEADERS: Mapping[str, str] = {}
MOST_BYTES = 64 * 2**20
"""Most bytes of a reply; a longer one is given up."""
_MOST_OF_AN_ERROR = 2**16
"""Bytes of a reply with an error status that are read."""

_ACCEPTED = "application/json, text/event-stream"
_AFTER_THE_END_S = 0.25

T = TypeVar("T")


@dataclass(frozen=True)
class Response:
    """A reply whose body is to be read; leaving its block closes the connection."""

    response: Any
    """aiohttp's, with status and headers."""
    until: float
    """When all must be there, in the event loop's time."""

    @property
    def content_type(self) -> str:
        """What kind of body it is."""
        return str(self.response.content_type)

    async def __aenter__(self) -> Self:
        await self.response.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.response.__aexit__(*error)


class ChatEndpoint:
    """One endpoint; connections are kept and shared by all calls.

    Redirects are not followed and cookies not kept, so that a key goes nowhere but to its endpoint.
    No error shows the key, or holds one of aiohttp's that does.
    """

    def __init__(self, url: str, key: Key | None, place: str, timeout_s: float) -> None:
        self._aiohttp = import_module("aiohttp")  # only where something is called
        self._url = url.rstrip("/")
        self._key = key
        self.place = place
        """The model and its address, for messages."""
        self._timeout_s = timeout_s
        self._session: Any = None
        self._untimed = self._aiohttp.ClientTimeout()
        self._body = _noting(self._aiohttp)

    async def post(
        self,
        body: bytes,
        largest_nano: int | None,
        *,
        timeout_s: float | None = None,
        path: str = CHAT,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> Response:
        """Send a request in JSON; return the response, to be closed.

        Args:
            body: what is posted.
            largest_nano: what a call of unknown outcome counts as.
            timeout_s: counts where it is less than the endpoint's.
            path: what it is posted to, after the endpoint's address.
            headers: more of them.
        """
        seconds = self._timeout_s if timeout_s is None else min(timeout_s, self._timeout_s)
        until = asyncio.get_running_loop().time() + seconds
        # aiohttp's own timer may take a task's cancellation for its own, and so undo it.
        sending = self._connected().post(
            self._url + path,
            data=self._body(body),
            headers={**self._authorised(path), **headers},
            allow_redirects=False,
            timeout=self._untimed,
        )
        reply = await self._mapped(sending, largest_nano, until)
        if 200 <= reply.status < 300:
            return Response(reply, until)
        async with reply:
            said = await self._mapped(_first_bytes(reply), largest_nano, until)
        text = self.without_key(said.decode(errors="replace"))
        raise failure(self.place, reply.status, reply.headers, text, largest_nano)

    async def pieces(self, reply: Response, largest_nano: int | None) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        left = MOST_BYTES
        content, until = reply.response.content, reply.until
        while piece := await self._mapped(content.readany(), largest_nano, until):
            left -= len(piece)
            if left < 0:
                raise self.malformed(f"has more than {MOST_BYTES:,} bytes", b"", largest_nano)
            yield piece

    async def read(self, reply: Response, largest_nano: int | None) -> bytes:
        """Return the whole body, which must be JSON: some endpoints call that `text/plain`."""
        body = await self._mapped(_whole(reply.response.content), largest_nano, reply.until)
        if len(body) > MOST_BYTES:
            raise self.malformed(f"has more than {MOST_BYTES:,} bytes", b"", largest_nano)
        if "html" in reply.content_type:
            raise self.malformed(f"is {reply.content_type}, not JSON", body, largest_nano)
        return body.removeprefix(BOM)

    async def finish(self, reply: Response) -> None:
        """Wait a moment for the end of a body of which all is read: its connection serves again."""
        with suppress(TimeoutError, self._aiohttp.ClientError):
            async with asyncio.timeout(_AFTER_THE_END_S):
                while await reply.response.content.readany():
                    pass

    def malformed(self, problem: str, body: bytes, largest_nano: int | None) -> MalformedReplyError:
        """Return the error of a reply that is not what it must be."""
        # Hidden before it is cut: the cut may go through a key.
        excerpt = self.without_key(body[:_MOST_OF_AN_ERROR].decode(errors="replace"))[:100]
        plain = f"{self.place}: the reply {self.without_key(problem)}"
        found = MalformedReplyError(f"{plain}: {excerpt!r}", cost_nano=largest_nano)
        found.plain = plain
        return found

    def without_key(self, text: str) -> str:
        """Return a text of the endpoint without the key, which it may repeat."""
        return self._key.hide_in(text) if self._key else text

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _mapped(self, work: Awaitable[T], largest_nano: int | None, until: float) -> T:
        try:
            async with asyncio.timeout_at(until):
                return await work
        except (TimeoutError, self._aiohttp.ClientError) as error:
            broken = self._broken(error, largest_nano)
        # Raised out here, with no cause: aiohttp's errors can hold the request and so the key.
        raise broken

    def _broken(self, error: Exception, largest_nano: int | None) -> ModelError:
        found = self._break(error, largest_nano)
        found.plain = str(found)
        return found

    def _break(self, error: Exception, largest_nano: int | None) -> ModelError:
        if isinstance(error, self._aiohttp.ClientConnectorError):
            problem = f"no connection ({type(error).__name__}): is it running, is the url right?"
            return UnreachableError(f"{self.place}: {problem}")
        if isinstance(error, TimeoutError):
            problem = f"no full reply in time ({self._timeout_s:g} s at most)"
            return ModelTimeoutError(f"{self.place}: {problem}", cost_nano=largest_nano)
        problem = f"the connection broke ({type(error).__name__})"
        return ModelConnectionError(f"{self.place}: {problem}", cost_nano=largest_nano)

    def _authorised(self, path: str) -> dict[str, str]:
        """Return the headers that hold the key; Anthropic's own API has one of its own."""
        if self._key is None:
            return {"anthropic-version": ANTHROPIC_VERSION} if path == MESSAGES else {}
        bearer = {"Authorization": f"Bearer {self._key.reveal()}"}
        if path != MESSAGES:
            return bearer
        own = {"x-api-key": self._key.reveal(), "anthropic-version": ANTHROPIC_VERSION}
        return own if ANTHROPIC in self._url else own | bearer

    def _connected(self) -> Any:
        if self._session is None:
            aiohttp = self._aiohttp
            headers = {"Content-Type": "application/json", "Accept": _ACCEPTED}
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                headers=headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


def _noting(aiohttp: ModuleType) -> Callable[[bytes], Any]:
    """Return what makes a body that notes when it is written, where somebody asks for that."""
    payload: Any = aiohttp.BytesPayload

    class Noting(payload):  # type: ignore[misc]
        def __init__(self, body: bytes) -> None:
            super().__init__(body)
            self._sending = current()

        async def write(self, *arguments: Any) -> None:
            self._note()
            await super().write(*arguments)

        async def write_with_length(self, *arguments: Any) -> None:
            self._note()
            await super().write_with_length(*arguments)

        def _note(self) -> None:
            if self._sending is not None:
                self._sending.begun = True

    return Noting


async def _whole(content: Any) -> bytes:
    """Return a body; of one that is too long, a little more than may be."""
    parts: list[bytes] = []
    length = 0
    while length <= MOST_BYTES and (piece := await content.readany()):
        parts.append(piece)
        length += len(piece)
    return b"".join(parts)


async def _first_bytes(reply: Any) -> bytes:
    said = b""
    while len(said) < _MOST_OF_AN_ERROR and (piece := await reply.content.readany()):
        said += piece
    return said[:_MOST_OF_AN_ERROR]
