"""Fifty `kill -9`s at random moments of a collection, over a socket.

`pytest -m soak -rP packages/farthing/tests/runtime/test_collect_kills.py` prints the figures.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion

from farthing.traces.base import Trace
from farthing.traces.store import Store

KILLS = 50
QUESTIONS = 600
JOB = """
task = "text"
questions = "questions.jsonl"
rounds = 3
at_once = 8
[agents.base]
model = "small"
[agents.guide]
model = "large"
[models.small]
provider = "openai-compatible"
model = "small"
url = "URL"
[models.large]
provider = "openai-compatible"
model = "large"
url = "URL"
[prices.small]
input_per_million = 1
output_per_million = 2
[prices.large]
input_per_million = 5
output_per_million = 10
"""
PROGRAM = """
import os, sys
from pathlib import Path
from farthing.runtime.job import read_job
from farthing.runtime.collect import collect_locally
from farthing.models import openai_compatible
import aiohttp

def show(progress, balance):
    if progress.done == 1:
        print("began", flush=True)

for line in sys.stdin:  # everything is imported; each collection is a child that can be killed
    job, store = map(Path, line.split())
    child = os.fork()
    if child:
        print(child, flush=True)
        os.waitpid(child, 0)
        print("ended", flush=True)
        continue
    report = collect_locally(read_job(job), store, 10**12, show)
    print("left", report.progress.left, flush=True)
    os._exit(0)
"""


class Collections:
    """Starts collections, one at a time, in children of a warm process."""

    def __init__(self) -> None:
        self.parent = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, job: Path, store: Path) -> int:
        assert self.parent.stdin is not None
        self.parent.stdin.write(f"{job} {store}\n")
        self.parent.stdin.flush()
        return int(self.word())

    def word(self) -> str:
        assert self.parent.stdout is not None
        return self.parent.stdout.readline().strip()

    def until(self, wanted: str) -> list[str]:
        """Return what is said until a word, which is the last."""
        said = [self.word()]
        while said[-1] != wanted:
            assert said[-1], "the program died"
            said.append(self.word())
        return said

    def close(self) -> None:
        self.parent.communicate(timeout=10)


def prepare(folder: Path, url: str) -> Path:
    lines = [
        json.dumps({"id": f"q{k}", "question": f"Number {k}?", "gold": [str(k % 7)]})
        for k in range(QUESTIONS)
    ]
    (folder / "questions.jsonl").write_text("\n".join(lines))
    (folder / "job.toml").write_text(JOB.replace("URL", url))
    return folder / "job.toml"


def answer(body: dict[str, Any]) -> str:
    """Reply by everything that was sent, so that no two calls of a job are alike."""
    digest = sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    opening = "No." if body["model"] == "large" else "Thinking."
    return f"{opening} {digest}\nAnswer: {int(digest[0], 16)}"


@pytest.fixture
def collections() -> Iterator[Collections]:
    running = Collections()
    yield running
    running.close()


def traces(store: Path) -> dict[str, list[tuple[object, ...]]]:
    with Store.open(store, create=False) as opened:
        return {trace.id: essence(trace) for trace in opened.traces()}


def essence(trace: Trace) -> list[tuple[object, ...]]:
    """Return everything of a trace but its times."""
    return [
        (c.round, c.role, c.answer, c.text, c.verdict, c.cost_usd, c.error) for c in trace.calls
    ]


@pytest.mark.soak
def test_fifty_kills_repeat_no_completed_call(
    endpoint: Endpoint, collections: Collections, tmp_path: Path
) -> None:
    endpoint.latency_s = 0.01
    contents: Counter[str] = Counter()

    def reply(body: dict[str, Any]) -> web.Response:
        contents[json.dumps(body, sort_keys=True)] += 1
        return web.json_response(completion(body, answer(body)))

    endpoint.reply = reply
    job, store = prepare(tmp_path, endpoint.url), tmp_path / "killed.db"
    generator = random.Random(0)
    for _ in range(KILLS):
        child = collections.start(job, store)
        assert collections.word() == "began", "the job ended before the last kill"
        time.sleep(generator.uniform(0, 0.05))
        os.kill(child, signal.SIGKILL)
        assert collections.until("ended")[0] == "ended"
    collections.start(job, store)
    assert "left 0" in collections.until("ended")

    connection = sqlite3.connect(store)
    states = dict(connection.execute("SELECT state, count(*) FROM call_log GROUP BY state"))
    settled, reserved = connection.execute(
        "SELECT settled_nano, reserved_nano FROM spending"
    ).fetchone()
    charged = connection.execute("SELECT sum(cost_nano) FROM call_log").fetchone()[0]
    answered_twice = connection.execute(
        "SELECT count(*) FROM (SELECT key FROM call_log WHERE state = 'completed'"
        " GROUP BY key HAVING count(*) > 1)"
    ).fetchone()[0]
    late = connection.execute(
        "SELECT count(*) FROM call_log AS later JOIN call_log AS done USING (key)"
        " WHERE done.state = 'completed' AND later.number > done.number"
    ).fetchone()[0]
    connection.close()
    with Store.open(store) as opened:
        assert opened.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    repeated = sum(n - 1 for n in contents.values())
    print(  # noqa: T201
        f"kills {KILLS}, calls {len(contents)}, in flight at a kill {states['unknown']}, "
        f"of which the server had answered {repeated}, completed calls repeated {late}, "
        f"answered twice {answered_twice}"
    )
    assert states["completed"] == len(contents)
    assert (answered_twice, late) == (0, 0)
    assert 0 < repeated <= states["unknown"]
    assert (settled, reserved) == (charged, 0)

    whole = tmp_path / "whole.db"
    collections.start(job, whole)
    assert "left 0" in collections.until("ended")
    assert traces(store) == traces(whole)
    assert len(traces(store)) == QUESTIONS
