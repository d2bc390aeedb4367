"""The live search against a MediaWiki of our own, over a real socket."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port

from farthing.errors import (
    BadRequestError,
    MalformedReplyError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
)
from farthing.models.retry import RetryPolicy
from farthing.tasks.tools import ToolReply
from farthing_lab.tasks.wikipedia import Manners, Wikipedia

ME = Manners(user_agent="me (me@example.org)")
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
FOUND = {
    "batchcomplete": True,
    "continue": {"gsroffset": 2, "continue": "gsroffset||"},
    "query": {
        "pages": [
            {"pageid": 2, "ns": 0, "title": "Porto", "index": 2, "extract": "A city.\n\nNorth."},
            {"pageid": 1, "ns": 0, "title": "Lisbon", "index": 1, "extract": "The capital."},
            {"pageid": 3, "ns": 0, "title": "Oslo", "index": 3},
        ]
    },
}


class Waits:
    """A clock that notes how long it was asked to wait, and does not."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def search(
    *answers: Answer, query: str = "Portugal", **settings: Any
) -> tuple[ToolReply | ModelError, list[web.Request], list[float]]:
    """Search once; the last answer repeats."""
    seen: list[web.Request] = []
    clock = Waits()

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request)
        return await answers[min(len(seen), len(answers)) - 1](request)

    async def run() -> ToolReply | ModelError:
        application = web.Application()
        application.router.add_get("/w/api.php", answer)
        async with TestServer(application) as server:
            url = str(server.make_url("/w/api.php"))
            tool = Wikipedia(url, clock=clock, patience=RetryPolicy(tries=3), **settings)
            try:
                return await tool.run(query)
            except ModelError as error:
                return error
            finally:
                await tool.aclose()

    return asyncio.run(run()), seen, clock.waits


def page(content: Any, status: int = 200, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        if isinstance(content, bytes):
            return web.Response(body=content, status=status, headers=headers)
        return web.json_response(content, status=status, headers=headers)

    return answer


async def hangs(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(2)
    return web.Response()


async def breaks(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"{")
    assert request.transport is not None
    request.transport.close()
    return response


def test_pages_come_best_first_and_on_one_line_each() -> None:
    reply, (request,), _ = search(page(FOUND), cost_nano=5, manners=ME, top=2)
    assert isinstance(reply, ToolReply)
    assert reply.text == "Lisbon: The capital.\nPorto: A city. North."
    assert reply.cost_nano == 5
    assert reply.latency_s > 0
    assert request.headers["User-Agent"] == "me (me@example.org)"
    assert request.query["gsrsearch"] == "Portugal"
    assert request.query["gsrlimit"] == "2"
    assert request.query["action"] == "query"


@pytest.mark.parametrize("query", ["a&action=delete", "x|y #1?", "ünï 日本", "{q}"])
def test_a_query_is_one_parameter_whatever_it_holds(query: str) -> None:
    _, (request,), _ = search(page(FOUND), query=query)
    assert request.query["gsrsearch"] == query
    assert request.query.getall("action") == ["query"]


def test_a_query_is_cut_to_what_wikipedia_takes() -> None:
    _, (request,), _ = search(page(FOUND), query="x" * 1_000)
    assert request.query["gsrsearch"] == "x" * 300


@pytest.mark.parametrize("empty", [{"batchcomplete": True}, {"query": {"pages": []}}, {}])
def test_nothing_found_is_a_reply_that_says_so(empty: dict[str, Any]) -> None:
    reply, _, _ = search(page(empty))
    assert isinstance(reply, ToolReply)
    assert reply.text.startswith("Nothing was found")


def test_too_many_requests_waits_as_long_as_it_is_told() -> None:
    reply, seen, waits = search(page({}, 429, **{"Retry-After": "7"}), page(FOUND))
    assert isinstance(reply, ToolReply)
    assert len(seen) == 2
    assert len(waits) == 1
    assert 7 <= waits[0] < 10


def test_too_many_requests_for_good_is_a_rate_limit_and_costs() -> None:
    error, seen, waits = search(page({}, 429), cost_nano=5)
    assert isinstance(error, RateLimitError)
    assert error.cost_nano == 5
    assert (len(seen), len(waits)) == (3, 2)


@pytest.mark.parametrize("code", ["ratelimited", "maxlag"])
def test_a_busy_wiki_says_so_with_status_200(code: str) -> None:
    reply, seen, _ = search(page({"error": {"code": code, "info": "Wait."}}), page(FOUND))
    assert isinstance(reply, ToolReply)
    assert len(seen) == 2


FAULTS: list[tuple[Answer, type[ModelError], int]] = [
    (hangs, ModelTimeoutError, 3),
    (breaks, ModelConnectionError, 3),
    (page({}, 500), ModelConnectionError, 3),
    (page({}, 503), ModelConnectionError, 3),
    (page(b"<html>Sign in</html>"), MalformedReplyError, 3),
    (page(b"\xff\xfe"), MalformedReplyError, 3),
    (page([1]), MalformedReplyError, 3),
    (page({"query": {"pages": {"1": {}}}}), MalformedReplyError, 3),
    (page({"error": {"code": "badvalue", "info": "No."}}), BadRequestError, 1),
    (page({}, 404), BadRequestError, 1),
]


@pytest.mark.parametrize(("answer", "kind", "tries"), FAULTS)
def test_a_fault_ends_as_its_type(answer: Answer, kind: type[ModelError], tries: int) -> None:
    error, seen, _ = search(answer, manners=Manners(timeout_s=0.5 if answer is hangs else 30.0))
    assert type(error) is kind
    assert len(seen) == tries


@pytest.mark.parametrize("answer", [fault[0] for fault in FAULTS if fault[2] > 1])
def test_a_passing_fault_is_recovered(answer: Answer) -> None:
    reply, seen, _ = search(
        answer, page(FOUND), manners=Manners(timeout_s=0.5 if answer is hangs else 30.0)
    )
    assert isinstance(reply, ToolReply)
    assert len(seen) == 2


def test_no_more_requests_at_once_than_allowed() -> None:
    now, most = 0, 0

    async def answer(_: web.Request) -> web.StreamResponse:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return web.json_response(FOUND)

    async def run() -> None:
        application = web.Application()
        application.router.add_get("/", answer)
        async with TestServer(application) as server:
            tool = Wikipedia(str(server.make_url("/")), manners=Manners(at_once=3))
            await asyncio.gather(*(tool.run("x") for _ in range(30)))
            await tool.aclose()

    asyncio.run(run())
    assert most == 3


def test_nobody_there_is_a_connection_error() -> None:
    async def run() -> None:
        tool = Wikipedia(f"http://127.0.0.1:{unused_port()}/", clock=Waits())
        with pytest.raises(ModelConnectionError, match=r"127\.0\.0\.1"):
            await tool.run("x")
        await tool.aclose()

    asyncio.run(run())
