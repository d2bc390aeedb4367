"""A day of traffic with drift in the middle: alarm, recalibration, roll-back, all by the gateway.

    .venv/bin/python benchmarks/gateway_drift.py [--traces FILE] [--epsilon 0.15] [--harder 5]

A bundle is made of one day's questions, as in `gateway_day.py`. On the next day others are drawn
from those that it never saw, again and again. In the morning all are as likely; from noon on the
hard ones, on which the cheapest model says something else than the dearest, are asked several times
as often. Nobody tells the gateway. It audits a share of the replies, and raises an alarm; then
`farthing recalibrate` proves a new threshold on the audits since, and `farthing rollback` puts the
old one back. At the end every figure that the gateway reports is held to a sum by hand over the
rows of its database, to the ledger, and to the stub's own books.
"""

import argparse
import asyncio
import gzip
import json
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web
from gateway_day import (
    DEAR,
    FARTHING,
    PRICES,
    TRACES,
    Row,
    Stub,
    config,
    cost,
    day,
    free,
    learn,
    quiet,
    serving,
)
from recordings import needed

from farthing.money import dollars
from farthing.tasks.multiple_choice import normalise
from farthing_gateway.monitoring.base import Alarm, PromiseStatus
from farthing_gateway.monitoring.status import open_watch
from farthing_gateway.storage.ledger.ledger import open_ledger

RESULTS = Path(__file__).parent / "results" / "gateway_drift.json"
CHEAP = next(iter(PRICES))
LEARNED, MORNING, AFTER, EVENING, BACK = 1_000, 2_000, 2_500, 2_500, 200
"""Requests: that make the bundle, before noon, after the alarm, under the new certificate, and
under the old one again."""
BATCH, MOST = 100, 6_000
"""Requests between two looks at the alarms, and most of them after noon."""
SEEN_S = 5.0
"""Seconds after which the gateway has seen a new bundle for sure: it looks every two."""


@dataclass
class Played:
    """What replies said of questions, in some hours."""

    questions: list[str] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Gateway:
    """The gateway that runs, the questions, and what chance draws of them."""

    folder: Path
    port: int
    calls: Mapping[str, Mapping[str, Row]]
    held: Sequence[str]
    rng: np.random.Generator
    harder: float
    """How many times as often hard questions are asked from noon on."""

    async def play(self, number: int, harder: float, *, into: Played | None = None) -> Played:
        """Ask questions, the hard ones so many times as often, and wait for their audits."""
        played = Played() if into is None else into
        weight = np.array([harder if hard(self.calls[one]) else 1.0 for one in self.held])
        drawn = self.rng.choice(len(self.held), number, p=weight / weight.sum())
        questions = [self.held[at] for at in drawn]
        played.replies += await day(self.port, questions)
        played.questions += questions
        await self.settled()
        return played

    async def settled(self) -> None:
        """Wait until nothing is left to be audited or counted."""
        waiting = "SELECT (SELECT count(*) FROM audits WHERE state = 'waiting')"
        while self.read(f"{waiting} + (SELECT count(*) FROM watch_events)")[0][0]:
            await asyncio.sleep(0.2)

    async def alarms(self) -> list[Alarm]:
        """Return the alarms, the oldest first."""
        watch = await open_watch(str(self.folder / "farthing.db"))
        try:
            return (await watch.alarms())[::-1]
        finally:
            await watch.aclose()

    async def kept(self) -> list[PromiseStatus]:
        """Return what the gateway reports of its promises."""
        watch = await open_watch(str(self.folder / "farthing.db"))
        try:
            return [one for one in await watch.kept() if one.group is None]
        finally:
            await watch.aclose()

    async def run(self, *command: str) -> str:
        """Run a command as a user would; return all that it says."""
        out = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
        made = await asyncio.create_subprocess_exec(
            FARTHING, *command, cwd=self.folder, stdout=out[0], stderr=out[1]
        )
        said, _ = await made.communicate()
        assert made.returncode == 0, said.decode()
        return " ".join(said.decode().split())

    def read(self, sql: str) -> list[Any]:
        """Return the rows of a query."""
        with sqlite3.connect(self.folder / "farthing.db", timeout=30) as database:
            return database.execute(sql).fetchall()

    def agreed(self, played: Played) -> float:
        """Return the share of replies that say what the dear model said in the recording."""
        pairs = zip(played.questions, played.replies, strict=True)
        same = [
            normalise(said["text"]) == normalise(self.calls[q][DEAR]["answer"]) for q, said in pairs
        ]
        return sum(same) / len(same)

    def saved(self, played: Played) -> float:
        """Return what was saved on always asking the dear model, as a share, by hand."""
        dear = [self.calls[question][DEAR] for question in played.questions]
        always = sum(cost(DEAR, one["input_tokens"], one["output_tokens"]) for one in dear)
        return 1 - sum(one["cost_nano"] for one in played.replies) / always


