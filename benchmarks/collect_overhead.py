"""What does collecting cost beyond what aiohttp costs by itself?

    python benchmarks/collect_overhead.py

Asks a server in another process the same questions through a bare aiohttp loop, and as a
collection: agent, meter, retries, limits, journal and trace, each durable when the process dies.
Process time of the asking process for each call; 1,000 calls are under way at any moment.
"""

import asyncio
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import model_overhead
from model_overhead import PRICES, bare, question, serve, whole

from farthing.models.openai_compatible import OpenAISettings
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.collect import collect, garbage_seldom
from farthing.runtime.journal import StoreJournal
from farthing.runtime.meter import Meter
from farthing.runtime.protocol import Independent, RecordingPlan
from farthing.tasks.base import Question
from farthing.tasks.text import TEXT
from farthing.traces.store import Store

CALLS, AT_ONCE, REPEATS = 3_000, 1_000, 3


async def collection(url: str) -> None:
    """Record one call for each question into a new store."""
    questions = [Question(f"q{k}", question(k), gold=("4",)) for k in range(CALLS)]
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "a.db") as store:
        journal = StoreJournal(store, 10**12, "benchmark")
        meter = Meter(journal)
        model = whole(OpenAISettings(model="m", url=url).open(PRICES))
        plan = Independent((BaseAgent(model, role="m"),), 1, TEXT)
        progress = await collect(
            questions, RecordingPlan(plan, TEXT), journal, meter, at_once=AT_ONCE
        )
        await model.aclose()
        assert progress.done == CALLS


async def bare_too(url: str) -> None:
    """The bare loop with Python's garbage collection set as a collection sets it."""
    with garbage_seldom():
        await bare(url)


def main() -> None:
    model_overhead.CALLS, model_overhead.AT_ONCE = CALLS, AT_ONCE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4_096)), hard))
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    context.Process(target=serve, args=(there,), daemon=True).start()
    url = here.recv()
    ways: dict[str, Callable[[str], Awaitable[None]]] = {
        "bare aiohttp": bare,
        "the same, garbage seldom looked for": bare_too,
        "collection": collection,
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS):
        for name, way in ways.items():
            cpu = time.process_time()
            asyncio.run(way(url))
            spent[name].append(time.process_time() - cpu)
    here.send("done")
    least = statistics.median(spent["bare aiohttp"])
    for name, times in spent.items():
        cpu = statistics.median(times)
        print(f"{name:35s} {cpu / CALLS * 1e6:6.0f} us of CPU a call, {cpu / least:.2f}x")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory at most {peak:.0f} MiB with {AT_ONCE:,} calls under way")


if __name__ == "__main__":
    main()
