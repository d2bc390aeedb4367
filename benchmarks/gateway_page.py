"""How fast the administrator's page is at a million recorded requests, and whom it holds up.

    .venv/bin/python benchmarks/gateway_page.py [--requests 1000000] [--rounds 15] [--seconds 5]
        [--database postgresql://user@host/name]

Rows are made by hand in the gateway's database, a fifth as many of failures beside them, then
`farthing serve` runs on it in one process before a stub provider that takes 20 ms. First each page
is asked for by itself. Then, round after round, in an order that turns: chat alone, pages alone,
both at once, at fixed rates, so that what is slow does not slow the asking. Figures go to
`benchmarks/results/gateway_page.json`.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import numpy as np
import uvloop

from farthing.traces.base import Call, Trace
from farthing_gateway.recording import failures, traffic_rows
from farthing_gateway.recording.traffic_sums import HOUR_US, bucket_of
from farthing_gateway.storage.database import Step, microseconds, open_database
from farthing_gateway.storage.keys import open_keys
from farthing_gateway.storage.migrations import migrate
from gateway import FARTHING, HERE, free, models

RESULTS = HERE / "results" / "gateway_page.json"
CHAT_A_SECOND, PAGES_A_SECOND = 200, 30
AT_ONCE = 5_000
DAYS = 30
CONFIG = """
[serve]
database = "{database}"
strongest = "large"
port = {port}

[policies.support]
pool = ["small", "large"]
system = "Classify the ticket."

[policies.letters]
pool = ["small", "large"]
system = "Write a letter."

[[budgets]]
of = "all"
usd = 1000.0
per = "day"

