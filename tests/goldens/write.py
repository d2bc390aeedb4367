"""Write the goldens, with the code of before the split into three packages: commit c37e67c5.

    git worktree add ../before c37e67c5
    PYTHONPATH=../before/src:../before/tests/gateway:../before/tests/models:tests/goldens \
        OMP_NUM_THREADS=1 python tests/goldens/write.py

Its environment has `farthing` installed from that commit, which registers the methods and kinds. A
golden is not written anew because a test of today fails: what it holds is what users have kept.
"""

import gzip
import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from exchanges import transcripts
from kept import (
    EVIDENCE,
    HERE,
    SIZES,
    bundle_facts,
    certified,
    command,
    job_facts,
    log_facts,
    plain,
    sizes,
    without,
)

from farthing.bundle import folder as bundles
from farthing.methods.base import Dataset, Silent
from farthing.recommendation.candidates import single_candidate
from farthing.recommendation.pipeline import bundle_of
from farthing.recommendation.splits import Split, split_bundle_questions
from farthing.runtime.job import read_job
from farthing.traces import jsonl
from farthing.traces.base import Call, CallError, Trace
from farthing.traces.files import read_arrays, read_records
from farthing.traces.store import Store

PRESET = ("--preset", "mmlu-llama2-7b", "--horizon", "3")
BUNDLES: dict[str, tuple[str, str, tuple[str, ...] | None]] = {
    "split": ("talk", "ccpo", ("--alpha", "0.2")),
    "pac": ("talk", "stopping", ("--method", "pac", "--alpha", "0.3", "--delta", "0.2")),
    "groups": ("talk", "stopping", ("--method", "groups", "--alpha", "0.3")),
    "online": ("talk", "stopping", ("--method", "online", "--alpha", "0.2")),
    "weighted": (
        "talk",
        "lookahead",
        ("--promise", "shift", "--alpha", "0.3", "--target", "talk-new.jsonl.gz"),
    ),
    "selective": (
        "pool",
        "selective",
        ("--promise", "selective", "--alpha", "0.2", "--delta", "0.2"),
    ),
    "escalated": (
        "pool",
        "selective",
        (
            "--promise",
            "selective",
            "--escalate",
            "large",
            "--alpha",
            "0.2",
            "--delta",
            "0.2",
            "--epsilon",
            "0.1",
        ),
    ),
    "parity": ("pool", "ucci", ("--promise", "parity", "--epsilon", "0.2", "--delta", "0.2")),
    "agreement": (
        "plain",
        "pool-gain",
        ("--promise", "agreement", "--epsilon", "0.2", "--delta", "0.2", "--reference", "large"),
    ),
    "budget": (
        "pool",
        "lookahead",
        ("--promise", "budget", "--budget", "0.0009", "--most", "0.0011", "--delta", "0.2"),
    ),
    "none": ("talk", "ccpo", None),
    "uncalibrated": ("pool", "evidence-cascade", None),
    "fallback": (
        "pool",
        "always-small",
        ("--promise", "parity", "--epsilon", "0.01", "--reference", "large"),
    ),
}
"""Name to its log, method, and what calibration asks for."""


def pool(n: int, name: str, first: int) -> None:
    """Write questions of two models; the cheap one errs where it is unsure, or by chance."""
    traces = []
    for at in range(first, first + n):
        gold = "AB"[at % 2]
        dear = gold if at * 37 % 101 > 2 else "C"
        sure = at * 53 % 97 / 97
        cheap = dear if at * 61 % 103 / 103 < 0.55 + 0.45 * sure else "D"
        about: dict[str, Any] = {"round": 1}
        known: list[dict[str, Any]] = [{}, {}]
        if name.startswith("pool"):
            about |= {"input_tokens": 20 + at % 7, "output_tokens": 5, "latency_s": 0.25}
            known = [{"confidence": sure}, {"confidence": 0.9}]
        else:
            cheap = dear if at * 61 % 103 > 4 else "D"
        calls = [
            Call(
                role="small", model="small-2026", answer=cheap, cost_usd=1e-5, **about, **known[0]
            ),
            Call(role="large", model="large-2026", answer=dear, cost_usd=1e-3, **about, **known[1]),
        ]
        traces.append(
            Trace(
                id=f"q{at}",
                question=f"number {at}",
                gold=[gold],
                calls=calls,
                task="multiple_choice",
                independent=True,
            )
        )
    jsonl.write_traces(HERE / name, traces)


def logs() -> None:
    """Write the logs that bundles are made of, and those that they are asked about."""
    command("generate", *PRESET, "--n", "160", "--out", HERE / "talk.jsonl.gz")
    command("generate", *PRESET, "--n", "40", "--seed", "3", "--out", HERE / "talk-new.jsonl.gz")
    for log in ("talk", "talk-new"):
        made = read_records(HERE / f"{log}.jsonl.gz")
        for at, trace in enumerate(made):
            made[at] = msgspec.structs.replace(trace, group="law" if at % 3 else "art")
        jsonl.write_traces(HERE / f"{log}.jsonl.gz", made)
    pool(260, "pool.jsonl.gz", 0)
    pool(40, "pool-new.jsonl.gz", 1_000)
    pool(260, "plain.jsonl.gz", 0)
    pool(40, "plain-new.jsonl.gz", 1_000)


