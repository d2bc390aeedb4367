"""What does a call cost beyond what aiohttp costs by itself?

    python benchmarks/model_overhead.py

Asks a server in another process the same questions in turns: through a bare aiohttp loop, through
our client alone, and through our client with its limits and retries. Process time of the asking
process for each call; the server's own work is not in it.
"""

import asyncio
import multiprocessing
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from decimal import Decimal
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp

from farthing.models.base import Message, Model, Prompt
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import PriceTable, Rates, TokenPrice
from farthing.models.rate_limit import Limited, RateLimiter, RateLimits
from farthing.models.retry import Retrying

sys.path.insert(0, str(Path(__file__).parents[1] / "packages/farthing/tests/helpers"))

CALLS, AT_ONCE, REPEATS = 2_000, 64, 5
PRICES = PriceTable({"m": TokenPrice((Rates(Decimal("0.15"), Decimal("0.60")),))})


def serve(pipe: Connection) -> None:
    """Answer until the other end is done."""
    from chat_server import Endpoint  # noqa: PLC0415 - beside the tests

    with Endpoint() as endpoint:
        pipe.send(endpoint.url)
        pipe.recv()


async def together(call: Callable[[int], Awaitable[object]]) -> None:
    """Make all calls, so many at once."""
    numbers = iter(range(CALLS))

    async def one_after_another() -> None:
        for k in numbers:
            await call(k)

    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))


def question(k: int) -> str:
    return f"question {k}: " + "which of these words matter? " * 20


async def bare(url: str) -> None:
    """The least that asking over aiohttp takes."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call(k: int) -> str:
            message = {"role": "user", "content": question(k)}
            body = {"model": "m", "messages": [message], "max_tokens": 100, "temperature": 0.0}
            async with session.post(url + "/chat/completions", json=body) as reply:
                text: str = (await reply.json())["choices"][0]["message"]["content"]
                return text

        await together(call)


async def ours(url: str, wrap: Callable[[Model], Model]) -> None:
    """The same questions through a model."""
    model = wrap(OpenAISettings(model="m", url=url).open(PRICES))
    await together(
        lambda k: model.complete(Prompt((Message("user", question(k)),), max_tokens=100))
    )
    await model.aclose()


def whole(model: Model) -> Model:
    limits = RateLimits(requests_per_minute=10**6, tokens_per_minute=10**10, concurrent=AT_ONCE)
    return Retrying(Limited(model, RateLimiter(limits)))


def main() -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there,), daemon=True)
    server.start()
    url = here.recv()
    ways: dict[str, Callable[[], Awaitable[None]]] = {
        "bare aiohttp": lambda: bare(url),
        "our client": lambda: ours(url, lambda model: model),
        "with limits and retries": lambda: ours(url, whole),
    }
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(REPEATS):
        for name, way in ways.items():
            started, cpu = time.perf_counter(), time.process_time()
            asyncio.run(way())
            spent[name].append((time.process_time() - cpu, time.perf_counter() - started))
    here.send("done")
    least = statistics.median(cpu for cpu, _ in spent["bare aiohttp"])
    for name, times in spent.items():
        cpu, wall = (statistics.median(column) for column in zip(*times, strict=True))
        print(
            f"{name:24s} {cpu / CALLS * 1e6:6.0f} us of CPU a call, {cpu / least:.2f}x,"
            f" {CALLS / wall:6.0f} calls/s"
        )


if __name__ == "__main__":
    main()
