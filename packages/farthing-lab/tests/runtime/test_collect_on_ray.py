"""Two workers of a local Ray cluster: the traces of a single process, and no overspend."""

import json
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion

from farthing.errors import ModelError, StoreError
from farthing.runtime.collect import collect_locally
from farthing.runtime.job import Job, read_job
from farthing.runtime.journal import exclusive_lock
from farthing.traces.base import Trace
from farthing.traces.store import Store
from farthing_lab.comparison.collect_on_ray import collect_on_ray

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extras("ray"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own warnings
]
JOB = """
task = "text"
questions = "questions.jsonl"
rounds = 2
[agents.base]
model = "small"
max_tokens = 40
[agents.guide]
model = "large"
[models.small]
provider = "openai-compatible"
model = "small"
url = "URL"
limits = "here"
[models.large]
provider = "openai-compatible"
model = "large"
url = "URL"
limits = "here"
[limits.here]
concurrent = 6
[prices.small]
input_per_million = 1
output_per_million = 2
[prices.large]
input_per_million = 5
output_per_million = 10
"""
PLENTY = 10**12


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray = import_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.fixture
def job(endpoint: Endpoint, tmp_path: Path) -> Job:
    def reply(body: dict[str, Any]) -> web.Response:
        digest = sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        return web.json_response(completion(body, f"No. {digest}\nAnswer: {int(digest[0], 16)}"))

    endpoint.reply = reply
    endpoint.latency_s = 0.005
    lines = [
        json.dumps({"id": f"q{k}", "question": f"Number {k}?", "gold": "4"}) for k in range(30)
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(lines))
    (tmp_path / "job.toml").write_text(JOB.replace("URL", endpoint.url))
    return read_job(tmp_path / "job.toml")


def traces(store: Path) -> dict[str, list[tuple[object, ...]]]:
    with Store.open(store, create=False) as opened:
        return {trace.id: _timeless(trace) for trace in opened.traces()}


def _timeless(trace: Trace) -> list[tuple[object, ...]]:
    return [(c.round, c.role, c.answer, c.text, c.verdict, c.cost_usd) for c in trace.calls]


def test_two_workers_record_what_one_process_does(
    job: Job, endpoint: Endpoint, tmp_path: Path
) -> None:
    alone = collect_locally(job, tmp_path / "alone.db", PLENTY)
    asked = len(endpoint.requests)
    endpoint.most_under_way = 0
    both = collect_on_ray(job, tmp_path / "both.db", PLENTY, workers=2)
    assert (both.progress.done, both.progress.left, both.unknown) == (30, 0, [])
    assert traces(tmp_path / "both.db") == traces(tmp_path / "alone.db")
    with Store.open(tmp_path / "both.db", create=False) as store:
        assert store.systems() == [job.system()]
    assert both.balance == alone.balance
    assert len(endpoint.requests) == 2 * asked
    assert endpoint.most_under_way <= 6
    again = collect_on_ray(job, tmp_path / "both.db", PLENTY, workers=2)
    assert (again.earlier, len(endpoint.requests)) == (30, 2 * asked)


def test_workers_do_not_overspend_and_the_next_run_goes_on(
    job: Job, endpoint: Endpoint, tmp_path: Path
) -> None:
    whole = collect_locally(job, tmp_path / "whole.db", PLENTY).balance.settled_nano
    store = tmp_path / "a.db"
    first = collect_on_ray(job, store, whole // 2, workers=2)
    assert first.progress.stopped is not None
    assert 0 < first.progress.left <= 30
    assert 0 < first.balance.settled_nano <= whole // 2
    assert first.balance.reserved_nano == 0
    second = collect_locally(job, store, PLENTY)
    assert second.progress.left == 0
    assert second.balance.settled_nano == whole
    assert traces(store) == traces(tmp_path / "whole.db")


def test_a_refused_store_and_a_wrong_key_are_said_as_in_one_process(
    job: Job, endpoint: Endpoint, tmp_path: Path
) -> None:
    with exclusive_lock(tmp_path / "a.db"), pytest.raises(StoreError, match="other collection"):
        collect_on_ray(job, tmp_path / "a.db", PLENTY)
    endpoint.reply = lambda _: web.json_response({"error": {"message": "no"}}, status=401)
    with pytest.raises(ModelError, match=r"401|key"):
        collect_on_ray(job, tmp_path / "a.db", PLENTY)