[record]
share = 0.0
"""
PATHS = (
    *("", "/requests", "/requests?policy=letters&promise=none", "/requests/rows", "/frontier"),
    *("/certificates", "/alarms", "/policies", "/keys", "/requests?status=503"),
    *("/requests?key=rare0000", "/requests?key=00000001&policy=letters"),
)
SELDOM = (
    *("?range=30-days", "/requests?text=nowhere", "/requests?text=content"),
    "/requests?text=parcel&status=answered",
)
"""Asked for by themselves alone."""
FAILED = ((402, "budget_exceeded"), (429, "rate_limit_exceeded"), (502, "upstream_connection"))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--requests", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--seconds", type=float, default=5.0)
    arguments.add_argument("--database", default="")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="farthing-page-") as folder:
        database = asked.database or f"{folder}/gateway.db"
        began = time.perf_counter()
        keys = asyncio.run(made(database, asked.requests))
        print(
            f"{asked.requests:,} requests made in {time.perf_counter() - began:.0f} s", flush=True
        )
        with running(Path(folder), database) as url:
            found = uvloop.run(measured(url, keys, asked.rounds, asked.seconds))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


async def made(where: str, number: int) -> tuple[str, str]:
    """Record requests of thirty days, and make a key for the page and one for chat."""
    await migrate(where)
    database = await open_database(where)
    generator, now = np.random.default_rng(0), microseconds(datetime.now(UTC))
    latency: dict[tuple[Any, ...], int] = {}
    for first in range(0, number, AT_ONCE):
        rows = [
            row(at, number, now, generator) for at in range(first, min(number, first + AT_ONCE))
        ]
        await database.write(Step(traffic_rows.INSERT, rows))
        for one in rows:
            place = (one[1] // HOUR_US, one[4], "reply", one[5], bucket_of(one[11]))
            latency[place] = latency.get(place, 0) + 1
    for first in range(0, number // 5, AT_ONCE):
        some = range(first, min(number // 5, first + AT_ONCE))
        await database.write(Step(failures.INSERT, [failure(at, number // 5, now) for at in some]))
    insert = "INSERT INTO traffic_hours_latency VALUES ($1, $2, $3, $4, $5, $6)"
    sums = f"""
        INSERT INTO traffic_hours SELECT at_us / {HOUR_US}, policy, model, promise, count(*),
            sum(cost_nano), 0, sum(saved_nano), count(*), sum(cost_nano)
        FROM traffic_requests GROUP BY 1, 2, 3, 4"""
    calls = f"""
        INSERT INTO traffic_hours_calls SELECT at_us / {HOUR_US}, policy, answered_by, 0, count(*),
            0, sum(cost_nano)
        FROM traffic_requests GROUP BY 1, 2, 3"""
    failed = f"""
        INSERT INTO traffic_hours_failures SELECT at_us / {HOUR_US}, model, status, code, count(*),
            sum(cost_nano)
        FROM traffic_failures GROUP BY 1, 2, 3, 4"""
    rows = [(*place, count) for place, count in latency.items()]
    await database.write(Step(sums), Step(calls), Step(failed), Step(insert, rows))
    await database.aclose()
    keys = await open_keys(where)
    secrets = [
        (await keys.make(name, None, [scope]))[1]  # type: ignore[list-item]
        for name, scope in (("owner", "admin"), ("app", "call"))
    ]
    await keys.aclose()
    return secrets[0], secrets[1]


def row(at: int, number: int, now: int, generator: np.random.Generator) -> traffic_rows.Row:
    """Return a row of `INSERT`."""
    policy = ("letters", "support")[at % 2]
    role, cost = ("small", 150_000) if generator.random() < 0.7 else ("large", 2_500_000)
    name = f"{generator.integers(2**62):016x}{at:016x}"
    seconds = float(generator.lognormal(-0.5, 0.6))
    question = f"A ticket of some length, number {at}: " + "my parcel has not come. " * 8
    call = Call(round=1, role=role, answer="other", text="other", cost_usd=cost / 1e9,
                latency_s=seconds, input_tokens=90, output_tokens=3)  # fmt: skip
    trace = Trace(id=name, question=question, calls=[call], independent=True)
    moment = now - int((number - at) / number * timedelta(days=DAYS) / timedelta(microseconds=1))
    promise = "agreement" if role == "small" or policy == "letters" else "none"
    messages = json.dumps([{"role": "user", "content": question}])
    return (
        *(name, moment, key_of(at), name, policy, f"farthing/{policy}", messages),
        *(msgspec.json.encode(trace).decode(), promise, cost, 2_500_000 - cost, seconds, None),
        *(None, "default", role, None, None, 0, None),
    )


def failure(at: int, number: int, now: int) -> traffic_rows.Row:
    """Return a row of a request that was not answered; four of all of them with status 503."""
    back = int((number - at) / number * timedelta(days=DAYS) / timedelta(microseconds=1))
    status, code = FAILED[at % len(FAILED)] if at % (number // 4) else (503, "shutting_down")
    said = "key:app may spend $20 a day; nothing is left"
    return (f"f{at:031x}", now - back, key_of(at), "large", status, code, said, "[]", 0, 0.01)


def key_of(at: int) -> str:
    """Return the key of a request; one in a thousand is of the same seldom one."""
    return f"{at % 37:08x}" if at % 1_000 else "rare0000"


@contextmanager
def running(folder: Path, database: str) -> Iterator[str]:
    """Run the stub and the gateway."""
    stub, port = free(), free()
    text = CONFIG.format(database=database, port=port)
    text += models(f"http://127.0.0.1:{stub}/v1", small="small", large="stub")
    (folder / "serve.toml").write_text(text)
    servers = [sys.executable, str(HERE / "gateway_servers.py"), "stub", str(stub)]
    with (
        subprocess.Popen(servers) as upstream,
        subprocess.Popen([*FARTHING, "serve", str(folder / "serve.toml")]) as gateway,
    ):
        try:
            uvloop.run(until_ready(f"http://127.0.0.1:{port}"))
            yield f"http://127.0.0.1:{port}"
        finally:
            gateway.terminate()
            upstream.terminate()


async def until_ready(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(f"{url}/ready") as reply:
                    if reply.status == 200:
                        return
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)


async def measured(url: str, keys: tuple[str, str], rounds: int, seconds: float) -> dict[str, Any]:
    """Ask for pages one by one, then for pages and chat at once and by themselves."""
    owner, app = keys
    jar = aiohttp.CookieJar(unsafe=True)
    origin, opens = {"Origin": url}, {"Authorization": f"Bearer {app}"}
    async with (
        aiohttp.ClientSession(cookie_jar=jar, connector=connector()) as pages,
        aiohttp.ClientSession(headers=opens, connector=connector()) as chat,
    ):
        async with pages.post(f"{url}/admin/login", data={"key": owner}, headers=origin) as reply:
            assert reply.status == 200, await reply.text()
        async with pages.get(f"{url}/admin/requests") as reply:
            text = await reply.text()
        older = re.findall(r'id="r-(\w+)"', text)[-1]
        paths = [*PATHS, f"/requests/{older}"]
        found: dict[str, Any] = {"pages": await one_by_one(pages, url, paths)}
        found["deep"] = await one_by_one(pages, url, [*SELDOM, far_back()])
        loads: dict[str, list[list[float]]] = {}
        kinds = ["chat", "pages", "both"]
        for number in range(rounds):
            for kind in [*kinds[number % 3 :], *kinds[: number % 3]]:
                jobs = {}
                if kind != "pages":
                    jobs["chat"] = at_rate(chat, "post", [f"{url}/v1/chat/completions"],
                                           CHAT_A_SECOND, seconds)  # fmt: skip
                if kind != "chat":
                    addresses = [f"{url}/admin{path}" for path in paths]
                    jobs["pages"] = at_rate(pages, "get", addresses, PAGES_A_SECOND, seconds)
                for name, took in zip(jobs, await asyncio.gather(*jobs.values()), strict=True):
                    loads.setdefault(f"{name}, {kind}", []).append(took)
            print(f"round {number + 1} of {rounds}", flush=True)
    found["loads"] = {name: quantiles(some) for name, some in sorted(loads.items())}
    found["slowed"] = {kind: slowed(loads, kind) for kind in ("chat", "pages")}
    for name, one in found["loads"].items():
        print(f"{name:14} median {one['median_ms']:7.1f} ms   95 % {one['p95_ms']:7.1f} ms"
              f"   of rounds {one['medians_ms']}")  # fmt: skip
    print(f"median latency, with the other to without, median over rounds: {found['slowed']}")
    return found


def connector() -> aiohttp.TCPConnector:
    """Let go of idle connections before the gateway does."""
    return aiohttp.TCPConnector(keepalive_timeout=2.0)


async def one_by_one(
    session: aiohttp.ClientSession, url: str, paths: list[str], times: int = 30
) -> dict[str, Any]:
    """Return the first byte's median and maximum of each page, asked for alone."""
    found = {}
    for path in paths:
        took = [await first_byte(session, "get", f"{url}/admin{path}") for _ in range(times)]
        name = re.sub(r"/[0-9a-f]{32}", "/ID", path).partition("before=")[0]
        found[name] = {"median_ms": ms(np.median(took)), "most_ms": ms(max(took))}
        print(f"{name or '/':42} {found[name]}", flush=True)
    return found


