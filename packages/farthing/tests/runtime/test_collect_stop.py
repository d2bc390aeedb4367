"""Ctrl-C once and twice, a thousand calls at once, and failures that are results."""

import asyncio
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint

from farthing.errors import ContentRefusedError
from farthing.models.scripted import ScriptedModel
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.collect import CollectionProgress, collect
from farthing.runtime.journal import StoreJournal
from farthing.runtime.meter import Meter
from farthing.runtime.protocol import Independent, RecordingPlan
from farthing.tasks.base import Question
from farthing.tasks.text import TEXT
from farthing.traces.store import Store

JOB = """
task = "text"
questions = "questions.jsonl"
pool = ["small"]
at_once = 4
[models.small]
provider = "openai-compatible"
model = "small"
url = "URL"
[prices.small]
input_per_million = 1
output_per_million = 2
"""


PROGRAM = """
import signal
from farthing.cli.main import run
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
run()
"""


def begin(url: str, folder: Path) -> subprocess.Popen[str]:
    """Run the command line on 500 questions."""
    lines = [
        json.dumps({"id": f"q{k}", "question": f"Number {k}?", "gold": "4"}) for k in range(500)
    ]
    (folder / "questions.jsonl").write_text("\n".join(lines))
    (folder / "job.toml").write_text(JOB.replace("URL", url))
    arguments = ["collect", str(folder / "job.toml"), "--store", str(folder / "a.db")]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.Popen(
        [*command, "--max-cost", "5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def states(store: Path) -> dict[str, int]:
    connection = sqlite3.connect(store)
    try:
        return dict(connection.execute("SELECT state, count(*) FROM call_log GROUP BY state"))
    finally:
        connection.close()


def wait_until(what: Any) -> None:
    for _ in range(3_000):
        if what():
            return
        time.sleep(0.01)
    raise AssertionError("it never happened")


@pytest.mark.slow
def test_one_ctrl_c_finishes_what_is_under_way(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.latency_s = 0.3
    running = begin(endpoint.url, tmp_path)
    wait_until(lambda: endpoint.under_way == 4)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130, err
    recorded = len(endpoint.requests)
    assert states(tmp_path / "a.db") == {"completed": recorded}
    assert f"{recorded:,} questions recorded" in out
    assert f"stopped: interrupted\n{500 - recorded:,} questions left to do" in err


@pytest.mark.slow
def test_a_second_ctrl_c_stops_at_once(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.latency_s = 60
    running = begin(endpoint.url, tmp_path)
    wait_until(lambda: endpoint.under_way == 4)
    running.send_signal(signal.SIGINT)
    time.sleep(1.0)
    assert running.poll() is None
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=40)
    assert (running.returncode, err) == (
        130,
        "farthing: interrupted; every reply so far is in the store, run it again to go on\n",
    )
    assert states(tmp_path / "a.db") == {"started": 4}
    wait_until(lambda: endpoint.disconnects == 4)
    endpoint.latency_s = 0
    endpoint.requests.clear()
    again = begin(endpoint.url, tmp_path)
    _, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert len(endpoint.requests) == 500
    assert "4 calls of unknown outcome, charged in full" in err
    assert states(tmp_path / "a.db") == {"completed": 500, "unknown": 4}
    with Store.open(tmp_path / "a.db") as store:
        charged = store.connection.execute("SELECT sum(cost_nano), min(cost_nano) FROM call_log")
        settled = store.connection.execute("SELECT settled_nano FROM spending").fetchone()[0]
        total, least = charged.fetchone()
    assert total == settled
    assert least > 0


def recorded(model: ScriptedModel, n: int, store: Store, **more: Any) -> CollectionProgress:
    journal = StoreJournal(store, 10**12, "test")

    async def run() -> CollectionProgress:
        meter = Meter(journal)
        plan = Independent((BaseAgent(model, role="m"),), 1, TEXT)
        questions = [Question(f"q{k}", f"Number {k}?") for k in range(n)]
        return await collect(questions, RecordingPlan(plan, TEXT), journal, meter, **more)

    return asyncio.run(run())


def test_a_refused_prompt_is_a_result(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: ContentRefusedError("not this one", cost_nano=7))
    with Store.open(tmp_path / "a.db") as store:
        assert recorded(model, 1, store).left == 0
        (trace,) = store.traces()
    (call,) = trace.calls
    assert (call.answer, call.cost_usd) == (None, 7e-9)
    assert call.error is not None
    assert call.error.type == "refused"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_questions(tmp_path: Path) -> None:
    """1,000 calls are under way at once; ten times the questions take hardly more memory."""
    under_way = most = 0

    class Counting(ScriptedModel):
        async def complete(self, prompt: Any) -> Any:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            try:
                return await super().complete(prompt)
            finally:
                self.calls.clear()
                under_way -= 1

    model = Counting(lambda _: "Answer: 4" + " and so on" * 100, latency_s=0.05)
    peaks = []
    for n in (1_000, 5_000):
        with Store.open(tmp_path / f"{n}.db") as store:
            assert recorded(model, n, store, at_once=1_000).done == n
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert most == 1_000
    assert peaks[1] - peaks[0] < 20_000, f"kilobytes, process {os.getpid()}"
