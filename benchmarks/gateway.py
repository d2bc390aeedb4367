"""What a gateway adds: the provider itself, the least pass-through, Farthing, LiteLLM's proxy.

    .venv/bin/python benchmarks/gateway.py [--litellm BIN/litellm] [--rounds 5] [--record]

All run on this machine before the same stub provider that takes 20 ms, and are asked in turn, round
after round; `ms each` is the processor that a request took. Each has a ledger on disk, but LiteLLM,
which runs without a database. `--soak N` then sends N more requests to Farthing and shows its
memory. Figures go to `benchmarks/results/gateway.json`.
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import numpy as np
import uvloop

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "gateway.json"
FARTHING = [str(Path(sys.executable).parent / "farthing")]
MASTER = "sk-" + "0" * 32
ONE, MANY, STREAMS = 1, 50, 50
"""Requests under way: alone, many, many streams."""
CONFIG = """
[serve]
database = "gateway.db"
strongest = "stub"
port = {port}

[policies.cheap]
pool = ["small", "stub"]
task = "text"
bundle = "bundle"
"""
MODEL = """
[models.{section}]
provider = "openai-compatible"
model = "{model}"
url = "{url}"
"""
PRICES = """
[prices]
stub = { input_per_million = 2.5, output_per_million = 10 }
small = { input_per_million = 0.15, output_per_million = 0.6 }
"""
LITELLM = """
model_list:
  - model_name: stub
    litellm_params: {{model: openai/stub, api_base: "{url}", api_key: none}}
"""


@dataclass(frozen=True)
class Target:
    """One of those that are asked."""

    name: str
    url: str
    model: str
    pid: int
    key: str = "none"


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--litellm", type=Path)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--soak", type=int, default=0)
    arguments.add_argument("--requests", type=int, default=400, help="of a round, at 50 at once")
    arguments.add_argument("--record", action="store_true", help="Farthing records its traffic")
    given = arguments.parse_args()
    uvloop.install()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        targets = start(stack, folder, given.litellm, record=given.record)
        found = asyncio.run(rounds(targets, given.rounds, given.requests))
        show(found)
        if given.soak:
            found["soak"] = soak(targets[2], given.soak)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def models(url: str, **sections: str) -> str:
    """Return the models of a gateway's configuration, section to model, and their prices."""
    each = (MODEL.format(section=one, model=model, url=url) for one, model in sections.items())
    return "".join(each) + PRICES


def start(
    stack: ExitStack, folder: Path, litellm: Path | None, *, record: bool = False
) -> list[Target]:
    """Start everything that is asked; direct, bare, Farthing, its policy, LiteLLM."""
    servers = [sys.executable, str(HERE / "gateway_servers.py")]
    stub, bare, own = free(), free(), free()
    url = f"http://127.0.0.1:{stub}/v1"
    one = stack.enter_context(process([*servers, "stub", str(stub)], stub, folder))
    database = str(folder / "bare.db")
    two = stack.enter_context(process([*servers, "bare", str(bare), url, database], bare, folder))
    bundle(folder)
    (folder / "serve.toml").write_text(
        CONFIG.format(port=own) + models(url, stub="stub", small="small")
    )
    making = [*FARTHING, "keys", "make", "bench", "--config", "serve.toml", "--json"]
    made = subprocess.run(making, cwd=folder, check=True, capture_output=True)
    key = json.loads(made.stdout)["key"]
    began = time.perf_counter()
    serving = [*FARTHING, "serve", "serve.toml", *(["--record"] if record else [])]
    three = stack.enter_context(process(serving, own, folder))
    print(f"farthing: ready after {time.perf_counter() - began:.2f} s, {memory(three):.0f} MiB")
    targets = [
        Target("direct", url, "stub", one),
        Target("bare pass-through", f"http://127.0.0.1:{bare}/v1", "stub", two),
        Target("Farthing", f"http://127.0.0.1:{own}/v1", "stub", three, key),
        Target("Farthing, policy", f"http://127.0.0.1:{own}/v1", "farthing/cheap", three, key),
    ]
    if litellm is not None:
        port = free()
        (folder / "litellm.yaml").write_text(LITELLM.format(url=url))
        command = [str(litellm), "--config", "litellm.yaml", "--port", str(port)]
        four = stack.enter_context(process(command, port, folder))
        address = f"http://127.0.0.1:{port}/v1"
        targets.append(Target("LiteLLM", address, "stub", four, MASTER))
    return targets


