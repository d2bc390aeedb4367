"""Does the ledger keep a cap that a crowd runs into, and how quick is it?

    python benchmarks/ledger.py

Four processes ask at once for a thousand reservations against a cap worth fifty, twenty times. Then
pairs of reserve and settle, by one task and by fifty, of one process and of four: a call of four
accounts under three limits. SQLite in a file, and PostgreSQL on this machine over a socket: the
server of FARTHING_TEST_POSTGRES, or a private one that waits for the disk at each commit.
"""

import asyncio
import multiprocessing
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from farthing_gateway.storage.ledger.base import Amount, Limit, LimitError
from farthing_gateway.storage.ledger.ledger import AccountLedger, open_ledger
from farthing_gateway.storage.migrations import migrate

SCRIPT = str(Path(__file__).parents[1] / ".ci/postgres")
PROCESSES, RESERVATIONS, WORTH, ROUNDS = 4, 1_000, 50, 20
SECONDS = 4.0
SHARE = Amount(1_000_000, 500)


async def crowd(accounts: AccountLedger, number: int) -> int:
    """Ask for this process's share of the reservations at once; return how many were admitted."""
    cap = Limit(f"cap:{number}", "usd", "total", WORTH * SHARE.nano)

    async def one() -> int:
        try:
            await accounts.reserve([cap.account, "all"], SHARE, [cap], lease_s=600)
        except LimitError:
            return 0
        return 1

    return sum(await asyncio.gather(*(one() for _ in range(RESERVATIONS // PROCESSES))))


async def pairs(accounts: AccountLedger, tasks: int) -> tuple[list[float], float]:
    """Reserve and settle for some seconds; return how long each pair took, and CPU seconds."""
    names = ["all", "team:a", "key:a", "model:m"]
    limits = [Limit(name, "usd", "day", 10**15) for name in names[:3]]
    took: list[float] = []
    end, cpu = time.perf_counter() + SECONDS, time.process_time()

    async def one() -> None:
        while (begun := time.perf_counter()) < end:
            hold = await accounts.reserve(names, SHARE, limits, lease_s=600, sent=True)
            await accounts.settle(hold, Amount(700_000, 300))
            took.append(time.perf_counter() - begun)

    await asyncio.gather(*(one() for _ in range(tasks)))
    return took, time.process_time() - cpu


TASKS: dict[str, Callable[[AccountLedger, int], Any]] = {"crowd": crowd, "pairs": pairs}


def work(where: str, orders: Connection) -> None:
    """Do what is ordered until the order is empty."""

    async def inside() -> None:
        accounts = await open_ledger(where)
        orders.send("ready")
        while order := orders.recv():
            name, argument = order
            orders.send(await TASKS[name](accounts, argument))
        await accounts.aclose()

    asyncio.run(inside())


@contextmanager
def workers(where: str) -> Iterator[list[Connection]]:
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(PROCESSES)]
    processes = [context.Process(target=work, args=(where, there)) for _, there in pipes]
    for process in processes:
        process.start()
    here = [pipe for pipe, _ in pipes]
    for pipe in here:
        pipe.recv()
    yield here
    for pipe in here:
        pipe.send(None)
    for process in processes:
        process.join()


def ordered(pipes: list[Connection], name: str, argument: int) -> list[Any]:
    for pipe in pipes:
        pipe.send((name, argument))
    return [pipe.recv() for pipe in pipes]


async def held(where: str, account: str) -> int:
    accounts = await open_ledger(where)
    [*_, total] = await accounts.balances([account])
    await accounts.aclose()
    return total.held.nano // SHARE.nano


def measure(name: str, where: str) -> None:
    asyncio.run(migrate(where))
    with workers(where) as pipes:
        admitted, took = [], []
        for number in range(ROUNDS):
            begun = time.perf_counter()
            admitted.append(sum(ordered(pipes, "crowd", number)))
            took.append(time.perf_counter() - begun)
        written = {asyncio.run(held(where, f"cap:{number}")) for number in range(ROUNDS)}
        print(
            f"{name}: of {RESERVATIONS:,} at once {min(admitted)} to {max(admitted)} were admitted,"
            f" {written} written, in {statistics.median(took):.2f} s (median of {ROUNDS} rounds)"
        )
        for processes in (1, PROCESSES):
            for tasks in (1, 50):
                done = ordered(pipes[:processes], "pairs", tasks)
                times = sorted(chain.from_iterable(took for took, _ in done))
                cpu = sum(cpu for _, cpu in done) / len(times)
                print(
                    f"{name} | {processes} x {tasks} | {len(times) / SECONDS:,.0f} pairs/s | "
                    f"p50 {1e3 * statistics.median(times):.1f} ms | "
                    f"p95 {1e3 * times[int(0.95 * len(times))]:.1f} ms | "
                    f"{1e6 * cpu:.0f} us of the asking processes' CPU a pair"
                )


@contextmanager
def server() -> Iterator[str | None]:
    named = os.environ.get("FARTHING_TEST_POSTGRES")
    if named:
        yield named
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        asked = [SCRIPT, "start", folder, "-c fsync=on"]
        started = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=False)
        yield started.stdout.strip() or None
        if started.returncode == 0:
            subprocess.run([SCRIPT, "stop", folder], check=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        measure("SQLite", str(Path(folder) / "ledger.db"))
    with server() as url:
        if url:
            measure("PostgreSQL", url)


if __name__ == "__main__":
    main()
