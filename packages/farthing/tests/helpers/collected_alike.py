"""What collection keeps in every mode.

A page of tests says its `MODE` and imports all that is named below.
"""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from chat_server import Endpoint

from farthing.models.retry import RetryPolicy
from farthing.runtime.collect import Report, collect_locally
from farthing.runtime.job import Job, read_job
from farthing.traces.base import Call, Trace
from farthing.traces.store import Store

__all__ = [
    "_key",
    "test_each_question_is_recorded_with_its_costs",
    "test_failed_questions_are_listed_and_asked_again",
    "test_faults_lose_nothing_and_pay_nothing_twice",
    "test_the_same_traces_whatever_the_concurrency",
    "test_traces_lost_are_rebuilt_from_the_log_alone",
    "write",
]

DOLLAR = 1_000_000_000


Write = Callable[..., Job]


@pytest.fixture
def write(tmp_path: Path, request: pytest.FixtureRequest) -> Write:
    """Write a job of n questions about the models at an endpoint, in the mode of the page."""

    def job(url: str, n: int = 10, *, head: str = "rounds = 2", tail: str = "") -> Job:
        lines = [
            json.dumps({"id": f"q{k}", "question": f"What is {k} + {k}?", "gold": [str(2 * k)]})
            for k in range(n)
        ]
        (tmp_path / "questions.jsonl").write_text("\n".join(lines))
        agents = '[agents.base]\nmodel = "small"\n[agents.guide]\nmodel = "large"\n'
        models = "".join(
            f'[models.{name}]\nprovider = "openai-compatible"\nmodel = "{name}"\nurl = "{url}"\n'
            'key_env = "COLLECT_TEST_KEY"\nretries = { tries = 8, first_s = 0.01 }\n'
            f"[prices.{name}]\ninput_per_million = {cost}\noutput_per_million = {cost}\n"
            for name, cost in {"small": 1, "large": 10}.items()
        )
        (tmp_path / "job.toml").write_text(
            f'task = "gsm8k"\nquestions = "questions.jsonl"\n{head}\n'
            + ("" if "pool" in head else f'mode = "{request.module.MODE}"\n{agents}')
            + models
            + tail
        )
        return read_job(tmp_path / "job.toml")

    return job


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECT_TEST_KEY", "sk-very-secret-9876")


def say(messages: list[dict[str, str]]) -> str:
    """Answer as a base or a guide would, by what is asked, and always the same."""
    text = messages[-1]["content"]
    return "No\nAnswer: 7" if "reasoning" in text.lower() and "Answer: 5" in text else "Answer: 5"


def readable(_: object) -> str:
    """Say what a base and a guide may both say, so that a collection goes on."""
    return "Yes.\nAnswer: 4"


def run(job: Job, store: Path, cap_nano: int = 100 * DOLLAR) -> Report:
    return collect_locally(job, store, cap_nano)


def traces(store: Path) -> dict[str, Trace]:
    """Return the traces of a store by question, less what depends on the clock."""
    with Store.open(store, create=False) as opened:
        return {trace.id: timeless(trace) for trace in opened.traces()}


def timeless(trace: Trace) -> Trace:
    calls = [msgspec.structs.replace(call, latency_s=None) for call in trace.calls]
    return msgspec.structs.replace(trace, calls=calls)


def log(store: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(store)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_each_question_is_recorded_with_its_costs(
    write: Write, endpoint: Endpoint, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = tmp_path / "a.db"
    report = run(write(endpoint.url), store)
    assert (report.progress.done, report.progress.left, report.unknown) == (10, 0, [])
    stored = traces(store)
    assert sorted(stored) == sorted(f"q{k}" for k in range(10))
    trace = stored["q3"]
    assert (trace.task, trace.gold) == ("gsm8k", ["6"])
    assert trace.independent == (request.module.MODE == "independent")
    assert [(c.round, c.role) for c in trace.calls] == [
        (1, "base"),
        (1, "guide"),
        (2, "base"),
        (2, "guide"),
    ]
    paid = sum(call.cost_usd or 0 for trace in stored.values() for call in trace.calls)
    assert report.balance.settled_nano == round(paid * DOLLAR)
    assert log(store, "SELECT settled_nano, reserved_nano FROM spending") == [
        (report.balance.settled_nano, 0)
    ]
    assert log(store, "SELECT sum(cost_nano) FROM call_log") == [(report.balance.settled_nano,)]


def test_traces_lost_are_rebuilt_from_the_log_alone(
    write: Write, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.faults = {"500": 0.1, "cut": 0.1}
    job, store = write(endpoint.url), tmp_path / "a.db"
    spent = run(job, store).balance.settled_nano
    before, asked = traces(store), len(endpoint.requests)
    with Store.open(store) as opened:
        opened.connection.execute("DELETE FROM traces")
    again = run(job, store)
    assert traces(store) == before
    assert len(endpoint.requests) == asked
    assert again.balance.settled_nano == spent


def test_faults_lose_nothing_and_pay_nothing_twice(
    write: Write, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.answer = readable
    run(write(endpoint.url, 50), tmp_path / "calm.db")
    calm = traces(tmp_path / "calm.db")
    endpoint.answered.clear()
    endpoint.calls.clear()
    faults = ["429", "429 seconds", "500", "reset", "cut", "garbage", "content type"]
    endpoint.faults = dict.fromkeys(faults, 0.03)
    store = tmp_path / "a.db"
    report = run(write(endpoint.url, 50), store)
    calls, failures = 50 * 4 * 1, sum(endpoint.failed.values())
    lost = 50 - len(traces(store))
    twice = sum(endpoint.answered.values()) - sum(
        n for (n,) in log(store, "SELECT count(*) FROM call_log WHERE state = 'completed'")
    )
    print(f"calls {calls}+, faults {failures}, lost {lost}, paid twice {twice}")  # noqa: T201
    assert (report.progress.left, lost, twice) == (0, 0, 0)
    assert failures > 20
    assert {q: _answers(t) for q, t in traces(store).items()} == {
        q: _answers(t) for q, t in calm.items()
    }
    tries = log(store, "SELECT count(*) FROM call_log")
    assert tries == [(sum(endpoint.calls.values()),)]


def _answers(trace: Trace) -> list[Call]:
    return [
        msgspec.structs.replace(call, cost_usd=None, largest_cost_usd=None) for call in trace.calls
    ]


def test_failed_questions_are_listed_and_asked_again(
    write: Write, endpoint: Endpoint, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    endpoint.faults = {"500": 1.0}
    endpoint.answer = lambda _: "Answer: 5"
    job, store = write(endpoint.url, 4), tmp_path / "a.db"
    quick = replace(job.models.sections["small"], patience=RetryPolicy(tries=1))
    job = replace(
        job, models=replace(job.models, sections=dict.fromkeys(("small", "large"), quick))
    )
    first = run(job, store)
    assert sorted(first.progress.failed) == ["q0", "q1", "q2", "q3"]
    assert "round 1, base: connection" in first.progress.failed["q0"]
    asked = {"dialogue": 4, "independent": 16}  # nobody asks on after a failure that may pass
    assert len(endpoint.requests) == asked[request.module.MODE]
    endpoint.faults = {}
    assert run(job, store).progress.left == 0
    assert len(traces(store)) == 4


def test_the_same_traces_whatever_the_concurrency(
    write: Write, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.answer = say
    kept = []
    for at_once in (1, 7, 1_000):
        store = tmp_path / f"{at_once}.db"
        run(write(endpoint.url, 12, head=f"rounds = 2\nat_once = {at_once}"), store)
        kept.append(traces(store))
    assert kept[0] == kept[1] == kept[2]