def bundle(folder: Path) -> None:
    """Make a bundle as a user would: of recorded answers of both models."""
    generator = np.random.default_rng(0)
    lines = []
    for at in range(3_000):
        right = generator.random() < 0.97
        answers = {"stub": "word", "small": "word" if right else "other"}
        calls = [
            {"round": 1, "role": role, "model": role, "answer": text, "cost_usd": usd}
            for (role, text), usd in zip(answers.items(), (5.3e-4, 3.2e-5), strict=True)
        ]
        one = {"id": f"q{at}", "question": f"question {at}", "gold": [], "calls": calls}
        lines.append(json.dumps({**one, "independent": True}))
    (folder / "traces.jsonl").write_text("\n".join(lines) + "\n")
    command = [*FARTHING, "recommend", "--traces"]
    rest = ["traces.jsonl", "--reference", "stub", "--out", "bundle"]
    subprocess.run([*command, *rest], cwd=folder, check=True, capture_output=True)


def free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def process(command: Sequence[str], port: int, folder: Path) -> Iterator[int]:
    """Run a server while the block runs, from the moment when it answers."""
    with (folder / f"{port}.log").open("wb") as log:
        environment = {**os.environ, "LITELLM_MASTER_KEY": MASTER}
        running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)
        try:
            for _ in range(1_200):
                assert running.poll() is None, (folder / f"{port}.log").read_text()[-2_000:]
                with socket.socket() as one:
                    if one.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield running.pid
        finally:
            running.terminate()
            running.wait(20)


async def rounds(targets: Sequence[Target], n: int, requests: int) -> dict[str, dict[str, float]]:
    """Ask all targets in turn, round after round; return the medians over the rounds."""
    found: dict[str, list[dict[str, float]]] = {target.name: [] for target in targets}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        for target in targets:
            await load(session, target, 40, MANY, stream=False)  # warm
        for number in range(n):
            for target in targets:
                alone, _ = await load(session, target, 60, ONE, stream=False)
                before = processor_s(target.pid)
                many, seconds = await load(session, target, requests, MANY, stream=False)
                between = processor_s(target.pid)
                _, streaming = await load(session, target, 200, STREAMS, stream=True)
                after = processor_s(target.pid)
                found[target.name].append(
                    {
                        "alone_ms": 1_000 * float(np.median(alone)),
                        "many_p50_ms": 1_000 * float(np.median(many)),
                        "many_p95_ms": 1_000 * float(np.quantile(many, 0.95)),
                        "requests_a_second": requests / seconds,
                        "streams_a_second": 200 / streaming,
                        "processor_ms": 1_000 * (between - before) / requests,
                        "stream_processor_ms": 1_000 * (after - between) / 200,
                        "memory_mib": memory(target.pid),
                    }
                )
            print(f"round {number + 1} of {n}", file=sys.stderr)
    return {
        name: {key: float(np.median([one[key] for one in some])) for key in some[0]}
        for name, some in found.items()
    }


async def load(
    session: aiohttp.ClientSession, target: Target, n: int, at_once: int, *, stream: bool
) -> tuple[list[float], float]:
    """Send requests, so many at once; return the seconds of each, and of all."""
    room = asyncio.Semaphore(at_once)
    body = json.dumps(
        {
            "model": target.model,
            "messages": [{"role": "user", "content": "What is the capital of Portugal?"}],
            "stream": stream,
        }
    ).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {target.key}"}

    async def one() -> float:
        async with room:
            began = time.perf_counter()
            async with session.post(
                f"{target.url}/chat/completions", data=body, headers=headers
            ) as reply:
                said = await reply.read()
                assert reply.status == 200, (target.name, reply.status, said[:500])
            return time.perf_counter() - began

    began = time.perf_counter()
    seconds = await asyncio.gather(*(one() for _ in range(n)))
    return list(seconds), time.perf_counter() - began


def processor_s(pid: int) -> float:
    """Return the seconds of processor that a process and its children have used, system's too."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_s(int(child)) for child in children)


def memory(pid: int) -> float:
    """Return the memory of a process and its children, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own / 1_024 + sum(memory(int(child)) for child in children)


def soak(target: Target, n: int) -> list[float]:
    """Send many requests; return the memory after each tenth, in MiB."""

    async def some() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await load(session, target, n // 10, MANY, stream=False)

    found = []
    for at in range(10):
        asyncio.run(some())
        found.append(memory(target.pid))
        print(f"{(at + 1) * n // 10:,} requests: {found[-1]:.0f} MiB", flush=True)
    return found


def show(found: dict[str, dict[str, float]]) -> None:
    direct = found["direct"]["alone_ms"]
    head = (
        "",
        "alone, ms",
        "added",
        "50: p50",
        "p95",
        "a second",
        "ms each",
        "streams/s",
        "ms each",
    )
    print(("{:18}" + "{:>9}" * 9).format(*head, "MiB"))
    for name, one in found.items():
        row = (one["alone_ms"], one["alone_ms"] - direct, one["many_p50_ms"], one["many_p95_ms"])
        whole = (one["requests_a_second"], one["processor_ms"])
        rest = (one["streams_a_second"], one["stream_processor_ms"], one["memory_mib"])
        print(f"{name:18}" + "".join(f"{x:9.4g}" for x in (*row, *whole, *rest)))


if __name__ == "__main__":
    main()