def hard(calls: Mapping[str, Row]) -> bool:
    """Return whether the cheapest model says something else than the dearest."""
    return normalise(calls[CHEAP]["answer"]) != normalise(calls[DEAR]["answer"])


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--traces", type=Path, default=TRACES)
    arguments.add_argument("--epsilon", default="0.15")
    arguments.add_argument("--audit", type=float, default=0.2)
    arguments.add_argument("--harder", type=float, default=5.0)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    needed(given.traces)
    with gzip.open(given.traces, "rt") as file:
        recorded = [json.loads(line) for line in file]
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(both_days(recorded, Path(folder), given))
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    for name, value in found.items():
        print(f"{name:44} {value}")


async def both_days(
    recorded: Sequence[Row], folder: Path, given: argparse.Namespace
) -> dict[str, Any]:
    """Learn a bundle of one day, and play the other."""
    calls = {r["question"]: {c["role"]: c for c in r["calls"]} for r in recorded}
    questions = list(calls)
    stub, port = Stub(calls), free()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", stub.chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    config(folder, runner.addresses[0][1], port)
    with serving(folder, port):
        await day(port, questions[:LEARNED])
        await quiet(stub)
    await learn(folder, given.epsilon)
    audits_only(folder / "serve.toml", given.audit)
    rng = np.random.default_rng(given.seed)
    gateway = Gateway(folder, port, calls, questions[LEARNED:], rng, given.harder)
    with serving(folder, port):
        found = await second_day(gateway)
        await quiet(stub)
    await runner.cleanup()
    return found | await by_hand(gateway, stub)


def audits_only(file: Path, audit: float) -> None:
    """Try nothing in the background any more, but for the audits."""
    text = file.read_text().replace("share = 1.0\n", "share = 0.0\naudit_usd_per_day = 50.0\n")
    file.write_text(text.replace("max_tokens = 16\n", f"max_tokens = 16\naudit = {audit}\n"))


async def second_day(gateway: Gateway) -> dict[str, Any]:
    """Play the day with the drift, and do what the gateway says."""
    policy = ("serve.toml", "--policy", "day")
    morning = await gateway.play(MORNING, 1.0)
    quiet_until_noon = await gateway.alarms()
    before = (await gateway.kept())[0]
    drifted, promise = Played(), None
    while promise is None and len(drifted.replies) < MOST:
        await gateway.play(BATCH, gateway.harder, into=drifted)
        rang = await gateway.alarms()
        promise = next((one for one in rang if one.signal == "promise"), None)
    assert promise is not None, "no alarm"
    delay, first_certificate = len(drifted.replies), promise.certificate
    at_alarm = (await gateway.kept())[0]
    after = await gateway.play(AFTER, gateway.harder)
    said = await gateway.run("recalibrate", *policy)
    await asyncio.sleep(SEEN_S)
    evening = await gateway.play(EVENING, gateway.harder)
    rolled = await gateway.run("rollback", *policy)
    await asyncio.sleep(SEEN_S)
    back = await gateway.play(BACK, gateway.harder)
    signals = ", ".join(one.signal for one in await gateway.alarms())
    deployed = gateway.read("SELECT how FROM deployments ORDER BY number")
    ended = after.replies[-1]
    return {
        "morning: requests": f"{len(morning.replies):,}",
        "morning: alarms": ", ".join(one.signal for one in quiet_until_noon) or "none",
        "morning: answered as the dear model": f"{gateway.agreed(morning):.3f}",
        "morning: graded audits, their share, interval": _interval(before),
        "morning: saved, by hand": f"{gateway.saved(morning):.1%}",
        "noon: hard questions so many times as often": gateway.harder,
        "afternoon: requests until the alarm": f"{delay:,} at most",
        "afternoon: answered as the dear model": f"{gateway.agreed(drifted):.3f}",
        "afternoon: at the alarm, all audits": _interval(at_alarm),
        "afternoon: alarms, the oldest first": signals,
        "afternoon: replies then promise": f"{ended['promise']}: {ended['says']}",
        "recalibrate": said,
        "evening: replies that promise an agreement": _promising(evening),
        "evening: answered as the dear model": f"{gateway.agreed(evening):.3f}",
        "evening: saved, by hand": f"{gateway.saved(evening):.1%}",
        "rollback": rolled,
        "rolled back: replies that promise an agreement": _promising(back),
        "rolled back: the first certificate decides": {
            row[0]
            for row in gateway.read(
                f"SELECT certificate FROM traffic_requests ORDER BY at_us DESC LIMIT {BACK}"
            )
        }
        == {first_certificate},
        "log of deployments": ", ".join(row[0] for row in deployed),
    }


