"""A day of traffic in a minute: shadow start, certificate, policy, all through the gateway.

    .venv/bin/python benchmarks/gateway_day.py [--traces FILE] [--epsilon 0.1]

Recorded questions go through a running gateway without their gold answers; behind it a stub answers
as each model did, with the recorded numbers of tokens. On the first day the dear model answers, and
the others are tried in the background. `farthing recommend` makes a bundle of that day, which the
gateway finds by itself. On the second day it decides, about questions that it never saw. What the
replies say of money is held to a sum by hand: of the stub's own books, and of what the dear model
cost in the recording.
"""

import argparse
import asyncio
import gzip
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from recordings import FOLDER, needed

from farthing.money import dollars, nano_from_usd
from farthing.tasks.multiple_choice import normalise
from farthing_gateway.storage.ledger.ledger import open_ledger

FARTHING = str(Path(sys.executable).parent / "farthing")
RESULTS = Path(__file__).parent / "results" / "gateway_day.json"
TRACES = FOLDER / "mmlu-nine-models.jsonl.gz"
PRICES = {
    "gpt-4o-mini": ("0.15", "0.60"),
    "qwen2.5-72b-instruct": ("0.90", "0.90"),
    "llama3.1-70b": ("0.90", "0.90"),
    "llama3.1-405b": ("3.00", "3.00"),
}
"""Models from the cheapest to the dearest; USD for a million tokens read, and written."""
DEAR = list(PRICES)[-1]
FIRST_DAY, AT_ONCE = 1_200, 16
Row = Mapping[str, Any]


@dataclass
class Stub:
    """Answers as recorded, and keeps books of what it would charge."""

    rows: Mapping[str, Mapping[str, Row]]
    """Question to model to the recorded call."""
    charged_nano: int = 0
    calls: dict[str, int] = field(default_factory=dict)

    async def chat(self, request: web.Request) -> web.Response:
        """Answer a question as a model did."""
        asked = json.loads(await request.read())
        model = asked["model"]
        call = self.rows[asked["messages"][-1]["content"]][model]
        read, wrote = call["input_tokens"], call["output_tokens"]
        self.charged_nano += cost(model, read, wrote)
        self.calls[model] = self.calls.get(model, 0) + 1
        message = {"role": "assistant", "content": call["answer"] or ""}
        usage = {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"model": model, "choices": [choice], "usage": usage})


def cost(model: str, read: int, wrote: int) -> int:
    """Return what a call costs by hand, in nano-dollars."""
    into, out = (Decimal(price) for price in PRICES[model])
    return nano_from_usd((read * into + wrote * out) / 1_000_000)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--traces", type=Path, default=TRACES)
    arguments.add_argument("--epsilon", default="0.1")
    given = arguments.parse_args()
    needed(given.traces)
    with gzip.open(given.traces, "rt") as file:
        recorded = [json.loads(line) for line in file]
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(both_days(recorded, Path(folder), given.epsilon))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    for name, value in found.items():
        print(f"{name:48} {value}")


async def both_days(recorded: Sequence[Row], folder: Path, epsilon: str) -> dict[str, Any]:
    """Play both days, with the learning between them."""
    calls = {r["question"]: {c["role"]: c for c in r["calls"]} for r in recorded}
    questions = list(calls)
    stub = Stub(calls)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", stub.chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = free()
    config(folder, runner.addresses[0][1], port)
    with serving(folder, port):
        first = await day(port, questions[:FIRST_DAY])
        await quiet(stub)
        said = await learn(folder, epsilon)
        await asyncio.sleep(4)  # the gateway looks for bundles every two seconds
        second = await day(port, questions[FIRST_DAY:])
        await quiet(stub)
    await runner.cleanup()
    all_nano, trials_nano, audits_nano = await ledger(folder)
    replies_nano = sum(one["cost_nano"] for one in (*first, *second))
    return report(first, second, calls, questions) | {
        "both days: the stub's books": dollars(stub.charged_nano),
        "both days: the ledger, all": dollars(all_nano),
        "both days: the ledger, trials in the background": dollars(trials_nano),
        "both days: the ledger, audits in the background": dollars(audits_nano),
        "both days: the replies": dollars(replies_nano),
        "these agree to the nano-dollar": stub.charged_nano
        == all_nano
        == trials_nano + audits_nano + replies_nano,
        "recommend": said,
    }


async def ledger(folder: Path) -> tuple[int, int, int]:
    """Return what the ledger says of all calls, of trials and of audits, in nano-dollars."""
    accounts = await open_ledger(str(folder / "farthing.db"))
    balances = await accounts.balances(["all", "policy:shadow", "policy:audit"])
    await accounts.aclose()
    total = {one.account: one.settled.nano for one in balances if one.period == "total"}
    return total["all"], total["policy:shadow"], total["policy:audit"]