def records() -> list[Trace]:
    """Return traces in which every field is said somewhere."""
    base: dict[str, Any] = {
        "role": "base",
        "model": "small",
        "cost_usd": 4.89e-05,
        "input_tokens": 20,
        "output_tokens": 9,
    }
    guide: dict[str, Any] = {
        "role": "guide",
        "model": "large",
        "cost_usd": 0.001,
        "verdict": True,
        "uncertainty": 0.25,
    }
    found = []
    for at in range(6):
        calls = [
            Call(round=1, answer="4", correct=True, text="Answer: 4", confidence=0.75, **base),
            Call(round=1, answer="4", correct=True, tool_calls=1, latency_s=0.5, **guide),
            Call(round=2, answer=str(at), f1=0.5, score=1.5, largest_cost_usd=0.01, **base),
            Call(round=2, answer="4", extra={"own": 0.5, "reasoning_tokens": 3.0}, **guide),
        ]
        found.append(
            Trace(
                id=f"é{at}",
                question=f"2 + 2, said {at} times?",
                gold=["4", "four"],
                calls=calls,
                group="sums" if at % 2 else None,
                split=("train", "calibrate", "test")[at % 3],
                system_prompt="Count." if at else None,
                history="user: Hi" if at == 1 else None,
                options="A) 4\nB) 5" if at == 2 else None,
                parameters='{"temperature":0.5}' if at == 3 else None,
                requests=1 + at,
                cluster=f"talk {at // 2}",
            )
        )
    error = CallError(type="timeout", message="no reply within 9 s")
    lost = Call(round=1, role="base", model="small", cost_usd=0.0, error=error)
    rest = [Call(round=1, answer="4", **guide)]
    found.append(Trace(id="failed", question="?", gold=["4"], calls=[lost, *rest], truncated=True))
    return found


def store() -> None:
    """Write a log with every field, and the same as a store."""
    jsonl.write_traces(HERE / "records.jsonl", records())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "records.db"
        with Store.open(place) as opened:
            opened.add(records(), "golden")
        with sqlite3.connect(place) as connection:
            connection.execute("UPDATE imports SET imported_at = '2026-01-01T00:00:00Z'")
        connection.close()
        (HERE / "records.db.gz").write_bytes(gzip.compress(place.read_bytes(), 9, mtime=0))
        facts = {"jsonl": log_facts(HERE / "records.jsonl"), "store": log_facts(place)}
    for log in SIZES:
        facts[log] = log_facts(HERE / f"{log}-new.jsonl.gz")
        facts[log].pop("questions")
    stored("logs.json", facts)


def train(log: str, method: str, folder: Path) -> None:
    """Train a method on a log; CCPO's network is small, and trained for a few updates alone."""
    if method != "ccpo":
        command(
            "train",
            "--traces",
            HERE / f"{log}.jsonl.gz",
            *sizes(log),
            "--policy",
            method,
            "--out",
            folder,
        )
        return
    dataset = Dataset("golden", read_arrays(HERE / f"{log}.jsonl.gz"))
    candidate, learner = single_candidate(dataset, method)
    learner = replace(learner, config=replace(learner.config, updates=40))  # type: ignore[type-var, attr-defined]
    arrays = dataset.arranged(candidate.method.space)
    parts = split_bundle_questions(
        arrays, Split(0, dict(zip(("train", "calibrate", "test"), SIZES[log], strict=True)))
    )
    questions = arrays.take(parts.train)
    for room in ("networks", "actor_critic"):
        vars(import_module(f"farthing.rl.{room}"))["HIDDEN"] = (16, 16, 16)
    fitted = learner.fit(questions, Fraction(1, 5), 0, Silent())
    bundles.write(folder, bundle_of(candidate, fitted, questions, dataset, questions))


def write_bundles() -> None:
    """Write a bundle for each kind of promise, with what it does."""
    shutil.rmtree(HERE / "bundles", ignore_errors=True)
    facts = {}
    for name, (log, method, asked) in BUNDLES.items():
        folder = HERE / "bundles" / name
        train(log, method, folder)
        (HERE / "bundles" / f"{name}.curves.csv").unlink(missing_ok=True)
        if asked is not None:
            given = [str(HERE / one) if one.endswith(".gz") else one for one in asked]
            code, said = command(
                "calibrate",
                "--bundle",
                folder,
                "--traces",
                HERE / f"{log}.jsonl.gz",
                *sizes(log),
                *given,
            )
            print(name, code, " ".join(said.split())[:150])  # noqa: T201
        facts[name] = bundle_facts(log, folder, bundles.load(folder))
    stored("bundles.json", facts)


def settings() -> None:
    """Write what reading each TOML file gives."""
    facts = {file.name: job_facts(read_job(file)) for file in sorted(HERE.glob("job*.toml"))}
    read_config = import_module("farthing.gateway.config").read_config
    facts |= {file.name: plain(read_config(file)) for file in sorted(HERE.glob("serve*.toml"))}
    stored("settings.json", without(HERE)(facts))


def http() -> None:
    """Write the exchanges with a gateway."""
    with tempfile.TemporaryDirectory() as folder:
        stored("http.json", transcripts(Path(folder), HERE / "bundles" / "agreement"))


IN_ORDER = {"http.json", "certificates.json"}


def stored(name: str, facts: Any) -> None:
    """Write JSON in which nothing is out of order."""
    text = json.dumps(facts, indent=1, sort_keys=name not in IN_ORDER, ensure_ascii=False)
    (HERE / name).write_text(text + "\n")


PARTS: dict[str, Callable[[], None]] = {
    "certificates": lambda: stored(
        "certificates.json", {name: certified(name).to_json() for name in EVIDENCE}
    ),
    "logs": logs,
    "store": store,
    "bundles": write_bundles,
    "settings": settings,
    "http": http,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