def _interval(kept: PromiseStatus) -> str:
    ends = f"{kept.low:.3f} to {kept.high:.3f}"
    if (kept.low, kept.high) == (0, 1):
        ends = "no share fits all of them"
    return f"{kept.graded}: {kept.share:.3f}, {ends}"


def _promising(played: Played) -> str:
    some = sum(one["promise"] == "agreement" for one in played.replies)
    return f"{some:,} of {len(played.replies):,}"


async def by_hand(gateway: Gateway, stub: Stub) -> dict[str, Any]:
    """Hold what the gateway reports to sums over the rows of its database."""
    columns = "certificate, cost_nano, later_nano, saved_nano, audited, trace, later, decided"
    rows = gateway.read(f"SELECT {columns} FROM traffic_requests")
    pairs: dict[str, tuple[Any, Any]] = {}
    kept = await gateway.kept()
    for number, one in enumerate(kept, start=1):
        own = [row for row in rows if row[0] == one.certificate]
        grades = [_grade(row) for row in own if row[4]]
        known = [grade for grade in grades if grade is not None]
        audits_nano = sum(row[2] for row in own if row[4])
        counted = (len(own), len(grades), len(known), audits_nano)
        pairs[f"counts {number}"] = (one.replies, one.drawn, one.graded, one.audits_nano), counted
        pairs[f"share {number}"] = round(one.share or -1, 9), round(sum(known) / len(known), 9)
    spent, later = sum(row[1] for row in rows), sum(row[2] for row in rows)
    saved = sum(row[3] or 0 for row in rows)
    sums = "sum(requests), sum(cost_nano), sum(later_nano), sum(saved_nano)"
    hours = gateway.read(f"SELECT {sums} FROM traffic_hours")[0]
    pairs["hours"] = tuple(hours), (len(rows), spent, later, saved)
    accounts = await open_ledger(str(gateway.folder / "farthing.db"))
    balances = await accounts.balances(["all", "policy:audit"])
    await accounts.aclose()
    everything, audits = (one.settled.nano for one in balances if one.period == "total")
    pairs["ledger"] = everything, spent + later
    pairs["the stub's books"] = stub.charged_nano, everything
    pairs["ledger of audits"] = audits, sum(one.audits_nano for one in kept)
    differ = [name for name, (reported, by_hand) in pairs.items() if reported != by_hand]
    return {
        "by hand: requests, certificates": f"{len(rows):,}, {len(kept)}",
        "by hand: spent on replies": dollars(spent),
        "by hand: spent on trials and audits": dollars(later),
        "by hand: of that, on audits": dollars(audits),
        "by hand: saved, as replies estimate it": dollars(saved),
        "by hand: figures compared": len(pairs) + 3 * len(kept) + 3,
        "by hand: figures that differ": ", ".join(differ) or "none",
    }


def _grade(row: Sequence[Any]) -> bool | None:
    """Return whether a reply was the dear model's; None where nobody asked that one."""
    trace, later, decided = row[5:]
    calls = [*json.loads(trace)["calls"], *map(json.loads, filter(None, later.split("\n")))]
    dear = next((one for one in calls if one["role"] == DEAR), None)
    if dear is None:
        return None
    (returned,) = json.loads(decided)["returned"] or (None,)
    return returned is not None and normalise(returned) == normalise(dear.get("answer") or "")


if __name__ == "__main__":
    main()