def report(
    first: Sequence[Row],
    second: Sequence[Row],
    calls: Mapping[str, Mapping[str, Row]],
    questions: Sequence[str],
) -> dict[str, Any]:
    """Return what the second day came to, by what replies said and by hand."""
    dear = [calls[q][DEAR] for q in questions[FIRST_DAY:]]
    always = sum(cost(DEAR, c["input_tokens"], c["output_tokens"]) for c in dear)
    spent = sum(one["cost_nano"] for one in second)
    same = [
        normalise(one["text"]) == normalise(c["answer"])
        for one, c in zip(second, dear, strict=True)
    ]
    kept = sum(one["promise"] == "agreement" for one in second)
    saved = sum(nano_from_usd(str(round(one["saved_usd"], 9))) for one in second)
    return {
        "first day: questions, all answered by": f"{len(first):,}, {DEAR}",
        "second day: questions": f"{len(second):,}",
        "second day: replies that keep an agreement": f"{kept:,}",
        "second day: spent, by the replies": dollars(spent),
        "second day: always the dear model, by hand": dollars(always),
        "second day: saved, by the replies (an estimate)": dollars(saved),
        "second day: saved, by hand": f"{dollars(always - spent)}, {1 - spent / always:.1%}",
        "second day: answered as the dear model": f"{sum(same) / len(same):.3f}",
        "second day: calls a question": sum(len(o["calls"]) for o in second) / len(second),
        "second day: median latency, s": sorted(o["latency_s"] for o in second)[len(second) // 2],
    }


def config(folder: Path, stub: int, port: int) -> None:
    """Write what the gateway serves."""
    models = "".join(
        f'[models."{name}"]\nprovider = "openai-compatible"\nmodel = "{name}"\n'
        f'url = "http://127.0.0.1:{stub}/v1"\n'
        for name in PRICES
    )
    prices = "".join(
        f'"{name}" = {{ input_per_million = {into}, output_per_million = {out} }}\n'
        for name, (into, out) in PRICES.items()
    )
    (folder / "serve.toml").write_text(
        f'[serve]\ndatabase = "farthing.db"\nstrongest = "{DEAR}"\nkeys = false\nport = {port}\n'
        "[record]\nshare = 1.0\nusd_per_day = 5.0\nat_once = 64\n"
        f'[policies.day]\npool = {json.dumps(list(PRICES))}\ntask = "multiple_choice"\n'
        f'max_tokens = 16\nbundle = "bundle"\nanswers_for = ["{DEAR}"]\n'
        f"{models}[prices]\n{prices}"
    )


def free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def serving(folder: Path, port: int) -> Iterator[None]:
    """Run the gateway as a user would."""
    command = [FARTHING, "serve", "serve.toml", "--record", "--watch"]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            for _ in range(1_200):
                with socket.socket() as one:
                    if one.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield
        finally:
            running.terminate()
            running.wait(30)


async def day(port: int, questions: Sequence[str]) -> list[dict[str, Any]]:
    """Ask the dear model all questions, as clients do; return what the replies say."""
    room = asyncio.Semaphore(AT_ONCE)
    async with aiohttp.ClientSession() as session:

        async def one(question: str) -> dict[str, Any]:
            message = {"role": "user", "content": question}
            async with (
                room,
                session.post(
                    f"http://127.0.0.1:{port}/v1/chat/completions",
                    json={"model": DEAR, "messages": [message]},
                ) as reply,
            ):
                said = await reply.json()
                assert reply.status == 200, said
            return {**said["farthing"], "text": said["choices"][0]["message"]["content"] or ""}

        return await asyncio.gather(*map(one, questions))


async def quiet(stub: Stub) -> None:
    """Wait until nothing has been asked for a second."""
    before = -1
    while before != stub.charged_nano:
        before = stub.charged_nano
        await asyncio.sleep(1.5)


async def learn(folder: Path, epsilon: str) -> str:
    """Make a bundle of the day, as a user would; return what was recommended."""
    out = ("--policy", "day", "--out", "day.db")
    await run(folder, "traffic", "export", "--config", "serve.toml", *out)
    asked = ("--promise", "agreement", "--epsilon", epsilon, "--reference", DEAR)
    said = await run(folder, "recommend", "day.db", *asked, "--out", "bundle")
    return " ".join(said.split("\n\n")[0].split())


async def run(folder: Path, *command: str) -> str:
    """Run a command, and return what it prints."""
    pipe = asyncio.subprocess.PIPE
    made = await asyncio.create_subprocess_exec(
        FARTHING, *command, cwd=folder, stdout=pipe, stderr=pipe
    )
    said, problem = await made.communicate()
    assert made.returncode in {0, 1}, problem.decode()
    return said.decode()


if __name__ == "__main__":
    main()