def far_back() -> str:
    """Return the address of a page of the list some 15 days back."""
    moment = microseconds(datetime.now(UTC) - timedelta(days=15))
    return f"/requests?policy=support&before={moment}-0"


async def at_rate(
    session: aiohttp.ClientSession, method: str, urls: list[str], rate: float, seconds: float
) -> list[float]:
    """Ask at fixed moments, whether or not what came before was answered; return first bytes."""
    began, number = time.perf_counter(), int(rate * seconds)
    tasks = []
    for at in range(number):
        await asyncio.sleep(max(0.0, began + at / rate - time.perf_counter()))
        tasks.append(asyncio.ensure_future(first_byte(session, method, urls[at % len(urls)])))
    return list(await asyncio.gather(*tasks))


async def first_byte(session: aiohttp.ClientSession, method: str, url: str) -> float:
    """Return the seconds to the first byte of a reply's body."""
    said = [{"role": "user", "content": "Where is my parcel?"}]
    body = {"model": "large", "max_tokens": 20, "messages": said}
    began = time.perf_counter()
    asked = session.get(url) if method == "get" else session.post(url, json=body)
    async with asked as reply:
        assert reply.status in {200, 204}, (reply.status, await reply.text())
        await reply.content.readany()
        took = time.perf_counter() - began
        await reply.read()
    return took


def slowed(loads: dict[str, list[list[float]]], kind: str) -> dict[str, float]:
    """Return how many times as long the median takes beside the other, round by round.

    Only a ratio within a round says something where the machine has other work to do as well.
    """
    pairs = zip(loads[f"{kind}, both"], loads[f"{kind}, {kind}"], strict=True)
    ratios = [float(np.median(beside) / np.median(alone)) for beside, alone in pairs]
    quartiles = np.quantile(ratios, [0.25, 0.5, 0.75])
    names = ("quartile", "median", "upper quartile")
    return {name: round(float(one), 2) for name, one in zip(names, quartiles, strict=True)}


def quantiles(rounds: list[list[float]]) -> dict[str, Any]:
    together = [one for took in rounds for one in took]
    return {
        "median_ms": ms(np.median(together)),
        "p95_ms": ms(np.quantile(together, 0.95)),
        "medians_ms": [ms(np.median(took)) for took in rounds],
    }


def ms(seconds: Any) -> float:
    return round(1_000 * float(seconds), 1)


if __name__ == "__main__":
    main()
