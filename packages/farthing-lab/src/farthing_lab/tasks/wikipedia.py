"""Search in the live Wikipedia, or any other MediaWiki, through its API."""

import asyncio
import time
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import msgspec

from farthing.errors import (
    BadRequestError,
    MalformedReplyError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
)
from farthing.models.clock import Clock, SystemClock
from farthing.models.http_failures import failure
from farthing.models.retry import RetryPolicy
from farthing.tasks.tools import ToolReply
from farthing_lab.tasks.local_search import PURPOSE

URL = "https://en.wikipedia.org/w/api.php"
USER_AGENT = "farthing/0.1 (https://pypi.org/project/farthing)"
_LONGEST_QUERY = 300
"""Most characters that Wikipedia's search takes."""
_BUSY = frozenset({"ratelimited", "maxlag", "readonly"})


class Page(msgspec.Struct):
    """A page that was found."""

    title: str
    index: int = 0
    """Its place among what was found, from 1."""
    extract: str = ""
    """Its introduction, as plain text."""


class _Query(msgspec.Struct):
    pages: list[Page] = []


class _ApiProblem(msgspec.Struct):
    code: str
    info: str = ""


class _ApiReply(msgspec.Struct):
    query: _Query | None = None
    error: _ApiProblem | None = None


@dataclass(frozen=True)
class Manners:
    """How a wiki is asked."""

    timeout_s: float = 20.0
    """Most seconds for one try."""
    at_once: int = 1
    """Most requests at the same time, while others wait their turn; Wikimedia asks for one
    (https://www.mediawiki.org/wiki/API:Etiquette)."""
    user_agent: str = USER_AGENT
    """Who asks; Wikimedia wants a way to reach you in it."""


MANNERS = Manners()


class Wikipedia:
    """Shows the introductions of the best pages; asks again after failures that may pass."""

    name = "search"
    purpose = PURPOSE

    def __init__(
        self,
        url: str = URL,
        *,
        top: int = 3,
        cost_nano: int = 0,
        manners: Manners = MANNERS,
        patience: RetryPolicy | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            url: address of the wiki's `api.php`.
            top: most pages in a reply, 20 at the most.
            cost_nano: price of one use, in nano-dollars, retries included.
            manners: how it is asked.
            patience: how often and how long to try.
            clock: waits between tries.
        """
        self._aiohttp = import_module("aiohttp")  # only where it is asked
        self.cost_nano = cost_nano
        self._url, self._top, self._manners = url, top, manners
        self._patience = patience or RetryPolicy(tries=4)
        self._clock = clock or SystemClock()
        self._turn = asyncio.Semaphore(manners.at_once)
        self._session: Any = None

    async def run(self, query: str) -> ToolReply:
        found, seconds = await self._search(query)
        pages = sorted(found, key=lambda page: page.index)[: self._top]
        shown = [f"{page.title}: {' '.join(page.extract.split())}" for page in pages]
        text = "\n".join(shown) if shown else "Nothing was found; try other words."
        return ToolReply(text, self.cost_nano, seconds)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _search(self, query: str) -> tuple[list[Page], float]:
        """Return what was found, and the seconds that the successful try took."""
        waited_s = 0.0
        for retry in range(self._patience.tries):
            try:
                async with self._turn:
                    started = time.perf_counter()
                    body = await self._fetch(query)
                    return _pages(body, self._url), time.perf_counter() - started
            except ModelError as error:
                wait_s = self._patience.wait_s(retry, error.retry_after_s, 0.5)
                waited_s += wait_s
                last = retry == self._patience.tries - 1 or waited_s > self._patience.total_s
                if last or not error.retriable:
                    error.cost_nano = self.cost_nano
                    raise
            await self._clock.sleep(wait_s)
        raise AssertionError("the last try returns or raises")

    async def _fetch(self, query: str) -> bytes:
        """Return the body of one reply; a failure has its type."""
        if self._session is None:
            self._session = self._aiohttp.ClientSession(
                headers={"User-Agent": self._manners.user_agent},
                timeout=self._aiohttp.ClientTimeout(total=self._manners.timeout_s),
            )
        try:
            async with self._session.get(self._url, params=_parameters(query, self._top)) as reply:
                body: bytes = await reply.read()
        except TimeoutError as error:
            waited = f"no full reply within {self._manners.timeout_s:g} s"
            raise ModelTimeoutError(f"{self._url}: {waited}") from error
        except self._aiohttp.ClientError as error:
            raise ModelConnectionError(f"{self._url}: {type(error).__name__}: {error}") from error
        if reply.status != 200:
            text = body.decode(errors="replace")
            raise failure(self._url, reply.status, reply.headers, text, 0)
        return body


def _parameters(query: str, top: int) -> dict[str, str]:
    return {
        "action": "query",
        "format": "json",
        "formatversion": "2",
        "generator": "search",
        "gsrsearch": query[:_LONGEST_QUERY],
        "gsrlimit": str(top),
        "prop": "extracts",
        "exchars": "1000",
        "exintro": "1",
        "explaintext": "1",
        "exlimit": str(top),
        "redirects": "1",
    }


def _pages(body: bytes, url: str) -> list[Page]:
    """Read a reply; one without `query` found nothing, and errors come with status 200."""
    try:
        reply = msgspec.json.decode(body, type=_ApiReply)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedReplyError(f"{url}: this is no reply of a MediaWiki: {error}") from error
    if reply.error is not None:
        kind = RateLimitError if reply.error.code in _BUSY else BadRequestError
        raise kind(f"{url}: {reply.error.code}: {reply.error.info}")
    return reply.query.pages if reply.query else []
