"""Load on `farthing serve`: more requests at once than a cap allows; workers that are killed."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from chat_server import Endpoint
from gateway_running import models, serve_section
from serving import Process, marked, request, serving, total, until

from farthing_gateway.chat_request import read_request
from farthing_gateway.config import read_config
from farthing_gateway.storage.ledger.base import AccountBalance
from farthing_gateway.upstream import open_upstreams

MODEL = """
[models.{name}]
provider = "openai-compatible"
model = "large-2026"
url = "{url}"
retries = {{ tries = 1 }}
timeout_s = 120
"""
CAP = """
[[budgets]]
of = "model:{name}"
per = "total"
usd = {usd!r}
"""
CONTENT = "a question of a length"
FITS = 50
SETTLED_S = 4.0
"""Seconds after the first answer in which the other workers start too."""


@dataclass(frozen=True)
class Round:
    """What came of one round against a cap."""

    answered: int
    refused: int
    others: int
    spent_nano: int
    cap_nano: int
    calls: int
    """That reached the upstream."""


async def crowd(url: str, model: str, n: int) -> Counter[int]:
    """Send requests all at once; return how many had each status."""
    body = request(model, CONTENT)
    timeout = aiohttp.ClientTimeout(total=300)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=timeout
    ) as session:

        async def one() -> int:
            async with session.post(f"{url}/v1/chat/completions", json=body) as reply:
                await reply.read()
                return reply.status

        return Counter(await asyncio.gather(*(one() for _ in range(n))))


def largest_nano(folder: Path, url: str) -> int:
    """Return the most that one of these requests can cost: what is set aside for it."""
    file = folder / "largest.toml"
    file.write_text(serve_section() + models(url))
    sections = read_config(file).models
    upstream = open_upstreams(sections, sections.admissions())["large"]
    body = json.dumps(request("large", CONTENT)).encode()
    found = upstream.prepare(read_request(body, {}), 4096).bound.nano
    assert found is not None
    return found


def against_a_cap(
    folder: Path, database: str, *, rounds: int, requests: int, workers: int
) -> list[Round]:
    """Send requests all at once against a cap that `FITS` of them fit, round after round.

    The upstream says nothing on usage, so that each costs what was set aside for it: exactly
    `FITS` of them can be answered.
    """
    names = [f"r{number}" for number in range(rounds)]
    found = []
    with Endpoint(faults={"no usage": 1.0}, latency_s=0.2) as stub:
        each = largest_nano(folder, stub.url)
        cap = FITS * each + each // 2
        text = serve_section(workers=workers, database=database) + models(stub.url)
        text += "".join(MODEL.format(name=name, url=stub.url) for name in names)
        text += "".join(CAP.format(name=name, usd=cap / 1e9) for name in names)
        with serving(folder, text) as running:
            for name in names:
                before = stub.calls.total()
                statuses = asyncio.run(crowd(running.url, name, requests))
                balance = _at_rest(database, f"model:{name}")
                rest = statuses.total() - statuses[200] - statuses[402]
                calls = stub.calls.total() - before
                spent = balance.settled.nano
                found.append(Round(statuses[200], statuses[402], rest, spent, cap, calls))
    return found


def _at_rest(database: str, account: str) -> AccountBalance:
    """Return an account once all calls are settled, which replies do not wait for."""
    until(lambda: total(database, account).held.nano == 0)
    return total(database, account)


def starts(folder: Path, database: str, *, number: int, workers: int) -> Iterator[list[str]]:
    """Start workers that record on one database, again and again; yield what each start said."""
    text = serve_section(database=database, workers=workers, keys=True) + models("http://127.0.0.1")
    for _ in range(number):
        (folder / "serve.log").unlink(missing_ok=True)
        with serving(folder, text, "--record") as running:
            time.sleep(SETTLED_S)
        problems = [
            one for one in running.said().splitlines() if "could not" in one or "rror" in one
        ]
        yield [*problems, *([] if running.popen.returncode == 0 else ["it failed"])]


@dataclass
class Killed:
    """What came of requests whose workers were killed."""

    kills: int = 0
    answered: int = 0
    tries: int = 0
    """Of clients, who send again what broke."""
    upstream: Counter[str] = field(default_factory=Counter)
    """Calls that the upstream got, by request."""
    ledger_calls: int = 0
    ledger_nano: int = 0
    replied_nano: int = 0
    """What the replies said they cost."""
    marked: int = 0
    marked_nano: int = 0
    held: int = 0
    broken: int = 0
    """Tries whose connection broke."""
    late: int = 0
    """Tries that took longer than allowed, on a machine that does much else."""

    @property
    def twice(self) -> int:
        """Calls beyond the first of each request, that the upstream got."""
        return sum(n - 1 for n in self.upstream.values() if n > 1)


def under_kills(
    folder: Path, database: str, *, kills: int, requests: int, workers: int, at_once: int
) -> Killed:
    """Kill workers under load; clients send again under the same idempotency key.

    Args:
        folder: where the configuration and the log are written.
        database: of the gateway.
        kills: workers that are killed, one after the other.
        requests: to be answered.
        workers: processes.
        at_once: requests under way.
    """
    found = Killed()
    with Endpoint(latency_s=0.2) as stub:
        serve = serve_section(workers=workers, database=database, deadline_s=9.0, lease_s=10.0)
        with serving(folder, serve + models(stub.url)) as running:
            asyncio.run(_load(running, found, kills, requests, at_once))
            until(lambda: total(database).held.calls == 0, 60)
        found.upstream = stub.calls
    balance, unknown = total(database), marked(database)
    found.ledger_calls, found.ledger_nano = balance.settled.calls, balance.settled.nano
    found.held = balance.held.calls
    found.marked, found.marked_nano = len(unknown), sum(one.amount.nano for one in unknown)
    return found


async def _load(running: Process, found: Killed, kills: int, requests: int, at_once: int) -> None:
    numbers = iter(range(requests))
    timeout = aiohttp.ClientTimeout(total=60)
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        clients = [
            asyncio.create_task(_client(session, running.url, numbers, found))
            for _ in range(at_once)
        ]
        await _kill(running, found, kills, clients)
        await asyncio.gather(*clients)


async def _kill(
    running: Process, found: Killed, kills: int, clients: Sequence[asyncio.Task[None]]
) -> None:
    """Kill a random worker now and then, as long as there is load."""
    draw = random.Random(0)
    while found.kills < kills and not all(one.done() for one in clients):
        before = found.answered
        while found.answered < before + 3 and not all(one.done() for one in clients):
            await asyncio.sleep(0.02)
        running.kill(draw.choice(running.workers))
        found.kills += 1


async def _client(
    session: aiohttp.ClientSession, url: str, numbers: Iterator[int], found: Killed
) -> None:
    """Ask one after the other, each until it is answered."""
    for number in numbers:
        body = request("large", f"request {number}", max_tokens=20)
        headers = {"Idempotency-Key": f"key {number}"}
        while True:
            found.tries += 1
            try:
                async with session.post(
                    f"{url}/v1/chat/completions", json=body, headers=headers
                ) as reply:
                    said = await reply.read()
            except aiohttp.ClientError:
                found.broken += 1
                await asyncio.sleep(0.1)
                continue
            if reply.status == 200:
                found.answered += 1
                found.replied_nano += json.loads(said)["farthing"]["cost_nano"]
                break
            assert reply.status in {409, 504}, (reply.status, said)
            found.late += reply.status == 504
            await asyncio.sleep(0.5)
