"""A policy of three models with a proved bundle, and audits of its live traffic, made up."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from farthing.cli.main import _run as farthing
from farthing.traces.base import Call, Trace
from farthing.traces.jsonl import write_traces
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic import open_traffic
from farthing_gateway.storage.migrations import migrate

POOL = {"small": 1e-5, "medium": 1e-4, "large": 1e-3}
"""Models to what a call costs, in USD."""
MODELS = "".join(
    f'[models.{name}]\nprovider = "openai-compatible"\nmodel = "{name}-2026"\n'
    'url = "http://127.0.0.1:9/v1"\n'
    for name in POOL
)
PRICES = "[prices]\n" + "".join(
    f'"{name}-2026" = {{ input_per_million = {usd * 1e6}, output_per_million = 0 }}\n'
    for name, usd in POOL.items()
)


def config(folder: Path, database: str = "farthing.db", bundle: str = "bundles/letters") -> Path:
    """Write the configuration of a gateway with one policy."""
    file = folder / "serve.toml"
    file.write_text(
        f'[serve]\ndatabase = {json.dumps(database)}\nstrongest = "large"\nkeys = false\n'
        f"[record]\n{MODELS}{PRICES}"
        f'[policies.letters]\npool = {json.dumps(list(POOL))}\ntask = "multiple_choice"\n'
        f'bundle = "{bundle}"\n'
    )
    return file


def calls_of(rng: np.random.Generator, *, agree: float = 0.9) -> list[Call]:
    """Return what models say: the cheap ones agree with the dear one where they agree at all."""
    dear = "ABCD"[rng.integers(4)]
    easy = rng.random() < 0.7
    said = {"large": dear}
    for name in ("small", "medium"):
        as_dear = rng.random() < (agree + 0.08 if easy else 0.5)
        said[name] = dear if as_dear else "ABCD"[rng.integers(4)]
    return [
        Call(round=1, role=name, model=f"{name}-2026", answer=said[name], cost_usd=usd)
        for name, usd in POOL.items()
    ]


def made_bundle(folder: Path, *promise: str) -> Path:
    """Return a bundle that `farthing recommend` made of 1,500 recorded questions."""
    rng = np.random.default_rng(0)
    recorded = [
        Trace(id=f"q{at}", calls=calls_of(rng), task="multiple_choice", independent=True)
        for at in range(1_500)
    ]
    traces = folder / "recorded.jsonl"
    write_traces(traces, recorded)
    asked = promise or ("--promise", "agreement", "--epsilon", "0.1")
    out = ("--reference", "large", "--out", str(folder / "bundles" / "letters"))
    assert farthing(["recommend", "--traces", str(traces), *asked, *out]) == 0
    return folder / "bundles" / "letters"


def live(
    number: int,
    begin: datetime,
    *,
    seed: int = 1,
    agree: float = 0.9,
    audit: float = 0.25,
    name: str = "live",
) -> list[RequestRecord]:
    """Return requests of the policy, one a second; those that an audit drew are complete."""
    rng = np.random.default_rng(seed)
    found = []
    for at in range(number):
        calls, drawn = calls_of(rng, agree=agree), bool(rng.random() < audit)
        trace = Trace(
            id=f"{name}-{at}",
            question=f"{name} {at}",
            calls=calls if drawn else calls[:2],
            task="multiple_choice",
            group="letters",
            independent=True,
        )
        found.append(
            RequestRecord(
                id=trace.id,
                at=begin + timedelta(seconds=at),
                key=None,
                conversation=trace.id,
                policy="letters",
                model="farthing/letters",
                messages=None,
                trace=trace,
                promise="agreement",
                saved_nano=0,
                latency_s=0.1,
                certificate="before",
                mode="default",
                answered_by="small",
                audit=audit,
                audited=drawn,
            )
        )
    return found


def write(database: str, passed: Sequence[RequestRecord]) -> None:
    """Write requests into the database of a gateway."""

    async def go() -> None:
        await migrate(database)
        traffic = await open_traffic(database, None, keep_prompts=True)
        for at in range(0, len(passed), 1_000):
            for one in passed[at : at + 1_000]:
                traffic.put(one)
            await traffic.flush()
        await traffic.aclose()

    asyncio.run(go())


def unaudited(passed: RequestRecord) -> RequestRecord:
    """Return a request that nobody drew, though every model answered it."""
    return replace(passed, audited=False, audit=None)


def soon() -> datetime:
    """Return a moment after all bundles of a test were made."""
    return datetime.now(UTC) + timedelta(seconds=1)
