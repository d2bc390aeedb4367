"""Can the gateway overspend, lose count, or grow? Crowds at a cap, killed workers, start, memory.

    .venv/bin/python benchmarks/gateway_crash.py [cap] [kills] [start] [starts] [soak] [--postgres]

`cap`: 1,000 requests at once against a cap that fits 50, four workers, 20 rounds. `kills`: 100
random workers killed with SIGKILL under load. `start`: seconds to the first answer, memory.
`starts`: 50 starts of four workers that record, on one database; how many went without a worker
that failed.
`soak`: 20,000 requests through one worker. `--postgres` takes a private PostgreSQL server
(`.ci/postgres`) in place of an SQLite file. The small version is
`packages/farthing-gateway/tests/helpers/test_crash.py`.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

ROOT = Path(__file__).parents[1]
sys.path[:0] = [
    str(ROOT / "packages/farthing-gateway/tests/helpers"),
    str(ROOT / "packages/farthing/tests/helpers"),
]

from chat_server import Endpoint  # noqa: E402
from crashing import against_a_cap, starts, under_kills  # noqa: E402
from gateway_running import models, serve_section  # noqa: E402
from serving import memory_mib, request, serving  # noqa: E402

PARTS = ("cap", "kills", "start", "starts", "soak")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    arguments.add_argument("--postgres", action="store_true")
    arguments.add_argument("--rounds", type=int, default=20)
    arguments.add_argument("--crowd", type=int, default=1_000)
    arguments.add_argument("--kills", type=int, default=100)
    arguments.add_argument("--requests", type=int, default=2_000, help="under kills")
    arguments.add_argument("--starts", type=int, default=50)
    arguments.add_argument("--soak", type=int, default=20_000)
    arguments.add_argument("--workers", type=int, default=4)
    given = arguments.parse_args()
    parts = given.parts or PARTS
    for part in parts:
        with tempfile.TemporaryDirectory() as name, database(given.postgres) as where:
            folder = Path(name)
            began = time.perf_counter()
            match part:
                case "cap":
                    cap(folder, where, given.rounds, given.crowd, given.workers)
                case "kills":
                    kills(folder, where, given.kills, given.requests, given.workers)
                case "start":
                    start(folder, where)
                case "starts":
                    begin(folder, where, given.starts, given.workers)
                case "soak":
                    soak(folder, where, given.soak)
            print(f"{part}: {time.perf_counter() - began:.0f} s", flush=True)


@contextmanager
def database(postgres: bool) -> Iterator[str]:  # noqa: FBT001
    """Yield where a database without tables is, while the block runs."""
    if not postgres:
        yield "gateway.db"
        return
    script = str(ROOT / ".ci/postgres")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        started = subprocess.run([script, "start", folder], capture_output=True, check=True)
        try:
            yield started.stdout.decode().strip()
        finally:
            subprocess.run([script, "stop", folder], check=True)


def cap(folder: Path, where: str, rounds: int, crowd: int, workers: int) -> None:
    place = where if "://" in where else str(folder / where)
    found = against_a_cap(folder, place, rounds=rounds, requests=crowd, workers=workers)
    print("answered  refused  others  upstream  spent / cap")
    for one in found:
        share = one.spent_nano / one.cap_nano
        print(f"{one.answered:8} {one.refused:8} {one.others:7} {one.calls:9}  {share:.4f}")
    over = sum(one.spent_nano > one.cap_nano for one in found)
    print(f"rounds above the cap: {over} of {len(found)}")


def kills(folder: Path, where: str, number: int, requests: int, workers: int) -> None:
    place = where if "://" in where else str(folder / where)
    found = under_kills(folder, place, kills=number, requests=requests, workers=workers, at_once=40)
    asked = found.upstream.total()
    print(f"kills {found.kills}, answered {found.answered} of {requests}, tries {found.tries}")
    print(f"connections that broke {found.broken}, tries too late {found.late}")
    print(f"upstream calls {asked}, ledger {found.ledger_calls}, marked {found.marked}")
    print(f"asked again upstream {found.twice}, most for one {max(found.upstream.values())}")
    print(f"still held {found.held}")
    beyond = found.ledger_nano - found.replied_nano - found.marked_nano
    print(f"charged and neither replied nor marked: {beyond} nano-dollars")


def start(folder: Path, where: str) -> None:
    with Endpoint() as stub:
        text = serve_section(database=where) + models(stub.url)
        for number in range(5):
            began = time.perf_counter()
            with serving(folder, text) as running:
                assert running.chat("large", "two words").status == 200
                seconds = time.perf_counter() - began
                memory = memory_mib(running.popen.pid)
                used = seconds_of(running.popen.pid)
            print(f"start {number + 1}: first answer after {seconds:.2f} s", end=", ")
            print(f"{used:.2f} s of one core, {memory:.0f} MiB")


def begin(folder: Path, where: str, number: int, workers: int) -> None:
    fine = 0
    for at, problems in enumerate(starts(folder, where, number=number, workers=workers), start=1):
        fine += not problems
        print(f"started: {fine} of {at}", *problems, sep="\n", flush=True)


def seconds_of(pid: int) -> float:
    """Return the seconds of a core that a process and its children have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = (int(fields[11]) + int(fields[12])) / 100
    return own + sum(seconds_of(int(child)) for child in children)


def soak(folder: Path, where: str, requests: int) -> None:
    async def some(url: str, n: int) -> None:
        room = asyncio.Semaphore(50)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def one() -> None:
                async with (
                    room,
                    session.post(f"{url}/v1/chat/completions", json=request("large", "x")) as reply,
                ):
                    assert reply.status == 200, await reply.read()
                    await reply.read()

            await asyncio.gather(*(one() for _ in range(n)))

    with Endpoint() as stub:
        text = serve_section(database=where) + models(stub.url) + "\n[record]\nshare = 0.0\n"
        with serving(folder, text) as running:
            for at in range(10):
                asyncio.run(some(running.url, requests // 10))
                done, memory = (at + 1) * requests // 10, memory_mib(running.popen.pid)
                print(f"{done:,} requests: {memory:.1f} MiB", flush=True)


if __name__ == "__main__":
    main()
